"""The logarithm of the gamma function and its derivatives: lgamma, digamma, polygamma, zeta.

    lgamma(x) = log |Gamma(x)|,   digamma = lgamma',   polygamma(m, x) = digamma^(m)(x),
    zeta(s, q) = sum_{k >= 0} (q + k)^-s        (Hurwitz)

On the host all are computed in float64: lgamma and digamma by Chebyshev series near their zeros and
by Stirling's series far out (DLMF 5.11), zeta by the Euler-Maclaurin formula (DLMF 25.11.5).
Semantics: CHLO, ops lgamma, digamma, polygamma, zeta.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.chebyshev import DIGAMMA, DIGAMMA_ROOT, LGAMMA, chebyshev
from xnp.primitives.shorthand import add, bind, mul, neg, scalar_like
from xnp.primitives.special_error import in_float32_stablehlo, in_float64
from xnp.primitives.table import FLOATING, binary, unary

# B_2k / (2k (2k - 1)) and B_2k / 2k: the coefficients of Stirling's series
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
              43867 / 798, -174611 / 330)  # fmt: skip
_STIRLING = tuple([b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)])
_DIGAMMA_SERIES = tuple([b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)])
_FAR = 12.0  # from here on the series above are exact in float64
_MAX_ZETA_STEPS = 10_000


def _in_powers_of_inverse_square(x: Any, coefficients: tuple[float, ...]) -> Any:
    z = 1.0 / (x * x)
    result = coefficients[-1] + 0.0 * z
    for c in coefficients[-2::-1]:
        result = result * z + c
    return result


def stirling_error(x: Any) -> Any:
    """Return lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x >= 8 or so."""
    return _in_powers_of_inverse_square(x, _STIRLING) / x


def lgamma64(x: Any) -> Any:
    """Return log |Gamma(x)| of float64 values; infinite at 0, -1, -2, ..."""
    reflected = x < 0.5
    positive = np.where(reflected, 1.0 - x, x)
    near_zero = reflected & (np.abs(x) < 0.5)  # by recurrence: 1 - x would round
    positive = np.where(near_zero, 1.0 + x, positive)
    value = _lgamma_positive(positive)
    fraction = x - np.round(x)
    mirrored = math.log(math.pi) - np.log(np.abs(np.sin(math.pi * fraction))) - value
    recurred = value - np.log(np.abs(x))
    value = np.where(near_zero, recurred, np.where(reflected, mirrored, value))
    value = np.where((x <= 0) & (x == np.floor(x)), np.inf, value)
    return np.where(np.isinf(x), np.inf, value)


def _lgamma_positive(x: Any) -> Any:
    """Return lgamma(x) for x >= 1/2."""
    far = np.maximum(x, _FAR)
    outer = (far - 0.5) * np.log(far) - far + 0.5 * math.log(2 * math.pi) + stirling_error(far)
    inner = np.minimum(x, _FAR)
    product = np.ones_like(inner)
    for _ in range(10):  # brings 12 down to 2.5
        above = inner > 2.5
        inner = np.where(above, inner - 1.0, inner)
        product = np.where(above, product * inner, product)
    near = (inner - 1.0) * (inner - 2.0) * chebyshev(inner - 1.5, LGAMMA)
    return np.where(x > _FAR, outer, near + np.log(product))


def digamma64(x: Any) -> Any:
    """Return digamma of float64 values; -inf at 0 of either sign, NaN at -1, -2, ..."""
    reflected = x < 0.5
    y = np.where(reflected, 1.0 - x, x)
    near_zero = reflected & (np.abs(x) < 0.5)
    y = np.where(near_zero, 1.0 + x, y)
    high, low = DIGAMMA_ROOT
    inside = np.clip(y, 1.0, 2.0)
    central = ((inside - high) - low) * chebyshev(2.0 * inside - 3.0, DIGAMMA)
    total, far = np.zeros_like(y), np.maximum(y, 0.5)
    for _ in range(int(_FAR)):
        below = far < _FAR
        total = np.where(below, total - 1.0 / far, total)
        far = np.where(below, far + 1.0, far)
    series = _in_powers_of_inverse_square(far, _DIGAMMA_SERIES) / (far * far)
    value = np.where((y >= 1) & (y <= 2), central, np.log(far) - 0.5 / far - series + total)
    fraction = x - np.round(x)
    mirrored = value - math.pi / np.tan(math.pi * fraction)
    value = np.where(near_zero, value - 1.0 / x, np.where(reflected, mirrored, value))
    return np.where((x <= 0) & (x == np.floor(x)), np.where(x == 0, -np.inf, np.nan), value)


def zeta64(s: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function of float64 values.

    NaN for s < 1, and for q < 0 with a fractional s; infinite for s = 1. At q = 0, -1, -2, ... a
    term is infinite: the result is inf for even s, NaN for odd s, where it has no sign.
    """
    s, q = np.broadcast_arrays(s, q)
    pole = (q <= 0) & (q == np.floor(q))
    bad = (s < 1) | ((q < 0) & (s != np.floor(s))) | np.isnan(q) | np.isnan(s)
    plain = ~bad & ~pole & (s > 1)
    s0, w = np.where(plain, s, 2.0), np.where(plain, q, 1.0)
    total = np.zeros_like(w)
    for _ in range(_MAX_ZETA_STEPS):
        # the expansion is in powers of (s + 2k) / (2 pi w)
        term = np.power(w, -s0)
        below = (w < _FAR + s0) & ((w <= 1.0) | (term > 1e-18 * np.abs(total)))
        if not below.any():
            break
        total = np.where(below, total + term, total)
        w = np.where(below, w + 1.0, w)
    # what is left is not worth adding where the terms have become small before
    total = total + np.where(w >= _FAR + s0, _zeta_remainder(s0, w), 0.0)
    at_pole = np.where(s == 2.0 * np.floor(s / 2.0), np.inf, np.nan)
    value = np.where(plain, total, np.where(s == 1, np.inf, at_pole))
    value = np.where(np.isinf(s) & ~pole & (q > 0), np.where(q > 1, 0.0, np.where(
        q == 1, 1.0, np.inf)), value)  # fmt: skip
    return np.where(bad, np.nan, value)


