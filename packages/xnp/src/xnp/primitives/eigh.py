"""eigh: eigenvectors V and ascending eigenvalues w of Hermitian matrices, A V = V diag(w).

Only the triangle that `lower` names is read. Where LAPACK fails, the results are NaN.
Source of the derivative: M. Giles, An extended collection of matrix derivative results for forward
and reverse mode automatic differentiation (2008), section 3.1; of equal eigenvalues see
`equal_values`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.equal_values import gaps, rotations
from xnp.primitives.factorisation_choices import (
    EighImplementation,
    by_compiler,
    check_choice,
    is_for_compiler,
)
from xnp.primitives.finite_matrices import host_results, written_results
from xnp.primitives.lapack_text import gpu_call, info_aval, lapack_call
from xnp.primitives.matrices import (
    adjoint,
    checked,
    lower_half,
    matmul,
    matrix_batch,
    real_dtype,
)
from xnp.primitives.operations import add
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(
    aval: ShapedArray, *, lower: bool, implementation: EighImplementation | None = None
) -> tuple[ShapedArray, ...]:
    batch, n, _ = checked("eigh", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),
            shaped_array((*batch, n), real_dtype(aval.dtype)))  # fmt: skip


def _numpy(a: Any, *, lower: bool, implementation: EighImplementation | None = None) -> Any:
    if is_for_compiler(implementation, EighImplementation.QR):
        return by_compiler(eigh_p, a, {"lower": lower, "implementation": implementation})
    check_choice("eigh", "implementation", implementation, EighImplementation.QR)
    triangle: Any = "L" if lower else "U"
    try:
        w, v = np.linalg.eigh(a, triangle)
        return host_results(a, (v, w), lower)
    except np.linalg.LinAlgError:
        pass
    v, w = np.full_like(a, np.nan), np.full(a.shape[:-1], np.nan, real_dtype(a.dtype))
    for i in np.ndindex(a.shape[:-2]):
        try:
            w[i], v[i] = np.linalg.eigh(a[i], triangle)
        except np.linalg.LinAlgError:
            continue  # stays NaN
    return host_results(a, (v, w), lower)


def _lapack(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool,
    implementation: EighImplementation | None = None,
) -> Any:  # fmt: skip
    check_choice("eigh", "implementation", implementation, EighImplementation.QR)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    routine = "heevd" if dtypes.is_complex(aval.dtype) else "syevd"
    config = f"mode = {ord('V')} : ui8, uplo = {ord('L' if lower else 'U')} : ui8"
    results = [*avals_out, info_aval(aval.shape[:-2])]
    *found, info = lapack_call(b, routine, aval.dtype, operands, [aval], results, config)
    return written_results(b, operands[0], aval, info, found, avals_out, lower)


_GPU_ALGORITHMS = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


def _gpu(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool,
    implementation: EighImplementation | None = None,
) -> Any:  # fmt: skip
    known = EighImplementation.QR, EighImplementation.JACOBI
    check_choice("eigh", "implementation", implementation, *known)
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    number = _GPU_ALGORITHMS[implementation]
    config = f"algorithm = {number} : ui8, lower = {str(lower).lower()}"
    results = [*avals_out, info_aval(aval.shape[:-2])]
    *found, info = gpu_call(b, "solver_syevd_ffi", operands, [aval], results, config, {0: 0})
    return written_results(b, operands[0], aval, info, found, avals_out, lower)


def _jvp(primals: Any, tangents: Any, *, lower: bool, **params: Any) -> Any:
    # with C = V^H dA V:  dw = diag(C),  dV = V X,  X_ij = C_ij / (w_j - w_i)
    (a,), (a_dot,) = primals, tangents
    outs = eigh_p.bind(a, lower=lower, **params)
    v, w = outs
    if type(a_dot) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    half = lower_half(a_dot if lower else adjoint(a_dot))
    c = matmul(adjoint(v), matmul(add(half, adjoint(half)), v))
    x, w_dot = rotations(c, gaps(w))
    return outs, (matmul(v, x), w_dot)


eigh_p: Primitive = Primitive(
    "eigh",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("eigh", cpu=_lapack, gpu=_gpu),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eigh_p),
    dimensions=dimension_names.of_last(2),
)
