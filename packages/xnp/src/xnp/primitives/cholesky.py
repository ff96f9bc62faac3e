"""Cholesky factors: cholesky, cholesky_update, and the symmetric product A A^T."""

from __future__ import annotations

from typing import Any

import numpy as np

import xprim
from xnp import lax
from xnp.primitives import matrices, solvers
from xnp.primitives.linear_systems import solve_triangle
from xnp.primitives.matrices import as_rows, lower_half, matmul, matrix_batch, mt, triu
from xnp.primitives.table import add, mul, scale_by
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, not_mapped, undefined
from xprim.contracts import BatchAxis, Builder, by_platform
from xprim.dimension_names import Names
from xprim.requirements import require

__all__ = ()


# -------------------------------------------------------------------------------------- cholesky
# cholesky: the lower triangular L with A = L L^H of a Hermitian positive definite A.
#
# Only the lower triangle of A is read. Where A is not positive definite, the lower triangle of
# the result is NaN. Source of the derivative: I. Murray, Differentiation of the Cholesky
# decomposition (2016), section 3.1: dL = L Phi(L^-1 dA L^-H), Phi the lower triangle with half of
# the diagonal.


def _cholesky_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    matrices.check_matrix("cholesky", aval, square=True)
    return (xprim.shaped_array(aval.shape, aval.dtype),)


def _cholesky_numpy(a: Any) -> Any:
    try:
        return (np.linalg.cholesky(a),)
    except np.linalg.LinAlgError:
        pass
    n = a.shape[-1]
    result = np.empty_like(a)
    for i in np.ndindex(a.shape[:-2]):
        try:
            result[i] = np.linalg.cholesky(a[i])
        except np.linalg.LinAlgError:
            result[i] = np.tril(np.full((n, n), np.nan, a.dtype))
    return (result,)


def _lapack(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, aval)]
    results = [aval, solvers.info_aval(aval.shape[:-2])]
    found = solvers.lapack_call(
        b, "potrf", aval.dtype, operands, [aval], results, "uplo = 76 : ui8"
    )
    return _factor(b, found, aval)


def _gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, aval)]
    results = [aval, solvers.info_aval(aval.shape[:-2])]
    found = solvers.gpu_call(
        b, "solver_potrf_ffi", operands, [aval], results, "lower = true", {0: 0}
    )
    return _factor(b, found, aval)


def _factor(b: Builder, found: Any, aval: ShapedArray) -> list[str]:
    result = solvers.nan_on_failure(b, found[1], aval.shape[:-2], found[0], aval)
    return [solvers.triangle(b, result, aval, "GE")]


def _expand(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, aval)]
    (result,) = b.op("stablehlo.cholesky", operands, avals_in, avals_out, "lower = true")
    return [solvers.triangle(b, result, aval, "GE")]


def _cholesky_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = cholesky_p.bind(a)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    lower = outs[0]
    half = lower_half(a_dot)
    inner = solve_triangle(lower, add(half, matrices.adjoint(half)), lower=True)
    inner = solve_triangle(lower, inner, lower=True, left_side=False, transpose_a=True,
                   conjugate_a=dtypes.is_complex(lower.aval.dtype))  # fmt: skip
    return outs, (matmul(lower, lower_half(inner)),)


cholesky_p: Primitive = Primitive(
    "cholesky",
    shape=_cholesky_shape,
    numpy=_cholesky_numpy,
    stablehlo=by_platform(
        "cholesky",
        gpu=_gpu,
        default=_expand,
        cpu=matrices.formula_rule(matrices.cholesky, _lapack),
    ),
    jvp=_cholesky_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cholesky_p),
    sharding=dimension_names.of_last(2),
)


# ------------------------------------------------------------------------------- cholesky update
# cholesky_update: the upper triangular R1 with R1^T R1 = R^T R + w w^T, for an upper triangular
# R.
#
# Each row of R is rotated with what is left of w, so that this vanishes column by column; that
# takes n^2 steps where a new factorisation takes n^3. Only the upper triangle of R is read.
# Source: P. Gill, G. Golub, W. Murray, M. Saunders, Methods for modifying matrix factorizations
# (1974). The derivative is that of the factorisation of the right side: dR1 = Phi(R1^-T dA R1^-1)
# R1, Phi the upper triangle with half of the diagonal.


def _cholesky_update_shape(r: ShapedArray, w: ShapedArray) -> tuple[ShapedArray, ...]:
    matrices.check_matrix("cholesky_update", r, square=True)
    require(
        w.dtype == r.dtype and not dtypes.is_complex(r.dtype), "cholesky_update",
        "requires real operands of equal dtypes, got {}, {}.", r.dtype, w.dtype, error=TypeError,
    )  # fmt: skip
    require(
        w.shape == r.shape[:-1], "cholesky_update", "the operands do not fit.",
        got={"r_matrix": r, "w_vector": w}, expected="shapes (..., n, n) and (..., n)",
    )  # fmt: skip
    return (r.strong(),)


def _cholesky_update_numpy(r: Any, w: Any) -> Any:
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


