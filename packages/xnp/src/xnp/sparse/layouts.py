"""Sparse arrays with other dimensions, parts, and orders of their values.

Batch, sparse and dense dimensions keep their kinds. Indices of the sparse dimensions are computed
with, values are moved only where dense or batch dimensions are.

Neighbours: `coordinates` says what a sparse array holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.sparse.coordinates import (
    Coordinates,
    full,
    is_there,
    known,
    moved_out,
    places,
    with_unit_dims,
)
from xprim import Array, promotion
from xprim.errors import ConcretizationTypeError, message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary

__all__ = ()

C = TypeVar("C", bound=Coordinates)


@boundary
def bcoo_transpose(mat: C, *, permutation: Sequence[int]) -> C:
    """Return a sparse array with its dimensions in another order.

    Args:
      mat: the array.
      permutation: for each dimension of the result, which of the array it is; batch, sparse and
        dense dimensions may change places among each other only.
    """
    order = tuple([static_int(p, "bcoo_transpose: permutation") for p in permutation])
    starts = (0, mat.n_batch, mat.n_batch + mat.n_sparse, mat.ndim)
    groups = [order[a:b] for a, b in pairwise(starts)]
    if any(sorted(g) != list(range(a, b)) for g, (a, b) in zip(groups, pairwise(starts),
                                                               strict=True)):  # fmt: skip
        raise ValueError(message(
            "bcoo_transpose", "batch, sparse and dense dimensions must stay apart.",
            got=f"permutation {order}",
            expected=f"batch {mat.batch_shape}, sparse {mat.sparse_shape}, dense {mat.dense_shape} "
            "in this order",
        ))  # fmt: skip
    n = mat.n_batch
    columns = [p - n for p in groups[1]]
    dense = [p - mat.n_sparse + 1 for p in groups[2]]
    data = xn.transpose(mat.data, (*groups[0], n, *dense))
    indices = xn.transpose(mat.indices, (*groups[0], n, n + 1))[..., np.array(columns, int)]
    kept = columns == sorted(columns)
    return mat.like(
        data, indices, [mat.sparse_shape[c] for c in columns],
        is_sorted=kept and mat.indices_sorted, is_unique=mat.unique_indices,
    )  # fmt: skip


@boundary
def bcoo_sort_indices(mat: C) -> C:
    """Return a sparse array with ascending indices."""
    if mat.indices_sorted:
        return mat
    data, indices, _ = _ordered(mat)
    return mat.like(data, indices, mat.sparse_shape, is_sorted=True, is_unique=mat.unique_indices)


def _ordered(mat: Coordinates) -> tuple[Array, Array, Array]:
    """Return data and indices in ascending order of indices, and which are in range."""
    data, indices = known(mat)
    there = is_there(indices, mat.sparse_shape)
    indices = moved_out(indices, there, mat.sparse_shape)
    numbers = xn.broadcast_to(xn.arange(mat.nse), indices.shape[:-1])
    keys = [indices[..., i] for i in range(mat.n_sparse)]
    order = lax.sort((*keys, numbers), dimension=-1, num_keys=len(keys) + 1)[-1]
    axis = mat.n_batch
    data = xn.take_along_axis(data, with_unit_dims(order, mat.n_dense), axis=axis)
    indices = xn.take_along_axis(indices, order[..., None], axis=axis)
    return data, indices, xn.take_along_axis(there, order, axis=axis)


@boundary
def bcoo_sum_duplicates(mat: C, nse: int | None = None) -> C:
    """Return a sparse array with values of equal indices added, its indices sorted.

    Args:
      mat: the array.
      nse: how many values the result has room for, for each element of the batch; by default as
        many as it needs, which is not known while tracing. The last ones are lost if there are
        more.
    """
    data, indices, there = _ordered(mat)
    before = indices[..., :-1, :]
    is_new = xn.concatenate(
        [there[..., :1], xn.any(indices[..., 1:, :] != before, axis=-1) & there[..., 1:]], -1
    )
    if nse is None:
        try:
            nse = int(xn.max(xn.count_nonzero(is_new, axis=-1), initial=0))
        except ConcretizationTypeError:
            raise ValueError(message(
                "bcoo_sum_duplicates", "how many indices there are is not known while tracing.",
                hint="say how many there is room for: nse=x.nse",
            )) from None  # fmt: skip
    count = static_int(nse, "bcoo_sum_duplicates: nse")
    number = xn.where(there, xn.cumsum(is_new, axis=-1) - 1, count).astype(indices.dtype)
    at = places(number[..., None])
    out = xn.zeros((*mat.batch_shape, count, *mat.dense_shape), mat.dtype)
    ends = moved_out(xn.zeros((*mat.batch_shape, count, mat.n_sparse), indices.dtype),
                     xn.zeros((*mat.batch_shape, count), bool), mat.sparse_shape)  # fmt: skip
    return mat.like(
        out.at[at].add(data, mode="drop"), ends.at[at].set(indices, mode="drop"),
        mat.sparse_shape, is_sorted=True, is_unique=True,
    )  # fmt: skip


def without_zeros(mat: C) -> C:
    """Return a sparse array whose values 0 have indices out of range."""
    data, indices = full(mat)
    axes = tuple(range(mat.n_batch + 1, data.ndim))
    there = xn.any(data != 0, axis=axes)
    return mat.like(data, moved_out(indices, there, mat.sparse_shape), mat.sparse_shape,
                    is_unique=mat.unique_indices)  # fmt: skip


@boundary
def bcoo_reduce_sum(mat: C, *, axes: Sequence[int]) -> C:
    """Return the sum over axes, as a sparse array; values that meet are added when they are read.

    Args:
      mat: the array.
      axes: any of its dimensions.
    """
    axes = sorted({static_int(a, "bcoo_reduce_sum: axes") % max(mat.ndim, 1) for a in axes})
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = known(mat)
    data = xn.sum(data, axis=tuple([a - mat.n_sparse + 1 for a in axes if a >= stop]))
    columns = [c for c in range(mat.n_sparse) if c + n not in axes]
    # a value that a dropped column puts out of range must go before the column does
    indices = moved_out(indices, is_there(indices, mat.sparse_shape), mat.sparse_shape)
    indices = indices[..., np.array(columns, int)]
    batch = [a for a in axes if a < n]
    kept = [a for a in range(n) if a not in batch]
    data, indices = (_batch_into_values(x, kept, batch, n) for x in (data, indices))
    return mat.like(data, indices, [mat.sparse_shape[c] for c in columns])


def _batch_into_values(x: Array, kept: list[int], batch: list[int], n: int) -> Array:
    """Return an array of values with some of its batch dimensions joined with that of values."""
    x = xn.transpose(x, (*kept, *batch, *range(n, x.ndim)))
    k = len(kept)
    return x.reshape(*x.shape[:k], math.prod(x.shape[k : n + 1]), *x.shape[n + 1 :])


@boundary
def bcoo_reshape(mat: C, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> C:
    """Return a sparse array with another shape.

    Args:
      mat: the array.
      new_sizes: of the result. The lengths of the batch, of the sparse and of the dense dimensions
        must each have the product that they have now.
      dimensions: an order of the dimensions in which they are read, as in `lax.reshape`.
    """
    sizes = tuple([static_int(n, "bcoo_reshape: new_sizes") for n in new_sizes])
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    ends = _ends_of_groups(sizes, (mat.batch_shape, mat.sparse_shape, mat.dense_shape))
    if ends is None:
        raise ValueError(message(
            "bcoo_reshape", "batch, sparse and dense dimensions must stay apart.",
            got=f"batch {mat.batch_shape}, sparse {mat.sparse_shape}, dense {mat.dense_shape}, "
            f"new_sizes {sizes}",
        ))  # fmt: skip
    batch, sparse = sizes[: ends[0]], sizes[ends[0] : ends[1]]
    data, indices = full(mat)
    there = is_there(indices, mat.sparse_shape)
    wide = math.prod(mat.sparse_shape) > np.iinfo(indices.dtype).max
    number = xn.zeros(indices.shape[:-1], np.int64 if wide else indices.dtype)
    for c, n in enumerate(mat.sparse_shape):
        number = number * n + indices[..., c].astype(number.dtype)
    columns = []
    for n in sparse[::-1]:
        columns.append((number % max(n, 1)).astype(indices.dtype))
        number = number // max(n, 1)
    stacked = xn.stack(columns[::-1], -1) if columns else indices[..., :0]
    moved = moved_out(stacked, there, sparse)
    return mat.like(
        data.reshape(*batch, mat.nse, *sizes[ends[1] :]),
        moved.reshape(*batch, mat.nse, len(sparse)), sparse,
        is_sorted=mat.indices_sorted, is_unique=mat.unique_indices,
    )  # fmt: skip


def _ends_of_groups(sizes: Sequence[int], groups: Sequence[Any]) -> tuple[int, int] | None:
    """Return where the new batch and sparse dimensions end, each as many as can be, if they do."""
    products = [math.prod(g) for g in groups]
    for a in range(len(sizes) + 1) if groups[0] else [0]:
        for b in range(len(sizes), a - 1, -1) if groups[2] else [len(sizes)]:
            if [math.prod(sizes[:a]), math.prod(sizes[a:b]), math.prod(sizes[b:])] == products:
                return a, b
    return None


@boundary
def bcoo_slice(
    mat: C, *, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> C:  # fmt: skip
    """Return a part of a sparse array.

    Args:
      mat: the array.
      start_indices: for each dimension the first index,
      limit_indices: the one behind the last,
      strides: and the step, positive; 1 by default.
    """
    steps = (1,) * mat.ndim if strides is None else tuple(strides)
    bounds = list(zip(start_indices, limit_indices, steps, strict=True))
    fits = len(bounds) == mat.ndim and all(
        0 <= a <= b <= n and s > 0 for (a, b, s), n in zip(bounds, mat.shape, strict=True)
    )
    if not fits:
        raise ValueError(message(
            "bcoo_slice", f"the bounds do not fit the shape {mat.shape}.",
            got=f"{tuple(start_indices)} to {tuple(limit_indices)}, steps {steps}",
        ))  # fmt: skip
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    cut = [slice(*b) for b in bounds]
    data, indices = full(mat)
    data = data[(*cut[:n], slice(None), *cut[stop:])]
    indices = indices[tuple(cut[:n])]
    inner = bounds[n:stop]
    lengths = [len(range(*b)) for b in inner]
    first, end, step = (xn.asarray([b[i] for b in inner], indices.dtype) for i in range(3))
    from_first = indices - first
    there = xn.all((from_first >= 0) & (indices < end) & (from_first % step == 0), axis=-1)
    moved = moved_out(from_first // step, there, lengths)
    return mat.like(data, moved, lengths, is_unique=mat.unique_indices)


def squeezed(mat: C, axes: Sequence[int]) -> C:
    """Return a sparse array without some of its dimensions, each of length 1."""
    kept = [n for a, n in enumerate(mat.shape) if a not in axes]
    if mat.n_batch == 0 and mat.n_dense == 0:
        return bcoo_reshape(mat, new_sizes=kept)
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = full(mat)
    indices = moved_out(indices, is_there(indices, mat.sparse_shape), mat.sparse_shape)
    columns = [c for c in range(mat.n_sparse) if c + n not in axes]
    batch = tuple([a for a in axes if a < n])
    dense = tuple([a - mat.n_sparse + 1 for a in axes if a >= stop])
    if len(columns) < mat.n_sparse:  # a dropped column cannot say that a value is not there
        data, _ = known(mat)
    indices = xn.squeeze(indices[..., np.array(columns, int)], batch)
    return mat.like(xn.squeeze(data, (*batch, *dense)), indices,
                    [mat.sparse_shape[c] for c in columns])  # fmt: skip


@boundary
def bcoo_concatenate(operands: Sequence[C], *, dimension: int) -> C:
    """Return sparse arrays one after the other.

    Args:
      operands: arrays with the same numbers of batch and dense dimensions, equal in shape but for
        one dimension.
      dimension: which one.
    """
    operands = list(operands)
    axis = _checked_axis(operands, dimension)
    first = operands[0]
    dtype = promotion.result_type(*[m.data for m in operands])
    parts = [(data.astype(dtype), indices) for data, indices in map(known, operands)]
    if axis < first.n_batch:
        return _batches_joined(operands, parts, axis)
    starts = [0, *itertools.accumulate(m.shape[axis] for m in operands)]
    column, sparse = axis - first.n_batch, list(first.sparse_shape)
    if column < first.n_sparse:
        sparse[column] = starts[-1]
        parts = [
            (data, _shifted(mat, indices, column, start, sparse))
            for mat, (data, indices), start in zip(operands, parts, starts, strict=False)
        ]
    else:
        parts = [(_among_zeros(data, axis - first.n_sparse + 1, start, starts[-1]), indices)
                 for (data, indices), start in zip(parts, starts, strict=False)]  # fmt: skip
    unique = column < first.n_sparse and all(m.unique_indices for m in operands)
    data, indices = (xn.concatenate(list(x), first.n_batch) for x in zip(*parts, strict=True))
    return first.like(data, indices, sparse, is_unique=unique)


def _checked_axis(operands: Sequence[Any], dimension: Any) -> int:
    """Return the dimension along which sparse arrays can be joined, counted from the first."""
    if not operands or not all(isinstance(m, Coordinates) for m in operands):
        raise TypeError("bcoo_concatenate: takes a sequence of sparse arrays, at least one.")
    first = operands[0]
    axis: int = static_int(dimension, "bcoo_concatenate: dimension") % first.ndim
    kinds = {(m.n_batch, m.n_dense, *m.shape[:axis], -1, *m.shape[axis + 1 :]) for m in operands}
    if len(kinds) > 1:
        raise ValueError(message(
            "bcoo_concatenate", "the arrays must agree but for one dimension.",
            got=f"{', '.join(map(repr, operands))}, dimension {dimension}",
        ))  # fmt: skip
    return axis


def _shifted(
    mat: Coordinates, indices: Array, column: int, start: int, sparse: Sequence[int]
) -> Array:
    """Return indices moved along a dimension of an array that has grown."""
    shift = np.zeros(mat.n_sparse, int)
    shift[column] = start
    there = is_there(indices, mat.sparse_shape)
    return moved_out(indices + xn.asarray(shift, indices.dtype), there, sparse)


def _among_zeros(data: Array, axis: int, start: int, length: int) -> Array:
    """Return values with zeros before and behind along a dense dimension."""
    pads = [(0, 0)] * data.ndim
    pads[axis] = (start, length - start - data.shape[axis])
    return xn.pad(data, pads)


def _batches_joined(operands: Sequence[C], parts: Sequence[Any], axis: int) -> C:
    """Return arrays one after the other in the batch, all with room for the longest list."""
    most, n = max(m.nse for m in operands), operands[0].n_batch
    datas, indices = [], []
    for mat, (data, index) in zip(operands, parts, strict=True):
        room = [(0, 0)] * n + [(0, most - mat.nse)]
        there = xn.pad(is_there(index, mat.sparse_shape), room)
        index = xn.pad(index, [*room, (0, 0)])
        indices.append(moved_out(index, there, mat.sparse_shape))
        datas.append(xn.pad(data, [*room, *[(0, 0)] * mat.n_dense]))
    return operands[0].like(
        xn.concatenate(datas, axis), xn.concatenate(indices, axis), operands[0].sparse_shape,
        is_unique=all(m.unique_indices for m in operands),
    )  # fmt: skip


def joined(a: C, b: Any) -> C:
    """Return the sum of two sparse arrays of one shape: the values of both."""
    if a.shape != b.shape or a.n_batch != b.n_batch or a.n_dense != b.n_dense:
        raise ValueError(message(
            "BCOO", "sparse arrays that are added must be alike.", got=f"{a!r} and {b!r}",
        ))  # fmt: skip
    dtype = promotion.result_type(a.data, b.data)
    (data, indices), (more, at) = known(a), known(b)
    return a.like(xn.concatenate([data.astype(dtype), more.astype(dtype)], a.n_batch),
                  xn.concatenate([indices, at.astype(indices.dtype)], a.n_batch),
                  a.sparse_shape)  # fmt: skip
