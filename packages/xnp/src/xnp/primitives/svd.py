"""Singular values: svd, and the pseudo-inverse pinv."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import solvers, table
from xnp.primitives.equal_values import blocks_of_tall, couplings, rotations
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    check_matrix,
    eye,
    matmul,
    matrix_batch,
    real_dtype,
)
from xnp.primitives.solvers import SvdAlgorithm
from xnp.primitives.table import add, bind, convert, div, fill, mul, scale_by, select, sub
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder, by_platform
from xprim.errors import MissingRuleError, message

__all__ = ()


# ------------------------------------------------------------------------------------------- svd
# svd: singular values s and singular vectors, A = U diag(s) V^H.
#
# The results are s (descending), U and V^H, or s alone. With `full_matrices`, U and V^H are
# square. Where LAPACK fails, the results are NaN. Sources of the derivative: M. Giles, An
# extended collection of matrix derivative results (2008), section 3.2; J. Townsend,
# Differentiating the singular value decomposition (2016), for matrices that are not square; of
# equal and of zero values see `equal_values`.


def _svd_shape(
    aval: ShapedArray, *, full_matrices: bool, compute_uv: bool,
    algorithm: SvdAlgorithm | None = None,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    batch, m, n = check_matrix("svd", aval)
    k = min(m, n)
    values = shaped_array((*batch, k), real_dtype(aval.dtype))
    if not compute_uv:
        return (values,)
    u = (*batch, m, m if full_matrices else k)
    vh = (*batch, n if full_matrices else k, n)
    return values, shaped_array(u, aval.dtype), shaped_array(vh, aval.dtype)


_LAPACK_ALGORITHMS = SvdAlgorithm.DEFAULT, SvdAlgorithm.DIVIDE_AND_CONQUER


def _svd_numpy(
    a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None = None
) -> Any:
    if solvers.is_for_compiler(algorithm, *_LAPACK_ALGORITHMS):
        params = {"full_matrices": full_matrices, "compute_uv": compute_uv, "algorithm": algorithm}
        return solvers.by_compiler(svd_p, a, params)
    solvers.check_choice("svd", "algorithm", algorithm, *_LAPACK_ALGORITHMS)
    finite = np.isfinite(a)
    if not finite.all():  # of a matrix with an infinity, some builds of gesdd never end
        a = np.where(finite, a, a.dtype.type(np.nan))
    try:
        return _decompose(a, full_matrices, compute_uv)
    except np.linalg.LinAlgError:
        pass
    avals = _svd_shape(shaped_array(a.shape, a.dtype), full_matrices=full_matrices,
                   compute_uv=compute_uv)  # fmt: skip
    results = tuple([np.full(x.shape, np.nan, x.dtype) for x in avals])
    for i in np.ndindex(a.shape[:-2]):
        try:
            for y, part in zip(results, _decompose(a[i], full_matrices, compute_uv), strict=True):
                y[i] = part
        except np.linalg.LinAlgError:
            continue  # stays NaN
    return results


def _decompose(a: Any, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    if not compute_uv:
        return (np.linalg.svd(a, compute_uv=False),)
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    return s, u, vh


def _lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool,
    compute_uv: bool, algorithm: SvdAlgorithm | None = None,
) -> Any:  # fmt: skip
    solvers.check_choice("svd", "algorithm", algorithm, *_LAPACK_ALGORITHMS)
    (aval,) = avals_in
    *batch, m, n = aval.shape
    batch = tuple(batch)
    if aval.size == 0:
        return [b.constant(_empty(x), x) for x in avals_out]
    values = avals_out[0]
    if compute_uv:
        u, vh = avals_out[1:]
    else:
        u, vh = (shaped_array((*batch, k, k), aval.dtype) for k in (m, n))
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    outs = [aval, values, u, vh, solvers.info_aval(batch)]
    config = f"mode = {ord(mode)} : ui8"
    # of a matrix with an infinity, gesdd never ends; of one with NaN, it says so at once
    matrices = solvers.nan_for_infinity(b, operands[0], aval)
    results = solvers.lapack_call(b, "gesdd", aval.dtype, [matrices], [aval], outs, config)
    info = results[-1]
    return [solvers.nan_on_failure(b, info, batch, x, y)
            for x, y in zip(results[1:-1], avals_out, strict=False)]  # fmt: skip


def _gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool,
    compute_uv: bool, algorithm: SvdAlgorithm | None = None,
) -> Any:  # fmt: skip
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(_empty(x), x) for x in avals_out]
    chosen = _gpu_algorithm(b, aval, algorithm)
    if chosen in ("gesvdj", "gesvdp"):
        economic = not full_matrices and (chosen == "gesvdp" or min(aval.shape[-2:]) > _BATCHED)
        found, info = _two_sided(b, operands, aval, avals_out, chosen, economic, compute_uv)
    else:
        found, info = _by_iteration(b, operands, aval, avals_out, chosen, full_matrices, compute_uv)
    return solvers.write_results(b, operands[0], aval, info, found, avals_out)


_BATCHED = 32  # up to this size cuSOLVER works on whole batches, and then forms all vectors
_LARGEST_OF_JACOBI = 1024
_GPU_ROUTINES: dict[Any, str] = {
    SvdAlgorithm.QR: "gesvd", SvdAlgorithm.JACOBI: "gesvdj", SvdAlgorithm.POLAR: "gesvdp",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
}  # fmt: skip


def _gpu_algorithm(b: Builder, aval: ShapedArray, algorithm: SvdAlgorithm | None) -> str:
    """Return the routine: Jacobi's method up to a size, then QR iteration, unless one is requested.

    The sizes are those of https://developer.download.nvidia.com/video/gputechconf/gtc/2019/
    presentation/s9226-fast-singular-value-decomposition-on-gpus-v2.pdf, slide 5.
    """
    extra = [SvdAlgorithm.DIVIDE_AND_CONQUER] if b.platform == "rocm" else []
    known = SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR
    solvers.check_choice("svd", "algorithm", algorithm, *known, *extra)
    if algorithm is None or algorithm is SvdAlgorithm.DEFAULT:
        return "gesvdj" if max(aval.shape[-2:]) <= _LARGEST_OF_JACOBI else "gesvd"
    return _GPU_ROUTINES[algorithm]


def _two_sided(
    b: Builder, operands: Any, aval: ShapedArray, avals_out: Any, routine: str, economic: bool,
    compute_uv: bool,
) -> tuple[list[str], str]:  # fmt: skip
    """Write the call of a routine that gives V, and room for the vectors in any case."""
    batch, (m, n) = aval.shape[:-2], aval.shape[-2:]
    k = min(m, n)
    u = shaped_array((*batch, m, k if economic else m), aval.dtype)
    v = shaped_array((*batch, n, k if economic else n), aval.dtype)
    config = f"compute_uv = {str(compute_uv).lower()}, full_matrices = {str(not economic).lower()}"
    _, s, left, right, info = solvers.gpu_call(
        b, f"solver_{routine}_ffi", operands, [aval],
        [aval, avals_out[0], u, v, solvers.info_aval(batch)], config, {0: 0},
    )  # fmt: skip
    if not compute_uv:
        return [s], info
    vh = b.traced(lambda v: [adjoint(v)], [right], [v], key="adjoint")[0]
    turned = shaped_array((*batch, *v.shape[:-3:-1]), aval.dtype)
    u_out, vh_out = avals_out[1:]
    left = solvers.corner(b, left, u, *u_out.shape[-2:])
    return [s, left, solvers.corner(b, vh, turned, *vh_out.shape[-2:])], info


def _by_iteration(
    b: Builder, operands: Any, aval: ShapedArray, avals_out: Any, routine: str,
    full_matrices: bool, compute_uv: bool,
) -> tuple[list[str], str]:  # fmt: skip
    """Write the call of a routine that gives V^H, of matrices that are not wider than tall.

    A wide one is read as its transpose, which is the same memory in the order of rows.
    """
    batch, (m, n) = aval.shape[:-2], aval.shape[-2:]
    transposed = m < n and routine == "gesvd"
    none = shaped_array((), aval.dtype)
    u, vh = avals_out[1:] if compute_uv else (none, none)
    flags = {"compute_uv": compute_uv, "full_matrices": full_matrices, "transposed": transposed}
    sides = (vh, u) if transposed else (u, vh)
    _, s, left, right, info = solvers.gpu_call(
        b, f"solver_{routine}_ffi", operands, [aval],
        [aval, avals_out[0], *sides, solvers.info_aval(batch)],
        ", ".join([f"{name} = {str(flag).lower()}" for name, flag in flags.items()]), {0: 0},
        column_major=not transposed,
    )  # fmt: skip
    found = [right, left] if transposed else [left, right]
    return [s, *(found if compute_uv else [])], info


def _empty(aval: ShapedArray) -> Any:
    """Return the vectors of a matrix without elements: those of an identity matrix."""
    if aval.ndim < 2 or aval.size == 0:
        return 0
    return np.broadcast_to(np.eye(aval.shape[-2], aval.shape[-1], dtype=aval.dtype), aval.shape)


def _svd_jvp(
    primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, **chosen: Any
) -> Any:
    (a,), (a_dot,) = primals, tangents
    m, n = a.aval.shape[-2:]
    params = {"full_matrices": full_matrices, "compute_uv": compute_uv, **chosen}
    if type(a_dot) is Zero:
        outs = svd_p.bind(a, **params)
        return outs, tuple([Zero(y.aval) for y in outs])
    if compute_uv and full_matrices and m != n:
        raise MissingRuleError(message(
            "svd", "the vectors of full_matrices=True have no derivative: those beyond the rank of "
            "the matrix are not determined.", got=a.aval.str_long(), hint="use full_matrices=False",
        ))  # fmt: skip
    s, u, vh = svd_p.bind(a, **{**params, "full_matrices": False, "compute_uv": True})
    v, wide = adjoint(vh), m < n
    # the adjoint of a wide matrix is tall, and has the vectors of both sides exchanged
    tall = (v, u, adjoint(a), adjoint(a_dot)) if wide else (u, v, a, a_dot)
    s_dot, *sides = _tangents_of_tall(s, *tall, compute_uv, -1.0 if wide else 1.0)
    if not compute_uv:
        return (s,), (s_dot,)
    v_dot, u_dot = sides if wide else sides[::-1]
    return (s, u, vh), (s_dot, u_dot, adjoint(v_dot))


def _tangents_of_tall(
    s: Any, u: Any, v: Any, a: Any, a_dot: Any, compute_uv: bool, free: float
) -> tuple[Any, ...]:
    """Return the tangents of s, U and V, or of s alone, of a matrix that is not wide.

    For complex A, the phase of a pair of vectors is free: one of both takes all of it, U for `free`
    of 1 and V for -1.
    """
    # with C = U^H dA V, its hermitian part P and its other part M, and B = U^H A V, diag(s) here:
    #   dU = U (X + Y) + (1 - U U^H) W,   W B = dA V,     X B - B X = P, X_ij = P_ij / (s_j - s_i)
    #   dV = V (X - Y),                                   Y B + B Y = M, Y_ij = M_ij / (s_j + s_i)
    # X turns both, Y turns them apart: the same as F . (C S + S C^H) with F_ij = 1 / (s_j^2 -
    # s_i^2), but for equal values, too, Y is a number
    image = matmul(a_dot, v)
    c = matmul(adjoint(u), image)
    blocks = blocks_of_tall(s, u, v, a)
    if not compute_uv and len(blocks) == 1:
        return (rotations(scale_by(add(c, adjoint(c)), 0.5), blocks[0])[1],)
    both, apart, *leaving, s_dot = couplings(c, image, blocks, u)
    if not compute_uv:
        return (s_dot,)
    inner_u, inner_v = add(both, apart), sub(both, apart)
    if dtypes.is_complex(c.aval.dtype):
        phase = mul(eye(c.aval.shape, c.aval.dtype), scale_by(apart, free))
        inner_u, inner_v = add(inner_u, phase), add(inner_v, phase)
    u_dot, v_dot = matmul(u, inner_u), matmul(v, inner_v)
    if leaving:
        # projected after the division, so that cotangents are projected before their check
        outside = sub(leaving[0], matmul(u, matmul(adjoint(u), leaving[0])))
        u_dot = add(u_dot, outside)
    return s_dot, u_dot, v_dot


svd_p: Primitive = Primitive(
    "svd",
    shape=_svd_shape,
    numpy=_svd_numpy,
    stablehlo=by_platform("svd", cpu=_lapack, gpu=_gpu),
    jvp=_svd_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: svd_p),
    sharding=dimension_names.of_last(2),
)


# ------------------------------------------------------------------------------------------ pinv
# pinv: the Moore-Penrose inverse P of a matrix A.
#
# The second operand has a bound for each matrix of a batch: singular values up to this times the
# largest one count as zero, so that P does not vary with it but where it jumps. It is a primitive
# because its derivative needs none of the singular vectors, which need not have one. Source: G.
# Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares
# problems whose variables separate (1973), equation 4.12:
#
#     dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P


def _pinv_shape(aval: ShapedArray, rtol: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = check_matrix("pinv", aval)
    if rtol.shape != tuple(batch) or rtol.dtype != real_dtype(aval.dtype):
        raise ValueError(message(
            "pinv", "the second operand must have one bound for each matrix.",
            got=f"matrices of {aval.str_long()}, bounds of {rtol.str_long()}",
        ))  # fmt: skip
    return (shaped_array((*batch, n, m), aval.dtype),)


def _pinv_numpy(a: Any, rtol: Any) -> Any:
    if a.size == 0:
        return (np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype),)
    s, u, vh = svd_p.rule("numpy")(a, full_matrices=False, compute_uv=True)
    keep = s > rtol[..., None] * s[..., :1]
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0 * s)[..., None]
    u_adjoint = u.swapaxes(-1, -2).conj()
    result = np.matmul(vh.swapaxes(-1, -2).conj(), inverse.astype(s.dtype) * u_adjoint)
    return (result.astype(a.dtype, copy=False),)


def _by_values(a: Any, rtol: Any) -> Any:
    s, u, vh = svd_p.bind(a, full_matrices=False, compute_uv=True)
    shape, dtype = s.aval.shape, s.aval.dtype
    largest = bind("reduce_max", s, axes=(s.aval.ndim - 1,))
    least = mul(largest, rtol)
    keep = bind("gt", s, table.broadcast_to(least, shape, tuple(range(s.aval.ndim - 1))))
    zeros = mul(s, fill(shape, 0, dtype))
    inverse = select(keep, div(fill(shape, 1, dtype), s), zeros)
    rows = convert(as_columns(inverse, u.aval.shape[-2]), a.aval.dtype)
    return [matmul(adjoint(vh), mul(rows, adjoint(u)))]


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return [b.constant(0, avals_out[0])]
    return b.traced(_by_values, operands, avals_in, key=("pinv",))


def _pinv_jvp(primals: Any, tangents: Any) -> Any:
    (a, rtol), (a_dot, _) = primals, tangents
    outs = pinv_p.bind(a, rtol)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    p = outs[0]
    ph, dh = adjoint(p), adjoint(a_dot)
    # every product of three or four is taken so that its middle ones are n x n, for m >= n, or
    # m x m: never the larger of the two
    first = matmul(p, matmul(a_dot, p)) if _is_wide(a) else matmul(matmul(p, a_dot), p)
    return outs, (sub(add(_in_rows(p, ph, dh, a), _in_columns(p, ph, dh, a)), first),)


def _is_wide(a: Any) -> bool:
    return bool(a.aval.shape[-2] < a.aval.shape[-1])


def _in_rows(p: Any, ph: Any, dh: Any, a: Any) -> Any:
    """Return P P^H dA^H (1 - A P)."""
    if _is_wide(a):
        left = matmul(p, matmul(ph, dh))
        return sub(left, matmul(left, matmul(a, p)))
    square = matmul(p, ph)
    return sub(matmul(square, dh), matmul(matmul(square, matmul(dh, a)), p))


def _in_columns(p: Any, ph: Any, dh: Any, a: Any) -> Any:
    """Return (1 - P A) dA^H P^H P."""
    if _is_wide(a):
        square = matmul(ph, p)
        return sub(matmul(dh, square), matmul(p, matmul(matmul(a, dh), square)))
    right = matmul(matmul(dh, ph), p)
    return sub(right, matmul(matmul(p, a), right))


pinv_p: Primitive = Primitive(
    "pinv",
    shape=_pinv_shape,
    numpy=_pinv_numpy,
    stablehlo=_stablehlo,
    jvp=_pinv_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: pinv_p),
    sharding=dimension_names.of_last(2),
)
