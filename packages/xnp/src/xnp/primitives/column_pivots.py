"""The order of columns in which a QR factorisation reveals the rank.

At each step the column of the greatest length comes next, in exchange for the one that stood there,
and what lies along it is taken from all columns (twice, for the rounding errors). Only the order is
kept: the factors are then those of the matrix with its columns in that order, and its derivative is
theirs.
Source: P. Businger, G. Golub, Linear least squares solutions by Householder transformations (1965).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp import lax
from xnp.primitives.matrices import as_columns, as_rows, checked, conj, matmul, real
from xnp.primitives.operations import selected
from xprim import Array, dtypes

__all__ = ()


def column_order(x: Any) -> Array:
    """Return the order of columns, int32, of shape (..., n), for matrices (..., m, n)."""
    batch, m, n = checked("qr", x.aval)
    columns = lax.broadcasted_iota(dtypes.int32, (*batch, n), len(batch))

    def step(k: Any, state: Any) -> Any:
        rest, place = state  # place: where each column stands in the order
        lengths = _squares(rest)
        waiting = lax.ge(place, k)
        lengths = selected(waiting, lengths, lax.full_like(lengths, -1.0))
        chosen = lax.argmax(lengths, len(batch), dtypes.int32)
        is_chosen = lax.eq(columns, lax.broadcast_in_dim(chosen, (*batch, n), _dims(batch)))
        left = _sum(selected(is_chosen, place, lax.full_like(place, 0)))
        left = lax.broadcast_in_dim(left, (*batch, n), _dims(batch))
        place = selected(
            is_chosen, lax.full_like(place, k), selected(lax.eq(place, k), left, place)
        )
        pivot = _sum(selected(as_rows(is_chosen, m), rest, lax.full_like(rest, 0)))
        return _without(_without(rest, pivot), pivot), place

    first, end = np.int32(0), np.int32(min(m, n))  # the dtype of `columns`, whatever the default
    place = lax.fori_loop(first, end, step, (lax.stop_gradient(x), columns))[1]
    stands = lax.eq(
        as_rows(place, n), lax.broadcasted_iota(dtypes.int32, (*batch, n, n), len(batch))
    )
    zeros = lax.full((*batch, n, n), 0, dtypes.int32)
    return _sum(selected(stands, as_rows(columns, n), zeros))


def columns_at(x: Any, order: Any) -> Array:
    """Return the columns of matrices in an order."""
    _, _, n = checked("qr", x.aval)
    rows = lax.broadcasted_iota(dtypes.int32, (*order.shape[:-1], n, n), order.ndim - 1)
    chooses = lax.eq(rows, as_rows(order, n))
    return matmul(x, lax.convert_element_type(chooses, x.dtype))  # type: ignore[no-any-return]


def _dims(batch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(batch)))


def _sum(x: Any) -> Array:
    """Sum over the last dimension."""
    return lax.reduce_sum(x, (x.ndim - 1,))


def _squares(x: Any) -> Array:
    """Return the squares of the lengths of columns."""
    return lax.reduce_sum(real(lax.mul(x, conj(x))), (x.ndim - 2,))


def _without(rest: Any, pivot: Any) -> Any:
    """Take what lies along a column from all columns."""
    _, m, n = checked("qr", rest.aval)
    column = as_columns(pivot, n)
    along = lax.reduce_sum(lax.mul(conj(column), rest), (rest.ndim - 2,))
    square = lax.convert_element_type(_squares(column), rest.dtype)
    nonzero = lax.ne(square, lax.full_like(square, 0))
    share = lax.div(along, selected(nonzero, square, lax.full_like(square, 1)))
    return lax.sub(rest, lax.mul(column, as_rows(share, m)))