def _cholesky_update_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return [operands[0]]
    return b.traced(_rotate, operands, avals_in, key="cholesky_update")


def _cuda(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    aval = avals_in[0]
    if aval.size == 0 or aval.ndim > 2:  # the plugin's kernel is for one matrix
        return _cholesky_update_stablehlo(b, operands, avals_in, avals_out)
    given = [solvers.triangle(b, operands[0], aval, "LE"), operands[1]]
    found = solvers.gpu_call(
        b, "_cholesky_update_ffi", given, avals_in, avals_in, aliases={0: 0, 1: 1},
        column_major=False, cells=None,
    )  # fmt: skip
    return [solvers.triangle(b, found[0], aval, "LE")]


def _rotate(r: Any, w: Any) -> Any:
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


def _cholesky_update_jvp(primals: Any, tangents: Any) -> Any:
    r, w = primals
    r_dot, w_dot = tangents
    outs = cholesky_update_p.bind(r, w)
    new = outs[0]
    half = None  # dA is it and its transpose
    if type(r_dot) is not Zero:
        half = matmul(mt(triu(r)), triu(r_dot))
    if type(w_dot) is not Zero:
        n = w.aval.shape[-1]
        product = mul(matrices.as_columns(w, n), as_rows(w_dot, n))
        half = product if half is None else add(half, product)
    if half is None:
        return outs, (Zero(new.aval),)
    inner = solve_triangle(new, add(half, mt(half)), lower=False, transpose_a=True)
    inner = solve_triangle(new, inner, lower=False, left_side=False)
    return outs, (matmul(mt(lower_half(inner)), new),)


def _dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Names:
    """Factors may be cut, each of them is whole."""
    batch = tuple(range(avals[1].ndim - 1))
    return Names([(*batch, None, None), (*batch, None)], [(*batch, None, None)])


cholesky_update_p: Primitive = Primitive(
    "cholesky_update",
    shape=_cholesky_update_shape,
    numpy=_cholesky_update_numpy,
    stablehlo=by_platform("cholesky_update", cuda=_cuda, default=_cholesky_update_stablehlo),
    jvp=_cholesky_update_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cholesky_update_p),
    sharding=_dimensions,
)


# ----------------------------------------------------------------------------- symmetric product
# symmetric_product: alpha A A^T + beta C, for real matrices A and symmetric C.


def _symmetric_product_shape(
    a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float
) -> tuple[ShapedArray, ...]:
    batch, m, _ = matrices.check_matrix("symmetric_product", a)
    matrices.check_matrix("symmetric_product", c, square=True)
    require(
        a.dtype == c.dtype and not dtypes.is_complex(a.dtype), "symmetric_product",
        "requires real operands of equal dtypes, got {}, {}.", a.dtype, c.dtype, error=TypeError,
    )  # fmt: skip
    require(
        c.shape == (*batch, m, m), "symmetric_product", "the operands do not fit.",
        got={"a_matrix": a, "c_matrix": c}, expected="shapes (..., m, n) and (..., m, m)",
    )  # fmt: skip
    return (c.strong(),)


def _symmetric_product_numpy(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    dtype = c.dtype.type
    return (dtype(alpha) * np.matmul(a, a.swapaxes(-1, -2)) + dtype(beta) * c,)


def _formula(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    return [add(scale_by(matmul(a, mt(a)), alpha), scale_by(c, beta))]


def _symmetric_product_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, alpha: float, beta: float
) -> Any:
    def formula(a: Any, c: Any) -> Any:
        return _formula(a, c, alpha=alpha, beta=beta)

    return b.traced(formula, operands, avals_in, key=("symmetric_product", alpha, beta))


def _symmetric_product_jvp(primals: Any, tangents: Any, *, alpha: float, beta: float) -> Any:
    a, c = primals
    a_dot, c_dot = tangents
    outs = symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    terms = [] if type(c_dot) is Zero else [scale_by(c_dot, beta)]
    if type(a_dot) is not Zero:
        cross = scale_by(matmul(a, mt(a_dot)), alpha)
        terms.append(add(cross, mt(cross)))
    if not terms:
        return outs, (Zero(outs[0].aval),)
    return outs, (terms[0] if len(terms) == 1 else add(*terms),)


_of_each = matrix_batch(lambda: symmetric_product_p)


def _symmetric_product_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, alpha: float, beta: float
) -> Any:
    (a, c), (dim, c_dim) = operands, dims
    if dim is not not_mapped:
        return _of_each(axis, operands, dims, alpha=alpha, beta=beta)
    product = scale_by(matmul(a, mt(a)), alpha)  # once for all members
    rest = scale_by(axis.to_front(c, c_dim), beta)
    return (add(axis.to_front(product, not_mapped), rest),), (0,)


symmetric_product_p: Primitive = Primitive(
    "symmetric_product",
    shape=_symmetric_product_shape,
    numpy=_symmetric_product_numpy,
    stablehlo=_symmetric_product_stablehlo,
    jvp=_symmetric_product_jvp,
    transpose=undefined("it is not linear"),
    batch=_symmetric_product_batch,
    sharding=dimension_names.of_last(2),
)
