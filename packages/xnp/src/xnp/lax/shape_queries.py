"""What the shape and the dtype of something are, and arrays of the shape of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.lax.reductions import padtype_to_pads
from xnp.numpy.creation import zeros
from xnp.primitives.convolution import dilated
from xnp.primitives.table import broadcasted, concatenated, converted, reshaped
from xprim import Array, as_array, dtypes
from xprim.avals import SymbolicSize
from xprim.errors import message
from xprim.requirements import static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "broadcast_like", "broadcast_to_rank", "dtype", "empty", "reduce_window_shape_tuple",
    "shape_as_value",
]  # fmt: skip

__dir__ = __all__.copy


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
    result: Array = broadcasted(x, shape, tuple(range(first, len(shape))))
    return result


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Put dimensions of size 1 in front of an array, so that it has as many as asked for.

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
    result: Array = reshaped(array, (*[1] * missing, *array.aval.shape))
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
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
      An array of the shape and dtype.

    Raises:
        TypeError: `dtype` names no dtype; `out_sharding` is no sharding.
        ValueError: a length of `shape` is negative.

    Example:
      >>> from xnp import lax
      >>> lax.empty((2, 3), "float32").shape
      (2, 3)
    """
    return zeros(shape, dtype, out_sharding=out_sharding)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of what `reduce_window` gives.

    Args:
      operand_shape: of the operand; the other arguments are those of `reduce_window`.
      window_dimensions: see `operand_shape`.
      window_strides: see `operand_shape`.
      padding: see `operand_shape`.
      base_dilation: see `operand_shape`.
      window_dilation: see `operand_shape`.

    Returns:
      A tuple of ints.

    Raises:
        ValueError: unknown `padding`.

    Example:
      >>> from xnp import lax
      >>> lax.reduce_window_shape_tuple((5, 7), (2, 3), (1, 2), "VALID")
      (4, 3)
    """
    ones = (1,) * len(operand_shape)
    spreads = window_dilation or ones
    windows = [dilated(n, apart) for n, apart in zip(window_dimensions, spreads, strict=True)]
    pads = padtype_to_pads(operand_shape, windows, window_strides, padding)
    rows = zip(operand_shape, windows, window_strides, pads, base_dilation or ones, strict=True)
    sizes = []
    for size, window, stride, (low, high), apart in rows:
        room = dilated(size, apart) + low + high - window
        sizes.append(room // stride + 1 if room >= 0 else 0)
    return tuple(sizes)


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
        parts = [broadcasted(converted(as_array(n), dtypes.int32), (1,)) for n in sizes]
        return concatenated(parts, 0)
    result: Array = as_array(np.array(sizes, np.int32))
    return result


boundaries(globals())
