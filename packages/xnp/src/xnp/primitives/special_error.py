"""The error function and its relatives: erf, erfc, erf_inv.

    erf(x) = 2/sqrt(pi) int_0^x exp(-t^2) dt,   erfc = 1 - erf,   erf_inv(erf(x)) = x

On the host they are computed in float64, to a few ulp, but for erf_inv of float32 and narrower,
which has the polynomials that the compiler uses. Semantics: CHLO, ops erf, erfc, erf_inv.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.chebyshev import ERF_SMALL, ERFC_LARGE, chebyshev
from xnp.primitives.operations import bind, filled, mul, neg, scalar_like, scaled
from xnp.primitives.table import FLOATING, retyped_stablehlo, unary
from xnp.primitives.upcast_lowering import upcast
from xprim import dtypes

__all__ = ()

_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy rule that computes in float64 and rounds to the operands' dtype."""

    def rule(*operands: Any) -> Any:
        return function(*[x.astype(np.float64) for x in operands]).astype(operands[0].dtype)

    return rule


def in_float32_stablehlo(op: str) -> Callable[..., list[str]]:
    """Return the rule of an operation that XLA has not for floats of 8 bits and fewer."""
    return upcast(retyped_stablehlo(op), dtypes.SMALL_FLOATS, np.float32)


def erf64(x: Any) -> Any:
    """Return erf of float64 values."""
    size = np.abs(x)
    small = np.minimum(size, 1.0)
    inner = small * chebyshev(2.0 * small * small - 1.0, ERF_SMALL)
    return np.where(np.isnan(x), x, np.copysign(np.where(size <= 1, inner, 1.0 - _tail(size)), x))


def erfc64(x: Any) -> Any:
    """Return erfc of float64 values, accurate in the tail too."""
    tail = _tail(np.abs(x))
    outer = np.where(x < 0, 2.0 - tail, tail)
    return np.where(np.isnan(x), x, np.where(np.abs(x) <= 1, 1.0 - erf64(np.clip(x, -1, 1)), outer))


def _tail(x: Any) -> Any:
    """Return erfc(x) for x >= 1."""
    x = np.clip(x, 1.0, 30.0)  # erfc(28) is 0 in float64
    s = (x - 3.0) / (x + 3.0)
    scaled_value = chebyshev((s + 0.5) * (4.0 / 3.0) - 1.0, ERFC_LARGE)
    # exp(-x^2) by x^2 = c^2 + (x - c)(x + c) with c of few bits: squaring x would round
    coarse = np.round(x * 1024.0) / 1024.0
    gauss = np.exp(-coarse * coarse) * np.exp(-(x - coarse) * (x + coarse))
    return gauss * scaled_value / x


def erf_inv64(p: Any) -> Any:
    """Return the inverse of erf: a first guess, and three steps of Halley's method.

    The guess is Winitzki's, "A handy approximation for the error function and its inverse" (2008).
    """
    size = np.minimum(np.abs(p), 1.0)
    q = 1.0 - size  # exact where it is used, for size > 1/2
    log_pq = np.log(np.maximum(q * (1.0 + size), 1e-300))
    a = 0.147
    b = 2.0 / (math.pi * a) + log_pq / 2.0
    y = np.sqrt(np.sqrt(b * b - log_pq / a) - b)
    for _ in range(3):
        error = np.where(size > 0.5, q - erfc64(y), erf64(y) - size)
        step = error / (_SLOPE * np.exp(-y * y))
        y = y - step / (1.0 + y * step)
    # erf(y) is y times a constant where its square is lost
    y = np.where(size < 1e-8, size / _SLOPE, y)
    y = np.where(size == 1, np.inf, np.where(np.abs(p) > 1, np.nan, y))
    return np.where(np.isnan(p), p, np.copysign(np.where(np.abs(p) > 1, np.nan, y), p))


# Giles, "Approximating the erfinv function" (2010), table 5: polynomials in w - 5/2 for w < 5 and
# in sqrt(w) - 3 above, of w = -log(1 - x^2). The compiler uses the same, so samples made with and
# without it agree to rounding.
_GILES_CENTRE = tuple(np.array(c, np.float32) for c in (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
))  # fmt: skip
_GILES_TAIL = tuple(np.array(c, np.float32) for c in (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
))  # fmt: skip


def erf_inv32(x: Any) -> Any:
    """Return the inverse of erf of float32 numbers by Giles' polynomials."""
    w = -np.log1p(-x * x)
    p = _horner(_GILES_CENTRE, w - _CENTRE)
    tail = w >= _TAIL_START
    if tail.any():  # so are the ends, where w is infinite
        in_tail = _horner(_GILES_TAIL, np.sqrt(w) - np.float32(3))
        p = np.where(tail, in_tail, p)
        return np.where(np.abs(x) == 1, np.copysign(np.float32(np.inf), x), p * x)
    return p * x


# Constants of rank 0: NumPy takes half as long over them as over its scalars.
_CENTRE, _TAIL_START = np.array(2.5, np.float32), np.array(5, np.float32)


def _horner(coefficients: tuple[Any, ...], w: Any) -> Any:
    first, second, *others = coefficients
    p = first * w
    p += second
    for c in others:
        p *= w
        p += c
    return p


def _erf_inv_numpy(x: Any) -> Any:
    if x.dtype == np.float64:
        return erf_inv64(x)
    return erf_inv32(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


def _gauss(x: Any) -> Any:
    # beyond 30 it is 0, and so are its derivatives, where x^2 would be infinite
    limit = scalar_like(x, 30)
    far = bind("gt", bind("abs", x), limit)
    x = bind("select_n", far, x, filled(x.aval.shape, 30, x.aval.dtype))
    return bind("exp", neg(bind("square", x)))


erf_p = unary(
    "erf", FLOATING, numpy=in_float64(erf64), stablehlo=in_float32_stablehlo("chlo.erf"),
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(_gauss(x), _SLOPE)), cost=costs.special,
)  # fmt: skip

erfc_p = unary(
    "erfc", FLOATING, numpy=in_float64(erfc64), stablehlo=in_float32_stablehlo("chlo.erfc"),
    jvp=lambda x_dot, y, x: mul(x_dot, scaled(_gauss(x), -_SLOPE)), cost=costs.special,
)  # fmt: skip

erf_inv_p = unary(
    "erf_inv", FLOATING, numpy=_erf_inv_numpy,
    stablehlo=in_float32_stablehlo("chlo.erf_inv"),
    # 1 / erf'(y)
    jvp=lambda x_dot, y, x: mul(x_dot, mul(scalar_like(y, 1 / _SLOPE),
                                           bind("exp", bind("square", y)))),
    cost=costs.special,
)  # fmt: skip
