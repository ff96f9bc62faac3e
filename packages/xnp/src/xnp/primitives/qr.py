"""QR factorisations and their Householder reflectors: qr, geqrf, householder_product, ormqr."""

from __future__ import annotations

from typing import Any

import numpy as np

import xprim
from xnp import lax
from xnp.primitives import matrices, solvers
from xnp.primitives.linear_systems import solve_triangle
from xnp.primitives.matrices import adjoint, as_columns, as_rows, conj, eye, matmul, triu
from xnp.primitives.table import add, join, mul, neg, scalar_like, select, slice_dim, sub
from xprim import Array, Linear, Primitive, ShapedArray, Zero, dtypes, shaped_array, undefined
from xprim.contracts import Builder, by_platform
from xprim.errors import MissingRuleError, message
from xprim.requirements import require, require_equal_dtypes

__all__ = ()


# ------------------------------------------------------------------------------------ reflectors
# Householder reflectors as LAPACK keeps them, and what their products are.
#
# A reflector is H = I - tau v v^H, with a first element 1 of v that is not stored. A matrix that
# holds k of them has v of number i below place i of column i. Their product H_1 ... H_k is I - V
# T V^H with the upper triangular T = (I + D U)^-1 D, where D = diag(taus) and U is the strict
# upper triangle of V^H V. Source: R. Schreiber, C. Van Loan, A storage-efficient WY
# representation for products of Householder transformations (1989); the inverse of T: C. Puglisi
# (1992).


def reflector(x: Any) -> tuple[Any, Any]:
    """Return (v, tau) with H^H x = (beta, 0, ...) for a real beta; beta stands in place of v[0].

    `x` is a NumPy vector. Source: LAPACK Users' Guide, `larfg`.
    """
    alpha, rest = x[0], x[1:]
    if not np.any(rest) and not np.imag(alpha):
        return x.copy(), x.dtype.type(0)
    info, greatest = np.finfo(x.dtype), np.max(np.abs(x))
    if greatest < info.tiny / info.eps:  # its quotients would have few digits
        v, tau = reflector(x * (info.eps / info.tiny))
        v[0] *= info.tiny / info.eps
        return v, tau
    size = np.linalg.norm(x / greatest) * greatest
    beta = -np.copysign(size, alpha.real).astype(x.dtype)
    v = np.empty_like(x)
    v[0], v[1:] = beta, rest / (alpha - beta)
    return v, (beta - alpha) / beta


def check_taus(name: str, batch: tuple[int, ...], a: ShapedArray, taus: ShapedArray) -> None:
    """Raise unless factors belong to the reflectors in a matrix.

    Raises:
      TypeError: their dtypes differ.
      ValueError: there are more factors than columns, or the batches differ.
    """
    require_equal_dtypes(name, a, taus)
    limit = min(a.shape[-2:])
    if taus.ndim != a.ndim - 1 or taus.shape[:-1] != batch or taus.shape[-1] > limit:
        raise ValueError(message(
            name, "the factors do not belong to the reflectors.",
            got=f"a: {a.str_long()}, taus: {taus.str_long()}",
            expected=f"the same batch dimensions, and {limit} factors at most",
        ))  # fmt: skip


# -------------------------------------------------------------------------------- on NumPy arrays


def host_product(a: Any, taus: Any, c: Any, *, transpose: bool) -> Any:
    """Return Q c, or Q^H c, for the product Q of the reflectors in NumPy arrays."""
    k = taus.shape[-1]
    v = np.tril(a[..., :k], -1) + np.eye(a.shape[-2], k, dtype=a.dtype)
    v_h = v.swapaxes(-1, -2).conj()
    inverse = np.eye(k, dtype=a.dtype) + taus[..., :, None] * np.triu(v_h @ v, 1)
    middle = np.linalg.solve(inverse, np.eye(k, dtype=a.dtype) * taus[..., :, None])
    if transpose:
        middle = middle.swapaxes(-1, -2).conj()
    return (c - v @ (middle @ (v_h @ c))).astype(c.dtype)


# -------------------------------------------------------------------------------------- in rules


def _vectors(a: Any, k: int, diagonal: bool = True) -> Any:
    """Return V, or its tangent, which has no ones on the diagonal."""
    below = matrices.tril(slice_dim(a, a.aval.ndim - 1, 0, k), -1)
    return add(below, eye(below.aval.shape, below.aval.dtype)) if diagonal else below


