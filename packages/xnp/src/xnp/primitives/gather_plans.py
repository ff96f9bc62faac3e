"""What a gather or scatter amounts to in NumPy, found once for each set of shapes.

The dimension numbers are analysed when a combination is seen for the first time; what is left for
each call is one of three ways, cheapest first:

    single   one window: a basic slice at integer starts
    take     unit windows along one dimension: `take`, or one index array
    general  one index array for each indexed dimension, over a strided view of all windows
             (gather), or one flat index for each element (scatter)

Neighbours: `gather` and `scatter_family` run the plans.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xnp.primitives.index_modes import GatherDimensionNumbers, upper_bounds
from xprim import dtypes

__all__ = ()

Shape = tuple[int, ...]
Ndarray = np.ndarray[Any, Any]


class GatherPlan(NamedTuple):
    """The analysed dimension numbers of a gather, or of the gather that inverts a scatter.

    Attributes:
      shape: of the operand.
      window: the slice size in each operand dimension.
      index_map: the operand dimension of each element of an index vector.
      bounds: the largest start of each element of an index vector, in the indices' dtype.
      unsigned_bounds: the same, in the unsigned dtype of that size.
      most: the same as Python ints.
      batch: the batch shape of the indices.
      out_shape: of the gather's result.
      window_dims: operand dimensions that stay in the result.
      batching: pairs of an operand dimension and the batch dimension of the indices it follows.
      to_out: permutation from (batch dims, window dims) to the result, None when trivial.
      from_out: its inverse, None when trivial.
      single: whether there is exactly one window.
      take_axis: the one dimension of unit windows, if all other dimensions are taken whole; or -1.
      take_to_out: permutation from the result of `take` along it, None when trivial.
    """

    shape: Shape
    window: Shape
    index_map: Shape
    bounds: Ndarray
    unsigned_bounds: Ndarray
    most: list[int]
    batch: Shape
    out_shape: Shape
    window_dims: Shape
    batching: tuple[tuple[int, int], ...]
    to_out: Shape | None
    from_out: Shape | None
    single: bool
    take_axis: int
    take_to_out: Shape | None


@functools.lru_cache(maxsize=4096)
def plan_of(
    numbers: GatherDimensionNumbers, shape: Shape, indices: Shape, window: Shape,
    index_dtype: Any,
) -> GatherPlan:  # fmt: skip
    """Analyse the dimension numbers of a gather."""
    batch = indices[:-1]
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window_dims = tuple([d for d in range(len(shape)) if d not in dropped])
    rank = len(batch) + len(window_dims)
    offset = numbers.offset_dims
    batch_places = [i for i in range(rank) if i not in offset]
    # position, in (batch dims, window dims), of each dimension of the result
    source = [0] * rank
    for k, place in enumerate((*batch_places, *offset)):
        source[place] = k
    sizes = (*batch, *[window[d] for d in window_dims])
    take_axis = _take_axis(numbers, shape, window)
    bounds = upper_bounds(shape, window, numbers.start_index_map, index_dtype)
    if bounds.dtype == object:  # of symbolic dimensions, of which only shapes are asked
        bounds = np.zeros(bounds.shape, index_dtype)
    return GatherPlan(
        shape=shape,
        window=window,
        index_map=numbers.start_index_map,
        bounds=bounds,
        unsigned_bounds=bounds.astype(f"u{bounds.dtype.itemsize}"),
        most=bounds.tolist(),
        batch=batch,
        out_shape=tuple([sizes[k] for k in source]),
        window_dims=window_dims,
        batching=tuple(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims,
                           strict=True)),
        to_out=_nontrivial(source),
        from_out=_nontrivial([*batch_places, *offset]),
        single=math.prod(batch) == 1,
        take_axis=take_axis,
        take_to_out=_take_to_out(source, take_axis, len(batch)) if take_axis >= 0 else None,
    )  # fmt: skip


def _take_axis(numbers: GatherDimensionNumbers, shape: Shape, window: Shape) -> int:
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims:
        return -1
    (axis,) = numbers.start_index_map
    whole = all(w == n for d, (w, n) in enumerate(zip(window, shape, strict=True)) if d != axis)
    if not whole or numbers.collapsed_slice_dims != (axis,):
        return -1
    return axis


def _take_to_out(source: list[int], axis: int, num_batch: int) -> Shape | None:
    # take gives (window dims before the axis, batch dims, window dims behind it)
    places = [
        axis + k if k < num_batch else k - num_batch + (num_batch if k - num_batch >= axis else 0)
        for k in source
    ]
    return _nontrivial(places)


def _nontrivial(permutation: list[int]) -> Shape | None:
    return None if permutation == list(range(len(permutation))) else tuple(permutation)


def clipped(plan: GatherPlan, indices: Ndarray) -> Ndarray:
    """Return the index vectors with every window moved inside the operand, as `intp`."""
    if indices.dtype.kind != "u":
        indices = np.maximum(indices, 0)
    return np.minimum(indices, plan.bounds).astype(np.intp, copy=False)


def inside(plan: GatherPlan, indices: Ndarray) -> Ndarray:
    """Return for each index vector whether its window lies within the operand."""
    # negative numbers are beyond every bound when read as unsigned
    unsigned = plan.unsigned_bounds.dtype
    fits: Ndarray = indices.view(unsigned) <= plan.unsigned_bounds
    if fits.shape[-1] == 1:
        return fits[..., 0]
    return np.logical_and.reduce(fits, axis=-1)  # type: ignore[no-any-return]


def starts_in_dims(plan: GatherPlan, indices: Ndarray) -> list[Any]:
    """Return for each operand dimension its start, broadcastable over the batch shape, or 0."""
    starts: list[Any] = [0] * len(plan.shape)
    for j, d in enumerate(plan.index_map):
        starts[d] = indices[..., j]
    for d, place in plan.batching:
        ones = [1] * len(plan.batch)
        ones[place] = -1
        starts[d] = np.arange(plan.shape[d]).reshape(ones)
    return starts


def window_slices(plan: GatherPlan, starts: list[int]) -> tuple[slice, ...]:
    """Return the basic index of one window."""
    low = [0] * len(plan.shape)
    for d, start in zip(plan.index_map, starts, strict=True):
        low[d] = start
    return tuple([slice(a, a + w) for a, w in zip(low, plan.window, strict=True)])


def strided(x: Ndarray, shape: Sequence[int], strides: Sequence[int]) -> Ndarray:
    """Return a read-only view of an array with another shape and other strides (in bytes)."""
    dtype = x.dtype
    if not dtypes.is_numpys(dtype):  # as_strided names dtypes by kind and size, as NumPy's are
        x = x.view(f"u{dtype.itemsize}")
    view = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    return view.view(dtype)


@functools.lru_cache(maxsize=1024)
def window_offsets(shape: Shape, window: Shape) -> Ndarray:
    """Return the flat offsets of the elements of a window at the origin, in row-major order."""
    offsets: Ndarray = np.zeros((), np.intp)
    for stride, size in zip(row_major_strides(shape), window, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    offsets = offsets.reshape(-1)
    offsets.flags.writeable = False
    return offsets


def row_major_strides(shape: Shape) -> list[int]:
    """Return how many elements apart neighbours are in each dimension."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return strides
