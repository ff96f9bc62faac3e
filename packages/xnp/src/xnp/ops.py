"""Reductions of the rows of an array by segments that an array of numbers names.

    segment_sum  segment_prod  segment_max  segment_min

Row k of the data goes to segment `segment_ids[k]`, and the rows of a segment are joined: one
scatter of the data into what an empty segment gives. All are differentiable in the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.lax import ScatterDimensionNumbers, slicing
from xnp.numpy import reductions
from xnp.numpy.dispatch import array_of, cast
from xnp.placing import place
from xnp.primitives.table import bind, broadcast_to, fill, reshape
from xprim import Array, ConcreteArray, dtypes
from xprim.errors import ConcretizationTypeError
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, ShardingLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

__dir__ = __all__.copy


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sum the rows of each segment.

    Args:
      data: an array; a scalar, or a single row, stands for as many as there are numbers.
      segment_ids: integers, one for each row of `data`. Rows with one that is negative or too
        great are left out, unless `mode` says something else.
      num_segments: how many segments there are; None takes one more than the greatest number, which
        must be known then.
      indices_are_sorted: a promise that the numbers ascend, which may be used to be faster.
      unique_indices: a promise that no number occurs twice.
      bucket_size: how many rows are joined at a time, the results of these buckets then; this keeps
        rounding errors of long sums small. None joins all in turn.
      mode: what happens to rows out of range: "drop" (None, too), "clip", "promise_in_bounds".
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of shape (num_segments, *data.shape[1:]) and the dtype of `data`; what is empty is 0.

    Raises:
      TypeError: numbers that are not integers, booleans to be summed.
      ValueError: another number of rows than of numbers.
      ConcretizationTypeError: traced numbers, and no `num_segments`.

    Example:
      >>> import xnp
      >>> from xnp import ops
      >>> ops.segment_sum(xnp.array([1, 2, 3, 4]), xnp.array([0, 0, 2, 0]), 4)
      Array([7, 0, 3, 0], dtype=int32)

    Differentiable in: data.
    """
    joined = _Join("segment_sum", slicing.scatter_add, reductions.sum, _zero)
    return joined(data, segment_ids, num_segments, indices_are_sorted, unique_indices,
                  bucket_size, mode, out_sharding)  # fmt: skip


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply the rows of each segment; what is empty is 1.

    The arguments are those of `segment_sum`. The derivative exists for `unique_indices` alone.
    """
    joined = _Join("segment_prod", slicing.scatter_mul, reductions.prod, _one)
    return joined(data, segment_ids, num_segments, indices_are_sorted, unique_indices,
                  bucket_size, mode, out_sharding)  # fmt: skip


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the greatest of the rows of each segment; what is empty is the least of the dtype.

    The arguments are those of `segment_sum`.
    """
    joined = _Join("segment_max", slicing.scatter_max, reductions.max, _least)
    return joined(data, segment_ids, num_segments, indices_are_sorted, unique_indices,
                  bucket_size, mode, out_sharding)  # fmt: skip


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the least of the rows of each segment; what is empty is the greatest of the dtype.

    The arguments are those of `segment_sum`.
    """
    joined = _Join("segment_min", slicing.scatter_min, reductions.min, _greatest)
    return joined(data, segment_ids, num_segments, indices_are_sorted, unique_indices,
                  bucket_size, mode, out_sharding)  # fmt: skip


class _Join:
    """A way to join rows: the scatter, the reduction of buckets, and what an empty segment is."""

    __slots__ = ("name", "neutral", "reduce", "scatter")

    def __init__(
        self, name: str, scatter: Callable[..., Array], reduce: Callable[..., Array],
        neutral: Callable[[Any], Any],
    ) -> None:  # fmt: skip
        self.name, self.scatter, self.reduce, self.neutral = name, scatter, reduce, neutral

    def __call__(
        self, data: Any, segment_ids: Any, num_segments: Any, is_sorted: bool, is_unique: bool,
        bucket_size: int | None, mode: Any, out_sharding: Any,
    ) -> Array:  # fmt: skip
        """Scatter the rows of an array into segments."""
        x, ids = self._operands(data, segment_ids)
        count = self._count(num_segments, ids)
        neutral = self.neutral(x.aval.dtype)
        rows, columns = ids.aval.shape[0], reshape(ids, (*ids.aval.shape, 1))
        shape: tuple[int, ...] = (count, *x.aval.shape[1:])
        if bucket_size is not None:
            size = static_int(bucket_size, self.name, "bucket_size")
            require(size >= 1, self.name, "bucket_size must be at least 1, got {}.", size)
            buckets = cast(_bucket_numbers(rows, size), ids.aval.dtype)
            columns = bind("concatenate", buckets, columns, dimension=1)
            shape = (-(-rows // size), *shape)
        places = len(shape) - x.aval.ndim + 1
        window = tuple(range(1, x.aval.ndim))
        numbers = ScatterDimensionNumbers(window, tuple(range(places)), tuple(range(places)))
        result = self.scatter(
            fill(shape, neutral, x.aval.dtype), columns, x, numbers,
            indices_are_sorted=is_sorted, unique_indices=is_unique,
            mode="drop" if mode is None else mode,
        )  # fmt: skip
        if bucket_size is not None:
            result = cast(self.reduce(result, axis=0, initial=neutral), x.aval.dtype)
        return place(result, out_sharding, self.name)

    def _operands(self, data: Any, segment_ids: Any) -> tuple[Array, Array]:
        x, ids = array_of(data, self.name), array_of(segment_ids, self.name)
        require(
            dtypes.is_integer(ids.aval.dtype), self.name,
            "the numbers of segments must be integers.", got={"segment_ids": ids}, error=TypeError,
        )  # fmt: skip
        if ids.aval.ndim == 1 and x.aval.shape[:1] in ((), (1,)):
            x = broadcast_to(x, (*ids.aval.shape, *x.aval.shape[1:]))
        require(
            ids.aval.ndim == 1 and x.aval.shape[:1] == ids.aval.shape, self.name,
            "there must be a segment for each row of the data.",
            got={"data": x, "segment_ids": ids}, expected="segment_ids.shape == data.shape[:1]",
        )  # fmt: skip
        require(
            not dtypes.is_bool(x.aval.dtype) or self.neutral not in (_zero, _one), self.name,
            "booleans are neither added nor multiplied.", got={"data": x},
            hint="segment_max says whether any of a segment is true", error=TypeError,
        )  # fmt: skip
        return x, ids

    def _count(self, num_segments: Any, ids: Array) -> int:
        if num_segments is not None:
            count = static_int(num_segments, self.name, "num_segments")
            require(count >= 0, self.name, "num_segments must be non-negative, got {}.", count)
            return int(count)
        if type(ids) is not ConcreteArray:
            raise ConcretizationTypeError(
                ids, self.name, "how many segments there are depends on traced values.",
                "num_segments= says it",
            )  # fmt: skip
        host = np.asarray(ids)
        return int(host.max()) + 1 if host.size else 0


def _bucket_numbers(rows: int, size: int) -> Array:
    """Return the number of the bucket of each row, as a column."""
    return array_of((np.arange(rows, dtype=np.int32) // size)[:, None], "segments")


def _zero(_dtype: Any) -> Any:
    return 0


def _one(_dtype: Any) -> Any:
    return 1


def _least(dtype: Any) -> Any:
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).min)
    return False if dtypes.is_bool(dtype) else -np.inf


def _greatest(dtype: Any) -> Any:
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).max)
    return True if dtypes.is_bool(dtype) else np.inf


boundaries(globals())
