"""svd: singular values s and singular vectors, A = U diag(s) V^H.

The results are s (descending), U and V^H, or s alone. With `full_matrices`, U and V^H are square.
Where LAPACK fails, the results are NaN. Sources of the derivative: M. Giles, An extended collection
of matrix derivative results (2008), section 3.2; J. Townsend, Differentiating the singular value
decomposition (2016), for matrices that are not square.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import info_aval, lapack_call, nan_for_infinity, nan_on_failure
from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    as_rows,
    checked,
    diagonal,
    eye,
    matmul,
    matrix_batch,
    real,
    real_dtype,
)
from xnp.primitives.operations import add, bind, converted, div, filled, mul, scalar_like, sub
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message

__all__ = ()


def _shape(aval: ShapedArray, *, full_matrices: bool, compute_uv: bool) -> (
    tuple[ShapedArray, ...]
):  # fmt: skip
    batch, m, n = checked("svd", aval)
    k = min(m, n)
    values = shaped_array((*batch, k), real_dtype(aval.dtype))
    if not compute_uv:
        return (values,)
    u = (*batch, m, m if full_matrices else k)
    vh = (*batch, n if full_matrices else k, n)
    return values, shaped_array(u, aval.dtype), shaped_array(vh, aval.dtype)


def _numpy(a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
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


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool,
               compute_uv: bool) -> Any:  # fmt: skip
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
    results = lapack_call(b, "svd", "gesdd", aval.dtype, [matrices], [aval], outs, config)
    info = results[-1]
    return [nan_on_failure(b, info, batch, x, y)
            for x, y in zip(results[1:-1], avals_out, strict=False)]  # fmt: skip


def _empty(aval: ShapedArray) -> Any:
    """Return the vectors of a matrix without elements: those of an identity matrix."""
    if aval.ndim < 2 or aval.size == 0:
        return 0
    return np.broadcast_to(np.eye(aval.shape[-2], aval.shape[-1], dtype=aval.dtype), aval.shape)


def _jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    (a,), (a_dot,) = primals, tangents
    m, n = a.aval.shape[-2:]
    params = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    if type(a_dot) is Zero:
        outs = svd_p.bind(a, **params)
        return outs, tuple([Zero(y.aval) for y in outs])
    if compute_uv and full_matrices and m != n:
        raise MissingRuleError(message(
            "svd", "the vectors of full_matrices=True have no derivative: those beyond the rank of "
            "the matrix are not determined.", got=a.aval.str_long(), hint="use full_matrices=False",
        ))  # fmt: skip
    s, u, vh = svd_p.bind(a, full_matrices=False, compute_uv=True)
    v = adjoint(vh)
    c = matmul(adjoint(u), matmul(a_dot, v))
    s_dot = real(diagonal(c))
    if not compute_uv:
        return (s,), (s_dot,)
    u_dot, v_dot = _vector_tangents(s, u, v, c, a_dot)
    return (s, u, vh), (s_dot, u_dot, adjoint(v_dot))


def _vector_tangents(s: Any, u: Any, v: Any, c: Any, a_dot: Any) -> tuple[Any, Any]:
    # C = U^H dA V, F_ij = 1 / (s_j^2 - s_i^2), 0 where i = j:
    #   dU = U (F . (C S + S C^H)) + (1 - U U^H) dA V / S,  dV = V (F . (S C + C^H S)) + ...
    # for complex A, the phase of a pair of vectors is free: U takes all of it
    k, dtype = s.aval.shape[-1], c.aval.dtype
    columns, rows = converted(as_rows(s, k), dtype), converted(as_columns(s, k), dtype)
    scaled_columns, scaled_rows = mul(c, columns), mul(c, rows)
    inverse = converted(_inverse_gaps(s), dtype)
    inner_u = mul(inverse, add(scaled_columns, adjoint(scaled_columns)))
    inner_v = mul(inverse, add(scaled_rows, adjoint(scaled_rows)))
    if dtypes.is_complex(dtype):
        phase = mul(sub(c, adjoint(c)), scalar_like(c, 0.5))
        ones = eye(c.aval.shape, dtype)
        inner_u = add(inner_u, mul(ones, div(phase, _without_zeros(columns))))
    u_dot, v_dot = matmul(u, inner_u), matmul(v, inner_v)
    m, n = a_dot.aval.shape[-2:]
    if m > n:
        image = matmul(a_dot, v)
        outside = sub(image, matmul(u, matmul(adjoint(u), image)))
        u_dot = add(u_dot, div(outside, converted(as_rows(s, m), dtype)))
    if n > m:
        image = matmul(adjoint(a_dot), u)
        outside = sub(image, matmul(v, matmul(adjoint(v), image)))
        v_dot = add(v_dot, div(outside, converted(as_rows(s, n), dtype)))
    return u_dot, v_dot


def _inverse_gaps(s: Any) -> Any:
    """Return 1 / (s_j^2 - s_i^2), and 0 on the diagonal."""
    k = s.aval.shape[-1]
    shape, dtype = (*s.aval.shape, k), s.aval.dtype
    ones = eye(shape, dtype)
    sj, si = as_rows(s, k), as_columns(s, k)
    gaps = add(mul(sub(sj, si), add(sj, si)), ones)
    return sub(div(filled(shape, 1, dtype), gaps), ones)


def _without_zeros(x: Any) -> Any:
    """Replace zeros by ones: what is divided by them is zero too."""
    zero = bind("eq", x, filled(x.aval.shape, 0, x.aval.dtype))
    return add(x, converted(zero, x.aval.dtype))


svd_p: Primitive = Primitive(
    "svd",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: svd_p),
    dimensions=dimension_names.of_last(2),
)
