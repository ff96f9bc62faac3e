"""`xnp.lax`: sorting, the greatest elements, and cumulative operations.

NaN is the greatest number in `sort`; it wins in `argmin`, `argmax`, `cummin` and
`cummax`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, overload

from xnp import lax
from xnp.lax.shape import dimension_of
from xnp.primitives.arg_reductions import argmax_p, argmin_p
from xnp.primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from xnp.primitives.sort import sort_p, top_k_p
from xnp.primitives.table import bind, broadcast_to, scalar_like
from xprim import Array, Primitive, as_array, dtypes
from xprim.avals import size_of
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike

__all__ = [
    "approx_max_k", "approx_min_k", "argmax", "argmin", "cumlogsumexp", "cummax", "cummin",
    "cumprod", "cumsum", "sort", "sort_key_val", "top_k",
]  # fmt: skip

__dir__ = __all__.copy


@overload
def sort(
    operand: ArrayLike, dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = ..., is_stable: bool = ..., num_keys: int = ...
) -> tuple[Array, ...]: ...
def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """Sort along a dimension in ascending order.

    Args:
      operand: an array, or several of one shape, which are all permuted alike.
      dimension: which one to sort along; negative ones count from the end.
      is_stable: whether equal elements must keep their order (the compiler may be faster without).
      num_keys: how many of the operands are compared, the first one first.

    Returns:
      The sorted array, or a tuple of arrays when several were given. NaN comes last, -0.0 equals
      0.0, complex numbers are compared by real, then imaginary part.

    Differentiable: tangents are permuted alike. Source: StableHLO, section sort.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> import numpy as np
      >>> np.asarray(sort(np.array([3, 1, 2]))).tolist()
      [1, 2, 3]
    """
    several = isinstance(operand, Sequence)
    given = operand if isinstance(operand, Sequence) else [operand]
    xs = [as_array(x, what="sort") for x in given]
    require(xs, "sort", "needs at least one array, got none.", error=TypeError)
    outs = sort_p.bind(
        *xs,
        dimension=dimension_of(dimension, xs[0].aval.ndim, "sort"),
        is_stable=bool(is_stable),
        num_keys=size_of(num_keys),
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along a dimension and permute values alike.

    Args:
        keys: an array.
        values: another of the same shape.
        dimension: the one along which is sorted.
        is_stable: whether equal keys keep their order.

    Returns:
        The sorted keys and the values in that order.

    Example:
      >>> import numpy as np
      >>> k, v = sort_key_val(np.array([2, 1]), np.array([10.0, 20.0]))
      >>> np.asarray(v).tolist()
      [20.0, 10.0]
    """
    in_order, moved = sort((keys, values), dimension, is_stable, 1)
    return in_order, moved


