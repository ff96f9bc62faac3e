"""pinv: the Moore-Penrose inverse P of a matrix A.

The second operand has a bound for each matrix of a batch: singular values up to this times the
largest one count as zero, so that P does not vary with it but where it jumps. It is a primitive
because its derivative needs none of the singular vectors, which need not have one. Source: G. Golub
and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate (1973), equation 4.12:

    dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.matrices import (
    adjoint,
    as_columns,
    checked,
    matmul,
    matrix_batch,
    real_dtype,
)
from xnp.primitives.operations import (
    add,
    bind,
    broadcasted,
    converted,
    div,
    filled,
    mul,
    selected,
    sub,
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
from xprim.errors import message

__all__ = ()


def _shape(aval: ShapedArray, rtol: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = checked("pinv", aval)
    if rtol.shape != tuple(batch) or rtol.dtype != real_dtype(aval.dtype):
        raise ValueError(message(
            "pinv", "the second operand must have one bound for each matrix.",
            got=f"matrices of {aval.str_long()}, bounds of {rtol.str_long()}",
        ))  # fmt: skip
    return (shaped_array((*batch, n, m), aval.dtype),)


def _numpy(a: Any, rtol: Any) -> Any:
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
    keep = bind("gt", s, broadcasted(least, shape, tuple(range(s.aval.ndim - 1))))
    zeros = mul(s, filled(shape, 0, dtype))
    inverse = selected(keep, div(filled(shape, 1, dtype), s), zeros)
    rows = converted(as_columns(inverse, u.aval.shape[-2]), a.aval.dtype)
    return [matmul(adjoint(vh), mul(rows, adjoint(u)))]


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if avals_out[0].size == 0:
        return [b.constant(0, avals_out[0])]
    return b.traced(_by_values, operands, avals_in, key=("pinv",))


def _jvp(primals: Any, tangents: Any) -> Any:
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
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: pinv_p),
    dimensions=dimension_names.of_last(2),
)
