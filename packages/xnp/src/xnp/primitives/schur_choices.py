"""Which of all Schur forms the results are: the same choice on the host and in programs.

LAPACK leaves to the last rounding errors what phases its vectors have, and which of two forms a
block of two rows: [[a, b], [c, a]] or [[a, -c], [-b, a]]. Here |b| is the greater one, and the
first of the large components of each vector is positive. What remains open is the rotation of
blocks with b = -c, and the order of eigenvalues between which rounding errors decide.

Neighbours: `schur` is the primitive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.matrices import as_columns, as_rows, compared, conj, eye, matmul, mt
from xnp.primitives.operations import (
    add,
    bind,
    converted,
    div,
    filled,
    iota,
    mul,
    scaled,
    selected,
    sub,
    summed,
)
from xprim import dtypes

__all__ = ()

# A component is large from here on, of the greatest: a ratio that no two are likely to have, so
# that rounding errors do not choose another one.
_LARGE = 0.618


def host_choice(t: Any, z: Any) -> tuple[Any, Any]:
    """Choose the form among those of NumPy arrays T and Z, which are equivalent to it."""
    if not t.size:
        return t, z
    if t.dtype.kind != "c":
        below, above = np.tril(t, -1), np.triu(t, 1).swapaxes(-1, -2)
        turned = ((below != 0) & (np.abs(below) > np.abs(above))).astype(t.dtype)
        kept = 1 - turned.sum(-1) - turned.sum(-2)
        swap = (
            turned - turned.swapaxes(-1, -2) + kept[..., None] * np.eye(t.shape[-1], dtype=t.dtype)
        )
        t, z = swap.swapaxes(-1, -2) @ t @ swap, z @ swap
    sizes = np.abs(z)
    first = np.argmax(sizes >= _LARGE * sizes.max(-2, keepdims=True), -2)
    chosen = np.take_along_axis(z, first[..., None, :], -2)[..., 0, :]
    phases = chosen.conj() / np.abs(chosen)
    return t * phases[..., None, :] * phases[..., None].conj(), z * phases[..., None, :]


def choice(t: Any, z: Any) -> list[Any]:
    """Choose the form among those equivalent to T and Z; for programs."""
    if not dtypes.is_complex(t.aval.dtype):
        swap = _exchanges(t)
        t, z = matmul(mt(swap), matmul(t, swap)), matmul(z, swap)
    n = z.aval.shape[-1]
    phases = _phases(z)
    turned = mul(mul(t, as_rows(phases, n)), as_columns(conj(phases), n))
    return [turned, mul(z, as_rows(phases, n))]


def _exchanges(t: Any) -> Any:
    """Return the matrix that turns by a right angle the blocks in which |c| > |b|."""
    shape, dtype = t.aval.shape, t.aval.dtype
    zeros, n = filled(shape, 0, dtype), shape[-1]
    below = selected(compared(shape, "gt"), t, zeros)
    above = selected(compared(shape, "gt"), mt(t), zeros)
    greater = bind("gt", bind("abs", below), bind("abs", above))
    turned = converted(bind("and", greater, bind("ne", below, zeros)), dtype)
    last = len(shape) - 1
    count = add(as_columns(summed(turned, (last,)), n), as_rows(summed(turned, (last - 1,)), n))
    identity = eye(shape, dtype)
    return add(sub(turned, mt(turned)), sub(identity, mul(identity, count)))


def _phases(z: Any) -> Any:
    shape, rows = z.aval.shape, z.aval.ndim - 2
    n = shape[-1]
    sizes = bind("abs", z)
    limit = scaled(bind("reduce_max", sizes, axes=(rows,)), _LARGE)
    places = iota(shape, rows)
    ends = filled(shape, n, dtypes.int32)
    large = selected(bind("ge", sizes, as_rows(limit, n)), places, ends)
    is_first = bind("eq", places, as_rows(bind("reduce_min", large, axes=(rows,)), n))
    chosen = summed(selected(is_first, z, filled(shape, 0, z.aval.dtype)), (rows,))
    return div(conj(chosen), converted(bind("abs", chosen), z.aval.dtype))
