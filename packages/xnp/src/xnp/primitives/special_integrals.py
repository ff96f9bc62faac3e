"""Integrals of elementary functions: expi, exp1, expn, spence, and those of sine and cosine.

    expi(x) = int_-inf^x e^t / t dt,          expn(n, x) = int_1^inf e^(-x t) / t^n dt
    spence(x) = int_1^x log(t) / (1 - t) dt
    sine_integral(x) = int_0^x sin(t) / t dt,         cosine_integral(x) = -int_x^inf cos(t) / t dt
    fresnel_sine(x) = int_0^x sin(pi t^2 / 2) dt,     fresnel_cosine alike

Near 0 by power series, far out by continued fractions (DLMF 6.9.1, 8.19.17, 7.9.4) with Lentz's
method as modified by Thompson and Barnett (1986), in real and imaginary parts where they are
complex; expi beyond 40 by its asymptotic series (DLMF 6.12.2).

Neighbours: `special_incomplete` has the incomplete gamma functions, which expn is one of.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.operations import add, bind, div, mul, neg, scalar_like, scaled, selected, sub
from xnp.primitives.special_gamma import digamma, lgamma, unsupported
from xnp.primitives.table import FLOATING, binary, unary

__all__ = ()

_EULER = float(np.euler_gamma)
_MOST_TERMS = 150


# --- exponentials ---------------------------------------------------------------------------------


def _ein(m: Any, x: Any) -> Any:
    """Return sum_{k > 0} x^k / (k k!), which is expi(x) less Euler's constant and log |x|."""

    def unfinished(m: Any, x: Any, power: Any, total: Any) -> Any:
        return m.abs(power) > m.precision.eps * m.abs(total)

    def step(m: Any, n: Any, x: Any, power: Any, total: Any) -> Any:
        power = power * (x / n)
        return x, power, total + power / n

    start = (x, 1.0 + 0.0 * x, 0.0 * x)
    return m.loop(unfinished, step, start, _MOST_TERMS, wide=True)[2]


