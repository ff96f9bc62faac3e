"""Matrix products: `dot`, `dot_general`, `batch_matmul`.

Neighbours: `xnp.primitives.dot_general` has the rules, `xnp.primitives.precision` the precisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xnp.docstrings import complete
from xnp.placing import computed_as
from xnp.primitives.dot_general import dot_general_p
from xnp.primitives.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    PrecisionLike,
    normal_precision,
)
from xprim import Array, as_array, dtypes
from xprim.errors import ShapeError, message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
    "dot_general_p",
]

__dir__ = __all__.copy

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

_VECTOR_PRODUCTS = {
    (1, 1): (((0,), (0,)), ((), ())),
    (1, 2): (((0,), (0,)), ((), ())),
    (2, 1): (((1,), (0,)), ((), ())),
    (2, 2): (((1,), (0,)), ((), ())),
}


def dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Sum products of two arrays over contracted dimensions.

    Args:
      lhs: an array.
      rhs: an array. Of two dtypes the complex one, or that of the greater range, then of more
        digits, then of more bits, holds the result.
      dimension_numbers: `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`, each a
        sequence of dimensions; pairs of dimensions have equal sizes.
      precision: how exactly hardware with a choice computes; None takes the option
        `default_matmul_precision`.
      preferred_element_type: the dtype of sums and result; None for that of the operands.
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
      An array whose dimensions are the batch dimensions, then the free dimensions of `lhs`, then
      those of `rhs`. Dtypes of 16 bits and fewer are summed in float32 and rounded once; integers
      wrap around; booleans are joined by "or". A sum over no elements is zero.

    Example:
      >>> import numpy as np
      >>> x = np.ones((5, 2, 3), np.float32)
      >>> dot_general(x, x, (([2], [2]), ([0], [0]))).shape
      (5, 2, 2)

    Differentiable in: lhs, rhs.
    Source: StableHLO specification, section dot_general.
    """
    if out_sharding is not None:
        return computed_as(out_sharding, dot_general, lhs, rhs, dimension_numbers, precision,
                           preferred_element_type)  # fmt: skip
    lhs, rhs = as_array(lhs, what="dot_general: lhs"), as_array(rhs, what="dot_general: rhs")
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(message(
            "dot_general", "dimension_numbers must be ((lhs contracting, rhs contracting), (lhs "
            "batch, rhs batch)).", got=f"{dimension_numbers!r}",
        )) from None  # fmt: skip
    numbers = ((_dims(lc, lhs.ndim), _dims(rc, rhs.ndim)),
               (_dims(lb, lhs.ndim), _dims(rb, rhs.ndim)))  # fmt: skip
    return _product(lhs, rhs, numbers, precision, preferred_element_type)


def dot(
    lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Multiply vectors and matrices; with `dimension_numbers`, the same as `dot_general`.

    Args:
      lhs: a vector or a matrix.
      rhs: a vector or a matrix.
      dimension_numbers: see `dot_general`.
      precision: see `dot_general`.
      preferred_element_type: see `dot_general`.
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
      An array of the remaining dimensions, those of `lhs` first: a 0-d one for two vectors.

    Example:
      >>> import numpy as np
      >>> float(np.asarray(dot(np.float32([1, 2]), np.float32([3, 4]))))
      11.0
    """
    if out_sharding is not None:
        return computed_as(out_sharding, dot, lhs, rhs, dimension_numbers=dimension_numbers,
                           precision=precision,
                           preferred_element_type=preferred_element_type)  # fmt: skip
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    lhs, rhs = as_array(lhs, what="dot: lhs"), as_array(rhs, what="dot: rhs")
    numbers = _VECTOR_PRODUCTS.get((lhs.aval.ndim, rhs.aval.ndim))
    if numbers is None or lhs.aval.shape[-1] != rhs.aval.shape[0]:
        raise _bad_dot(lhs, rhs)
    return _product(lhs, rhs, numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiply matrices in the last two dimensions, once for each index of the leading ones.

    Args:
      lhs: of shape (..., m, k).
      rhs: of shape (..., k, n), with the same leading dimensions.
      precision: see `dot_general`.

    Returns:
      An array of shape (..., m, n).

    Example:
      >>> import numpy as np
      >>> batch_matmul(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
      (2, 3, 5)
    """
    lhs, rhs = as_array(lhs, what="batch_matmul: lhs"), as_array(rhs, what="batch_matmul: rhs")
    ndim = lhs.ndim
    if ndim != rhs.ndim or ndim < 2:
        raise ValueError(message(
            "batch_matmul", "the operands must have the same number of dimensions, two at least.",
            got=f"lhs: {lhs.aval.str_long()}, rhs: {rhs.aval.str_long()}",
        ))  # fmt: skip
    batch = tuple(range(ndim - 2))
    return _product(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision, None)


def _product(lhs: Any, rhs: Any, numbers: Any, precision: Any, preferred: Any) -> Array:
    if preferred is not None:
        preferred = dtypes.requested_dtype(preferred, "dot_general")
    result: Array = dot_general_p.bind(
        lhs, rhs, dimension_numbers=numbers, precision=normal_precision(precision),
        preferred_element_type=preferred,
    )[0]  # fmt: skip
    return result


def _dims(dims: Any, ndim: int) -> tuple[int, ...]:
    found = [size_of(d) for d in dims]
    return tuple([d + ndim if -ndim <= d < 0 else d for d in found])


def _bad_dot(lhs: Any, rhs: Any) -> TypeError:
    got = f"lhs: {lhs.aval.str_long()}, rhs: {rhs.aval.str_long()}"
    if not 1 <= lhs.ndim <= 2 or not 1 <= rhs.ndim <= 2:
        return TypeError(message(
            "dot", "the operands must be vectors or matrices.", got=got,
            hint="lax.dot_general contracts dimensions of arrays of any rank",
        ))  # fmt: skip
    return ShapeError(message(
        "dot", f"the contracted dimensions differ: {lhs.shape[-1]} and {rhs.shape[0]}.", got=got,
        expected="lhs.shape[-1] == rhs.shape[0]",
))  # fmt: skip


complete(globals())
boundaries(globals())
