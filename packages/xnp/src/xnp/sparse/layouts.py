"""Structure of sparse arrays: dimensions, parts, orders of values, products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.numpy.dispatch import elements_now
from xnp.numpy.index_entries import from_front, index_dtype, place_of_batch
from xnp.primitives.precision import PrecisionLike
from xprim import Array, as_array, promotion
from xprim.errors import ConcretizationTypeError, ShapeError, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike
from xtree.boundaries import boundary_methods

__all__ = ()


# ----------------------------------------------------------------------------------- coordinates
# What a sparse array is: values, and the indices where they are.
#
# An array of shape (batch..., sparse..., dense...) has for each element of the batch `nse`
# values, each a dense array, at indices of the sparse dimensions:
#
#     data     [batch..., nse, dense...]       indices     [batch..., nse, number of sparse dims]
#
# The shape follows from the two arrays and the lengths of the sparse dimensions, which is all
# that the pytree keeps beside them: so `vmap` over the leading axis of both sees arrays of a
# smaller batch. Values of equal indices are added; what has an index out of range is not there,
# which is how lists of different lengths fill one array.

C = TypeVar("C", bound="Coordinates")
Shape = tuple[int, ...]


def lengths(name: str, shape: Sequence[int]) -> Shape:
    """Return the lengths of a shape, which are not negative."""
    found = tuple([static_int(n, f"{name}: a length of shape") for n in shape])
    require(
        all(n >= 0 for n in found), name, "the lengths of a shape are not negative.",
        got={"shape": found},
    )  # fmt: skip
    return found


@boundary_methods
class Coordinates:
    """Values with the indices where they are."""

    data: Any
    indices: Any
    sparse_shape: Shape
    indices_sorted: bool
    unique_indices: bool

    def like(
        self: C, data: Any, indices: Any, sparse_shape: Sequence[int], *, is_sorted: bool = False,
        is_unique: bool = False,
    ) -> C:  # fmt: skip
        """Return an array of the same class, its parts unchecked."""
        return make_unchecked(type(self), data, indices, tuple(sparse_shape), is_sorted, is_unique)

    @property
    def batch_shape(self) -> Shape:
        """The lengths of the batch dimensions; one of `data` and `indices` may have 1 in place."""
        n = self.n_batch
        pairs = zip(self.data.shape[:n], self.indices.shape[:n], strict=True)
        return tuple([b if a == 1 else a for a, b in pairs])

    @property
    def dense_shape(self) -> Shape:
        """The lengths of the dense dimensions."""
        return tuple(self.data.shape[self.n_batch + 1 :])

    @property
    def shape(self) -> Shape:
        """The lengths of all dimensions."""
        return (*self.batch_shape, *self.sparse_shape, *self.dense_shape)

    @property
    def nse(self) -> int:
        """How many values there are for each element of the batch."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return len(self.indices.shape) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return len(self.sparse_shape)

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return len(self.data.shape) - 1 - self.n_batch

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.n_batch + self.n_sparse + self.n_dense

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype


def make_unchecked(
    cls: type[C], data: Any, indices: Any, sparse_shape: Shape, is_sorted: bool, is_unique: bool
) -> C:
    """Return an object of the class, its parts unchecked: they may be anything in a pytree."""
    made = object.__new__(cls)
    made.data, made.indices, made.sparse_shape = data, indices, sparse_shape
    made.indices_sorted, made.unique_indices = is_sorted, is_unique
    return made


def full(mat: Coordinates) -> tuple[Array, Array]:
    """Return data and indices, both with the whole batch."""
    data = xn.broadcast_to(mat.data, (*mat.batch_shape, mat.nse, *mat.dense_shape))
    return data, xn.broadcast_to(mat.indices, (*mat.batch_shape, mat.nse, mat.n_sparse))