def _expn_fraction(m: Any, n: Any, x: Any) -> Any:
    """Return e^x expn(n, x) for x >= 1."""
    b = x + n
    d = 1.0 / b

    def unfinished(m: Any, *state: Any) -> Any:
        return state[-1] > m.precision.eps

    def step(m: Any, k: Any, n: Any, b: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        a = -k * (n - 1.0 + k)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        return n, b, c, d, h * (c * d), m.abs(c * d - 1.0)

    start = (n, b, 1e30 + 0.0 * b, d, d, 1.0 + 0.0 * b)
    return m.loop(unfinished, step, start, _MOST_TERMS, wide=True)[4]


def _expn_series(m: Any, n: Any, x: Any) -> Any:
    """Return expn(n, x) for n >= 1 and 0 < x <= 1 (DLMF 8.19.8)."""
    order = n - 1.0

    def unfinished(m: Any, order: Any, x: Any, power: Any, total: Any) -> Any:
        return m.abs(power) > 1e-18

    def step(m: Any, k: Any, order: Any, x: Any, power: Any, total: Any) -> Any:
        gap = k - order
        power = power * (-x / k)
        return order, x, power, total - m.where(gap == 0.0, 0.0, power / m.where(gap == 0.0, 1.0,
                                                                                 gap))  # fmt: skip

    first = m.where(order == 0.0, 0.0, 1.0 / m.where(order == 0.0, 1.0, order))
    total = m.loop(unfinished, step, (order, x, 1.0 + 0.0 * x, first), 30, wide=True)[3]
    size = m.exp(order * m.log(x) - lgamma(m, n))
    sign = m.where(m.floor(0.5 * order) == 0.5 * order, 1.0, -1.0 + 0.0 * x)
    return total + sign * size * (digamma(m, n) - m.log(x))


def expn(m: Any, n: Any, x: Any) -> Any:
    """Return the exponential integral of whole order n >= 0, at x >= 0."""
    domain = (x >= 0.0) & (n >= 0.0) & (n == m.floor(n)) & (n < math.inf)
    order, y = m.where(domain, n, 1.0), m.minimum(m.where(domain, x, 1.0), 800.0)
    fraction = m.exp(-y) * _expn_fraction(m, order, m.maximum(y, 1.0))
    inner = m.minimum(m.maximum(y, 1e-300), 1.0)
    series = _expn_series(m, m.maximum(order, 1.0), inner)
    series = m.where(order == 0.0, m.exp(-inner) / inner, series)
    value = m.where(y > 1.0, fraction, series)
    at_zero = m.where(order > 1.0, 1.0 / m.maximum(order - 1.0, 1.0), math.inf)
    value = m.where(y == 0.0, at_zero, value)
    return m.where(domain, value, math.nan)


def _exp1(m: Any, x: Any) -> Any:
    """Return expn(1, x) for x > 0."""
    y = m.minimum(x, 800.0)
    fraction = m.exp(-y) * _expn_fraction(m, 1.0 + 0.0 * y, m.maximum(y, 1.0))
    inner = m.minimum(y, 1.0)
    return m.where(y > 1.0, fraction, -_EULER - m.log(inner) - _ein(m, -inner))


# The zero of expi, as the sum of two floats (computed with mpmath).
_ROOT = (0.37250741078136663, 1.3140183414386028e-17)


def _expi_near_root(m: Any, x: Any) -> Any:
    """Return expi(x) for x near its zero r: a sum of differences, log(x / r) and (x^k - r^k)."""
    gap = (x - _ROOT[0]) - _ROOT[1]
    total, power, sums = m.log1p(gap * (1 / _ROOT[0])), 1.0, 1.0 + 0.0 * x
    factorial = 1.0
    for k in range(1, 22):
        factorial *= k
        total = total + gap * sums * (1.0 / (k * factorial))  # (x^k - r^k) / (x - r) is `sums`
        power *= _ROOT[0]
        sums = sums * x + power
    return total


def _expi_far(m: Any, x: Any) -> Any:
    """Return expi(x) for x >= 40."""
    y = m.minimum(x, 1500.0)  # infinite there, and 1 / x no subnormal, which programs flush
    inverse, total = 1.0 / y, 1.0 + 0.0 * y
    for k in range(38, 0, -1):
        total = 1.0 + k * inverse * total
    half = m.exp(0.5 * y)
    return half * (inverse * total) * half


def expi(m: Any, x: Any) -> Any:
    """Return the exponential integral Ei(x), for positive x its principal value."""
    size = m.abs(x)
    y = m.where(size > 0.0, size, 1.0)
    near = m.abs(x - _ROOT[0]) < 0.15
    inner = m.minimum(y, 40.0)
    value = m.where(y > 40.0, _expi_far(m, m.maximum(y, 40.0)),
                    _EULER + m.log(inner) + _ein(m, inner))  # fmt: skip
    value = m.where(near, _expi_near_root(m, m.where(near, x, 0.4)), value)
    value = m.where(x < 0.0, -_exp1(m, y), value)
    value = m.where(x == 0.0, -math.inf, value)
    return m.where(x == math.inf, math.inf, m.where(x == x, value, x))


def _expn_slope(n: Any, x: Any) -> Any:
    """Return -expn(n - 1, x), where expn(-1, x) = e^-x (1 + x) / x^2."""
    one, first = scalar_like(n, 1), bind("eq", n, scalar_like(n, 0))
    lower = bind("expn", selected(first, one, sub(n, one)), x)
    below = div(mul(bind("exp", neg(x)), add(x, scalar_like(x, 1))), mul(x, x))
    return neg(selected(first, below, lower))


# --- the dilogarithm ------------------------------------------------------------------------------

# B_2k / (2k + 1)!, k = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
              -174611 / 330)  # fmt: skip
_SPENCE = tuple([b / math.factorial(2 * k + 1) for k, b in enumerate(_BERNOULLI, 1)])
_ZETA_2 = math.pi**2 / 6


def _spence_centre(m: Any, x: Any) -> Any:
    """Return spence(x) for 1/2 <= x <= 2: in u = -log(x), u - u^2/4 + sum B_2k u^(2k+1)/(2k+1)!."""
    u = -m.log(x)
    square, total = u * u, _SPENCE[-1] + 0.0 * u
    for c in _SPENCE[-2::-1]:
        total = total * square + c
    return u * (1.0 - 0.25 * u + square * total)


def spence(m: Any, x: Any) -> Any:
    """Return Spence's function, the dilogarithm Li_2(1 - x) (DLMF 25.12.3, 25.12.6)."""
    inverted = x > 2.0
    y = m.where(inverted, 1.0 / m.maximum(x, 2.0), x)
    low = y < 0.5
    safe = m.where(low & (y > 0.0), y, 0.25)
    centre = _spence_centre(m, m.where(low, 1.0 - safe, m.minimum(m.maximum(y, 0.5), 2.0)))
    value = m.where(low, _ZETA_2 - m.log(safe) * m.log1p(-safe) - centre, centre)
    value = m.where(y == 0.0, _ZETA_2, value)
    log = m.log(m.maximum(x, 1.0))
    value = m.where(inverted, -0.5 * log * log - value, value)
    return m.where(x >= 0.0, value, math.nan)


