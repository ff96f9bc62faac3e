"""Products of sparse arrays with dense and with sparse ones.

The product with a dense array is a gather and a scatter: each value meets what the dense array has
at its indices, and the products are added where the indices of the result say.

Neighbours: `coordinates` says what a sparse array holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.primitives.precision import PrecisionLike
from xnp.sparse.coordinates import Coordinates, is_there, known, moved_out, places
from xnp.sparse.layouts import bcoo_sum_duplicates
from xprim import Array, promotion
from xprim.errors import ShapeError, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike

__all__ = ()

C = TypeVar("C", bound=Coordinates)

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
    if np.broadcast_shapes(v.shape, shape) != shape:
        raise ValueError(message(
            "bcoo_multiply_dense",
            f"shape {v.shape} cannot be broadcast to that of the sparse array.", got=f"{sp_mat!r}",
        ))  # fmt: skip
    v = v.reshape(*[1] * (len(shape) - v.ndim), *v.shape)
    data, indices = known(sp_mat)
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
    if lhs.shape != rhs.shape or lhs.n_batch != rhs.n_batch or lhs.n_dense != rhs.n_dense:
        raise ValueError(message(
            "bcoo_multiply_sparse", "the arrays must be alike.", got=f"{lhs!r} and {rhs!r}",
        ))  # fmt: skip
    (data, indices), (other, at) = known(lhs), known(rhs)
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
    data, indices = known(lhs)
    at = places(indices)
    partner = dict(zip(contracting[0] + batch[0], contracting[1] + batch[1], strict=True))
    values = list(range(lhs.n_batch + 1))  # letters of the dimensions of values
    free = _others(range(rhs.ndim), partner.values())
    met, met_letters = _met(rhs, at, partner, values)
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


def _met(
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
            "the product of two sparse arrays takes no batch and no dense dimensions.",
            got=f"{lhs!r} and {rhs!r}",
            hint="vmap over the batch, or make one of them dense: y.todense()",
        ))  # fmt: skip
    (data, indices), (other, at) = known(lhs), known(rhs)
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
    moved = moved_out(stacked.reshape(meet.size, len(shape)), meet.ravel(), shape)
    product = lhs.like(products.ravel(), moved, shape)
    size = math.prod(shape)
    return bcoo_sum_duplicates(product, size) if size < product.nse else product


def _columns(indices: Array, left_out: Sequence[int]) -> list[Array]:
    return [indices[..., c] for c in range(indices.shape[-1]) if c not in left_out]
