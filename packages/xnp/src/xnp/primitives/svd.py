"""svd: singular values s and singular vectors, A = U diag(s) V^H.

The results are s (descending), U and V^H, or s alone. With `full_matrices`, U and V^H are square.
Where LAPACK fails, the results are NaN. Sources of the derivative: M. Giles, An extended collection
of matrix derivative results (2008), section 3.2; J. Townsend, Differentiating the singular value
decomposition (2016), for matrices that are not square; of equal and of zero values see
`equal_values`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.equal_values import (
    gaps,
    pair_quotients,
    quotients,
    rotations,
    rows_of,
    sums,
)
from xnp.primitives.factorisation_choices import (
    SvdAlgorithm,
    by_compiler,
    check_choice,
    is_for_compiler,
)
from xnp.primitives.finite_matrices import written_results
from xnp.primitives.lapack_text import (
    corner,
    gpu_call,
    info_aval,
    lapack_call,
    nan_for_infinity,
    nan_on_failure,
)
from xnp.primitives.matrices import (
    adjoint,
    checked,
    eye,
    matmul,
    matrix_batch,
    real_dtype,
)
from xnp.primitives.operations import add, mul, scaled, sub
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(
    aval: ShapedArray, *, full_matrices: bool, compute_uv: bool,
    algorithm: SvdAlgorithm | None = None,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    batch, m, n = checked("svd", aval)
    k = min(m, n)
    values = shaped_array((*batch, k), real_dtype(aval.dtype))
    if not compute_uv:
        return (values,)
    u = (*batch, m, m if full_matrices else k)
    vh = (*batch, n if full_matrices else k, n)
    return values, shaped_array(u, aval.dtype), shaped_array(vh, aval.dtype)


_LAPACK_ALGORITHMS = SvdAlgorithm.DEFAULT, SvdAlgorithm.DIVIDE_AND_CONQUER


def _numpy(
    a: Any, *, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None = None
) -> Any:
    if is_for_compiler(algorithm, *_LAPACK_ALGORITHMS):
        params = {"full_matrices": full_matrices, "compute_uv": compute_uv, "algorithm": algorithm}
        return by_compiler(svd_p, a, params)
    check_choice("svd", "algorithm", algorithm, *_LAPACK_ALGORITHMS)
    finite = np.isfinite(a)
    if not finite.all():  # of a matrix with an infinity, some builds of gesdd never end
        a = np.where(finite, a, a.dtype.type(np.nan))
    try:
        return _decomposed(a, full_matrices, compute_uv)
    except np.linalg.LinAlgError:
        pass
    avals = _shape(shaped_array(a.shape, a.dtype), full_matrices=full_matrices,
                   compute_uv=compute_uv)  # fmt: skip
    results = tuple([np.full(x.shape, np.nan, x.dtype) for x in avals])
    for i in np.ndindex(a.shape[:-2]):
        try:
            for y, part in zip(results, _decomposed(a[i], full_matrices, compute_uv), strict=True):
                y[i] = part
        except np.linalg.LinAlgError:
            continue  # stays NaN
    return results


def _decomposed(a: Any, full_matrices: bool, compute_uv: bool) -> tuple[Any, ...]:
    if not compute_uv:
        return (np.linalg.svd(a, compute_uv=False),)
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    return s, u, vh


def _lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool,
    compute_uv: bool, algorithm: SvdAlgorithm | None = None,
) -> Any:  # fmt: skip
    check_choice("svd", "algorithm", algorithm, *_LAPACK_ALGORITHMS)
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
    outs = [aval, values, u, vh, info_aval(batch)]
    config = f"mode = {ord(mode)} : ui8"
    # of a matrix with an infinity, gesdd never ends; of one with NaN, it says so at once
    matrices = nan_for_infinity(b, operands[0], aval)
    results = lapack_call(b, "gesdd", aval.dtype, [matrices], [aval], outs, config)
    info = results[-1]
    return [nan_on_failure(b, info, batch, x, y)
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
    return written_results(b, operands[0], aval, info, found, avals_out)


_BATCHED = 32  # up to this size cuSOLVER works on whole batches, and then forms all vectors
_LARGEST_OF_JACOBI = 1024
_GPU_ROUTINES: dict[Any, str] = {
    SvdAlgorithm.QR: "gesvd", SvdAlgorithm.JACOBI: "gesvdj", SvdAlgorithm.POLAR: "gesvdp",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
}  # fmt: skip


def _gpu_algorithm(b: Builder, aval: ShapedArray, algorithm: SvdAlgorithm | None) -> str:
    """Return the routine: Jacobi's method up to a size, then QR iteration, unless one is asked for.

    The sizes are those of https://developer.download.nvidia.com/video/gputechconf/gtc/2019/
    presentation/s9226-fast-singular-value-decomposition-on-gpus-v2.pdf, slide 5.
    """
    extra = [SvdAlgorithm.DIVIDE_AND_CONQUER] if b.platform == "rocm" else []
    known = SvdAlgorithm.DEFAULT, SvdAlgorithm.QR, SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR
    check_choice("svd", "algorithm", algorithm, *known, *extra)
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
    _, s, left, right, info = gpu_call(
        b, f"solver_{routine}_ffi", operands, [aval], [aval, avals_out[0], u, v, info_aval(batch)],
        config, {0: 0},
    )  # fmt: skip
    if not compute_uv:
        return [s], info
    vh = b.traced(lambda v: [adjoint(v)], [right], [v], key="adjoint")[0]
    turned = shaped_array((*batch, *v.shape[:-3:-1]), aval.dtype)
    u_out, vh_out = avals_out[1:]
    return [s, corner(b, left, u, *u_out.shape[-2:]), corner(b, vh, turned, *vh_out.shape[-2:])], (
        info
    )


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
    _, s, left, right, info = gpu_call(
        b, f"solver_{routine}_ffi", operands, [aval],
        [aval, avals_out[0], *sides, info_aval(batch)],
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


def _jvp(
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
    v = adjoint(vh)
    c = matmul(adjoint(u), matmul(a_dot, v))
    both, s_dot = rotations(scaled(add(c, adjoint(c)), 0.5), gaps(s))
    if not compute_uv:
        return (s,), (s_dot,)
    u_dot, v_dot = _vector_tangents(s, u, v, c, both, a_dot)
    return (s, u, vh), (s_dot, u_dot, adjoint(v_dot))


def _vector_tangents(s: Any, u: Any, v: Any, c: Any, both: Any, a_dot: Any) -> tuple[Any, Any]:
    # with C = U^H dA V, its hermitian part P and its other part M:
    #   dU = U (X + Y) + (1 - U U^H) dA V / S,   X_ij = P_ij / (s_j - s_i)  turns both,
    #   dV = V (X - Y) + (1 - V V^H) dA^H U / S, Y_ij = M_ij / (s_j + s_i)  turns them apart:
    # the same as F . (C S + S C^H) with F_ij = 1 / (s_j^2 - s_i^2), but for equal values, too, Y
    # is a number. For complex A, the phase of a pair of vectors is free: U takes all of it
    dtype = c.aval.dtype
    skew = scaled(sub(c, adjoint(c)), 0.5)
    apart = pair_quotients(skew, sums(s))
    inner_u, inner_v = add(both, apart), sub(both, apart)
    m, n = a_dot.aval.shape[-2:]
    if dtypes.is_complex(dtype):
        phase = quotients(skew, rows_of(s, s.aval.shape[-1]))
        inner_u = add(inner_u, mul(eye(c.aval.shape, dtype), phase))
    u_dot, v_dot = matmul(u, inner_u), matmul(v, inner_v)
    if m > n:
        image = matmul(a_dot, v)
        outside = sub(image, matmul(u, matmul(adjoint(u), image)))
        u_dot = add(u_dot, quotients(outside, rows_of(s, m)))
    if n > m:
        image = matmul(adjoint(a_dot), u)
        outside = sub(image, matmul(v, matmul(adjoint(v), image)))
        v_dot = add(v_dot, quotients(outside, rows_of(s, n)))
    return u_dot, v_dot


svd_p: Primitive = Primitive(
    "svd",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("svd", cpu=_lapack, gpu=_gpu),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: svd_p),
    dimensions=dimension_names.of_last(2),
)
