"""qr: A = Q R with orthonormal columns of Q and upper triangular R.

With `full_matrices`, Q is square and R has the shape of A. Source of the derivative: S. Walter and
L. Lehmann, Algorithmic differentiation of linear algebra functions with application in optimum
experimental design (2010), for matrices of full rank with at least as many rows as columns; the
further columns of a wide matrix follow from R2 = Q^H A2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.lapack_text import corner, reflectors_call, triangle
from xnp.primitives.matrices import adjoint, checked, conj, eye, matmul, matrix_batch, tril
from xnp.primitives.operations import add, concatenated, mul, scalar_like, sliced, sub
from xnp.primitives.triangular_solve import solved
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import MissingRuleError, message
from xprim.platform_rules import by_platform

__all__ = ()


def _shape(aval: ShapedArray, *, full_matrices: bool) -> tuple[ShapedArray, ...]:
    batch, m, n = checked("qr", aval)
    k = m if full_matrices else min(m, n)
    return shaped_array((*batch, m, k), aval.dtype), shaped_array((*batch, k, n), aval.dtype)


def _numpy(a: Any, *, full_matrices: bool) -> Any:
    q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
    return q, r


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool
) -> Any:
    (aval,), (q_aval, r_aval) = avals_in, avals_out
    *batch, m, n = aval.shape
    k, columns = min(m, n), q_aval.shape[-1]
    if aval.size == 0:
        eye = np.broadcast_to(np.eye(m, columns, dtype=aval.dtype), q_aval.shape)
        return [b.constant(eye if eye.size else 0, q_aval), b.constant(0, r_aval)]
    tau = shaped_array((*batch, k), aval.dtype)
    packed, taus = reflectors_call(b, "geqrf", operands, [aval], [aval, tau])
    r = triangle(b, corner(b, packed, aval, r_aval.shape[-2], n), r_aval, "LE")
    reflectors = corner(b, packed, aval, m, min(columns, n))
    narrow = shaped_array((*batch, m, min(columns, n)), aval.dtype)
    if columns > n:
        high = ", ".join(["0"] * (aval.ndim - 1) + [str(columns - n)])
        none = ", ".join(["0"] * aval.ndim)
        (reflectors,) = b.op(
            "stablehlo.pad", [reflectors, b.scalar(0, aval.dtype)],
            [narrow, shaped_array((), aval.dtype)], [q_aval],
            f"edge_padding_low = array<i64: {none}>, edge_padding_high = array<i64: {high}>, "
            f"interior_padding = array<i64: {none}>",
        )  # fmt: skip
    (q,) = reflectors_call(b, "orgqr", [reflectors, taus], [q_aval, tau], [q_aval])
    return [q, r]


def _jvp(primals: Any, tangents: Any, *, full_matrices: bool) -> Any:
    (a,), (a_dot,) = primals, tangents
    outs = qr_p.bind(a, full_matrices=full_matrices)
    if type(a_dot) is Zero:
        return outs, tuple([Zero(y.aval) for y in outs])
    m, n = a.aval.shape[-2:]
    if full_matrices and m > n:
        raise MissingRuleError(message(
            "qr", "the square Q of a matrix with more rows than columns has no derivative: its "
            "last columns are not determined.", got=a.aval.str_long(),
            hint="use full_matrices=False (mode='reduced')",
        ))  # fmt: skip
    q, r = outs
    last, k = a.aval.ndim - 1, min(m, n)
    q_dot, r_dot = _tall_jvp(q, sliced(r, last, 0, k), sliced(a_dot, last, 0, k))
    if n > m:
        rest = sliced(a_dot, last, k, n)
        r_rest = matmul(adjoint(q), sub(rest, matmul(q_dot, sliced(r, last, k, n))))
        r_dot = concatenated([r_dot, r_rest], last)
    return outs, (q_dot, r_dot)


def _tall_jvp(q: Any, r: Any, a_dot: Any) -> tuple[Any, Any]:
    # with X = Q^H dA R^-1 and the skew-Hermitian W of the strictly lower triangle of X, whose
    # diagonal is the imaginary part of that of X:  dQ = dA R^-1 + Q (W - X),  dR = (X - W) R
    scaled = solved(r, a_dot, lower=False, left_side=False)
    x = matmul(adjoint(q), scaled)
    lower = tril(x, -1)
    skew = sub(lower, adjoint(lower))
    if dtypes.is_complex(x.aval.dtype):
        imaginary = mul(sub(x, conj(x)), scalar_like(x, 0.5))
        skew = add(skew, mul(eye(x.aval.shape, x.aval.dtype), imaginary))
    rest = sub(x, skew)
    return sub(scaled, matmul(q, rest)), matmul(rest, r)


qr_p: Primitive = Primitive(
    "qr",
    shape=_shape,
    numpy=_numpy,
    stablehlo=by_platform("qr", cpu=_stablehlo, gpu=_stablehlo),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=matrix_batch(lambda: qr_p),
    dimensions=dimension_names.of_last(2),
)
