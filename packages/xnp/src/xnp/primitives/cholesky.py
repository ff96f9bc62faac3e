"""cholesky: the lower triangular L with A = L L^H of a Hermitian positive definite A.

Only the lower triangle of A is read. Where A is not positive definite, the lower triangle of the
result is NaN. Source of the derivative: I. Murray, Differentiation of the Cholesky decomposition
(2016), section 3.1: dL = L Phi(L^-1 dA L^-H), Phi the lower triangle with half of the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import (
    gpu_call,
    info_aval,
    lapack_call,
    nan_on_failure,
    triangle,
)
from xnp.primitives.matrices import adjoint, checked, lower_half, matmul, matrix_batch
from xnp.primitives.operations import add
from xnp.primitives.triangular_solve import solved
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    checked("cholesky", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),)


def _numpy(a: Any) -> Any:
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
    results = [aval, info_aval(aval.shape[:-2])]
    found = lapack_call(b, "potrf", aval.dtype, operands, [aval], results, "uplo = 76 : ui8")
    return _factor(b, found, aval)


def _gpu(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, aval)]
    results = [aval, info_aval(aval.shape[:-2])]
    found = gpu_call(b, "solver_potrf_ffi", operands, [aval], results, "lower = true", {0: 0})
    return _factor(b, found, aval)


def _factor(b: Builder, found: Any, aval: ShapedArray) -> list[str]:
    result = nan_on_failure(b, found[1], aval.shape[:-2], found[0], aval)
    return [triangle(b, result, aval, "GE")]


def _expanded(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,) = avals_in
    if aval.size == 0:
        return [b.constant(0, aval)]
    (result,) = b.op("stablehlo.cholesky", operands, avals_in, avals_out, "lower = true")
    return [triangle(b, result, aval, "GE")]


def _jvp(primals: Any, tangents: Any) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = cholesky_p.bind(a)
    if type(a_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    lower = outs[0]
    half = lower_half(a_dot)
    inner = solved(lower, add(half, adjoint(half)), lower=True)
    inner = solved(lower, inner, lower=True, left_side=False, transpose_a=True,
                   conjugate_a=dtypes.is_complex(lower.aval.dtype))  # fmt: skip
    return outs, (matmul(lower, lower_half(inner)),)


cholesky_p: Primitive = Primitive(
    "cholesky",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("cholesky", cpu=_lapack, gpu=_gpu, default=_expanded),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: cholesky_p),
    dimensions=dimension_names.of_last(2),
)