def product_tangent(primals: Any, tangents: Any, *, transpose: bool) -> Any:
    """Return the tangent of Q c, or Q^H c, by the derivative of I - V T V^H.

    Args:
      primals: the matrix of reflectors, their factors, and c.
      tangents: theirs, some of them Zero.
      transpose: whether of Q^H c.
    """
    (a, taus, c), (a_dot, taus_dot, c_dot) = primals, tangents
    k = taus.aval.shape[-1]
    v = _vectors(a, k)
    identity = eye((*taus.aval.shape, k), v.aval.dtype)
    upper = triu(matmul(adjoint(v), v), 1)
    inverse = add(identity, mul(as_columns(taus, k), upper))
    middle = _solve(inverse, mul(identity, as_columns(taus, k)))
    v_dot = None if type(a_dot) is Zero else _vectors(a_dot, k, diagonal=False)
    factors_dot = None if type(taus_dot) is Zero else as_columns(taus_dot, k)
    middle_dot = _middle_tangent(taus, v, inverse, middle, v_dot, factors_dot)
    if transpose:
        middle = adjoint(middle)
        middle_dot = None if middle_dot is None else adjoint(middle_dot)
    along = matmul(adjoint(v), c)
    terms = [] if type(c_dot) is Zero else [
        c_dot, neg(matmul(v, matmul(middle, matmul(adjoint(v), c_dot)))),
    ]  # fmt: skip
    if middle_dot is not None:
        terms.append(neg(matmul(v, matmul(middle_dot, along))))
    if v_dot is not None:
        terms.append(neg(matmul(v_dot, matmul(middle, along))))
        terms.append(neg(matmul(v, matmul(middle, matmul(adjoint(v_dot), c)))))
    return _reflectors_sum(terms)


def _middle_tangent(
    taus: Any, v: Any, inverse: Any, middle: Any, v_dot: Any, factors_dot: Any
) -> Any:
    # (I + D U) T = D  gives  (I + D U) dT = dD - (dD U + D dU) T
    terms = []
    k = middle.aval.shape[-1]
    if factors_dot is not None:
        upper = triu(matmul(adjoint(v), v), 1)
        terms.append(mul(eye(middle.aval.shape, middle.aval.dtype), factors_dot))
        terms.append(neg(matmul(mul(factors_dot, upper), middle)))
    if v_dot is not None:
        cross = matmul(adjoint(v_dot), v)
        upper_dot = triu(add(cross, adjoint(cross)), 1)
        terms.append(neg(matmul(mul(as_columns(taus, k), upper_dot), middle)))
    return _solve(inverse, _reflectors_sum(terms)) if terms else None


def _solve(inverse: Any, right: Any) -> Any:
    return solve_triangle(inverse, right, lower=False, unit_diagonal=True)


def _reflectors_sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


# --------------------------------------------------------------------------------- column pivots
# The order of columns in which a QR factorisation reveals the rank.
#
# At each step the column of the greatest length comes next, in exchange for the one that stood
# there, and what lies along it is taken from all columns (twice, for the rounding errors). Only
# the order is kept: the factors are then those of the matrix with its columns in that order, and
# its derivative is theirs. Source: P. Businger, G. Golub, Linear least squares solutions by
# Householder transformations (1965).


def column_order(x: Any) -> Array:
    """Return the order of columns, int32, of shape (..., n), for matrices (..., m, n)."""
    batch, m, n = matrices.check_matrix("qr", x.aval)
    columns = lax.broadcasted_iota(dtypes.int32, (*batch, n), len(batch))
    if n == 0:  # there is no longest column to be found
        return columns

    def step(k: Any, state: Any) -> Any:
        rest, place = state  # place: where each column stands in the order
        lengths = _squares(rest)
        waiting = lax.ge(place, k)
        lengths = select(waiting, lengths, lax.full_like(lengths, -1.0))
        chosen = lax.argmax(lengths, len(batch), dtypes.int32)
        is_chosen = lax.eq(columns, lax.broadcast_in_dim(chosen, (*batch, n), _dims(batch)))
        left = _column_pivots_sum(select(is_chosen, place, lax.full_like(place, 0)))
        left = lax.broadcast_in_dim(left, (*batch, n), _dims(batch))
        place = select(is_chosen, lax.full_like(place, k), select(lax.eq(place, k), left, place))
        pivot = _column_pivots_sum(select(as_rows(is_chosen, m), rest, lax.full_like(rest, 0)))
        return _without(_without(rest, pivot), pivot), place

    first, end = np.int32(0), np.int32(min(m, n))  # the dtype of `columns`, whatever the default
    place = lax.fori_loop(first, end, step, (lax.stop_gradient(x), columns))[1]
    stands = lax.eq(
        as_rows(place, n), lax.broadcasted_iota(dtypes.int32, (*batch, n, n), len(batch))
    )
    zeros = lax.full((*batch, n, n), 0, dtypes.int32)
    return _column_pivots_sum(select(stands, as_rows(columns, n), zeros))