def _spence_slope(x: Any) -> Any:
    """Return log(x) / (1 - x), at 1 its limit with the next term, -1 + (x - 1) / 2."""
    gap = sub(x, scalar_like(x, 1))
    near = bind("lt", bind("abs", gap), scalar_like(x, 1e-8))
    safe = selected(near, scalar_like(x, 1), gap)
    quotient = neg(div(bind("log", selected(near, scalar_like(x, 2), x)), safe))
    return selected(near, sub(scaled(gap, 0.5), scalar_like(x, 1)), quotient)


# --- sine and cosine ------------------------------------------------------------------------------


def _divided(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """Return (a + i b) / (c + i d)."""
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


def _complex_fraction(m: Any, real: Any, imaginary: Any, half: float) -> tuple[Any, Any]:
    """Return 1 / (z - n1 / (z + 2 - n2 / (z + 4 - ...))) with n_k = k (k - half), z complex."""
    zero = 0.0 * imaginary
    d = _divided(1.0 + zero, zero, real + zero, imaginary)

    def unfinished(m: Any, *state: Any) -> Any:
        return state[-1] > m.precision.eps

    def step(m: Any, k: Any, x: Any, y: Any, c: Any, ci: Any, d: Any, di: Any, h: Any, hi: Any,
             change: Any) -> Any:  # fmt: skip
        a = -k * (k - half)
        x = x + 2.0
        d, di = _divided(1.0, 0.0 * d, a * d + x, a * di + y)
        c, ci = _divided(a, 0.0 * c, c, ci)
        c, ci = c + x, ci + y
        p, q = c * d - ci * di, c * di + ci * d
        return x, y, c, ci, d, di, h * p - hi * q, h * q + hi * p, m.abs(p - 1.0) + m.abs(q)

    start = (real + zero, imaginary, 1e30 + zero, zero, *d, *d, 1.0 + zero)
    result = m.loop(unfinished, step, start, _MOST_TERMS, wide=True)
    return result[6], result[7]


_SICI_NEAR = 3.5


def _auxiliary(m: Any, x: Any) -> tuple[Any, Any]:
    """Return (f, g) with e^(ix) E_1(ix) = g - i f for x >= 3.5 (DLMF 6.2.17, 6.5.5)."""
    y = m.minimum(x, 1e15)
    real, imaginary = _complex_fraction(m, 1.0 + 0.0 * y, y, 0.0)
    return -imaginary, real


def sine_integral(m: Any, x: Any) -> Any:
    """Return Si(x), which is pi/2 at infinity."""
    size = m.abs(x)
    near = m.minimum(size, _SICI_NEAR)
    square, total, term = near * near, 0.0 * near, near
    for k in range(16):
        total = total + term * (1.0 / (2 * k + 1))
        term = term * (square * (-1.0 / ((2 * k + 2) * (2 * k + 3))))
    far = m.minimum(m.maximum(size, _SICI_NEAR), 1e300)
    f, g = _auxiliary(m, far)
    outer = 0.5 * math.pi - m.cos(far) * f - m.sin(far) * g
    value = m.where(size <= _SICI_NEAR, total, outer)
    return m.where(x < 0.0, -value, m.where(size == size, value, x))


def cosine_integral(m: Any, x: Any) -> Any:
    """Return Ci(|x|); -inf at 0, NaN at -inf, as SciPy has it."""
    is_least = x == -math.inf
    x = m.abs(x)
    positive = x > 0.0
    near = m.minimum(m.where(positive, x, 1.0), _SICI_NEAR)
    square, total, term = near * near, 0.0 * near, 1.0 + 0.0 * near
    for k in range(1, 16):
        term = term * (square * (-1.0 / ((2 * k - 1) * (2 * k))))
        total = total + term * (1.0 / (2 * k))
    inner = _EULER + m.log(near) + total
    far = m.minimum(m.maximum(m.where(positive, x, 1.0), _SICI_NEAR), 1e300)
    f, g = _auxiliary(m, far)
    value = m.where(x <= _SICI_NEAR, inner, m.sin(far) * f - m.cos(far) * g)
    value = m.where(x == math.inf, 0.0, value)
    value = m.where(positive, value, m.where(x == 0.0, -math.inf, math.nan))
    return m.where(is_least, math.nan, value)


_FRESNEL_NEAR = 1.6


def _turns(m: Any, x: Any) -> Any:
    """Return x^2 modulo 4 for x up to 1e8: whole and fraction apart, so that no digit is lost."""
    c = m.floor(x + 0.5)
    rest = x - c
    d = m.floor(rest * 2.0**25 + 0.5) * 2.0**-25
    odd = m.where(m.floor(0.5 * c) == 0.5 * c, 0.0, 1.0 + 0.0 * c)
    product = 2.0 * c * d
    product = product - 4.0 * m.floor(0.25 * product)
    total = odd + product + 2.0 * c * (rest - d) + rest * rest
    return total - 4.0 * m.floor(0.25 * total)


def _fresnel_far(m: Any, x: Any) -> tuple[Any, Any]:
    """Return the sine and cosine integrals for x >= 1.6, by erfc (DLMF 7.5.8, 7.9.4)."""
    x = m.minimum(x, 1e8)
    square = math.pi * x * x
    u, v = _complex_fraction(m, 0.5 + 0.0 * x, -0.5 * square, 0.5)
    # C + i S = (1 + i)/2 (1 - e^(i pi x^2 / 2) (1 - i) x (u + i v) / 2)
    p, q = 0.5 * x * (u + v), 0.5 * x * (v - u)
    angle = 0.5 * math.pi * _turns(m, x)
    cosine, sine = m.cos(angle), m.sin(angle)
    r, s = 1.0 - (cosine * p - sine * q), -(cosine * q + sine * p)
    return 0.5 * (r + s), 0.5 * (r - s)


def _fresnel(m: Any, x: Any, first: int) -> Any:
    """Return the sine integral (first = 1) or the cosine integral (0)."""
    size = m.abs(x)
    near = m.minimum(size, _FRESNEL_NEAR)
    phase = (0.5 * math.pi) * near * near
    term = near if first == 0 else near * phase
    total = 0.0 * near
    for k in range(first, 34, 2):
        total = total + term * (1.0 / (2 * k + 1))
        term = term * (phase * phase * (-1.0 / ((k + 1) * (k + 2))))
    outer = _fresnel_far(m, m.maximum(size, _FRESNEL_NEAR))[1 - first]
    value = m.where(size <= _FRESNEL_NEAR, total, outer)
    value = m.where(size == math.inf, 0.5, value)
    return m.where(x < 0.0, -value, value)


def fresnel_sine(m: Any, x: Any) -> Any:
    """Return S(x), which is 1/2 at infinity."""
    return _fresnel(m, x, 1)


def fresnel_cosine(m: Any, x: Any) -> Any:
    """Return C(x), which is 1/2 at infinity."""
    return _fresnel(m, x, 0)


def _sinc(x: Any) -> Any:
    """Return sin(x) / x, near 0 by 1 - x^2 / 6."""
    near = bind("lt", bind("abs", x), scalar_like(x, 1e-3))
    safe = selected(near, scalar_like(x, 1), x)
    series = sub(scalar_like(x, 1), scaled(mul(x, x), 1 / 6))
    return selected(near, series, div(bind("sin", safe), safe))


# --- primitives -----------------------------------------------------------------------------------

expi_p = unary(
    "expi", FLOATING, numpy=numpy_rule(expi), stablehlo=stablehlo_rule(expi),
    jvp=lambda x_dot, y, x: mul(x_dot, div(bind("exp", x), x)), cost=costs.special,
)  # fmt: skip

expn_p = binary(
    "expn", FLOATING, numpy=numpy_rule(expn), stablehlo=stablehlo_rule(expn),
    jvp=(unsupported("expn", "n"), lambda x_dot, y, n, x: mul(x_dot, _expn_slope(n, x))),
    cost=costs.special,
)  # fmt: skip

spence_p = unary(
    "spence", FLOATING, numpy=numpy_rule(spence), stablehlo=stablehlo_rule(spence),
    jvp=lambda x_dot, y, x: mul(x_dot, _spence_slope(x)), cost=costs.special,
)  # fmt: skip

sine_integral_p = unary(
    "sine_integral", FLOATING, numpy=numpy_rule(sine_integral),
    stablehlo=stablehlo_rule(sine_integral),
    jvp=lambda x_dot, y, x: mul(x_dot, _sinc(x)), cost=costs.special,
)  # fmt: skip

cosine_integral_p = unary(
    "cosine_integral", FLOATING, numpy=numpy_rule(cosine_integral),
    stablehlo=stablehlo_rule(cosine_integral),
    jvp=lambda x_dot, y, x: mul(x_dot, div(bind("cos", x), x)), cost=costs.special,
)  # fmt: skip

fresnel_sine_p = unary(
    "fresnel_sine", FLOATING, numpy=numpy_rule(fresnel_sine),
    stablehlo=stablehlo_rule(fresnel_sine),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("sin", scaled(mul(x, x), 0.5 * math.pi))),
    cost=costs.special,
)  # fmt: skip

fresnel_cosine_p = unary(
    "fresnel_cosine", FLOATING, numpy=numpy_rule(fresnel_cosine),
    stablehlo=stablehlo_rule(fresnel_cosine),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("cos", scaled(mul(x, x), 0.5 * math.pi))),
    cost=costs.special,
)  # fmt: skip