def places(indices: Array) -> tuple[Array, ...]:
    """Return an index array for each batch and sparse dimension, all of shape [batch..., nse]."""
    rows = indices.shape[:-1]
    numbers = [xn.arange(n, dtype=indices.dtype) for n in rows[:-1]]
    batch = [
        xn.broadcast_to(with_unit_dims(x, len(rows) - d - 1), rows) for d, x in enumerate(numbers)
    ]
    return (*batch, *[indices[..., i] for i in range(indices.shape[-1])])


def is_there(indices: Array, sparse_shape: Sequence[int]) -> Array:
    """Return which values have indices in range: bool[batch..., nse]."""
    bounds = xn.asarray(tuple(sparse_shape), indices.dtype)
    return xn.all((indices >= 0) & (indices < bounds), axis=-1)


def mask_padding(mat: Coordinates) -> tuple[Array, Array]:
    """Return data and indices with the whole batch, data 0 where the index is out of range."""
    data, indices = full(mat)
    there = is_there(indices, mat.sparse_shape)
    return xn.where(with_unit_dims(there, mat.n_dense), data, xn.zeros((), data.dtype)), indices


def move_out(indices: Array, there: Array, sparse_shape: Sequence[int]) -> Array:
    """Return indices with those that are not there one beyond the end in each dimension."""
    ends = xn.asarray(tuple(sparse_shape), indices.dtype)
    moved: Array = xn.where(with_unit_dims(there, 1), indices, ends)
    return moved


def with_unit_dims(x: Array, count: int) -> Array:
    """Return an array with dimensions of length 1 behind."""
    wide: Array = x.reshape(*x.shape, *[1] * count)
    return wide


# --------------------------------------------------------------------------------------- layouts
# Sparse arrays with other dimensions, parts, and orders of their values.
#
# Batch, sparse and dense dimensions keep their kinds. Indices of the sparse dimensions are
# computed with, values are moved only where dense or batch dimensions are.


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
    data, indices, _ = _order(mat)
    return mat.like(data, indices, mat.sparse_shape, is_sorted=True, is_unique=mat.unique_indices)


def _order(mat: Coordinates) -> tuple[Array, Array, Array]:
    """Return data and indices in ascending order of indices, and which are in range."""
    data, indices = mask_padding(mat)
    there = is_there(indices, mat.sparse_shape)
    indices = move_out(indices, there, mat.sparse_shape)
    numbers = xn.broadcast_to(xn.arange(mat.nse), indices.shape[:-1])
    keys = [indices[..., i] for i in range(mat.n_sparse)]
    order = lax.sort((*keys, numbers), dimension=-1, num_keys=len(keys) + 1)[-1]
    axis = mat.n_batch
    data = xn.take_along_axis(data, with_unit_dims(order, mat.n_dense), axis=axis)
    indices = xn.take_along_axis(indices, order[..., None], axis=axis)
    return data, indices, xn.take_along_axis(there, order, axis=axis)


def with_data(mat: C, data: Any) -> C:
    """Return a sparse array with other values at the same indices."""
    return mat.like(data, mat.indices, mat.sparse_shape, is_sorted=mat.indices_sorted,
                    is_unique=mat.unique_indices)  # fmt: skip


def with_unique_indices(mat: C) -> C:
    """Return a sparse array with values of equal indices added, in as much room as it has."""
    return mat if mat.unique_indices else bcoo_sum_duplicates(mat, mat.nse)