def columns_at(x: Any, order: Any) -> Array:
    """Return the columns of matrices in an order."""
    _, _, n = matrices.check_matrix("qr", x.aval)
    rows = lax.broadcasted_iota(dtypes.int32, (*order.shape[:-1], n, n), order.ndim - 1)
    chooses = lax.eq(rows, as_rows(order, n))
    return matmul(x, lax.convert_element_type(chooses, x.dtype))  # type: ignore[no-any-return]


def _dims(batch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(batch)))


def _column_pivots_sum(x: Any) -> Array:
    """Sum over the last dimension."""
    return lax.reduce_sum(x, (x.ndim - 1,))


def _squares(x: Any) -> Array:
    """Return the squares of the lengths of columns."""
    return lax.reduce_sum(matrices.real(lax.mul(x, conj(x))), (x.ndim - 2,))


def _without(rest: Any, pivot: Any) -> Any:
    """Take what lies along a column from all columns."""
    _, m, n = matrices.check_matrix("qr", rest.aval)
    column = as_columns(pivot, n)
    along = lax.reduce_sum(lax.mul(conj(column), rest), (rest.ndim - 2,))
    square = lax.convert_element_type(_squares(column), rest.dtype)
    nonzero = lax.ne(square, lax.full_like(square, 0))
    share = lax.div(along, select(nonzero, square, lax.full_like(square, 1)))
    return lax.sub(rest, lax.mul(column, as_rows(share, m)))


# ----------------------------------------------------------------------------------------- geqrf
# geqrf: the QR factorisation as LAPACK keeps it, as Householder reflectors.
#
# The result is A with R on and above the diagonal and, below it, the vectors v of the reflectors
# I - tau v v^H (their first elements, 1, left out), and the k factors tau; Q is the product of
# the reflectors. `qr` forms Q and R of it. Source: LAPACK Users' Guide, section on QR
# factorisation.


