"""Householder reflectors as LAPACK keeps them, and what their products are.

A reflector is H = I - tau v v^H, with a first element 1 of v that is not stored. A matrix that
holds k of them has v of number i below place i of column i. Their product H_1 ... H_k is I - V T
V^H with the upper triangular T = (I + D U)^-1 D, where D = diag(taus) and U is the strict upper
triangle of V^H V. Source: R. Schreiber, C. Van Loan, A storage-efficient WY representation for
products of Householder transformations (1989); the inverse of T: C. Puglisi (1992).

Neighbours: `householder_product` and `ormqr` form and apply such products, `geqrf`, `hessenberg`
and `tridiagonal` find reflectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.matrices import adjoint, as_columns, eye, matmul, tril, triu
from xnp.primitives.operations import add, mul, neg, sliced
from xnp.primitives.triangular_solve import solved
from xprim import ShapedArray, Zero
from xprim.errors import message

__all__ = ()


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
    if a.dtype != taus.dtype:
        raise TypeError(
            f"{name}: requires operands of equal dtypes, got {a.dtype.name}, {taus.dtype.name}."
        )
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
    below = tril(sliced(a, a.aval.ndim - 1, 0, k), -1)
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
    middle = _solved(inverse, mul(identity, as_columns(taus, k)))
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
    return _sum(terms)


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
    return _solved(inverse, _sum(terms)) if terms else None


def _solved(inverse: Any, right: Any) -> Any:
    return solved(inverse, right, lower=False, unit_diagonal=True)


def _sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total