def top_k(
    operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Return the k greatest elements along an axis in descending order, and their int32 indices.

    Of equal elements the one with the lower index comes first; floats are compared in their total
    order, in which NaN is above infinity (below -infinity when its sign bit is set) and 0.0 above
    -0.0. Without `is_stable` the order of equal elements is not promised; it is the same.
    Differentiable in `operand`. Source: CHLO, operation top_k.

    Args:
        operand: an array.
        k: how many.
        axis: the axis along which they are looked for.
        is_stable: whether of equal elements the first come first.

    Returns:
        Two arrays with k elements along the axis.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> values, places = top_k(np.array([1.0, 3.0, 2.0]), 2)
      >>> np.asarray(places).tolist()
      [1, 2]
    """
    del is_stable
    x = as_array(operand, what="top_k")
    d = dimension_of(axis, x.aval.ndim, "top_k")
    values, places = top_k_p.bind(x, k=size_of(k), axis=d)
    return values, places


def approx_max_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the k greatest elements along a dimension, and their int32 indices.

    An accelerator with an approximate search may miss some; here all are found, so the recall is 1,
    whatever is requested.

    Args:
        operand: an array of floats.
        k: how many.
        reduction_dimension: the dimension to search.
        recall_target: the share of the true ones that must be found, in (0, 1].
        reduction_input_size_override: how many elements the number of candidates is
            chosen for; below 0 those of the dimension.
        aggregate_to_topk: whether k are returned, or all candidates: as many as a
            search would need that finds the share requested.

    Returns:
      A pair of arrays with `k` elements along the dimension, the greatest first: values of the
      dtype of `operand`, and int32 positions.

    Raises:
      ValueError: no floats, or another recall.

    Example:
      >>> import numpy as np
      >>> np.asarray(approx_max_k(np.float32([1, 3, 2]), 2)[1]).tolist()
      [1, 2]

    Differentiable in: operand.
    """
    x = _search("approx_max_k", operand, recall_target)
    axis = dimension_of(reduction_dimension, x.aval.ndim, "approx_max_k")
    if not aggregate_to_topk:
        k = _candidates(x.aval.shape, axis, k, recall_target, reduction_input_size_override)
    return top_k(x, k, axis=axis)


def approx_min_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the k least elements along a dimension and their indices; see `approx_max_k`.

    Args:
        operand: an array of floats.
        k: how many.
        reduction_dimension: the dimension to search.
        recall_target: the share of the true ones that must be found, in (0, 1].
        reduction_input_size_override: how many elements the number of candidates is
            chosen for; below 0 those of the dimension.
        aggregate_to_topk: whether k are returned, or all candidates: as many as a
            search would need that finds the share requested.

    Returns:
      A pair of arrays with `k` elements along the dimension, the least first: values of the dtype
      of `operand`, and int32 positions.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> import numpy as np
      >>> np.asarray(approx_min_k(np.float32([1, 3, 2]), 2)[1]).tolist()
      [0, 2]
    """
    x = _search("approx_min_k", operand, recall_target)
    axis = dimension_of(reduction_dimension, x.aval.ndim, "approx_min_k")
    if not aggregate_to_topk:
        k = _candidates(x.aval.shape, axis, k, recall_target, reduction_input_size_override)
    values, places = top_k(bind("neg", x), k, axis=axis)
    return bind("neg", values), places


def _search(operation: str, operand: Any, recall: float) -> Array:
    x = as_array(operand, what=operation)
    require(dtypes.is_floating(x.aval.dtype), operation, "takes floats.", got=x)
    require(
        0 < recall <= 1, operation, "recall_target must be above 0 and at most 1, got {}.", recall
    )
    return x


_LANES, _CHUNK = 128, 1024  # in which candidates are counted: of matrices, and of vectors


def _candidates(shape: Sequence[int], axis: int, k: int, recall: float, tuned_for: int) -> int:
    """Return how many candidates are kept when they are not reduced to k.

    With one of each of m bins kept, the share of the true ones that is found is (1 - 1/m)^(k - 1)
    at least; bins are made by halving. Source: Chern et al., "TPU-KNN: k nearest neighbor search
    at peak FLOP/s", NeurIPS 2022, section 5; counts as XLA's ApproxTopK makes them.
    """
    size = size_of(shape[axis])
    unit = _CHUNK if len(shape) == 1 else _LANES
    if size <= unit:
        return size
    if k == 1:
        return unit
    if recall == 1:
        return size
    bins = max(int((1 - k) / math.log(recall)), unit)
    halvings = max((size if tuned_for < 0 else tuned_for) // bins, 1).bit_length() - 1
    if not halvings:
        return size
    units, whole_units = -(-size // unit), size // unit
    halvings = min(halvings, (whole_units - 1).bit_length())
    return min(-(-units // (1 << halvings)) * unit, size)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the greatest element along an axis; the first NaN or equal wins.

    Args:
        operand: an array.
        axis: the axis to go along.
        index_dtype: an integer dtype for the result.

    Returns:
        An array without the axis, of that dtype.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> np.asarray(argmax(np.array([1, 3, 3]), 0, "int32")).item()
      1
    """
    return _arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the least element along an axis; the first NaN or equal wins.

    Args:
        operand: an array.
        axis: the axis to go along.
        index_dtype: an integer dtype for the result.

    Returns:
        An array without the axis, of that dtype.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> np.asarray(argmin(np.array([2, 1, 1]), 0, "int32")).item()
      1
    """
    return _arg(argmin_p, operand, axis, index_dtype)


def _arg(primitive: Primitive, operand: Any, axis: int, index_dtype: Any) -> Array:
    name = primitive.name
    x = as_array(operand, what=name)
    d = dimension_of(axis, x.aval.ndim, name)
    return primitive.bind(  # type: ignore[no-any-return]
        x, axes=(d,), index_dtype=dtypes.requested_dtype(index_dtype, name)
    )[0]


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return cumulative sums along an axis, from its end with `reverse`. Linear.

    Args:
        operand: an array.
        axis: the axis to go along.
        reverse: whether to go from its end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> np.asarray(cumsum(np.array([1, 2, 3]), reverse=True)).tolist()
      [6, 5, 3]
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return cumulative products along an axis, from its end with `reverse`. Differentiable.

    Args:
        operand: an array.
        axis: the axis to go along.
        reverse: whether to go from its end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cumprod(xnp.array([3.0, 1.0, 2.0])).round(3)
        Array([3., 3., 6.], dtype=float32)
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the greatest element so far along an axis. Differentiable: the first of equals.

    Args:
        operand: an array.
        axis: the axis to go along.
        reverse: whether to go from its end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cummax(xnp.array([3.0, 1.0, 2.0])).round(3)
        Array([3., 3., 3.], dtype=float32)
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return the least element so far along an axis. Differentiable: the first of equals.

    Args:
        operand: an array.
        axis: the axis to go along.
        reverse: whether to go from its end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cummin(xnp.array([3.0, 1.0, 2.0])).round(3)
        Array([3., 1., 1.], dtype=float32)
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Return log(cumsum(exp(x))) along an axis without overflow. Differentiable.

    Of complex numbers the angle is in (-pi, pi]; they are summed by `associative_scan`.

    Args:
        operand: an array.
        axis: the axis to go along.
        reverse: whether to go from its end.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cumlogsumexp(xnp.array([3.0, 1.0, 2.0])).round(3)
        Array([3.   , 3.127, 3.408], dtype=float32)
    """
    x = as_array(operand, what="cumlogsumexp")
    if dtypes.is_complex(x.aval.dtype):
        d = dimension_of(axis, x.aval.ndim, "cumlogsumexp")
        lowest = broadcast_to(scalar_like(x, -math.inf), x.aval.shape)
        x = bind("logaddexp", x, lowest)  # also the angle of the first
        return lax.associative_scan(functools.partial(bind, "logaddexp"), x, bool(reverse), d)
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)


def _cumulative(primitive: Primitive, operand: Any, axis: int, reverse: bool) -> Array:
    x = as_array(operand, what=primitive.name)
    d = dimension_of(axis, x.aval.ndim, primitive.name)
    return primitive.bind(x, axis=d, reverse=bool(reverse))[0]  # type: ignore[no-any-return]


boundaries(globals())
