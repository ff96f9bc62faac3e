"""The logarithm of the gamma function and its derivatives: lgamma, digamma, polygamma, zeta.

    lgamma(x) = log |Gamma(x)|,   digamma = lgamma',   polygamma(m, x) = digamma^(m)(x),
    zeta(s, q) = sum_{k >= 0} (q + k)^-s        (Hurwitz)

lgamma and digamma by Chebyshev series near their zeros and by Stirling's series far out (DLMF
5.11), zeta by the Euler-Maclaurin formula (DLMF 25.11.5), for negative q by the sum over all whole
numbers, which is periodic. Poles and infinities are as SciPy has them: zeta is inf at all poles.
Semantics: CHLO, ops lgamma, digamma, polygamma, zeta.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.primitives import costs
from xnp.primitives.chebyshev import DIGAMMA, DIGAMMA_ROOT, LGAMMA
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.formula_derivatives import derivatives_of, with_parameters
from xnp.primitives.operations import add, bind, mul, neg, scalar_like, scaled
from xnp.primitives.special_densities import gamma_shifted, stirling_error
from xnp.primitives.table import FLOATING, binary, unary
from xprim.errors import UndefinedRuleError, message

__all__ = ()

# B_2k; B_2k / (2k (2k - 1)) and B_2k / 2k are the coefficients of Stirling's series
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
              43867 / 798, -174611 / 330)  # fmt: skip
_STIRLING = tuple([b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)])
_DIGAMMA_SERIES = tuple([b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)])
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _in_powers_of_inverse_square(m: Any, x: Any, coefficients: tuple[float, ...]) -> Any:
    z = 1.0 / (x * x)
    first, *others = coefficients[m.precision.stirling_terms - 1 :: -1]
    result = first + 0.0 * z
    for c in others:
        result = result * z + c
    return result


def lgamma_positive(m: Any, x: Any) -> Any:
    """Return lgamma(x) for x >= 3/4, with all digits near its zeros 1 and 2."""
    start = m.precision.stirling_start
    far = m.maximum(x, start)
    outer = (far - 0.5) * (m.log(far) - 1.0) + (_HALF_LOG_2PI - 0.5)
    outer = outer + _in_powers_of_inverse_square(m, far, _STIRLING) / far
    inner = m.minimum(x, start)
    product = 1.0 + 0.0 * inner
    for _ in range(int(start) - 2):
        above = inner > 2.25
        inner = m.where(above, inner - 1.0, inner)
        product = m.where(above, product * inner, product)
    return m.where(x > start, outer, lgamma1p(m, inner - 1.0) + m.log(product))


def lgamma1p(m: Any, x: Any) -> Any:
    """Return lgamma(1 + x) for -1/4 <= x <= 5/4, with all digits for small x too."""
    return x * (x - 1.0) * m.chebyshev((x - 0.5) * (4.0 / 3.0), LGAMMA)


def lgamma(m: Any, x: Any) -> Any:
    """Return log |Gamma(x)|; infinite at 0, -1, -2, ..."""
    # by recurrence near 0, where 1 - x would round, by reflection (DLMF 5.5.3) below
    near_zero = (x > -0.25) & (x < 0.75)
    reflected = x <= -0.25
    value = lgamma_positive(m, m.where(near_zero, 1.0 + x, m.where(reflected, 1.0 - x, x)))
    fraction = x - m.floor(x + 0.5)
    sine = m.abs(m.sin(math.pi * fraction))
    log = m.log(m.where(near_zero, m.abs(x), sine))
    mirrored = math.log(math.pi) - log - value
    value = m.where(near_zero, value - log, m.where(reflected, mirrored, value))
    pole = (x <= 0.0) & (x == m.floor(x))
    return m.where(pole | (x == math.inf), math.inf, value)


def digamma_positive(m: Any, x: Any) -> Any:
    """Return digamma(x) for x >= 1/4, to rounding of its terms, which cancel at its zero."""
    total, far = 0.0 * x, x
    start = m.precision.stirling_start
    for _ in range(int(start)):
        below = far < start
        total = m.where(below, total - 1.0 / far, total)
        far = m.where(below, far + 1.0, far)
    inverse = 1.0 / far
    series = _in_powers_of_inverse_square(m, far, _DIGAMMA_SERIES) * (inverse * inverse)
    return m.log(far) - 0.5 * inverse - series + total


def digamma(m: Any, x: Any) -> Any:
    """Return lgamma'(x); at 0 infinite, of the other sign, at -1, -2, ... NaN."""
    near_zero = m.abs(x) < 0.5
    reflected = x <= -0.5
    y = m.where(near_zero, 1.0 + x, m.where(reflected, 1.0 - x, x))
    high, middle, low = DIGAMMA_ROOT
    inside = m.minimum(m.maximum(y, 1.0), 2.0)
    central = (((inside - high) - middle) - low) * m.chebyshev(2.0 * inside - 3.0, DIGAMMA)
    value = m.where((y >= 1.0) & (y <= 2.0), central, digamma_positive(m, y))
    angle = math.pi * (x - m.floor(x + 0.5))
    mirrored = value - math.pi * m.cos(angle) / m.sin(angle)
    value = m.where(near_zero, value - 1.0 / x, m.where(reflected, mirrored, value))
    value = m.where(x == math.inf, math.inf, value)
    return m.where((x < 0.0) & (x == m.floor(x)), math.nan, value)


