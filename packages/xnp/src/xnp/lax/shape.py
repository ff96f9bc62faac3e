"""`xnp.lax`: functions that change the shape of arrays and the order of their elements.

Strict: dimensions are taken as written (negative ones count from the end where said), nothing is
promoted. All of them are linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.placing import compute_as, place
from xnp.primitives import table
from xnp.primitives.shapes import (
    broadcast_in_dim_p,
    concatenate_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    split_p,
    squeeze_p,
    transpose_p,
)
from xnp.primitives.table import broadcast_to, convert, fill, join
from xprim import Array, as_array, dtypes
from xprim.avals import SymbolicSize, size_of
from xprim.errors import AxisError, message
from xprim.requirements import check_sizes, static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "collapse", "concatenate", "dtype", "empty", "expand_dims", "iota", "pad",
    "reshape", "rev", "shape_as_value", "split", "squeeze", "stack", "tile", "transpose", "unstack",
]  # fmt: skip

__dir__ = __all__.copy


def ints(values: Any, what: str) -> tuple[int, ...]:
    """Return a sequence of sizes or dimensions as a tuple of Python ints."""
    try:
        return tuple([size_of(v) for v in values])
    except TypeError:
        raise TypeError(message(
            what, "must be a sequence of integers known while tracing.", got=f"{values!r}",
        )) from None  # fmt: skip


def dimension_of(dimension: int, ndim: int, what: str) -> int:
    """Return a dimension counted from the front; negative ones count from the end.

    Raises:
      AxisError: the axis is out of bounds, a ValueError and an IndexError.
    """
    d = size_of(dimension)
    if not -ndim <= d < ndim:
        raise AxisError(message(
            what, f"axis {d} is out of bounds for an array of dimension {ndim}.",
            expected=f"-{ndim} <= axis < {ndim}",
        ))  # fmt: skip
    return d + ndim if d < 0 else d


def reshape(
    operand: ArrayLike,
    new_sizes: int | Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the elements in row-major order under another shape.

    Args:
      operand: any array.
      new_sizes: the shape of the result, with as many elements; an int is that of a vector.
      dimensions: the order in which the operand's dimensions are read; None for their own.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
        An array of those sizes and of the dtype of the operand.

    Raises:
      TypeError: when the number of elements differs.

    Example:
      >>> reshape(np.arange(6), (2, 3)).shape
      (2, 3)
    """
    if out_sharding is not None:
        return compute_as(out_sharding, reshape, operand, new_sizes, dimensions)
    x = as_array(operand, what="reshape")
    if dimensions is not None:
        x = transpose(x, dimensions)
    if type(new_sizes) is not tuple:
        sizes = (new_sizes,) if isinstance(new_sizes, int | SymbolicSize) else new_sizes
        new_sizes = ints(sizes, "reshape: new_sizes")
    result: Array
    try:
        if x.aval.shape == new_sizes:
            return x
        (result,) = reshape_p.bind(x, new_sizes=new_sizes, dimensions=None)
    except (TypeError, ValueError):  # the sizes may be arrays, which have no truth value
        new_sizes = ints(new_sizes, "reshape: new_sizes")
        (result,) = reshape_p.bind(x, new_sizes=new_sizes, dimensions=None)
    return result


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute the dimensions: dimension i of the result is `permutation[i]` of the operand.

    Args:
        operand: an array.
        permutation: for each dimension of the result the one it was.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> transpose(np.zeros((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    x = as_array(operand, what="transpose")
    order = ints(permutation, "transpose: permutation")
    if order == tuple(range(x.aval.ndim)):
        return x
    return transpose_p.bind(x, permutation=order)[0]  # type: ignore[no-any-return]


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Repeat an array to a shape; its dimension i becomes `broadcast_dimensions[i]`.

    Dimensions named out of order are transposed first.

    Args:
        operand: an array.
        shape: the shape of the result.
        broadcast_dimensions: for each dimension of the operand the one it becomes,
            ascending; its size is that of the result, or 1.
        out_sharding: where the result is placed; None for where the operand is.

    Returns:
        An array of that shape.

    Raises:
        TypeError: `operand` is not an array; `out_sharding` is not a sharding.

    Example:
      >>> broadcast_in_dim(np.arange(3), (2, 3), (1,)).shape
      (2, 3)
    """
    x = as_array(operand, what="broadcast_in_dim")
    sizes = ints(shape, "broadcast_in_dim: shape")
    dims = ints(broadcast_dimensions, "broadcast_in_dim: broadcast_dimensions")
    if x.aval.shape == sizes and dims == tuple(range(len(sizes))):
        return place(x, out_sharding, "broadcast_in_dim")
    if len(set(dims)) == len(dims) == x.aval.ndim and dims != tuple(sorted(dims)):
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        x, dims = transpose_p.bind(x, permutation=order)[0], tuple(sorted(dims))
    result: Array = broadcast_in_dim_p.bind(x, shape=sizes, broadcast_dimensions=dims)[0]
    return place(result, out_sharding, "broadcast_in_dim")


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: ShardingLike = None
) -> Array:
    """Repeat an array along new leading dimensions of the given sizes.

    Args:
        operand: an array.
        sizes: the sizes of the new dimensions, which come first.
        out_sharding: where the result is placed; None for where the operand is.

    Returns:
        An array of shape (*sizes, *operand.shape).

    Raises:
        TypeError: `operand` is not an array; `out_sharding` is not a sharding.

    Example:
      >>> broadcast(np.zeros(3), (2, 4)).shape
      (2, 4, 3)
    """
    x = as_array(operand, what="broadcast")
    lead = ints(sizes, "broadcast: sizes")
    dims = tuple(range(len(lead), len(lead) + x.aval.ndim))
    return place(broadcast_in_dim(x, (*lead, *x.aval.shape), dims), out_sharding, "broadcast")


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes have in common, as NumPy broadcasts them.

    Args:
        *shapes: tuples of sizes.

    Returns:
        A tuple of sizes.

    Raises:
      ValueError: when sizes differ and neither is 1.

    Example:
      >>> broadcast_shapes((2, 1), (3,))
      (2, 3)
    """
    check_sizes("broadcast_shapes", shapes)
    rank = max([len(s) for s in shapes], default=0)
    out = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n in (1, out[i]):
                continue
            if out[i] != 1:
                listed = " and ".join([str(tuple(s)) for s in shapes])
                raise ValueError(message(  # begins as JAX's, which programs match
                    "Incompatible shapes for broadcasting", f"{listed}.",
                    expected="sizes that are equal or 1, counted from the last dimension",
                ))  # fmt: skip
            out[i] = size_of(n)
    return tuple(out)


def iota(dtype: DTypeLike, size: int) -> Array:
    """Return 0, 1, ..., size - 1.

    Args:
        dtype: of the result.
        size: how many numbers.

    Returns:
        A vector of that size and dtype.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: `size` is negative.

    Example:
      >>> np.asarray(iota("int32", 3)).tolist()
      [0, 1, 2]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: ShardingLike = None
) -> Array:
    """Return an array of a shape that counts from 0 along one dimension.

    Args:
        dtype: of the result.
        shape: the shape of the result.
        dimension: the one along which is counted.
        out_sharding: where the result is placed; None for the default device.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> np.asarray(broadcasted_iota("int32", (2, 2), 1)).tolist()
      [[0, 1], [0, 1]]
    """
    (counted,) = iota_p.bind(
        dtype=dtypes.requested_dtype(dtype, "iota"),
        shape=static_shape(shape, "broadcasted_iota"),
        dimension=size_of(dimension),
    )
    return place(counted, out_sharding, "broadcasted_iota")


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert dimensions of size 1, where they stand in the result (negative: from its end).

    Args:
        array: an array.
        dimensions: where the new ones stand in the result.

    Returns:
        An array of as many elements.

    Example:
      >>> expand_dims(np.zeros((2, 3)), (0, -1)).shape
      (1, 2, 3, 1)
    """
    x = as_array(array, what="expand_dims")
    given = ints(dimensions, "expand_dims: dimensions")
    ndim = x.aval.ndim + len(given)
    new = [dimension_of(d, ndim, "expand_dims") for d in given]
    if len({*new}) != len(new):
        raise ValueError(f"expand_dims: the dimensions {given} are not distinct.")
    kept = tuple([d for d in range(ndim) if d not in new])
    shape = [1] * ndim
    for d, n in zip(kept, x.aval.shape, strict=True):
        shape[d] = n
    result: Array = reshape_p.bind(x, new_sizes=tuple(shape), dimensions=None)[0]
    return result


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drop dimensions of size 1 (negative: counted from the end).

    Args:
        array: an array.
        dimensions: those that are dropped, of size 1.

    Returns:
        An array of as many elements.

    Example:
      >>> squeeze(np.zeros((1, 3, 1)), (0, -1)).shape
      (3,)
    """
    x = as_array(array, what="squeeze")
    given = ints(dimensions, "squeeze: dimensions")
    if not given:
        return x
    dims = tuple(sorted([dimension_of(d, x.aval.ndim, "squeeze") for d in given]))
    return squeeze_p.bind(x, dimensions=dims)[0]  # type: ignore[no-any-return]


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Join the dimensions from start to stop (excluded; None for the end) into one.

    Args:
        operand: an array.
        start_dimension: the first to be joined.
        stop_dimension: the one behind the last; None for the end.

    Returns:
        An array of as many elements.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> collapse(np.zeros((2, 3, 4)), 1).shape
      (2, 12)
    """
    x = as_array(operand, what="collapse")
    shape, ndim = x.aval.shape, x.aval.ndim
    low, high, _ = slice(start_dimension, stop_dimension).indices(ndim)
    if high <= low:
        raise ValueError(message(
            "collapse", "stop_dimension must be greater than start_dimension.",
            got=f"start {start_dimension}, stop {stop_dimension} for {x.aval.str_long()}",
        ))  # fmt: skip
    joined = int(np.prod(shape[low:high], dtype=np.int64))
    return reshape(x, (*shape[:low], joined, *shape[high:]))


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join arrays along one of their dimensions.

    Args:
        operands: arrays of one dtype, whose shapes differ in one dimension alone.
        dimension: that one.

    Returns:
        An array of the same dtype.

    Raises:
      TypeError: when shapes differ elsewhere, or dtypes differ.

    Example:
      >>> concatenate([np.zeros((2, 1)), np.ones((2, 3))], 1).shape
      (2, 4)
    """
    xs = [as_array(x, what="concatenate") for x in operands]
    if len(xs) == 1 and 0 <= dimension < xs[0].aval.ndim:
        return xs[0]
    result: Array = concatenate_p.bind(*xs, dimension=size_of(dimension))[0]
    return result


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join arrays of one shape along a new dimension.

    Args:
        operands: arrays of one shape and dtype.
        axis: where the new dimension stands in the result.

    Returns:
        An array of one dimension more.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> stack([np.zeros(3), np.ones(3)]).shape
      (2, 3)
    """
    xs = [as_array(x, what="stack") for x in operands]
    if not xs:
        raise TypeError("stack: needs at least one array, got none.")
    d = dimension_of(axis, xs[0].aval.ndim + 1, "stack")
    for x in xs:
        if x.aval.shape != xs[0].aval.shape:
            shown = ", ".join([v.aval.str_long() for v in xs[:8]])
            raise TypeError(message("stack", "the shapes differ.", got=shown))
    return concatenate([expand_dims(x, (d,)) for x in xs], d)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an array along one dimension, without that dimension.

    Args:
        x: an array.
        axis: the dimension that goes away.

    Returns:
        A tuple of arrays of one dimension less.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> [v.shape for v in unstack(np.zeros((2, 3)))]
      [(3,), (3,)]
    """
    x = as_array(x, what="unstack")
    d = dimension_of(axis, x.aval.ndim, "unstack")
    return tuple([squeeze(v, (d,)) for v in split(x, (1,) * x.aval.shape[d], d)])


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array along one dimension into parts of the given sizes.

    Args:
        operand: an array.
        sizes: the sizes of the parts, whose sum is that of the dimension.
        axis: a dimension of the operand.

    Returns:
        A list of arrays.

    Raises:
        TypeError: `operand` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> [v.shape for v in split(np.zeros(5), (2, 3))]
      [(2,), (3,)]
    """
    x = as_array(operand, what="split")
    d = dimension_of(axis, x.aval.ndim, "split")
    return list(split_p.bind(x, sizes=ints(sizes, "split: sizes"), axis=d))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the whole array `reps[i]` times along each dimension i.

    Args:
        operand: an array.
        reps: for each dimension a number of times.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> tile(np.zeros((2, 3)), (2, 1)).shape
      (4, 3)
    """
    x = as_array(operand, what="tile")
    counts = ints(reps, "tile: reps")
    shape = x.aval.shape
    if len(counts) != len(shape) or any(n < 0 for n in counts):
        raise ValueError(message(
            "tile", "reps must hold a count of at least 0 for each dimension.",
            got=f"{counts} for {x.aval.str_long()}",
        ))  # fmt: skip
    pairs = [n for pair in zip(counts, shape, strict=True) for n in pair]
    repeated = broadcast_in_dim(x, pairs, range(1, len(pairs), 2))
    return reshape(repeated, tuple([c * n for c, n in zip(counts, shape, strict=True)]))


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Put a value around and between the elements.

    Args:
      operand: any array.
      padding_value: of rank 0 and the operand's dtype; a Python scalar takes that dtype.
      padding_config: (low, high, interior) for each dimension; negative low and high crop.

    Returns:
        An array of the dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> np.asarray(pad(np.array([1, 2]), 0, [(1, -1, 2)])).tolist()
      [0, 1, 0, 0]
    """
    x = as_array(operand, what="pad")
    value = table.as_array_of(padding_value, x.aval.dtype, "pad: padding_value")
    config = tuple([ints(c, "pad: padding_config") for c in padding_config])
    if any(len(c) != 3 for c in config):
        raise TypeError(f"pad: padding_config needs (low, high, interior) triples, got {config}.")
    return pad_p.bind(x, value, padding_config=config)[0]  # type: ignore[no-any-return]


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of elements along some dimensions.

    Args:
        operand: an array.
        dimensions: those that are reversed.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> np.asarray(rev(np.arange(3), (0,))).tolist()
      [2, 1, 0]
    """
    x = as_array(operand, what="rev")
    result: Array = rev_p.bind(x, dimensions=ints(dimensions, "rev: dimensions"))[0]
    return result


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeat an array to the shape of another; its dtype stays.

    Args:
      arr: an array of which NumPy's rules make the shape of the other.
      like_arr: an array; only its shape and dtype count.

    Returns:
      An array of the shape and dtype of `like_arr`.

    Raises:
        TypeError: `arr` is not an array.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> lax.broadcast_like(np.float32([1, 2]), np.zeros((2, 2), np.int32))
      Array([[1., 2.],
             [1., 2.]], dtype=float32)

    Differentiable in: arr.
    """
    x, like = as_array(arr, what="broadcast_like"), as_array(like_arr, what="broadcast_like")
    shape, own = like.aval.shape, x.aval.shape
    first = len(shape) - len(own)
    if first < 0 or any(n not in (1, m) for n, m in zip(own, shape[first:], strict=True)):
        raise ValueError(message(
            "broadcast_like", "the array does not broadcast to the shape of the other.",
            got=f"{x.aval.str_long()} to shape {shape}",
        ))  # fmt: skip
    result: Array = broadcast_to(x, shape, tuple(range(first, len(shape))))
    return result


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Put dimensions of size 1 in front of an array, so that it has as many as requested.

    Args:
      x: an array.
      rank: how many dimensions, at least those of `x`.

    Returns:
      An array of the same elements.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> lax.broadcast_to_rank(np.ones(3), 3).shape
      (1, 1, 3)

    Differentiable in: x.
    """
    array = as_array(x, what="broadcast_to_rank")
    missing = rank - array.aval.ndim
    if missing < 0:
        raise ValueError(message(
            "broadcast_to_rank", f"there are more than {rank} dimensions already.",
            got=array.aval.str_long(),
        ))  # fmt: skip
    result: Array = table.reshape(array, (*[1] * missing, *array.aval.shape))
    return result


def shape_as_value(shape: Sequence[int]) -> Array:
    """Return a shape as a vector of int32.

    Args:
      shape: a sequence of ints, or of symbolic dimensions of a program that is exported.

    Returns:
      A vector of int32.

    Example:
      >>> from xnp import lax
      >>> lax.shape_as_value((2, 3)).tolist()
      [2, 3]
    """
    sizes = static_shape(shape, "shape_as_value")
    if any(isinstance(n, SymbolicSize) for n in sizes):
        parts = [broadcast_to(convert(as_array(n), dtypes.int32), (1,)) for n in sizes]
        return join(parts, 0)
    result: Array = as_array(np.array(sizes, np.int32))
    return result


def dtype(x: ArrayLike) -> np.dtype[Any]:
    """Return the dtype that an array or a number has here: int32 of a Python int.

    Args:
      x: an array, a number or a dtype.

    Returns:
      A NumPy dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> from xnp import lax
      >>> lax.dtype(3)
      dtype('int32')
    """
    found: np.dtype[Any] = dtypes.dtype(x)
    return found


def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: ShardingLike = None) -> Array:
    """Return an array whose elements may be anything; they are 0.

    Args:
      shape: a sequence of ints.
      dtype: the dtype.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the shape and dtype.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is not a sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> from xnp import lax
      >>> lax.empty((2, 3), "float32").shape
      (2, 3)
    """
    dtype = dtypes.python_scalar_dtype(float) if dtype is None else dtype
    zeros = fill(static_shape(shape, "empty"), 0, dtypes.requested_dtype(dtype, "empty"))
    return place(zeros, out_sharding, "empty")


boundaries(globals(), written=True)
