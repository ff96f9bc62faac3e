"""det: determinants, and `cofactors`, their derivative, at regular and singular matrices alike.

det A is the product of the pivots of LU, with the sign of the row exchanges. That has no
derivative where a pivot is 0; the determinant, a polynomial, has. With A = U S V^H, of singular
values s:

    d det A = sum_ij C_ij dA_ij,  the cofactors C = det(U V^H) conj(U diag(prod_{k != i} s_k) V^H)

and, from the cofactors of S + E to first order in E, for E = U^H dA V and P_ij = the product of all
singular values but s_i and s_j (which needs no division),

    d cofactors(S)_ij = -E_ji P_ij   for i != j,     d cofactors(S)_ii = sum_{k != i} E_kk P_ik

so the first two derivatives are right for every rank. Neighbours: `lu`, `svd`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.along_axis import shifted
from xnp.primitives.lu import lu_p
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    as_rows,
    checked,
    compared,
    conj,
    diagonal,
    eye,
    matmul,
    matrix_batch,
    mt,
    triu,
)
from xnp.primitives.operations import (
    add,
    bind,
    broadcasted,
    concatenated,
    converted,
    filled,
    iota,
    mul,
    scaled,
    selected,
    sliced,
    sub,
    summed,
)
from xnp.primitives.svd import svd_p
from xprim import (
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder

__all__ = ()


def pivots_of(x: Any) -> tuple[Any, Any]:
    """Return the sign of the row exchanges and the diagonal of U of the LU factorisation."""
    factors, pivots, _ = lu_p.bind(x)
    shape, last, dtype = pivots.aval.shape, pivots.aval.ndim - 1, x.aval.dtype
    exchanged = bind("ne", pivots, iota(shape, last))
    signs = sub(filled(shape, 1, dtype), scaled(converted(exchanged, dtype), 2))
    return _product(signs), diagonal(factors)


def _product(x: Any) -> Any:
    return bind("reduce_prod", x, axes=(x.aval.ndim - 1,))


def _by_pivots(x: Any) -> Any:
    sign, values = pivots_of(x)
    return mul(sign, _product(values))


# --- det ----------------------------------------------------------------------------------------


def _shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, _, _ = checked("det", aval, square=True)
    return (shaped_array(batch, aval.dtype),)


def _numpy(a: Any) -> Any:
    factors, pivots, _ = lu_p.rule("numpy")(a)
    exchanges = np.sum(pivots != np.arange(pivots.shape[-1]), axis=-1)
    values = np.prod(np.diagonal(factors, axis1=-2, axis2=-1), axis=-1)
    return (np.where(exchanges % 2, -values, values).astype(a.dtype, copy=False),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.traced(lambda a: [_by_pivots(a)], operands, avals_in, key="det")


def _jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = det_p.bind(a)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    return outs, (_inner(cofactors_p.bind(a)[0], a_dot),)


def _inner(x: Any, y: Any) -> Any:
    n = x.aval.ndim
    return summed(mul(x, y), (n - 2, n - 1))


det_p: Primitive = Primitive(
    "det",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: det_p),
    dimensions=dimension_names.of_last(2),
)


# --- cofactors ----------------------------------------------------------------------------------


def _same_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    checked("cofactors", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),)


def _numpy_cofactors(a: Any) -> Any:
    if a.size == 0:
        return (np.zeros(a.shape, a.dtype),)
    s, u, vh = svd_p.rule("numpy")(a, full_matrices=False, compute_uv=True)
    (sign,) = _numpy(np.matmul(u, vh))
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([s[..., 1:], ones], -1)[..., ::-1], -1)[..., ::-1]
    found = np.matmul(u * (before * after)[..., None, :], vh).conj() * sign[..., None, None]
    return (found.astype(a.dtype, copy=False),)


def _stablehlo_cofactors(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return list(operands)
    return b.traced(lambda a: [_by_values(a)], operands, avals_in, key="cofactors")


def _by_values(a: Any) -> Any:
    s, u, vh = _decomposed(a)
    before, after = _before_and_after(s)
    rows = as_rows(converted(mul(before, after), a.aval.dtype), s.aval.shape[-1])
    return _turned(mul(u, rows), vh, det_p.bind(matmul(u, vh))[0])


def _decomposed(a: Any) -> Any:
    return svd_p.bind(a, full_matrices=False, compute_uv=True)


def _turned(x: Any, vh: Any, sign: Any) -> Any:
    """Return the conjugate of x V^H, times a sign (a phase) for each matrix."""
    found = conj(matmul(x, vh))
    shape = found.aval.shape
    return mul(found, broadcasted(sign, shape, tuple(range(len(shape) - 2))))


def _before_and_after(s: Any) -> tuple[Any, Any]:
    """Return for each i the products of all s_k with k < i, and of those with k > i."""
    last, n = s.aval.ndim - 1, s.aval.shape[-1]
    ones = filled((*s.aval.shape[:-1], 1), 1, s.aval.dtype)
    before = concatenated([ones, sliced(s, last, 0, n - 1)], last)
    after = concatenated([sliced(s, last, 1, n), ones], last)
    return (bind("cumprod", before, axis=last, reverse=False),
            bind("cumprod", after, axis=last, reverse=True))  # fmt: skip


def _all_but_two(s: Any) -> Any:
    """Return the matrices P_ij: the product of all s_k but s_i and s_j, and 0 for i = j."""
    n, last = s.aval.shape[-1], s.aval.ndim
    rows = as_rows(s, n)
    shape, dtype = rows.aval.shape, rows.aval.dtype
    later = selected(compared(shape, "lt"), rows, filled(shape, 1, dtype))
    between = shifted(bind("cumprod", later, axis=last, reverse=False), last, 1)
    before, after = _before_and_after(s)
    upper = triu(mul(mul(as_columns(before, n), between), as_rows(after, n)), 1)
    return add(upper, mt(upper))


def _cofactors_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = cofactors_p.bind(a)
    if type(a_dot) is Zero or a.aval.size == 0:
        return outs, (Zero(outs[0].aval),)
    s, u, vh = _decomposed(a)
    e = matmul(matmul(adjoint(u), a_dot), adjoint(vh))
    pairs = converted(_all_but_two(s), a.aval.dtype)
    n = s.aval.shape[-1]
    sums = summed(mul(pairs, as_rows(diagonal(e), n)), (e.aval.ndim - 1,))
    inner = sub(mul(as_columns(sums, n), eye(e.aval.shape, a.aval.dtype)), mul(mt(e), pairs))
    sign = det_p.bind(matmul(u, vh))[0]
    # conj(U) D conj(V^H) is the conjugate of U conj(D) V^H
    return outs, (_turned(matmul(u, conj(inner)), vh, sign),)


cofactors_p: Primitive = Primitive(
    "cofactors",
    shape=_same_shape,
    numpy=_numpy_cofactors,
    stablehlo=_stablehlo_cofactors,
    jvp=_cofactors_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cofactors_p),
    dimensions=dimension_names.of_last(2),
)
