"""tridiagonal: A = Q T Q^H with a real symmetric tridiagonal T, for Hermitian A and unitary Q.

Only the triangle that `lower` names is read. The results are the matrix with T on its diagonals and
the vectors of reflectors beyond them (the other triangle is that of A), the diagonal of T, the one
beside it, and the factors of the reflectors. Source: LAPACK Users' Guide, `sytrd` and `hetrd`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.finite_matrices import host_results, written_results
from xnp.primitives.lapack_text import gpu_call, info_aval, lapack_call, nan_on_failure
from xnp.primitives.matrices import checked, matrix_batch, real_dtype
from xnp.primitives.reflectors import reflector
from xprim import Primitive, ShapedArray, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import message
from xprim.platform_rules import by_platform, is_gpu

__all__ = ()


def _shape(aval: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    batch, n, _ = checked("tridiagonal", aval, square=True)
    if n == 0:
        raise ValueError(message(
            "tridiagonal", "the matrix must have a row at least.", got=aval.str_long(),
        ))  # fmt: skip
    real = real_dtype(aval.dtype)
    return (aval.strong(), shaped_array((*batch, n), real), shaped_array((*batch, n - 1), real),
            shaped_array((*batch, n - 1), aval.dtype))  # fmt: skip


def _numpy(a: Any, *, lower: bool) -> Any:
    *batch, n, _ = a.shape
    out, taus = np.array(a), np.zeros((*batch, n - 1), a.dtype)
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    for i in np.ndindex(*batch):
        if lower:
            _reduce_lower(out[i], taus[i])
        else:  # reversing both orders turns one triangle into the other
            turned = np.array(out[i][::-1, ::-1])
            _reduce_lower(turned, taus[i][::-1])
            out[i] = turned[::-1, ::-1]
    diagonal = np.diagonal(out, 0, -2, -1).real
    beside = np.diagonal(out, -1 if lower else 1, -2, -1).real
    found = (np.where(kept, out, a), diagonal.copy(), beside.copy(), taus)
    return host_results(a, found, lower) if n > 1 else found


def _reduce_lower(a: Any, taus: Any) -> None:
    n = a.shape[-1]
    half = np.tril(a, -1)
    a[...] = half + half.conj().T + np.diag(np.diagonal(a).real)
    for i in range(n - 1):
        v, tau = reflector(a[i + 1 :, i])
        beta, v[0], taus[i] = v[0], 1, tau
        block = a[i + 1 :, i + 1 :]
        x = tau * (block @ v)
        w = x - (tau * np.vdot(x, v) / 2) * v
        block -= np.outer(v, w.conj()) + np.outer(w, v.conj())
        a[i + 1 :, i] = v
        a[i + 1, i] = beta


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool) -> Any:
    (aval,) = avals_in
    batch = aval.shape[:-2]
    if aval.size == 0:
        return [b.constant(0, x) for x in avals_out]
    results = [*avals_out, info_aval(batch)]
    if is_gpu(b.platform):
        config = f"lower = {str(lower).lower()}"
        found = gpu_call(b, "solver_sytrd_ffi", operands, avals_in, results, config, {0: 0})
    else:
        routine = "hetrd" if dtypes.is_complex(aval.dtype) else "sytrd"
        config = f"uplo = {ord('L' if lower else 'U')} : ui8"
        found = lapack_call(b, routine, aval.dtype, operands, avals_in, results, config)
    *found, info = found
    if aval.shape[-1] == 1:  # nothing is reduced
        return [nan_on_failure(b, info, batch, x, y) for x, y in zip(found, avals_out, strict=True)]
    return written_results(b, operands[0], aval, info, found, avals_out, lower)


tridiagonal_p: Primitive = Primitive(
    "tridiagonal",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("tridiagonal", cpu=_stablehlo, gpu=_stablehlo),
    jvp=undefined("the signs of the reflectors are a convention, and break where columns vanish"),
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: tridiagonal_p),
    dimensions=dimension_names.of_last(2),
)
