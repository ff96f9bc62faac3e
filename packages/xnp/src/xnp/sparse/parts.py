"""Parts of sparse arrays: without dimensions, backwards, and at places that may be traced.

Neighbours: `layouts` has slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import xnp.numpy as xn
from xnp import lax
from xnp.sparse.coordinates import Coordinates, full, is_there, moved_out
from xnp.sparse.layouts import squeezed
from xprim import as_array
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary

__all__ = ()

C = TypeVar("C", bound=Coordinates)


@boundary
def bcoo_squeeze(arr: C, *, dimensions: Sequence[int]) -> C:
    """Return a sparse array without some of its dimensions, each of length 1.

    Args:
      arr: the array.
      dimensions: which ones, counted from either end.
    """
    axes = _axes("bcoo_squeeze", arr, dimensions)
    for d in axes:
        if arr.shape[d] != 1:
            raise ValueError(f"bcoo_squeeze: dimension {d} of {arr!r} is not of length 1.")
    return squeezed(arr, axes)


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
    indices = moved_out(indices, there, operand.sparse_shape)
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
    return mat.like(whole, moved_out(moved, there, lengths), lengths, is_unique=mat.unique_indices)


def _dtype_of(starts: Sequence[Any]) -> Any:
    """Return the dtype of the first of some numbers, of which all others are."""
    return starts[0].dtype if starts else "int32"


def _axes(operation: str, mat: Coordinates, dimensions: Sequence[int]) -> list[int]:
    axes = [static_int(d, operation, "dimensions") for d in dimensions]
    for d in axes:
        if not -mat.ndim <= d < mat.ndim:
            raise ValueError(f"{operation}: there is no dimension {d} of {mat!r}.")
    return [d % mat.ndim for d in axes]