def _zeta_times_power(m: Any, s: Any, q: Any) -> Any:
    """Return q^s zeta(s, q) = sum_{k >= 0} (1 + k / q)^-s for s > 1 and q > 0."""
    inverse, terms = 1.0 / q, m.precision.zeta_terms

    def step(m: Any, k: Any, s: Any, inverse: Any, total: Any) -> Any:
        return s, inverse, total + m.exp(-s * m.log1p(k * inverse))

    total = m.loop(None, step, (s, inverse, 1.0 + 0.0 * q), terms - 1)[2]
    # Euler and Maclaurin: sum of B_2j / (2j)! s (s + 1) ... (s + 2j - 2) w^(-s - 2j + 1), and so on
    count = float(terms)
    term, inverse = m.exp(-s * m.log1p(count * inverse)), 1.0 / (q + count)
    ratio = by_w = s * inverse
    rest, scale = (q + count) / (s - 1.0) + 0.5, 1.0
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        scale /= (2 * j) * (2 * j - 1)
        rest = rest + (bernoulli * scale) * ratio
        if j < len(_BERNOULLI):
            ratio = ratio * (by_w + (2 * j - 1) * inverse) * (by_w + (2.0 * j) * inverse)
    # for large s the rest is infinite, but not worth adding
    return total + m.where(term > 0.0, term * rest, 0.0)


def _is_even(m: Any, s: Any) -> Any:
    return m.floor(0.5 * s) == 0.5 * s


def _plain_zeta(m: Any, s: Any, q: Any, log_factor: Any) -> Any:
    return m.exp(log_factor - s * m.log(q)) * m.narrowed(_zeta_times_power, s, q)


def _difference(m: Any, s: Any, p: Any, q: Any, log_factor: Any) -> Any:
    return _plain_zeta(m, s, p, log_factor) - _plain_zeta(m, s, q, log_factor)


def _zeta_at(m: Any, s: Any, q: Any, log_factor: Any) -> Any:
    """Return exp(log_factor) zeta(s, q), with the values at poles and infinities.

    For q < 0, with whole s and g the fraction of -q, the sum over all whole k is periodic, so

        zeta(s, q) = zeta(s, 1 - g) + (-1)^s (zeta(s, g) - zeta(s, 1 - q)).
    """
    pole = (q <= 0.0) & (m.floor(q) == q)
    plain = (s > 1.0) & (s < math.inf) & (q < math.inf) & ~pole
    negative = (q < 0.0) & (m.floor(s) == s) & plain
    plain = plain & (negative | (q > 0.0))
    fraction = -q - m.floor(-q)
    s0 = m.where(plain, s, 2.0)
    q0 = m.where(plain, m.where(negative, 1.0 - fraction, q), 1.0)
    value = _plain_zeta(m, s0, q0, log_factor)
    mirrored = m.if_any(negative, _difference, (s0, fraction, 1.0 - q, log_factor))
    value = value + m.where(_is_even(m, s), mirrored, -mirrored)
    value = m.where(plain, value, math.nan)
    outside = m.where(q > 1.0, 0.0, m.where(q == 1.0, 1.0, math.inf))
    value = m.where((s == math.inf) & (q > 0.0), outside, value)
    value = m.where((s > 1.0) & (q == math.inf), 0.0, value)
    return m.where(((s > 1.0) & pole) | ((s == 1.0) & (q == q)), math.inf, value)