def _zeta_remainder(s: Any, w: Any) -> Any:
    """Return sum_{k >= 0} (w + k)^-s by Euler and Maclaurin's formula, for w > s + 12."""
    power = np.power(w, -s)
    total = power * (w / (s - 1.0)) + 0.5 * power
    # sum of B_2k / (2k)! s (s + 1) ... (s + 2k - 2) w^(-s - 2k + 1)
    factor, scale = s * power / w, 1.0
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        scale /= (2 * k) * (2 * k - 1)
        total = total + bernoulli * scale * factor
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (w * w)
    return total


def polygamma64(m: Any, x: Any) -> Any:
    """Return (-1)^(m+1) m! zeta(m + 1, x) for m = 1, 2, ... and digamma(x) for m = 0."""
    m, x = np.broadcast_arrays(m, x)
    sign = np.where(m == 2.0 * np.floor(m / 2.0), -1.0, 1.0)
    value = sign * np.exp(lgamma64(m + 1.0)) * zeta64(m + 1.0, x)
    value = np.where(m == 0, digamma64(x), value)
    return np.where((m < 0) | (m != np.floor(m)), np.nan, value)


# --- primitives ---------------------------------------------------------------------------------


def unsupported(function: str, operand: str) -> Any:
    """Return the formula of a derivative that no formula is known for: an error that says so."""

    def formula(*_: Any, **__: Any) -> Any:
        raise ValueError(
            f"{function}: the derivative with respect to {operand} is not available."
            f"\n  hint      apply stop_gradient to {operand} if it is a constant of the program"
        )

    return formula


lgamma_p = unary(
    "lgamma", FLOATING, numpy=in_float64(lgamma64), stablehlo=in_float32_stablehlo("chlo.lgamma"),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("digamma", x)), cost=costs.special,
)  # fmt: skip

digamma_p = unary(
    "digamma", FLOATING, numpy=in_float64(digamma64),
    stablehlo=in_float32_stablehlo("chlo.digamma"),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("polygamma", scalar_like(x, 1), x)), cost=costs.special,
)  # fmt: skip

polygamma_p = binary(
    "polygamma", FLOATING, numpy=in_float64(polygamma64),
    stablehlo=in_float32_stablehlo("chlo.polygamma"),
    jvp=(unsupported("polygamma", "m"),
         lambda x_dot, y, m, x: mul(x_dot, bind("polygamma", add(m, scalar_like(m, 1)), x))),
    cost=costs.special,
)  # fmt: skip

zeta_p = binary(
    "zeta", FLOATING, numpy=in_float64(zeta64), stablehlo=in_float32_stablehlo("chlo.zeta"),
    # d/dq sum (q + k)^-s = -s zeta(s + 1, q)
    jvp=(unsupported("zeta", "x"),
         lambda q_dot, z, s, q: mul(
             q_dot, mul(neg(s), bind("zeta", add(s, scalar_like(s, 1)), q)))),
    cost=costs.special,
)  # fmt: skip