def _geqrf_shape(aval: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = matrices.check_matrix("geqrf", aval)
    return aval.strong(), shaped_array((*batch, min(m, n)), aval.dtype)


def _geqrf_numpy(a: Any) -> Any:
    if a.size == 0:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    packed, taus = np.linalg.qr(a, mode="raw")
    return np.swapaxes(packed, -1, -2), taus


def _geqrf_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (aval,), (packed, taus) = avals_in, avals_out
    if aval.size == 0:
        return [operands[0], b.constant(0, taus)]
    return solvers.reflectors_call(b, "geqrf", operands, [packed], [packed, taus])


geqrf_p: Primitive = Primitive(
    "geqrf",
    shape=_geqrf_shape,
    numpy=_geqrf_numpy,
    stablehlo=by_platform("geqrf", cpu=_geqrf_stablehlo, gpu=_geqrf_stablehlo),
    jvp=undefined("Q and R have derivatives, but not the reflectors: use qr"),
    transpose=undefined("it is not linear"),
    batch=matrices.matrix_batch(lambda: geqrf_p),
    sharding=xprim.dimension_names.of_last(2),
)


# --------------------------------------------------------------------------- householder product
# householder_product: the columns of Q, the product of the reflectors that `geqrf` leaves.
#
# Of matrices (..., m, n) with m >= n it gives the first n columns of Q. It is differentiable in
# both operands: `reflectors` has the formula.


def _householder_product_shape(a: ShapedArray, taus: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = matrices.check_matrix("householder_product", a)
    check_taus("householder_product", batch, a, taus)
    require(
        m >= n, "householder_product", "there are more columns than rows.", got={"a": a},
        expected="a.shape[-2] >= a.shape[-1]",
    )  # fmt: skip
    return (a.strong(),)


def _householder_product_numpy(a: Any, taus: Any) -> Any:
    columns = np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
    return (host_product(a, taus, columns, transpose=False),)


def _householder_product_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    (_, taus), (out,) = avals_in, avals_out
    if out.size == 0 or taus.size == 0:
        columns = np.broadcast_to(np.eye(*out.shape[-2:], dtype=out.dtype), out.shape)
        return [b.constant(columns if out.size else 0, out)]
    return solvers.reflectors_call(b, "orgqr", operands, avals_in, [out])


def _householder_product_jvp(primals: Any, tangents: Any) -> Any:
    outs = householder_product_p.bind(*primals)
    if all(type(t) is Zero for t in tangents):
        return outs, (Zero(outs[0].aval),)
    aval = outs[0].aval
    columns = eye(aval.shape, aval.dtype)
    everything = (*primals, columns), (*tangents, Zero(aval))
    return outs, (product_tangent(*everything, transpose=False),)


householder_product_p: Primitive = Primitive(
    "householder_product",
    shape=_householder_product_shape,
    numpy=_householder_product_numpy,
    stablehlo=by_platform(
        "householder_product",
        cpu=_householder_product_stablehlo,
        gpu=_householder_product_stablehlo,
    ),
    jvp=_householder_product_jvp,
    transpose=undefined("it is not linear"),
    batch=matrices.matrix_batch(lambda: householder_product_p),
    sharding=xprim.dimension_names.of_last(2),
)


# ----------------------------------------------------------------------------------------- ormqr
# ormqr: Q C, Q^H C, C Q or C Q^H for the product Q of the reflectors that `geqrf` leaves.
#
# Q is square, and is not formed. It is differentiable in all operands, and linear in C;
# `reflectors` has the formula. What stands on the right of C is brought to the left: C Q = (Q^H
# C^H)^H.


def _ormqr_shape(
    a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
) -> tuple[ShapedArray, ...]:
    batch, m, _ = matrices.check_matrix("ormqr", a)
    check_taus("ormqr", batch, a, taus)
    c_batch, rows, columns = matrices.check_matrix("ormqr", c)
    require_equal_dtypes("ormqr", a, c)
    if batch != c_batch or (rows if left else columns) != m:
        side = "c.shape[-2]" if left else "c.shape[-1]"
        raise ValueError(message(
            "ormqr", "the operands do not fit.", got=f"a: {a.str_long()}, c: {c.str_long()}",
            expected=f"a.shape[-2] == {side}, and equal batch dimensions",
        ))  # fmt: skip
    return (c.strong(),)


def _ormqr_numpy(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if left:
        return (host_product(a, taus, c, transpose=transpose),)
    turned = host_product(a, taus, c.swapaxes(-1, -2).conj(), transpose=not transpose)
    return (turned.swapaxes(-1, -2).conj(),)


def _ormqr_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, left: bool, transpose: bool
) -> Any:
    aval, taus, c = avals_in
    if c.size == 0 or taus.size == 0:
        return [operands[2]]
    a = operands[0]
    k = taus.shape[-1]
    if k < aval.shape[-1]:
        a = solvers.corner(b, a, aval, aval.shape[-2], k)
        aval = shaped_array((*aval.shape[:-1], k), aval.dtype)
    flags = {"left": left, "transpose": transpose}
    config = ", ".join([f"{name} = {str(flag).lower()}" for name, flag in flags.items()])
    given = [a, *operands[1:]]
    return solvers.reflectors_call(
        b, "ormqr", given, [aval, taus, c], avals_out, config, overwritten=2
    )


def _ormqr_jvp(primals: Any, tangents: Any, *, left: bool, transpose: bool) -> Any:
    a, taus, c = primals
    a_dot, taus_dot, c_dot = tangents
    outs = ormqr_p.bind(a, taus, c, left=left, transpose=transpose)
    if type(a_dot) is Zero and type(taus_dot) is Zero:
        if type(c_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, ormqr_p.bind(a, taus, c_dot, left=left, transpose=transpose)
    if left:
        return outs, (product_tangent(primals, tangents, transpose=transpose),)
    turned = Zero(adjoint(c).aval) if type(c_dot) is Zero else adjoint(c_dot)
    found = product_tangent(
        (a, taus, adjoint(c)), (a_dot, taus_dot, turned), transpose=not transpose
    )
    return outs, (adjoint(found),)


def _transpose(cts: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    # the transpose of C -> Q C is C -> Q^T C = conj(Q^H conj(C))
    assert type(c) is Linear
    (found,) = ormqr_p.bind(a, taus, conj(cts[0]), left=left, transpose=not transpose)
    return Zero(a.aval), Zero(taus.aval), conj(found)


ormqr_p: Primitive = Primitive(
    "ormqr",
    shape=_ormqr_shape,
    numpy=_ormqr_numpy,
    stablehlo=by_platform("ormqr", cpu=_ormqr_stablehlo, gpu=_ormqr_stablehlo),
    jvp=_ormqr_jvp,
    transpose=_transpose,
    batch=matrices.matrix_batch_of_sides(lambda: ormqr_p),
    sharding=xprim.dimension_names.of_last(2),
)


# -------------------------------------------------------------------------------------------- qr
# qr: A = Q R with orthonormal columns of Q and upper triangular R.
#
# With `full_matrices`, Q is square and R has the shape of A. Source of the derivative: S. Walter
# and L. Lehmann, Algorithmic differentiation of linear algebra functions with application in
# optimum experimental design (2010), for matrices of full rank with at least as many rows as
# columns; the further columns of a wide matrix follow from R2 = Q^H A2.


def _qr_shape(aval: ShapedArray, *, full_matrices: bool) -> tuple[ShapedArray, ...]:
    batch, m, n = matrices.check_matrix("qr", aval)
    k = m if full_matrices else min(m, n)
    return shaped_array((*batch, m, k), aval.dtype), shaped_array((*batch, k, n), aval.dtype)


def _qr_numpy(a: Any, *, full_matrices: bool) -> Any:
    q, r = np.linalg.qr(a, mode="complete" if full_matrices else "reduced")
    return q, r


def _qr_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, full_matrices: bool
) -> Any:
    (aval,), (q_aval, r_aval) = avals_in, avals_out
    *batch, m, n = aval.shape
    k, columns = min(m, n), q_aval.shape[-1]
    if aval.size == 0:
        eye = np.broadcast_to(np.eye(m, columns, dtype=aval.dtype), q_aval.shape)
        return [b.constant(eye if eye.size else 0, q_aval), b.constant(0, r_aval)]
    tau = shaped_array((*batch, k), aval.dtype)
    packed, taus = solvers.reflectors_call(b, "geqrf", operands, [aval], [aval, tau])
    r = solvers.triangle(b, solvers.corner(b, packed, aval, r_aval.shape[-2], n), r_aval, "LE")
    reflectors = solvers.corner(b, packed, aval, m, min(columns, n))
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
    (q,) = solvers.reflectors_call(b, "orgqr", [reflectors, taus], [q_aval, tau], [q_aval])
    return [q, r]


def _qr_jvp(primals: Any, tangents: Any, *, full_matrices: bool) -> Any:
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
    q_dot, r_dot = _tall_jvp(q, slice_dim(r, last, 0, k), slice_dim(a_dot, last, 0, k))
    if n > m:
        rest = slice_dim(a_dot, last, k, n)
        r_rest = matmul(adjoint(q), sub(rest, matmul(q_dot, slice_dim(r, last, k, n))))
        r_dot = join([r_dot, r_rest], last)
    return outs, (q_dot, r_dot)


def _tall_jvp(q: Any, r: Any, a_dot: Any) -> tuple[Any, Any]:
    # with X = Q^H dA R^-1 and the skew-Hermitian W of the strictly lower triangle of X, whose
    # diagonal is the imaginary part of that of X:  dQ = dA R^-1 + Q (W - X),  dR = (X - W) R
    scaled = solve_triangle(r, a_dot, lower=False, left_side=False)
    x = matmul(adjoint(q), scaled)
    lower = matrices.tril(x, -1)
    skew = sub(lower, adjoint(lower))
    if dtypes.is_complex(x.aval.dtype):
        imaginary = mul(sub(x, conj(x)), scalar_like(x, 0.5))
        skew = add(skew, mul(eye(x.aval.shape, x.aval.dtype), imaginary))
    rest = sub(x, skew)
    return sub(scaled, matmul(q, rest)), matmul(rest, r)


qr_p: Primitive = Primitive(
    "qr",
    shape=_qr_shape,
    numpy=_qr_numpy,
    stablehlo=by_platform("qr", cpu=_qr_stablehlo, gpu=_qr_stablehlo),
    jvp=_qr_jvp,
    transpose=undefined("it is not linear"),
    batch=matrices.matrix_batch(lambda: qr_p),
    sharding=xprim.dimension_names.of_last(2),
)