def zeta(m: Any, s: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function.

    NaN for s < 1, and for q < 0 with a fractional s; inf for s = 1, and at q = 0, -1, -2, ...
    """
    return _zeta_at(m, s, q, 0.0 * s)


def polygamma(m: Any, n: Any, x: Any) -> Any:
    """Return (-1)^(n+1) n! zeta(n + 1, x) for n = 1, 2, ... and digamma(x) for n = 0."""
    domain = (n >= 0.0) & (n == m.floor(n)) & (n < math.inf)
    order = m.minimum(m.where(domain, n, 1.0), 1e300) + 1.0  # its products are finite
    large = m.maximum(order - 1.0, 10.0)
    stirling = (large + 0.5) * m.log(large) - large + _HALF_LOG_2PI + stirling_error(large)
    small = gamma_shifted(m, m.minimum(order - 1.0, 10.0))[0]
    value = _zeta_at(m, order, x, m.where(order > 11.0, stirling, small))
    value = m.where(_is_even(m, n), -value, value)
    return m.where(domain, m.where(n == 0.0, m.narrowed(digamma, x), value), math.nan)


# --- primitives ---------------------------------------------------------------------------------


def unsupported(function: str, operand: str) -> Any:
    """Return the formula of a derivative that no formula is known for: an error that says so."""

    def formula(*_: Any, **__: Any) -> Any:
        raise UndefinedRuleError(message(
            f"{function}", f"the derivative with respect to {operand} is not available.",
            hint=f"apply stop_gradient to {operand} if it is a constant of the program",
        ))  # fmt: skip

    return formula


lgamma_p = unary(
    "lgamma", FLOATING, numpy=numpy_rule(lgamma), stablehlo=stablehlo_rule(lgamma, narrow=True),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("digamma", x)),
    cost=costs.special,
)  # fmt: skip

digamma_p = unary(
    "digamma", FLOATING, numpy=numpy_rule(digamma),
    stablehlo=stablehlo_rule(digamma, narrow=True),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("polygamma", scalar_like(x, 1), x)),
    cost=costs.special,
)  # fmt: skip

polygamma_p = binary(
    "polygamma", FLOATING, numpy=numpy_rule(polygamma),
    stablehlo=stablehlo_rule(polygamma),
    jvp=(unsupported("polygamma", "m"),
         lambda x_dot, y, m, x: mul(x_dot, bind("polygamma", add(m, scalar_like(m, 1)), x))),
    cost=costs.special,
)  # fmt: skip


def _zeta_of_order(m: Any, s: Any, q: Any) -> Any:
    """Return zeta where it has derivatives in s: for q < 0 it is real at whole s alone."""
    return m.where(q < 0.0, math.nan, zeta(m, s, q))


def _zeta_slope(derivative: Any, orders: Any, s: Any, q: Any) -> Any:
    """d/dq zeta(s, q) = -s zeta(s + 1, q), and its derivatives in s by Leibniz's rule."""
    (n,) = orders
    later = add(s, scalar_like(s, 1))
    slope = mul(neg(s), derivative((n,), (later, q)))
    return add(slope, scaled(derivative((n - 1,), (later, q)), -float(n))) if n else slope


zeta_p = with_parameters("zeta", zeta, 1, _zeta_slope)
zeta_derivative_p = derivatives_of("zeta_derivative", _zeta_of_order, 1, _zeta_slope)