@boundary
def bcoo_sum_duplicates(mat: C, nse: int | None = None) -> C:
    """Return a sparse array with values of equal indices added, its indices sorted.

    Args:
      mat: the array.
      nse: how many values the result has room for, for each element of the batch; by default as
        many as it needs, which is not known while tracing. The last ones are lost if there are
        more.
    """
    data, indices, there = _order(mat)
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
    ends = move_out(xn.zeros((*mat.batch_shape, count, mat.n_sparse), indices.dtype),
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
    return mat.like(data, move_out(indices, there, mat.sparse_shape), mat.sparse_shape,
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
    data, indices = mask_padding(mat)
    data = xn.sum(data, axis=tuple([a - mat.n_sparse + 1 for a in axes if a >= stop]))
    columns = [c for c in range(mat.n_sparse) if c + n not in axes]
    # a value that a dropped column puts out of range must go before the column does
    indices = move_out(indices, is_there(indices, mat.sparse_shape), mat.sparse_shape)
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
    # without sparse dimensions no column can say what is not there
    data, indices = full(mat) if sparse else mask_padding(mat)
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
    moved = move_out(stacked, there, sparse)
    return mat.like(
        data.reshape(*batch, mat.nse, *sizes[ends[1] :]),
        moved.reshape(*batch, mat.nse, len(sparse)), sparse,
        is_sorted=mat.indices_sorted, is_unique=mat.unique_indices,
    )  # fmt: skip


def keeps_kinds_apart(mat: Coordinates, sizes: Sequence[int]) -> bool:
    """Return whether `bcoo_reshape` can give an array a shape."""
    groups = mat.batch_shape, mat.sparse_shape, mat.dense_shape
    return _ends_of_groups(sizes, groups) is not None


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
    moved = move_out(from_first // step, there, lengths)
    return mat.like(data, moved, lengths, is_unique=mat.unique_indices)


def gather_elements(mat: C, positions: Mapping[int, Any]) -> C:
    """Return the elements at arrays of indices along sparse dimensions, in NumPy's order.

    Args:
      mat: the array, without dimensions of a batch.
      positions: for some of its sparse dimensions, ascending, integer arrays that broadcast.
    """
    dims = list(positions)
    shape = np.broadcast_shapes(*[p.shape for p in positions.values()])
    rest = [d for d in range(mat.n_sparse) if d not in dims]
    # each stored value beside each position: those that do not meet are left out
    there: Any = True
    for d, p in positions.items():
        n = mat.sparse_shape[d]
        p = from_front(p, n, index_dtype([p]))
        p = xn.broadcast_to(xn.clip(p, 0, n - 1), shape)
        there = there & (p.reshape(-1, 1) == mat.indices[:, d])
    columns = [xn.asarray(c).reshape(-1, 1) for c in np.indices(shape)]
    first = place_of_batch(dims)
    columns[:0] = [mat.indices[:, d] for d in rest[:first]]
    columns += [mat.indices[:, d] for d in rest[first:]]
    lengths = [mat.sparse_shape[d] for d in rest]
    lengths[first:first] = shape
    data = xn.broadcast_to(mat.data, (*there.shape, *mat.dense_shape))
    if columns:
        indices = xn.stack([xn.broadcast_to(c, there.shape) for c in columns], -1)
    else:  # no column can say what is not there
        indices = xn.zeros((*there.shape, 0))
        data = xn.where(with_unit_dims(there, mat.n_dense), data, xn.zeros((), data.dtype))
    indices = move_out(indices.astype(mat.indices.dtype), there, lengths)
    data, indices = [x.reshape(there.size, *x.shape[2:]) for x in (data, indices)]
    data, indices = _drop_known_to_miss(data, indices, there)
    return mat.like(data, indices, lengths, is_unique=mat.unique_indices)


def _drop_known_to_miss(data: Array, indices: Array, there: Any) -> tuple[Array, Array]:
    """Return what is there alone, or all while that is traced."""
    hosts = elements_now(there)
    if hosts is None:
        return data, indices
    met = np.flatnonzero(hosts[0])
    return data[met], indices[met]


def squeeze_dimensions(mat: C, axes: Sequence[int]) -> C:
    """Return a sparse array without some of its dimensions, each of length 1."""
    kept = [n for a, n in enumerate(mat.shape) if a not in axes]
    if mat.n_batch == 0 and mat.n_dense == 0:
        return bcoo_reshape(mat, new_sizes=kept)
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = full(mat)
    indices = move_out(indices, is_there(indices, mat.sparse_shape), mat.sparse_shape)
    columns = [c for c in range(mat.n_sparse) if c + n not in axes]
    batch = tuple([a for a in axes if a < n])
    dense = tuple([a - mat.n_sparse + 1 for a in axes if a >= stop])
    if len(columns) < mat.n_sparse:  # a dropped column cannot say that a value is not there
        data, _ = mask_padding(mat)
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
    axis = _check_axis(operands, dimension)
    first = operands[0]
    dtype = promotion.result_type(*[m.data for m in operands])
    parts = [(data.astype(dtype), indices) for data, indices in map(mask_padding, operands)]
    if axis < first.n_batch:
        return _join_batches(operands, parts, axis)
    starts = [0, *itertools.accumulate(m.shape[axis] for m in operands)]
    column, sparse = axis - first.n_batch, list(first.sparse_shape)
    if column < first.n_sparse:
        sparse[column] = starts[-1]
        parts = [
            (data, _shift(mat, indices, column, start, sparse))
            for mat, (data, indices), start in zip(operands, parts, starts, strict=False)
        ]
    else:
        parts = [(_among_zeros(data, axis - first.n_sparse + 1, start, starts[-1]), indices)
                 for (data, indices), start in zip(parts, starts, strict=False)]  # fmt: skip
    unique = column < first.n_sparse and all(m.unique_indices for m in operands)
    data, indices = (xn.concatenate(list(x), first.n_batch) for x in zip(*parts, strict=True))
    return first.like(data, indices, sparse, is_unique=unique)


def _check_axis(operands: Sequence[Any], dimension: Any) -> int:
    """Return the dimension along which sparse arrays can be joined, counted from the first."""
    require(
        operands and all(isinstance(m, Coordinates) for m in operands), "bcoo_concatenate",
        "takes a sequence of sparse arrays, at least one.", error=TypeError,
    )  # fmt: skip
    first = operands[0]
    axis: int = static_int(dimension, "bcoo_concatenate: dimension") % first.ndim
    kinds = {(m.n_batch, m.n_dense, *m.shape[:axis], -1, *m.shape[axis + 1 :]) for m in operands}
    if len(kinds) > 1:
        raise ValueError(message(
            "bcoo_concatenate", "the arrays must agree but for one dimension.",
            got=f"{', '.join(map(repr, operands))}, dimension {dimension}",
        ))  # fmt: skip
    return axis


def _shift(
    mat: Coordinates, indices: Array, column: int, start: int, sparse: Sequence[int]
) -> Array:
    """Return indices moved along a dimension of an array that has grown."""
    shift = np.zeros(mat.n_sparse, int)
    shift[column] = start
    there = is_there(indices, mat.sparse_shape)
    return move_out(indices + xn.asarray(shift, indices.dtype), there, sparse)


def _among_zeros(data: Array, axis: int, start: int, length: int) -> Array:
    """Return values with zeros before and behind along a dense dimension."""
    pads = [(0, 0)] * data.ndim
    pads[axis] = (start, length - start - data.shape[axis])
    return xn.pad(data, pads)


def _join_batches(operands: Sequence[C], parts: Sequence[Any], axis: int) -> C:
    """Return arrays one after the other in the batch, all with room for the longest list."""
    most, n = max(m.nse for m in operands), operands[0].n_batch
    datas, indices = [], []
    for mat, (data, index) in zip(operands, parts, strict=True):
        room = [(0, 0)] * n + [(0, most - mat.nse)]
        there = xn.pad(is_there(index, mat.sparse_shape), room)
        index = xn.pad(index, [*room, (0, 0)])
        indices.append(move_out(index, there, mat.sparse_shape))
        datas.append(xn.pad(data, [*room, *[(0, 0)] * mat.n_dense]))
    return operands[0].like(
        xn.concatenate(datas, axis), xn.concatenate(indices, axis), operands[0].sparse_shape,
        is_unique=all(m.unique_indices for m in operands),
    )  # fmt: skip


def add_sparse(a: C, b: Any) -> C:
    """Return the sum of two sparse arrays of one shape: the values of both."""
    require(
        a.shape == b.shape and a.n_batch == b.n_batch and a.n_dense == b.n_dense, "BCOO",
        "sparse arrays that are added must be alike.", got=(a, b),
    )  # fmt: skip
    dtype = promotion.result_type(a.data, b.data)
    (data, indices), (more, at) = mask_padding(a), mask_padding(b)
    return a.like(xn.concatenate([data.astype(dtype), more.astype(dtype)], a.n_batch),
                  xn.concatenate([indices, at.astype(indices.dtype)], a.n_batch),
                  a.sparse_shape)  # fmt: skip


# ----------------------------------------------------------------------------------------- parts
# Parts of sparse arrays: without dimensions, backwards, and at places that may be traced.


@boundary
def bcoo_squeeze(arr: C, *, dimensions: Sequence[int]) -> C:
    """Return a sparse array without some of its dimensions, each of length 1.

    Args:
      arr: the array.
      dimensions: which ones, counted from either end.
    """
    axes = _axes("bcoo_squeeze", arr, dimensions)
    for d in axes:
        require(
            arr.shape[d] == 1, "bcoo_squeeze", "dimension {} of {!r} is not of length 1.", d, arr
        )
    return squeeze_dimensions(arr, axes)


@boundary
def bcoo_rev(operand: C, dimensions: Sequence[int]) -> C:
    """Return a sparse array backwards along some of its dimensions.

    Args:
      operand: the array.
      dimensions: which ones, counted from either end.

    Example:
      >>> from xnp.sparse import eye
      >>> bcoo_rev(eye(3), dimensions=[0]).indices.tolist()
      [[2, 0], [1, 1], [0, 2]]
    """
    axes = _axes("bcoo_rev", operand, dimensions)
    n, stop = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = full(operand)
    turned = [d for d in axes if d < n]
    data = xn.flip(data, [*turned, *[d - operand.n_sparse + 1 for d in axes if d >= stop]])
    indices = xn.flip(indices, turned)
    there = is_there(indices, operand.sparse_shape)
    for c in (d - n for d in axes if n <= d < stop):
        indices = indices.at[..., c].set(operand.sparse_shape[c] - 1 - indices[..., c])
    indices = move_out(indices, there, operand.sparse_shape)
    return operand.like(data, indices, operand.sparse_shape, is_unique=operand.unique_indices)


@boundary
def bcoo_dynamic_slice(mat: C, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> C:
    """Return a part of a sparse array that begins where values, maybe traced ones, say.

    Args:
      mat: the array.
      start_indices: for each dimension the first index; one from which the part would not fit is
        brought to where it does, as by `lax.dynamic_slice`.
      slice_sizes: for each dimension the length.

    Returns:
      An array with room for as many values as `mat` has.
    """
    sizes = [static_int(n, "bcoo_dynamic_slice: slice_sizes") for n in slice_sizes]
    starts = [as_array(i, what="bcoo_dynamic_slice: a start") for i in start_indices]
    if not len(starts) == len(sizes) == mat.ndim or any(
        not 0 <= m <= n for m, n in zip(sizes, mat.shape, strict=True)
    ):
        raise ValueError(
            f"bcoo_dynamic_slice: {len(starts)} starts and sizes {tuple(sizes)} do not fit {mat!r}."
        )
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = full(mat)
    zero = xn.zeros((), _dtype_of(starts))
    whole = lax.dynamic_slice(
        data, [*starts[:n], zero, *starts[stop:]], [*sizes[:n], mat.nse, *sizes[stop:]]
    )
    indices = lax.dynamic_slice(
        indices, [*starts[:n], zero, zero], [*sizes[:n], mat.nse, mat.n_sparse]
    )
    lengths = sizes[n:stop]
    if not lengths:
        return mat.like(whole, indices, [])
    there = is_there(indices, mat.sparse_shape)
    firsts = [
        xn.where(s < 0, s + size, s)
        for s, size in zip(starts[n:stop], mat.sparse_shape, strict=True)
    ]
    first = xn.stack([
        xn.clip(s, 0, size - m).astype(indices.dtype)
        for s, m, size in zip(firsts, lengths, mat.sparse_shape, strict=True)
    ])  # fmt: skip
    moved = indices - first
    there = there & is_there(moved, lengths)
    return mat.like(whole, move_out(moved, there, lengths), lengths, is_unique=mat.unique_indices)


def _dtype_of(starts: Sequence[Any]) -> Any:
    """Return the dtype of the first of some numbers, of which all others are."""
    return starts[0].dtype if starts else "int32"


def _axes(operation: str, mat: Coordinates, dimensions: Sequence[int]) -> list[int]:
    axes = [static_int(d, operation, "dimensions") for d in dimensions]
    for d in axes:
        require(-mat.ndim <= d < mat.ndim, operation, "there is no dimension {} of {!r}.", d, mat)
    return [d % mat.ndim for d in axes]


# -------------------------------------------------------------------------------------- products
# Products of sparse arrays with dense and with sparse ones.
#
# The product with a dense array is a gather and a scatter: each value meets what the dense array
# has at its indices, and the products are added where the indices of the result say.

SparseOrDense = Any  # a sparse array of coordinates, or what array functions take


@boundary
def bcoo_multiply_dense(sp_mat: Coordinates, v: ArrayLike) -> Array:
    """Return the values of the elementwise product with a dense array, at the same indices.

    Args:
      sp_mat: a sparse array.
      v: an array that can be broadcast to its shape.

    Returns:
      Data for the indices of `sp_mat`.
    """
    v = xn.asarray(v)
    shape = sp_mat.shape
    require(
        np.broadcast_shapes(v.shape, shape) == shape, "bcoo_multiply_dense",
        "shape {} cannot be broadcast to that of the sparse array.", v.shape, got=sp_mat,
    )  # fmt: skip
    v = v.reshape(*[1] * (len(shape) - v.ndim), *v.shape)
    data, indices = mask_padding(sp_mat)
    at = places(indices)
    # where `v` is repeated, its only element is meant
    at = tuple([xn.zeros_like(i) if v.shape[d] == 1 else i for d, i in enumerate(at)])
    met = v.at[at].get(mode="fill", fill_value=0) if at else v
    values: Array = data * met
    return values


@boundary
def bcoo_multiply_sparse(lhs: C, rhs: Coordinates) -> C:
    """Return the elementwise product of two sparse arrays of one shape.

    Its values are those of `lhs`, each times the sum of what `rhs` has at the same index: all pairs
    of values are compared.
    """
    require(
        lhs.shape == rhs.shape and lhs.n_batch == rhs.n_batch and lhs.n_dense == rhs.n_dense,
        "bcoo_multiply_sparse", "the arrays must be alike.", got=(lhs, rhs),
    )  # fmt: skip
    (data, indices), (other, at) = mask_padding(lhs), mask_padding(rhs)
    same = xn.all(indices[..., :, None, :] == at[..., None, :, :].astype(indices.dtype), axis=-1)
    dtype = promotion.result_type(data, other)
    rows = other.reshape(*other.shape[: lhs.n_batch + 1], math.prod(lhs.dense_shape))
    met = xn.matmul(same.astype(dtype), rows.astype(dtype))
    met = met.reshape(*met.shape[:-1], *lhs.dense_shape)
    return lhs.like(data * met, indices, lhs.sparse_shape, is_sorted=lhs.indices_sorted,
                    is_unique=lhs.unique_indices)  # fmt: skip


@boundary
def bcoo_dot_general(
    lhs: SparseOrDense,
    rhs: SparseOrDense,
    *,
    dimension_numbers: Any,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Any:
    """Return the sum of products over some dimensions, as `lax.dot_general` does.

    Args:
      lhs: an array; at least one of the two is sparse.
      rhs: an array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: of products of matrices inside of dense dimensions, as in `lax.dot_general`.
      preferred_element_type: the dtype of the result; by default that of both by promotion.

    Returns:
      A dense array; a sparse one when both are.

    Example:
      >>> import xnp
      >>> from xnp.sparse import eye
      >>> bcoo_dot_general(eye(2), xnp.ones((2, 1)), dimension_numbers=(((1,), (0,)), ((), ())))
      Array([[1.],
             [1.]], dtype=float32)
    """
    (left, right), (left_batch, right_batch) = dimension_numbers
    contracting = tuple(map(int, left)), tuple(map(int, right))
    batch = tuple(map(int, left_batch)), tuple(map(int, right_batch))
    sparse = [isinstance(x, Coordinates) for x in (lhs, rhs)]
    lhs, rhs = [x if s else xn.asarray(x) for x, s in zip((lhs, rhs), sparse, strict=True)]
    _check_lengths(lhs, rhs, contracting, batch)
    dtype = preferred_element_type or promotion.result_type(
        *[x.data if s else x for x, s in zip((lhs, rhs), sparse, strict=True)])  # fmt: skip
    if all(sparse):
        return _sparse_by_sparse(lhs, rhs, contracting, batch, dtype)
    if sparse[0]:
        return _sparse_by_dense(lhs, rhs, contracting, batch, dtype, precision)
    out = _sparse_by_dense(rhs, lhs, contracting[::-1], batch[::-1], dtype, precision)
    n = len(batch[0])
    own = rhs.ndim - n - len(contracting[1])  # free dimensions of the sparse one come first
    order = [*range(n), *range(n + own, out.ndim), *range(n, n + own)]
    return xn.transpose(out, order)


@boundary
def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: Any
) -> Array:
    """Return some elements of the product of two dense arrays, as `lax.dot_general` has it.

    Args:
      A: an array.
      B: an array.
      indices: which elements, as those of a `BCOO`: integers of shape [batch..., nse, n], where
        batch are the first dimensions of the product, and n dimensions follow.
      dimension_numbers: `((A_contracting, B_contracting), (A_batch, B_batch))`.

    Returns:
      An array of shape [batch..., nse, rest...]. The product is computed whole.
    """
    at = xn.asarray(indices)
    product = lax.dot_general(xn.asarray(A), xn.asarray(B), dimension_numbers)
    return product.at[places(at)].get(mode="fill", fill_value=0)


def _check_lengths(lhs: Any, rhs: Any, contracting: Any, batch: Any) -> None:
    for name, (a, b) in (("contracted", contracting), ("batch", batch)):
        lengths = [lhs.shape[i] for i in a], [rhs.shape[i] for i in b]
        if lengths[0] != lengths[1]:
            raise ShapeError(message(
                "bcoo_dot_general", f"the {name} dimensions differ: {lengths[0]} and {lengths[1]}.",
                got=f"shapes {lhs.shape} and {rhs.shape}",
            ))  # fmt: skip


def _sparse_by_dense(
    lhs: Coordinates, rhs: Array, contracting: Any, batch: Any, dtype: Any, precision: Any
) -> Array:
    """Return the product in the order: batch, free dimensions of `lhs`, those of `rhs`.

    Dimensions are letters: those that indices name (`named`) are gathered and scattered, the dense
    ones are those of an `einsum` for all values together.
    """
    named = lhs.n_batch + lhs.n_sparse
    data, indices = mask_padding(lhs)
    at = places(indices)
    partner = dict(zip(contracting[0] + batch[0], contracting[1] + batch[1], strict=True))
    values = list(range(lhs.n_batch + 1))  # letters of the dimensions of values
    free = _others(range(rhs.ndim), partner.values())
    met, met_letters = _gather_partners(rhs, at, partner, values)
    order = [*batch[0], *_others(range(lhs.ndim), partner)]
    placed = _others(order, range(named, lhs.ndim))
    kept = _others(order, range(named))
    products = xn.einsum(
        data.astype(dtype), [*values, *range(100 + named, 100 + lhs.ndim)],
        met.astype(dtype), met_letters,
        [*(values if placed else []), *[100 + d for d in kept], *[200 + d for d in free]],
        precision=precision, optimize="optimal",
    )  # fmt: skip
    if not placed:
        return products
    out = xn.zeros((*[lhs.shape[d] for d in placed], *products.shape[len(values) :]), dtype)
    out = out.at[tuple([at[d] for d in placed])].add(products, mode="drop")
    now = [*placed, *kept]
    return xn.transpose(out, [*map(now.index, order), *range(len(now), out.ndim)])


def _gather_partners(
    rhs: Array, at: Sequence[Array], partner: dict[int, int], values: list[int]
) -> tuple[Array, list[int]]:
    """Return what each value meets in a dense array, and the letters of its dimensions."""
    letter = {d: 200 + d for d in range(rhs.ndim)} | {p: 100 + d for d, p in partner.items()}
    looked_up = [d for d in range(len(at)) if d in partner]
    if not looked_up:
        return rhs, list(map(letter.__getitem__, range(rhs.ndim)))
    first = [partner[d] for d in looked_up]
    rest = _others(range(rhs.ndim), first)
    met = xn.transpose(rhs, [*first, *rest])
    met = met.at[tuple([at[d] for d in looked_up])].get(mode="fill", fill_value=0)
    return met, [*values, *map(letter.__getitem__, rest)]


def _others(axes: Iterable[int], taken: Iterable[int]) -> list[int]:
    """Return the axes that are not taken, in their order."""
    taken = set(taken)
    return [d for d in axes if d not in taken]


def _sparse_by_sparse(lhs: Any, rhs: Any, contracting: Any, batch: Any, dtype: Any) -> Any:
    """Return the product of two sparse arrays as one: all pairs of values, of which few stay."""
    if batch[0] or lhs.n_batch or rhs.n_batch or lhs.n_dense or rhs.n_dense:
        raise ValueError(message(
            "bcoo_dot_general",
            "the product of two sparse arrays with batch or dense dimensions is not supported.",
            got=f"{lhs!r} and {rhs!r}",
            hint="vmap over the batch, or make one of them dense: y.todense()",
        ))  # fmt: skip
    (data, indices), (other, at) = mask_padding(lhs), mask_padding(rhs)
    mine, theirs = list(contracting[0]), list(contracting[1])
    same = indices[:, None, np.array(mine, int)] == at[None, :, np.array(theirs, int)]
    there = is_there(indices, lhs.sparse_shape)[:, None] & is_there(at, rhs.sparse_shape)
    meet = xn.all(same, axis=-1) & there
    products = xn.where(meet, data.astype(dtype)[:, None] * other.astype(dtype), 0)
    columns = [
        xn.broadcast_to(x, meet.shape)
        for x in (*_columns(indices[:, None], mine), *_columns(at[None], theirs))
    ]
    shape = [n for shape, axes in ((lhs.shape, mine), (rhs.shape, theirs))
             for d, n in enumerate(shape) if d not in axes]  # fmt: skip
    stacked = xn.stack(columns, -1) if columns else xn.zeros((*meet.shape, 0), indices.dtype)
    moved = move_out(stacked.reshape(meet.size, len(shape)), meet.ravel(), shape)
    product = lhs.like(products.ravel(), moved, shape)
    size = math.prod(shape)
    return bcoo_sum_duplicates(product, size) if size < product.nse else product


def _columns(indices: Array, left_out: Sequence[int]) -> list[Array]:
    return [indices[..., c] for c in range(indices.shape[-1]) if c not in left_out]
