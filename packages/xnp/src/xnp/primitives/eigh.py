"""eigh: eigenvectors V and ascending eigenvalues w of Hermitian matrices, A V = V diag(w).

Only the triangle that `lower` names is read. Where LAPACK fails, the results are NaN.
Source of the derivative: M. Giles, An extended collection of matrix derivative results for forward
and reverse mode automatic differentiation (2008), section 3.1. It is not defined for the vectors of
equal eigenvalues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.finite_matrices import host_results, written_results
from xnp.primitives.lapack_text import info_aval, lapack_call
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    as_rows,
    checked,
    diagonal,
    eye,
    lower_half,
    matmul,
    matrix_batch,
    real,
    real_dtype,
)
from xnp.primitives.operations import add, converted, div, filled, mul, sub
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ()


def _shape(aval: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    batch, n, _ = checked("eigh", aval, square=True)
    return (shaped_array(aval.shape, aval.dtype),
            shaped_array((*batch, n), real_dtype(aval.dtype)))  # fmt: skip


def _numpy(a: Any, *, lower: bool) -> Any:
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


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, lower: bool) -> Any:
    (aval,), (vectors, values) = avals_in, avals_out
    if aval.size == 0:
        return [b.constant(0, vectors), b.constant(0, values)]
    batch = aval.shape[:-2]
    routine = "heevd" if dtypes.is_complex(aval.dtype) else "syevd"
    config = f"mode = {ord('V')} : ui8, uplo = {ord('L' if lower else 'U')} : ui8"
    v, w, info = lapack_call(b, "eigh", routine, aval.dtype, operands, [aval],
                             [vectors, values, info_aval(batch)], config)  # fmt: skip
    return written_results(b, operands[0], aval, info, [v, w], avals_out, lower)


def _jvp(primals: Any, tangents: Any, *, lower: bool) -> Any:
    # with C = V^H dA V:  dw = diag(C),  dV = V (F . C),  F_ij = 1 / (w_j - w_i), 0 where i = j
    (a,), (a_dot,) = primals, tangents
    outs = eigh_p.bind(a, lower=lower)
    v, w = outs
    if type(a_dot) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    half = lower_half(a_dot if lower else adjoint(a_dot))
    c = matmul(adjoint(v), matmul(add(half, adjoint(half)), v))
    inverse = inverse_differences(w)
    return outs, (matmul(v, mul(converted(inverse, c.aval.dtype), c)), real(diagonal(c)))


def inverse_differences(w: Any) -> Any:
    """Return 1 / (w_j - w_i), and 0 on the diagonal."""
    n = w.aval.shape[-1]
    shape, dtype = (*w.aval.shape, n), w.aval.dtype
    ones = eye(shape, dtype)
    gaps = add(sub(as_rows(w, n), as_columns(w, n)), ones)
    return sub(div(filled(shape, 1, dtype), gaps), ones)


eigh_p: Primitive = Primitive(
    "eigh",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: eigh_p),
    dimensions=dimension_names.of_last(2),
)
