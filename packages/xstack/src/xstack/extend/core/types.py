"""Types of examples and of batches, and what can be an argument of a function of arrays."""

from __future__ import annotations

from typing import Any

from xprim import ClosedJaxpr, Jaxpr, ShapedArray, Var, typeof
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "DropVar", "TraceTag", "jaxprs_in_params", "mapped_aval", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip

__dir__ = __all__.copy


class DropVar(Var):
    """A result of an equation that nothing uses; programs here have a plain variable for it."""

    __slots__ = ()


class TraceTag:
    """What tells one use of a trace from another: compared by identity."""

    __slots__ = ()


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one example of a batch.

    Args:
      size: of the batch.
      axis: its dimension, or None where every example is the value itself.
      aval: the type of the batch.

    Raises:
      ValueError: when that dimension has another size.

    Example:
      >>> mapped_aval(3, 1, ShapedArray((2, 3), "float32"))
      ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(
            f"mapped_aval: dimension {axis} of {aval.str_short()} is no batch of {size}."
        )
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: None = None
) -> ShapedArray:
    """Return the type of a batch of examples of one type.

    Args:
      size: of the batch.
      axis: where its dimension stands, or None where there is none.
      aval: the type of an example.
      explicit_mesh_axis: over which axis of a mesh the batch is spread; none, so None.

    Raises:
      ValueError: when an axis of a mesh is named.

    Example:
      >>> unmapped_aval(3, 0, ShapedArray((2,), "float32"))
      ShapedArray(float32[3,2])
    """
    if explicit_mesh_axis is not None:
        raise ValueError("unmapped_aval: a batch over an axis of a mesh has no type of its own.")
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def valid_jaxtype(x: ArrayLike) -> bool:
    """Return whether a value can be an argument of a function of arrays, by itself.

    Args:
      x: anything.

    Example:
      >>> valid_jaxtype(1.5), valid_jaxtype("text"), valid_jaxtype([1.5])
      (True, False, False)
    """
    try:
        typeof(x)
    except (TypeError, ValueError):
        return False
    return True


def jaxprs_in_params(params: dict[str, Any]) -> list[Jaxpr]:
    """Return the programs among the params of an equation, those in tuples and lists, too.

    Args:
      params: `eqn.params`.

    Example:
      >>> import xstack
      >>> program = xstack.make_jaxpr(xstack.jit(lambda x: x))(1.0)
      >>> len(jaxprs_in_params(program.eqns[0].params))
      1
    """
    found = []
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                found.append(item.jaxpr)
            elif isinstance(item, Jaxpr):
                found.append(item)
    return found


boundaries(globals())
