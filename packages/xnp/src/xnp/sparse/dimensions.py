"""Dimensions of sparse arrays: repeated, of another kind, gathered, convolved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

import xnp.numpy as xn
from xnp.numpy.dispatch import elements_now
from xnp.primitives.convolution import output_size
from xnp.primitives.index_modes import FILL_OR_DROP
from xnp.sparse.layouts import (
    Coordinates,
    bcoo_sum_duplicates,
    full,
    is_there,
    mask_padding,
    move_out,
    with_unit_dims,
)
from xprim import Array, source
from xprim.errors import message
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundary

__all__ = ()

C = TypeVar("C", bound="Coordinates")


class SparseEfficiencyError(ValueError):
    """A sparse array would store more numbers than before."""


class SparseEfficiencyWarning(UserWarning):
    """A sparse array stores more numbers than before."""


# ---------------------------------------------------------------------------------------- layout
# The kinds of dimensions: from batch and dense to sparse, which costs nothing but indices, and
# back, where each element of a batch needs room for all values, and a dense row for its zeros.


@boundary
def bcoo_update_layout(
    mat: C, *, n_batch: int | None = None, n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> C:  # fmt: skip
    """Return a sparse array with other numbers of batch and dense dimensions, equal in value.

    Args:
      mat: the array.
      n_batch: how many leading dimensions are batch in the result; those of `mat` by default.
      n_dense: how many trailing dimensions are dense; those of `mat` by default.
      on_inefficient: what happens where the result stores more numbers, which more dimensions of
        the batch and more dense ones lead to: "error", "warn", or None for nothing.

    Raises:
      SparseEfficiencyError: the result stores more numbers, and `on_inefficient` is "error".
      ValueError: there are not as many dimensions.

    Example:
      >>> from xnp.sparse import eye
      >>> bcoo_update_layout(eye(3, n_batch=1), n_batch=0).indices.tolist()
      [[0, 0], [1, 1], [2, 2]]
    """
    name = "bcoo_update_layout"
    require_choice(name, "on_inefficient", on_inefficient, ("error", "warn", None))
    batch = mat.n_batch if n_batch is None else static_int(n_batch, f"{name}: n_batch")
    dense = mat.n_dense if n_dense is None else static_int(n_dense, f"{name}: n_dense")
    require(
        batch >= 0 and dense >= 0 and batch + dense <= mat.ndim, name,
        "n_batch={} and n_dense={} do not fit the array.", batch, dense, got=mat,
        expected=f"two numbers from 0, in sum at most {mat.ndim}",
    )  # fmt: skip
    if batch > mat.n_batch or dense > mat.n_dense:
        _report_growth(mat, batch, dense, on_inefficient)
    if dense < mat.n_dense:
        mat = _dense_to_sparse(mat, mat.n_dense - dense)
    if batch < mat.n_batch:
        mat = _batch_to_sparse(mat, batch)
    if batch > mat.n_batch:
        mat = _sparse_to_batch(mat, batch - mat.n_batch)
    return _sparse_to_dense(mat, dense - mat.n_dense) if dense > mat.n_dense else mat


def _report_growth(mat: Coordinates, batch: int, dense: int, mode: str | None) -> None:
    rows = math.prod(mat.shape[mat.n_batch : batch])
    columns = math.prod(mat.shape[mat.ndim - dense : mat.ndim - mat.n_dense])
    if mode is None or rows * columns <= 1:
        return
    text = message(
        "bcoo_update_layout", f"the result stores {rows * columns} times as many numbers.",
        got=f"{mat!r}, n_batch={batch}, n_dense={dense}",
        hint="on_inefficient=None says that it may",
    )  # fmt: skip
    if mode == "error":
        raise SparseEfficiencyError(text)
    warnings.warn(text, SparseEfficiencyWarning, stacklevel=source.depth())


def all_sparse(mat: C) -> C:
    """Return an array whose dimensions are all sparse, equal in value."""
    return bcoo_update_layout(mat, n_batch=0, n_dense=0)


def alike(*mats: Any) -> list[Any]:
    """Return arrays of one rank with as many batch and dense dimensions as all have."""
    batch, dense = min(x.n_batch for x in mats), min(x.n_dense for x in mats)
    return [bcoo_update_layout(x, n_batch=batch, n_dense=dense) for x in mats]


def broadcast(a: Any, b: Any) -> list[Any]:
    """Return two arrays with one shape and as many batch and dense dimensions as both have.

    Those that do not broadcast stay as they are.
    """
    if a.shape == b.shape:
        return alike(a, b)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return [a, b]
    return alike(*[
        bcoo_broadcast_in_dim(
            x, shape=shape, broadcast_dimensions=range(len(shape) - x.ndim, len(shape))
        )
        for x in (a, b)
    ])  # fmt: skip


def _dense_to_sparse(mat: C, count: int) -> C:
    n, sizes = mat.n_batch, mat.dense_shape[:count]
    data, indices = full(mat)
    more = _grid(sizes, indices.dtype)
    indices = _beside(indices, more, mat.sparse_shape, (*mat.sparse_shape, *sizes))
    data = data.reshape(*data.shape[:n], mat.nse * math.prod(sizes), *mat.dense_shape[count:])
    return mat.like(data, indices, (*mat.sparse_shape, *sizes),
                    is_sorted=mat.indices_sorted and mat.unique_indices,
                    is_unique=mat.unique_indices)  # fmt: skip


def _beside(indices: Array, more: Array, lengths: Any, new_lengths: Any) -> Array:
    """Return the indices, each with each of some rows of others behind, [..., nse * rows, both]."""
    rows, nse = more.shape[0], indices.shape[-2]
    there = is_there(indices, lengths)
    shape = (*indices.shape[:-1], rows)
    both = xn.concatenate([
        xn.broadcast_to(indices[..., None, :], (*shape, indices.shape[-1])),
        xn.broadcast_to(more, (*shape, more.shape[-1])),
    ], -1)  # fmt: skip
    moved = move_out(both, xn.broadcast_to(there[..., None], shape), new_lengths)
    return moved.reshape(*indices.shape[:-2], nse * rows, both.shape[-1])


def _grid(sizes: Sequence[int], dtype: Any) -> Array:
    """Return the indices of all elements of a shape, in order: [elements, dimensions]."""
    columns = np.indices(tuple(sizes)).reshape(len(sizes), -1) if sizes else np.zeros((0, 1))
    return xn.asarray(columns.T.astype(dtype))


def _batch_to_sparse(mat: C, n: int) -> C:
    data, indices = full(mat)
    sizes = mat.batch_shape[n:]
    lengths = (*sizes, *mat.sparse_shape)
    there = is_there(indices, mat.sparse_shape)
    if not mat.n_sparse:  # no column could say what is not there
        data, _ = mask_padding(mat)
    shape = indices.shape[:-1]
    numbers = _grid(sizes, indices.dtype).reshape(*sizes, 1, len(sizes))
    indices = xn.concatenate([xn.broadcast_to(numbers, (*shape, len(sizes))), indices], -1)
    indices = move_out(indices, there, lengths)
    count = math.prod(sizes) * mat.nse
    return mat.like(
        data.reshape(*shape[:n], count, *mat.dense_shape),
        indices.reshape(*shape[:n], count, len(lengths)), lengths,
        is_unique=mat.unique_indices,
    )  # fmt: skip


def _sparse_to_batch(mat: C, count: int) -> C:
    sizes, rest = mat.sparse_shape[:count], mat.sparse_shape[count:]
    data, indices = mask_padding(mat)
    rows = _grid(sizes, indices.dtype).reshape(*sizes, 1, count)
    batch, nse = mat.batch_shape, mat.nse
    ahead = [1] * count
    spread = indices.reshape(*batch, *ahead, nse, mat.n_sparse)
    there = xn.all(spread[..., :count] == rows, -1)
    wide = xn.broadcast_to(spread[..., count:], (*there.shape, len(rest)))
    data = xn.broadcast_to(
        data.reshape(*batch, *ahead, nse, *mat.dense_shape), (*there.shape, *mat.dense_shape)
    )
    if not rest:
        data = xn.where(with_unit_dims(there, mat.n_dense), data, xn.zeros((), data.dtype))
    out = mat.like(data, move_out(wide, there, rest), rest, is_unique=mat.unique_indices)
    most = math.prod(rest)
    return bcoo_sum_duplicates(out, most) if rest and most < nse else out


def _sparse_to_dense(mat: C, count: int) -> C:
    kept = mat.n_sparse - count
    data, indices = mask_padding(mat)
    there = is_there(indices, mat.sparse_shape)
    sizes = mat.sparse_shape[kept:]
    rows = _grid(sizes, indices.dtype)
    hit = xn.all(indices[..., None, kept:] == rows, -1)  # [batch..., nse, elements of sizes]
    hit = hit.reshape(*hit.shape[:-1], *sizes, *[1] * mat.n_dense)
    wide = data.reshape(*data.shape[: mat.n_batch + 1], *[1] * count, *mat.dense_shape)
    rest = mat.sparse_shape[:kept]
    return mat.like(xn.where(hit, wide, xn.zeros((), data.dtype)),
                    move_out(indices[..., :kept], there, rest), rest)  # fmt: skip


# ------------------------------------------------------------------------------------- repetition


@boundary
def bcoo_broadcast_in_dim(
    mat: C, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> C:
    """Return a sparse array repeated along new dimensions, and along those of length 1.

    New dimensions before the first that is sparse or dense are batch, those behind the first dense
    one are dense, and the others sparse.

    Args:
      mat: the array.
      shape: that of the result.
      broadcast_dimensions: for each dimension of the array its number in the result, ascending.
      sharding: None; a sparse array has none of its own.

    Example:
      >>> from xnp.sparse import eye
      >>> bcoo_broadcast_in_dim(eye(2), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
      BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    name = "bcoo_broadcast_in_dim"
    require(sharding is None, name, "a sparse array has no sharding of its own.", got=sharding)
    sizes = tuple([static_int(n, f"{name}: shape") for n in shape])
    dims = tuple([static_int(d, f"{name}: broadcast_dimensions") for d in broadcast_dimensions])
    _check_dimensions(mat, sizes, dims)
    n, stop = mat.n_batch, mat.n_batch + mat.n_sparse
    end_batch = dims[n] if n < mat.ndim else len(sizes)
    first_dense = dims[stop] if mat.n_dense else len(sizes)
    lengths = sizes[end_batch:first_dense]
    data, indices = _repeat_values(mat, lengths, [d - end_batch for d in dims[n:stop]])
    batch = _among_ones(end_batch, mat.batch_shape, dims[:n])
    inner = _among_ones(
        len(sizes) - first_dense, mat.dense_shape, [d - first_dense for d in dims[stop:]]
    )
    nse = indices.shape[-2]
    data = data.reshape(*batch, nse, *inner)
    return mat.like(
        xn.broadcast_to(data, (*sizes[:end_batch], nse, *sizes[first_dense:])),
        indices.reshape(*batch, nse, len(lengths)), lengths, is_unique=mat.unique_indices,
    )  # fmt: skip


def _check_dimensions(mat: Coordinates, sizes: Sequence[int], dims: Sequence[int]) -> None:
    fits = len(dims) == mat.ndim and list(dims) == sorted({d for d in dims if 0 <= d < len(sizes)})
    if not fits or any(n not in (1, sizes[d]) for n, d in zip(mat.shape, dims, strict=True)):
        raise ValueError(message(
            "bcoo_broadcast_in_dim", "the dimensions do not fit.",
            got=f"{mat!r}, shape {tuple(sizes)}, broadcast_dimensions {tuple(dims)}",
            expected="an ascending number in the result for each dimension, which has its length, "
            "or 1",
        ))  # fmt: skip


def _among_ones(count: int, lengths: Sequence[int], dims: Sequence[int]) -> list[int]:
    """Return a shape with some lengths at their dimensions, and 1 at all others."""
    shape = [1] * count
    for length, d in zip(lengths, dims, strict=True):
        shape[d] = length
    return shape


def _repeat_values(
    mat: Coordinates, sizes: Sequence[int], dims: Sequence[int]
) -> tuple[Array, Array]:
    """Return values repeated along sparse dimensions, and their indices."""
    data, indices = full(mat)
    kept = [c for c, d in enumerate(dims) if mat.sparse_shape[c] == sizes[d]]
    new = [d for d in range(len(sizes)) if d not in [dims[c] for c in kept]]
    there = is_there(indices, mat.sparse_shape)
    lengths = [mat.sparse_shape[c] for c in kept]
    if not kept:  # no column is left to say what is not there
        data, _ = mask_padding(mat)
    columns = move_out(indices[..., np.array(kept, int)], there, lengths)
    more = _grid([sizes[d] for d in new], indices.dtype)
    order = [dims[c] for c in kept] + new
    indices = _beside(columns, more, lengths, [sizes[d] for d in order])
    count = more.shape[0]
    if count != 1:
        data = xn.repeat(data, count, axis=mat.n_batch)
    return data, indices[..., np.argsort(order)] if order else indices


# --------------------------------------------------------------------------------------- gathers


def gather(
    mat: Any, starts: Array, *, dimension_numbers: Any, slice_sizes: Sequence[int], mode: Any,
    fill_value: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """Return slices of a sparse array, all of whose dimensions are sparse then; see `lax.gather`.

    Each value meets each slice: what lies in it is there in the result.
    """
    mat = all_sparse(mat)
    numbers, sizes, batch = dimension_numbers, tuple(slice_sizes), starts.shape[:-1]
    firsts = _first_elements(mat, starts, numbers, sizes, mode, fill_value)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    slots = math.prod(batch)
    there = is_there(mat.indices, mat.sparse_shape)[None, :]
    inside = {}
    for d, n in enumerate(sizes):
        at = mat.indices[None, :, d] - firsts[d].reshape(slots, 1)
        there = there & (at >= 0) & (at < n)
        if d not in gone:
            inside[d] = at
    of_batch = _grid(batch, mat.indices.dtype)
    outer = iter([(of_batch[:, k : k + 1], n) for k, n in enumerate(batch)])
    inner = iter([(at, sizes[d]) for d, at in inside.items()])
    rank = len(batch) + len(inside)
    columns = [next(inner if d in numbers.offset_dims else outer) for d in range(rank)]
    lengths = [n for _, n in columns]
    data = xn.broadcast_to(mat.data, there.shape)
    if columns:
        stacked = xn.stack([xn.broadcast_to(c, there.shape) for c, _ in columns], -1)
    else:  # no column can say what is not there
        stacked = xn.zeros((*there.shape, 0), mat.indices.dtype)
        data = xn.where(there, data, xn.zeros((), data.dtype))
    indices = move_out(stacked.astype(mat.indices.dtype), there, lengths)
    return mat.like(data.reshape(-1), indices.reshape(-1, len(lengths)), lengths,
                    is_unique=mat.unique_indices)  # fmt: skip


def _first_elements(
    mat: Any, starts: Array, numbers: Any, sizes: Sequence[int], mode: Any, fill_value: Any
) -> list[Array]:
    """Return for each dimension where each slice begins."""
    batch, dtype = starts.shape[:-1], mat.indices.dtype
    firsts: list[Any] = [xn.zeros(batch, dtype)] * mat.ndim
    batching = zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    )  # fmt: skip
    for d, k in batching:
        shape = [1] * len(batch)
        shape[k] = batch[k]
        firsts[d] = xn.broadcast_to(xn.arange(batch[k], dtype=dtype).reshape(shape), batch)
    fits: Any = True
    for k, d in enumerate(numbers.start_index_map):
        given, most = starts[..., k], mat.shape[d] - sizes[d]
        fits = fits & (given >= 0) & (given <= most)
        firsts[d] = xn.clip(given, 0, most).astype(dtype)
    if mode == FILL_OR_DROP:
        _check_fill(mat, fits, fill_value)
        firsts = [
            xn.where(fits, first, size) for first, size in zip(firsts, mat.shape, strict=True)
        ]
    return firsts


def _check_fill(mat: Any, fits: Any, fill_value: Any) -> None:
    """Refuse to fill what is out of range with a number that is not zero."""
    hosts = elements_now(fits)
    if (hosts is not None and np.all(hosts[0])) or (
        fill_value is not None and np.ndim(fill_value) == 0 and not fill_value
    ):
        return
    raise TypeError(message(
        "gather", "slices out of range would be filled with a number that is not zero.",
        got=f"{mat!r}, fill_value={fill_value}",
        hint='mode="clip", or fill_value=0',
    ))  # fmt: skip


# --------------------------------------------------------------------------- padding, convolution


def pad(mat: Any, value: Any, *, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Return a sparse array with zeros around and between its elements; see `lax.pad`."""
    hosts = elements_now(value)
    if hosts is None or np.any(hosts[0]):
        raise TypeError(message(
            "sparsify", "pad would put a number that is not zero into a sparse array.",
            got=repr(mat),
        ))  # fmt: skip
    mat = all_sparse(mat)
    there = is_there(mat.indices, mat.sparse_shape)
    lengths = [
        low + high + n + max(n - 1, 0) * between
        for n, (low, high, between) in zip(mat.shape, padding_config, strict=True)
    ]
    steps = np.array([between + 1 for _, _, between in padding_config])
    lows = np.array([low for low, _, _ in padding_config])
    dtype = mat.indices.dtype
    indices = mat.indices * xn.asarray(steps, dtype) + xn.asarray(lows, dtype)
    return mat.like(
        mat.data, move_out(indices, there & is_there(indices, lengths), lengths), lengths,
        is_unique=mat.unique_indices,
    )  # fmt: skip


def convolve(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
    feature_group_count: int, batch_group_count: int, preferred_element_type: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """Return the convolution of two sparse arrays, all of whose dimensions are sparse then.

    Each value of one meets each of the other, and products at one place are added when the result
    is read. The place q of a product is where q * stride + k * rhs_dilation equals
    low + i * lhs_dilation (StableHLO specification, section convolution).

    Args:
      lhs: the array that is convolved.
      rhs: the kernel.
      dimension_numbers: a `lax.ConvDimensionNumbers`.
      window_strides: for each dimension of space the step of the window,
      padding: how much is added before and behind,
      lhs_dilation: how far apart elements of `lhs` are,
      rhs_dilation: and those of `rhs`.
      feature_group_count: how many groups the features are in,
      batch_group_count: and the examples.
      preferred_element_type: the dtype of the result; by default that of the operands.
    """
    lhs, rhs = all_sparse(lhs), all_sparse(rhs)
    of_lhs, of_rhs, of_out = dimension_numbers
    dtype = lhs.indices.dtype
    i = [lhs.indices[:, None, d] for d in of_lhs]
    k = [rhs.indices[None, :, d].astype(dtype) for d in of_rhs]
    there = is_there(lhs.indices, lhs.sparse_shape)[:, None] & is_there(
        rhs.indices, rhs.sparse_shape)  # fmt: skip
    examples = lhs.shape[of_lhs[0]] // batch_group_count
    features, of_each = (rhs.shape[d] for d in of_rhs[:2])
    group = k[0] // max(features // feature_group_count, 1)
    there = there & (i[1] == group * of_each + k[1])
    if batch_group_count > 1:
        there = there & (i[0] // max(examples, 1) == k[0] // max(features // batch_group_count, 1))
    at, lengths = [i[0] % max(examples, 1), k[0]], [examples, features]
    for d, stride in enumerate(window_strides):
        lengths.append(output_size(
            lhs.shape[of_lhs[d + 2]], rhs.shape[of_rhs[d + 2]], stride, padding[d],
            lhs_dilation[d], rhs_dilation[d],
        ))  # fmt: skip
        from_low = i[d + 2] * lhs_dilation[d] + padding[d][0] - k[d + 2] * rhs_dilation[d]
        at.append(from_low // stride)
        there = there & (from_low >= 0) & (from_low % stride == 0) & (at[-1] < lengths[-1])
    where = np.argsort(of_out)
    indices = xn.stack([xn.broadcast_to(at[d], there.shape) for d in where], -1)
    sizes = [lengths[d] for d in where]
    data = (lhs.data[:, None] * rhs.data).astype(preferred_element_type or lhs.dtype)
    return lhs.like(data.reshape(-1), move_out(indices, there, sizes).reshape(-1, len(sizes)),
                    sizes)  # fmt: skip
