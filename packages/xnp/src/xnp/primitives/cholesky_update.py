"""cholesky_update: the upper triangular R1 with R1^T R1 = R^T R + w w^T, for an upper triangular R.

Each row of R is rotated with what is left of w, so that this vanishes column by column; that takes
n^2 steps where a new factorisation takes n^3. Only the upper triangle of R is read. Source: P.
Gill, G. Golub, W. Murray, M. Saunders, Methods for modifying matrix factorizations (1974). The
derivative is that of the factorisation of the right side: dR1 = Phi(R1^-T dA R1^-1) R1, Phi the
upper triangle with half of the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp import lax
from xnp.primitives.lapack_text import gpu_call, triangle
from xnp.primitives.matrices import (
    as_columns,
    as_rows,
    checked,
    lower_half,
    matmul,
    matrix_batch,
    mt,
    triu,
)
from xnp.primitives.operations import add, mul
from xnp.primitives.triangular_solve import solved
from xprim import Primitive, ShapedArray, Zero, dtypes, undefined
from xprim.contracts import Builder
from xprim.dimension_names import Names
from xprim.errors import message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(r: ShapedArray, w: ShapedArray) -> tuple[ShapedArray, ...]:
    checked("cholesky_update", r, square=True)
    if w.dtype != r.dtype or dtypes.is_complex(r.dtype):
        raise TypeError(
            "cholesky_update: requires real operands of equal dtypes, got "
            f"{r.dtype.name}, {w.dtype.name}."
        )
    if w.shape != r.shape[:-1]:
        raise ValueError(message(
            "cholesky_update", "the operands do not fit.",
            got=f"r_matrix: {r.str_long()}, w_vector: {w.str_long()}",
            expected="shapes (..., n, n) and (..., n)",
        ))  # fmt: skip
    return (r.strong(),)


def _numpy(r: Any, w: Any) -> Any:
    out, rest = np.triu(r), np.array(w)
    for k in range(r.shape[-1]):
        x, y = out[..., k, k], rest[..., k]
        size = np.hypot(x, y)
        turns = y != 0
        divisor = np.where(turns, size, 1)
        cosine = np.where(turns, x / divisor, 1)[..., None]
        sine = np.where(turns, y / divisor, 0)[..., None]
        row = out[..., k, :].copy()
        out[..., k, :] = cosine * row + sine * rest
        rest = cosine * rest - sine * row
    return (np.triu(out),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return [operands[0]]
    return b.traced(_rotated, operands, avals_in, key="cholesky_update")


def _cuda(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_in[0]
    if aval.size == 0 or aval.ndim > 2:  # the plugin's kernel is for one matrix
        return _stablehlo(b, operands, avals_in, avals_out)
    given = [triangle(b, operands[0], aval, "LE"), operands[1]]
    found = gpu_call(b, "_cholesky_update_ffi", given, avals_in, avals_in, aliases={0: 0, 1: 1},
                     column_major=False, cells=None)  # fmt: skip
    return [triangle(b, found[0], aval, "LE")]


def _rotated(r: Any, w: Any) -> Any:
    """Return the result by a loop over rows, for programs."""
    n, rows, dtype = r.shape[-1], r.ndim - 2, r.dtype
    one, zero = lax.full(w.shape[:-1], 1, dtype), lax.full(w.shape[:-1], 0, dtype)

    def step(k: Any, state: Any) -> Any:
        out, rest = state
        row = lax.dynamic_index_in_dim(out, k, rows, keepdims=False)
        x = lax.dynamic_index_in_dim(row, k, rows, keepdims=False)
        y = lax.dynamic_index_in_dim(rest, k, rows, keepdims=False)
        greatest = lax.max(lax.abs(x), lax.abs(y))
        turns = lax.ne(y, zero)
        greatest = lax.select(turns, greatest, one)
        a, b = lax.div(x, greatest), lax.div(y, greatest)
        size = lax.sqrt(lax.add(lax.mul(a, a), lax.mul(b, b)))
        size = lax.select(turns, size, one)
        cosine = _along_row(lax.select(turns, lax.div(a, size), one), n)
        sine = _along_row(lax.select(turns, lax.div(b, size), zero), n)
        new = lax.add(lax.mul(cosine, row), lax.mul(sine, rest))
        rest = lax.sub(lax.mul(cosine, rest), lax.mul(sine, row))
        return lax.dynamic_update_index_in_dim(out, new, k, rows), rest

    return [triu(lax.fori_loop(0, n, step, (triu(r), w))[0])]


def _along_row(x: Any, n: int) -> Any:
    return lax.broadcast_in_dim(x, (*x.shape, n), tuple(range(x.ndim)))


def _jvp(primals: Any, tangents: Any) -> Any:
    r, w = primals
    r_dot, w_dot = tangents
    outs = cholesky_update_p.bind(r, w)
    new = outs[0]
    half = None  # dA is it and its transpose
    if type(r_dot) is not Zero:
        half = matmul(mt(triu(r)), triu(r_dot))
    if type(w_dot) is not Zero:
        n = w.aval.shape[-1]
        product = mul(as_columns(w, n), as_rows(w_dot, n))
        half = product if half is None else add(half, product)
    if half is None:
        return outs, (Zero(new.aval),)
    inner = solved(new, add(half, mt(half)), lower=False, transpose_a=True)
    inner = solved(new, inner, lower=False, left_side=False)
    return outs, (matmul(mt(lower_half(inner)), new),)


def _dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """Factors may be cut, each of them is whole."""
    batch = tuple(range(avals[1].ndim - 1))
    return Names([(*batch, None, None), (*batch, None)], [(*batch, None, None)])


cholesky_update_p: Primitive = Primitive(
    "cholesky_update",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("cholesky_update", cuda=_cuda, default=_stablehlo),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cholesky_update_p),
    dimensions=_dimensions,
)
