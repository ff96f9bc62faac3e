"""Products of arrays in narrow formats whose blocks have scales: scaled_dot.

A block-scaled array is a pair: elements in a format of 4 or 8 bits, and one scale for each block of
them along the contracted dimension. Source: Open Compute Project, OCP Microscaling Formats (MX)
Specification 1.0 (2023).

Neighbours: `xnp.nn.scaled_matmul`, `contractions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.docstrings import complete
from xnp.lax.contractions import dot_general
from xnp.primitives.operations import broadcasted, converted, mul, reshaped
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike
from xtree.namespaces import namespace

__all__ = ["scaled_dot"]


@boundary
def scaled_dot(
    lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None, dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the product of `lhs * lhs_scale` and `rhs * rhs_scale`, each scale for a block.

    Args:
      lhs: an array of two dimensions or more, mostly of a dtype of 4 or 8 bits.
      rhs: the same.
      lhs_scale: scales of the shape of lhs, but for contracted dimensions, whose sizes divide those
        of lhs: each scale is for that many elements in a row. None for ones.
      rhs_scale: scales of rhs.
      dimension_numbers: contracted and batch dimensions, as for `dot_general`; None for the matrix
        product of the last two, all before being batches.
      preferred_element_type: the dtype of the work and of the result; None for bfloat16.

    Returns:
      An array of the shape that `dot_general` gives.

    Example:
      >>> import xnp
      >>> x, scale = xnp.ones((2, 4)), xnp.array([[1.0, 2.0], [4.0, 8.0]])
      >>> scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type="float32").tolist()
      [[6.0, 6.0], [24.0, 24.0]]

    Differentiable in: lhs, rhs and their scales, where these are of a floating dtype.
    """
    x, y = as_array(lhs, what="scaled_dot: lhs"), as_array(rhs, what="scaled_dot: rhs")
    if dimension_numbers is None:
        if x.ndim < 2 or y.ndim != x.ndim:
            raise ValueError(message(
                "scaled_dot", "the operands must have the same number of dimensions, two at least.",
                got=f"lhs: {x.aval.str_long()}, rhs: {y.aval.str_long()}",
            ))  # fmt: skip
        batch = tuple(range(x.ndim - 2))
        dimension_numbers = ((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)
    wanted = dtypes.bfloat16 if preferred_element_type is None else dtypes.requested_dtype(
        preferred_element_type, "scaled_dot")  # fmt: skip
    (of_lhs, of_rhs), _ = dimension_numbers
    x = _scaled(x, lhs_scale, of_lhs, wanted, "lhs")
    y = _scaled(y, rhs_scale, of_rhs, wanted, "rhs")
    return dot_general(x, y, dimension_numbers, preferred_element_type=wanted)


def _scaled(x: Any, scale: Any, contracted: Sequence[int], dtype: Any, name: str) -> Any:
    """Return the product of elements and the scales of their blocks, in a dtype."""
    x = converted(x, dtype)
    if scale is None:
        return x
    scale = as_array(scale, what=f"scaled_dot: {name}_scale")
    shape, sizes = x.aval.shape, scale.aval.shape
    if len(sizes) != len(shape) or not all(
        n == m or (d in contracted and m and n % m == 0)
        for d, (n, m) in enumerate(zip(shape, sizes, strict=True))
    ):
        raise ValueError(message(
            "scaled_dot", f"the scales do not fit {name}.",
            got=f"{name}: {x.aval.str_long()}, {name}_scale: {scale.aval.str_long()}",
            expected="equal sizes, or, in contracted dimensions, sizes that divide",
        ))  # fmt: skip
    blocks: list[int] = []
    places: list[int] = []
    for n, m in zip(shape, sizes, strict=True):
        places.append(len(blocks))
        blocks += [m] if n == m else [m, n // m]
    spread = broadcasted(converted(scale, dtype), blocks, places)
    return mul(x, reshaped(spread, shape))


namespace(globals()).close()


complete(globals())
