"""What members of manual axes hold of a value, and how it becomes something else.

One value for all (`"invarying"`), values of their own (`"varying"`), the parts of a sum
(`"unreduced"`), or the value while its cotangent is in parts (`"reduced"`): the words of `pcast`.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.table import broadcasted, filled, selected
from xprim import dtypes, get_primitive, scalar_array

__all__ = ["recast"]

__dir__ = __all__.copy


def recast(x: Any, axes: tuple[Any, ...], old: str, new: str, mesh: Any) -> Any:
    """Return a value of which members of manual axes hold something else.

    The value stays what it is: one for all members, or the sum of their parts; of what varies it is
    the sum, too, as of cotangents.

    Args:
      x: the value.
      axes: of type Manual.
      old: what members hold: `"invarying"`, `"varying"`, `"unreduced"` or `"reduced"`.
      new: what they are to hold.
      mesh: the mesh, as it is inside.
    """
    if not axes or old == new:
        return x
    if old in ("varying", "unreduced") and (old, new) != ("varying", "unreduced"):
        (x,) = get_primitive("psum").bind(x, axes=axes, axis_index_groups=None)
        return recast(x, axes, "invarying", new, mesh)
    if old != "varying" and new == "unreduced":
        x = recast(x, axes, old, "varying", mesh)
        return recast(_of_first_members(x, axes, mesh), axes, "varying", new, mesh)
    if (old, new) == ("invarying", "varying"):
        return get_primitive("pvary").bind(x, axes=axes, mesh=mesh)[0]
    return get_primitive("pcast").bind(x, axes=axes, mesh=mesh, old=old, new=new)[0]


def _of_first_members(x: Any, axes: tuple[Any, ...], mesh: Any) -> Any:
    """Return zeros but for the member that is the first one along each of some axes."""
    zeros = filled(x.aval.shape, 0, x.aval.dtype)
    for axis in axes:
        (number,) = get_primitive("axis_index").bind(axis_name=(axis,))
        number = recast(number, (axis,), number.aval.mat.state(axis), "varying", mesh)
        (is_first,) = get_primitive("eq").bind(number, scalar_array(0, dtypes.int32))
        x = selected(broadcasted(is_first, x.aval.shape), x, zeros)
    return x
