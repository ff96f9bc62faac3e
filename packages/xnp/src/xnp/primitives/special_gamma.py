"""The gamma function and its relatives: lgamma, digamma, zeta, beta, incomplete gamma.

Each function is a formula that is evaluated by NumPy on the host and written as StableHLO in
programs (`formula_backends`); its source stands beside it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs, formula_backends, table
from xnp.primitives.formula_backends import (
    DIGAMMA,
    LGAMMA,
    NarrowPrecision,
    Precision,
    numpy_rule,
    stablehlo_rule,
)
from xnp.primitives.formula_derivatives import derivatives_of, with_parameters
from xnp.primitives.lowering_text import known_scalar
from xnp.primitives.table import FLOATING, add, binary, bind, mul, neg, scalar_like, select, sub
from xprim import ELEMENTWISE, Primitive, Zero, state, undefined
from xprim.contracts import Builder
from xprim.errors import UndefinedRuleError, message

__all__ = ()


# ----------------------------------------------------------------------------- special densities
# What the incomplete gamma and beta functions share: logarithms without cancellation, and tails.
#
# For large parameters the densities x^a e^-x / Gamma(a + 1) and x^a (1 - x)^b / B(a, b) are near
# normal; their logarithms are sums of large terms that cancel, unless they are taken about the
# mode. The tail of such a density is an integral of exp(-g(t)) with g convex, which `tail` takes
# by the Gauss-Legendre rule over the stretch where the integrand is worth adding: 28 points are
# enough for float64, 14 for float32 (Press et al., Numerical Recipes, 3rd edition, 6.2, do so
# with 18).

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@functools.cache
def _rule(points: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return tuple((0.5 + 0.5 * nodes).tolist()), tuple((0.5 * weights).tolist())


def bend(m: Any, x: Any, log: Any) -> Any:
    """Return (log(1 + x) - x) / x^2; its operands are those of `log1p_less`."""
    near, inner, outer = _near_and_far(m, x)
    return m.where(near, _bend_near(m, inner), (log - outer) / outer / outer)


def log1p_less(m: Any, x: Any, log: Any) -> Any:
    """Return log(1 + x) - x.

    Args:
      m: the functions of formulas.
      x: the operand.
      log: log(1 + x), as well as it is known; only used beyond 0.4.
    """
    near, inner, outer = _near_and_far(m, x)
    return m.where(near, inner * inner * _bend_near(m, inner), log - outer)


def _near_and_far(m: Any, x: Any) -> tuple[Any, Any, Any]:
    near = m.abs(x) < 0.4
    return near, m.where(near, x, 0.0), m.where(near, 1.0, x)


def _bend_near(m: Any, x: Any) -> Any:
    """Return (log(1 + x) - x) / x^2 by log(1 + x) = 2 artanh(r), r = x / (2 + x)."""
    inverse = 1.0 / (2.0 + x)
    r = x * inverse
    square = r * r
    last = 27 if m.precision is Precision else 11
    series = 1 / last + 0.0 * square
    for k in range(last - 2, 1, -2):
        series = series * square + 1 / k
    return (2.0 * r * inverse * series - 1.0) * inverse


def stirling_error(a: Any) -> Any:
    """Return lgamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a >= 10 (DLMF 5.11.1)."""
    z = 1.0 / (a * a)
    series = 1 / 156 + 0.0 * z  # B_2k / (2k (2k - 1)), k = 7 ... 1
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * z + c
    return series / a


def log_less_digamma(a: Any) -> Any:
    """Return log(a) - digamma(a) for a >= 10 (DLMF 5.11.2)."""
    z = 1.0 / (a * a)
    series = -1 / 12 + 0.0 * z  # B_2k / 2k, k = 7 ... 1
    for c in (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12):
        series = series * z + c
    return 0.5 / a - series * z


def gamma_shifted(m: Any, a: Any) -> tuple[Any, Any]:
    """Return lgamma(1 + a) and digamma(1 + a) for 0 <= a <= 31, to rounding at a + 10."""
    product, derivative = a + 1.0, 1.0
    for k in range(2, 10):
        factor = a + float(k)
        product, derivative = product * factor, derivative * factor + product
    z = a + 10.0
    log_z = m.log(z)
    value = (z - 0.5) * log_z - z + HALF_LOG_2PI + stirling_error(z) - m.log(product)
    return value, log_z - log_less_digamma(z) - derivative / product


def reach(m: Any, linear: Any, curvature: Any, upwards: Any) -> Any:
    """Return the d from where e^-(linear d + curvature (d - log(1 + d))) is not worth adding.

    Args:
      m: the functions of formulas.
      linear: the coefficient of d; not below -1.
      curvature: positive.
      upwards: whether d is positive; else it is -d of the formula, where the curve is steeper.
    """
    # d - log(1 + d) is more than d^2 / (2 + 4 d / 3) for positive d, than d^2 / 2 for negative d
    far = -m.precision.far
    third = m.where(upwards, 2 / 3, 0.0)
    b, c = linear - far * third, m.sqrt(4.0 * far * (linear * third + 0.5 * curvature))
    ratio = b / c
    return 2.0 * far / (c * (ratio + m.sqrt(ratio * ratio + 1.0)))


def tail(
    m: Any, integrand: Callable[..., tuple[Any, ...]], needed: Any, values: tuple[Any, ...],
    integrals: int,
) -> list[Any]:  # fmt: skip
    """Return the integrals of functions of t from 0 to 1.

    Args:
      m: the functions of formulas.
      integrand: from these, t and the values to the functions there.
      needed: a mask.
      values: what the functions depend on; in the range of float32.
      integrals: the number of functions.
    """

    def is_unfinished(m: Any, needed: Any, *_: Any) -> Any:
        return needed > 0.0

    def step(m: Any, n: Any, node: Any, weight: Any, needed: Any, *state: Any) -> Any:
        values = state[integrals:]
        found = integrand(m, node, *values)
        sums = [s + weight * f for s, f in zip(state, found, strict=False)]
        return needed, *sums, *values

    zero = 0.0 * values[0]
    start = (m.where(needed, 1.0, zero), *[zero] * integrals, *values)
    points = m.precision.points
    results: list[Any] = m.loop(is_unfinished, step, start, points, _rule(points))
    return results[1 : 1 + integrals]


# --------------------------------------------------------------------------------- special gamma
# The logarithm of the gamma function and its derivatives: lgamma, digamma, polygamma, zeta.
#
#     lgamma(x) = log |Gamma(x)|,   digamma = lgamma',   polygamma(m, x) = digamma^(m)(x),
#     zeta(s, q) = sum_{k >= 0} (q + k)^-s        (Hurwitz)
#
# lgamma and digamma by Chebyshev series near their zeros and by Stirling's series far out (DLMF
# 5.11), zeta by the Euler-Maclaurin formula (DLMF 25.11.5), for negative q by the sum over all
# whole numbers, which is periodic. Poles and infinities are as SciPy has them: zeta is inf at all
# poles. Semantics: CHLO, ops lgamma, digamma, polygamma, zeta.

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
    high, middle, low = formula_backends.DIGAMMA_ROOT
    inside = m.minimum(m.maximum(y, 1.0), 2.0)
    # XLA adds up constants that are subtracted in turn, but not beyond a maximum (of -1, the least)
    from_root = m.maximum(m.maximum(inside - high, -1.0) - middle, -1.0) - low
    central = from_root * m.chebyshev(2.0 * inside - 3.0, DIGAMMA)
    value = m.where((y >= 1.0) & (y <= 2.0), central, digamma_positive(m, y))
    angle = math.pi * (x - m.floor(x + 0.5))
    mirrored = value - math.pi * m.cos(angle) / m.sin(angle)
    value = m.where(near_zero, value - 1.0 / x, m.where(reflected, mirrored, value))
    value = m.where(x == math.inf, math.inf, value)
    return m.where((x < 0.0) & (x == m.floor(x)), math.nan, value)


# For a whole order s that a program knows, without loops and logarithms: some terms, and behind
# them, of w = q + terms (DLMF 25.11.5, where nothing is subtracted for q > 0),
#
#     zeta(s, q) = sum_{k < terms} (q + k)^-s + w^(1 - s) (1 / (s - 1) + 1 / (2 w)
#                  + sum_j B_2j / (2j)! s (s + 1) ... (s + 2j - 2) w^-2j),
#
# and for q < 0 the sum over all whole k, a polynomial of the cotangent (DLMF 4.22.3, derived):
#
#     zeta(s, q) = pi^s / (s - 1)! Q_(s-1)(cot(pi q)) - (-1)^s zeta(s, 1 - q),
#     Q_0(c) = c,   Q_(n+1)(c) = (1 + c^2) Q_n'(c), with no coefficient below 0.

_KNOWN_ORDERS = range(2, 20)  # relative errors below 5e-15, against mpmath
_OFFSETS = 0.02 * 1.25 ** np.arange(40.0)  # values of q up to 120, beyond which one term is enough


def _expansion(s: int, count: int) -> list[float]:
    """Return the coefficients of w^-2, w^-4, ..."""
    return [b * math.prod(range(s, s + 2 * j - 1)) / math.factorial(2 * j)
            for j, b in enumerate(_BERNOULLI[:count], 1)]  # fmt: skip


@functools.lru_cache(maxsize=64)
def _terms_and_coefficients(s: int, eps: float) -> tuple[int, int]:
    """Return how many terms and coefficients leave out less than eps / 8, in fewest operations.

    What is left out is less than the next coefficient's part.
    """
    coefficients = _expansion(s, len(_BERNOULLI))
    terms = np.arange(1.0, 33.0)[:, None]
    least = _OFFSETS**-s + (_OFFSETS + 1.0) ** (1 - s) / (s - 1)
    found = []
    for count in range(1, len(_BERNOULLI)):
        part = abs(coefficients[count]) * (_OFFSETS + terms) ** (-1 - s - 2 * count) / least
        enough = part.max(axis=1) < eps / 8
        if enough.any():
            n = 1 + int(np.argmax(enough))
            found.append((n * (3 + s.bit_length()) + 2 * count, n, count))
    return min(found)[1:]


def _cotangent_polynomial(s: int) -> list[float]:
    """Return pi^s / (s - 1)! Q_(s-1): every second coefficient, that of c^s first."""
    q = [0, 1]
    for _ in range(s - 1):
        by_c = [i * coefficient for i, coefficient in enumerate(q)][1:]
        q = [x + y for x, y in zip([*by_c, 0, 0], [0, 0, *by_c], strict=True)]
    return [math.pi**s / math.factorial(s - 1) * coefficient for coefficient in q[::-2]]


def _power(x: Any, n: int) -> Any:
    """Return x to the power n >= 1, by squares."""
    half = x if n < 2 else _power(x, n // 2)
    square = half if n < 2 else half * half
    return square * x if n > 1 and n % 2 else square


def _horner(x: Any, coefficients: list[float]) -> Any:
    """Return a polynomial of two coefficients or more, that of the greatest power first."""
    result = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        result = result * x + c
    return result


@functools.lru_cache(maxsize=64)
def _zeta_of_known_order(s: int, factor: float) -> formula_backends.Formula:
    """Return the formula of factor zeta(s, q) in q."""

    def zeta(m: Any, q: Any) -> Any:
        terms, count = _terms_and_coefficients(s, m.precision.eps)
        negative = q < 0.0
        w = m.where(negative, 1.0 - q, q)
        total = _power(1.0 / w, s)
        for _ in range(terms - 1):
            w = w + 1.0
            total = total + _power(1.0 / w, s)
        inverse = 1.0 / (w + 1.0)
        square = inverse * inverse
        rest = _horner(square, _expansion(s, count)[::-1]) * square + 0.5 * inverse + 1.0 / (s - 1)
        scaled = factor * inverse if s == 2 else factor * inverse * _power(inverse, s - 2)
        value = factor * total + scaled * rest
        fraction = q - m.floor(q + 0.5)  # of which cos is the sine of the rest, 0 at 1/2
        cosine, sine = m.sin(math.pi * (0.5 - m.abs(fraction))), m.sin(math.pi * fraction)
        cotangent = cosine / sine
        both_sides = _horner(cotangent * cotangent, _cotangent_polynomial(s)) * factor
        mirrored = both_sides * cotangent + value if s % 2 else both_sides - value
        pole = (q <= 0.0) & (q == m.floor(q))
        return m.where(pole, math.copysign(math.inf, factor), m.where(negative, mirrored, value))

    return zeta


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
    return m.exp(log_factor - s * m.log(q)) * m.narrow(_zeta_times_power, s, q)


def _mirror_zeta(m: Any, s: Any, q: Any, log_factor: Any) -> Any:
    """Return it for q < 0: for odd s the first two cancel near q = -1/2, -3/2, ..."""
    fraction, is_even = -q - m.floor(-q), _is_even(m, s)
    left, right, rest = [
        _plain_zeta(m, s, p, log_factor) for p in (1.0 - fraction, fraction, 1.0 - q)
    ]
    # equal ones are compared, since a compiler may subtract one of them before it is rounded
    difference = m.where(left == right, 0.0, left - right)
    return m.where(is_even, left + right - rest, difference + rest)


def _zeta_at(m: Any, s: Any, q: Any, log_factor: Any) -> Any:
    """Return exp(log_factor) zeta(s, q), with the values at poles and infinities.

    For q < 0, with whole s and g the fraction of -q, the sum over all whole k is periodic, so

        zeta(s, q) = zeta(s, 1 - g) + (-1)^s (zeta(s, g) - zeta(s, 1 - q)).
    """
    pole = (q <= 0.0) & (m.floor(q) == q)
    plain = (s > 1.0) & (s < math.inf) & (q < math.inf) & ~pole
    negative = (q < 0.0) & (m.floor(s) == s) & plain
    plain = plain & (negative | (q > 0.0))
    s0 = m.where(plain, s, 2.0)
    value = _plain_zeta(m, s0, m.where(plain & ~negative, q, 1.0), log_factor)
    mirrored = m.if_any(negative, _mirror_zeta, (s, q, log_factor))
    value = m.where(negative, mirrored, value)
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
    return m.where(domain, m.where(n == 0.0, m.narrow(digamma, x), value), math.nan)


# --- primitives ---------------------------------------------------------------------------------


def refuse_derivative(function: str, operand: str) -> Any:
    """Return the formula of a derivative that no formula is known for: an error that says so."""

    def formula(*_: Any, **__: Any) -> Any:
        raise UndefinedRuleError(message(
            f"{function}", f"the derivative with respect to {operand} is not available.",
            hint=f"apply stop_gradient to {operand} if it is a constant of the program",
        ))  # fmt: skip

    return formula


lgamma_p = table.unary(
    "lgamma", FLOATING, numpy=numpy_rule(lgamma), stablehlo=stablehlo_rule(lgamma, narrow=True),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("digamma", x)),
    cost=costs.special,
)  # fmt: skip

digamma_p = table.unary(
    "digamma", FLOATING, numpy=numpy_rule(digamma),
    stablehlo=stablehlo_rule(digamma, narrow=True),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("polygamma", scalar_like(x, 1), x)),
    cost=costs.special,
)  # fmt: skip


def _with_known_order(
    formula: formula_backends.Formula, of_order: Callable[[int], tuple[int, float]]
) -> Callable[..., list[str]]:
    """Return a `stablehlo` rule of a function of an order and x.

    Args:
      formula: of both, for orders that the program does not know.
      of_order: from a whole order n to s and the factor of zeta(s, x) that the function is.
    """
    in_general = stablehlo_rule(formula)

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        known = known_scalar(b, operands[0])
        if known is None or not float(known).is_integer():
            return in_general(b, operands, avals_in, avals_out)
        s, factor = of_order(int(known))
        if s not in _KNOWN_ORDERS:
            return in_general(b, operands, avals_in, avals_out)
        (out,), (_, x), (_, aval) = avals_out, operands, avals_in
        x = b.broadcast(x, aval, out.shape)
        of_x = stablehlo_rule(_zeta_of_known_order(s, factor))
        return of_x(b, [x], [aval.update(shape=out.shape)], avals_out)

    return rule


def _zeta_of_polygamma(n: int) -> tuple[int, float]:
    in_range = n + 1 in _KNOWN_ORDERS
    return n + 1, -((-1.0) ** n) * math.factorial(n) if in_range else 0.0


polygamma_p = binary(
    "polygamma", FLOATING, numpy=numpy_rule(polygamma),
    stablehlo=_with_known_order(polygamma, _zeta_of_polygamma),
    jvp=(refuse_derivative("polygamma", "m"),
         lambda x_dot, y, m, x: mul(x_dot, bind("polygamma", add(m, scalar_like(m, 1)), x))),
    cost=costs.special,
)  # fmt: skip


def _zeta_of_order(m: Any, s: Any, q: Any) -> Any:
    """Return zeta where it has derivatives in s: for q < 0 it is real at whole s alone."""
    return m.where(q < 0.0, math.nan, zeta(m, s, q))


def _differentiate_zeta(derivative: Any, orders: Any, s: Any, q: Any) -> Any:
    """d/dq zeta(s, q) = -s zeta(s + 1, q), and its derivatives in s by Leibniz's rule."""
    (n,) = orders
    later = add(s, scalar_like(s, 1))
    result = mul(neg(s), derivative((n,), (later, q)))
    return add(result, table.scale_by(derivative((n - 1,), (later, q)), -float(n))) if n else result


zeta_p = with_parameters(
    "zeta", zeta, 1, _differentiate_zeta,
    stablehlo=_with_known_order(zeta, lambda s: (s, 1.0)),
)  # fmt: skip
zeta_derivative_p = derivatives_of("zeta_derivative", _zeta_of_order, 1, _differentiate_zeta)


# ---------------------------------------------------------------------------- special incomplete
# Incomplete gamma functions: igamma, igammac, and their derivatives.
#
#     igamma(a, x) = P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt,    igammac = Q = 1 - P
#
# Of P and Q that one is computed which is not near 1, the other is one minus it:
#
#     a <= 30, x below the median: P by its series (DLMF 8.7.1, of positive terms: 8.7.2)
#     a <= 30, x < 3/2, above it:  Q by the series in powers of x about 1 - x^a / Gamma(a + 1)
#     a <= 30, x above both:       Q by its continued fraction (DLMF 8.9.2)
#     a > 30:                      the tail of the density on the side of x (`special_densities`)
#
# each with the derivative in a carried along, as multiples of D = x^a e^-x / Gamma(a + 1), so
# that `random_gamma_grad`, dx/da of a sample x of a gamma distribution with its quantile held
# fixed, which is -(dP/da) / (dP/dx) with dP/dx = D a / x, needs no D.

_LARGE = 30.0  # the least a whose density is integrated
_MOST_TERMS = 150  # of series and continued fraction: they need 90 at most


def _series(m: Any, a: Any, x: Any, differentiated: bool) -> Any:
    """Return S = P / D = sum x^n / ((a+1) ... (a+n)), and dS/da, for x < a or so."""

    def is_unfinished(
        m: Any, a: Any, x: Any, term: Any, dterm: Any, total: Any, dtotal: Any
    ) -> Any:
        going = term > m.precision.eps * total
        return going | (m.abs(dterm) > m.precision.eps * m.abs(dtotal)) if differentiated else going

    def step(m: Any, n: Any, a: Any, x: Any, term: Any, dterm: Any, total: Any,
             dtotal: Any) -> Any:  # fmt: skip
        inverse = 1.0 / (a + n)
        ratio = x * inverse
        dterm = (dterm - term * inverse) * ratio
        term = term * ratio
        return a, x, term, dterm, total + term, dtotal + dterm

    zero = 0.0 * a
    start = (a, x, 1.0 + zero, zero, 1.0 + zero, zero)
    return m.loop(is_unfinished, step, start, _MOST_TERMS)[4:6]


def _powers(m: Any, a: Any, x: Any) -> Any:
    """Return S = sum_{n > 0} (-x)^n / ((a+n) n!), and dS/da, for x < 3/2."""

    def is_unfinished(m: Any, a: Any, x: Any, power: Any, total: Any, dtotal: Any) -> Any:
        return m.abs(power) > m.precision.eps * m.abs(total)

    def step(m: Any, n: Any, a: Any, x: Any, power: Any, total: Any, dtotal: Any) -> Any:
        power = power * (-x / n)
        inverse = 1.0 / (a + n)
        term = power * inverse
        return a, x, power, total + term, dtotal - term * inverse

    zero = 0.0 * a
    return m.loop(is_unfinished, step, (a, x, 1.0 + zero, zero, zero), _MOST_TERMS, wide=True)[3:5]


def _special_incomplete_fraction(m: Any, a: Any, x: Any, differentiated: bool) -> Any:
    """Return h = Q / (D a) and d log(h) / da, for x > a, x > 3/2.

    By Lentz's method as modified by Thompson and Barnett (1986).
    """
    b = x + 1.0 - a
    d, zero = 1.0 / b, 0.0 * a

    def is_unfinished(m: Any, a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any,
                   derivative: Any, change: Any) -> Any:  # fmt: skip
        return change > m.precision.eps

    def step(m: Any, n: Any, a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any,
             derivative: Any, change: Any) -> Any:  # fmt: skip
        an = n * (a - n)  # its derivative in a is n, that of b is -1
        b = b + 2.0
        inverse = 1.0 / (an * d + b)
        added = (1.0 - n * d - an * dd) * inverse  # dd / d
        d, dd = inverse, added * inverse
        of_c = 1.0 / c
        dc = (n - an * dc * of_c) * of_c - 1.0
        c = b + an * of_c
        added = added + dc / c
        ratio = c * d
        change = m.abs(ratio - 1.0)
        if differentiated:
            change = m.maximum(change, m.abs(added))
        return a, b, c, d, dc, dd, h * ratio, derivative + added, change

    start = (a, b, 1e30 + zero, d, zero, d * d, d, d, 1.0 + zero)
    return m.loop(is_unfinished, step, start, _MOST_TERMS, wide=True)[6:8]


def _special_incomplete_tail(m: Any, a: Any, x: Any, needed: Any) -> tuple[Any, Any]:
    """Return P / D for x < a, else Q / D, and the same with log(t / x) as a factor, for a > 30.

    With t = x (1 + d), int t^(a-1) e^-t dt = x^a e^-x int (1 + d)^(a-1) e^(-x d) dd.
    """
    upwards = x >= a
    linear = a - 1.0 - x
    length = reach(m, m.abs(linear), a - 1.0, upwards)
    length = m.where(upwards, length, -m.minimum(length, 1.0))

    def integrand(m: Any, t: Any, length: Any, linear: Any, curvature: Any) -> tuple[Any, Any]:
        d = t * length
        log = m.log1p(d)
        value = m.exp(t * (linear + t * curvature * bend(m, d, log)))
        return value, value * log

    values = (length, linear * length, (a - 1.0) * length * length)
    value, with_log = tail(m, integrand, needed, values, 2)
    scale = a * m.abs(length)
    return scale * value, scale * with_log


def _special_incomplete_density(m: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return D, digamma(a + 1) for a <= 30, and log(x / a) for a >= 10."""
    lgamma, digamma = gamma_shifted(m, m.minimum(a, _LARGE))
    large = m.maximum(a, 10.0)
    # log D about x = a, where its terms cancel
    excess = (x - large) / large
    log_ratio = m.where(m.abs(excess) < 0.4, m.log1p(excess), m.log(m.maximum(x / large, 1e-300)))
    far = large * log1p_less(m, excess, log_ratio) - stirling_error(large)
    exponent = m.where(a > 10.0, far, a * m.log(x) - x - lgamma)
    root = m.where(a > 10.0, math.sqrt(1 / (2 * math.pi)) / m.sqrt(large), 1.0)
    return m.exp(exponent) * root, digamma, log_ratio


class _Parts:
    """P or Q, and |dP/da| / D, for finite a >= 0 and x > 0."""

    def __init__(self, m: Any, a: Any, x: Any, differentiated: bool) -> None:
        log_x = m.log(x)
        large, small_x = a > _LARGE, x < 1.5
        # where P is near 1/2
        median = m.where(x < 0.5, -0.4 / m.where(x < 0.5, log_x, -1.0), m.minimum(1.1 * x, 1.25))
        self.of_p = of_p = a > m.where(large | ~small_x, x, median)
        by_series, by_powers = of_p & ~large, small_x & ~of_p & ~large
        by_fraction = ~(large | small_x | of_p)

        self.density, digamma, log_ratio = _special_incomplete_density(m, a, x)
        outer = m.maximum(a, 10.0)

        def operands(needed: Any, safe_x: float, least: float, most: float) -> tuple[Any, Any]:
            within = m.minimum(m.maximum(x, least), most)
            return m.where(needed, a, 1.0), m.where(needed, within, safe_x)

        series, dseries = _series(m, *operands(by_series, 0.0, 0.0, _LARGE), differentiated)
        powers, dpowers = _powers(m, *operands(by_powers, 0.0, 0.0, 1.5))
        # h x is 1 beyond 1e20, and h denormal beyond 1e300
        x_far, self.x = m.minimum(x, 1e20), m.where(by_fraction, m.minimum(x, 1e290), x)
        h, dlog_h = _special_incomplete_fraction(
            m, *operands(by_fraction, 1e20, 1.5, 1e20), differentiated
        )
        h = h * (x_far / self.x)
        tails, with_log = _special_incomplete_tail(m, outer, x, large)

        # of the fraction of small x: g = x^a / Gamma(a + 1), which is near 1
        log_g = a * log_x - lgamma1p(m, m.minimum(a, 1.25))
        less = m.expm1(m.where(by_powers, log_g, 0.0))
        value = self.density * m.where(
            large, tails, m.where(of_p, series, m.where(small_x, 0.0, a * h))
        )
        self.value = m.where(by_powers, -less - (1.0 + less) * (a * powers), value)

        gap = log_x - digamma
        derivative = m.where(of_p, gap * series + dseries, h * (a * (gap + dlog_h) + 1.0))
        at_small = -m.exp(m.minimum(x, 1.5)) * (gap * (1.0 + a * powers) + powers + a * dpowers)
        derivative = m.where(by_powers, at_small, derivative)
        at_large = (log_ratio + log_less_digamma(outer)) * tails + with_log
        self.derivative = m.abs(m.where(large, at_large, derivative))


def _special_incomplete_inside(m: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return the mask of finite a >= 0 and x > 0, and operands that are such everywhere."""
    inside = (a >= 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    return inside, m.where(inside, a, 1.0), m.where(inside, x, 1e-20)


def _regularize(m: Any, a: Any, x: Any, upper: bool) -> Any:
    inside, a0, x0 = _special_incomplete_inside(m, a, x)
    parts = _Parts(m, a0, x0, differentiated=False)
    value = m.maximum(m.minimum(parts.value, 1.0), 0.0)
    of_p, other = parts.of_p, 1.0 - value
    value = m.where(of_p, other, value) if upper else m.where(of_p, value, other)
    low, high = (x == 0.0) | (a == math.inf), (x == math.inf) | (a == 0.0)
    edge = m.where(low, 1.0 if upper else 0.0, 0.0 if upper else 1.0)
    outside = (low & high) | (a < 0.0) | (x < 0.0) | ~((a == a) & (x == x))
    return m.where(inside, value, m.where(outside, math.nan, edge))


def igamma(m: Any, a: Any, x: Any) -> Any:
    """Return P(a, x)."""
    return _regularize(m, a, x, upper=False)


def igammac(m: Any, a: Any, x: Any) -> Any:
    """Return Q(a, x)."""
    return _regularize(m, a, x, upper=True)


def igamma_grad_a(m: Any, a: Any, x: Any) -> Any:
    """Return dP/da, which is not positive."""
    inside, a0, x0 = _special_incomplete_inside(m, a, x)
    parts = _Parts(m, a0, x0, differentiated=True)
    value = m.where(inside, -parts.density * parts.derivative, math.nan)
    return m.where(_at_end(m, a, x), 0.0, value)


def random_gamma_grad(m: Any, a: Any, x: Any) -> Any:
    """Return dx/da at a fixed quantile, which is not negative."""
    inside, a0, x0 = _special_incomplete_inside(m, a, x)
    parts = _Parts(m, a0, x0, differentiated=True)
    value = m.where(inside, parts.x * parts.derivative / m.abs(a0), math.nan)
    return m.where(_at_end(m, a, x), m.where(x == math.inf, math.inf, 0.0), value)


def igamma_grad_x(m: Any, a: Any, x: Any) -> Any:
    """Return dP/dx = x^(a-1) e^-x / Gamma(a)."""
    inside, a0, x0 = _special_incomplete_inside(m, a, x)
    value = m.where(inside, _special_incomplete_density(m, a0, x0)[0] * (a0 / x0), math.nan)
    value = m.where(_at_end(m, a, x), 0.0, value)
    at_zero = m.where(a < 1.0, math.inf, m.where(a == 1.0, 1.0, 0.0))
    return m.where((x == 0.0) & (a > 0.0) & (a < math.inf), at_zero, value)


def _at_end(m: Any, a: Any, x: Any) -> Any:
    """Return the mask where one of the operands is 0 or infinite and P constant in the other."""
    by_x = (((x == 0.0) & (a > 0.0)) | ((x == math.inf) & (a >= 0.0))) & (a < math.inf)
    return by_x | ((a == math.inf) & (x >= 0.0) & (x < math.inf))


# --- primitives ---------------------------------------------------------------------------------


def _mix(p: Any, a: Any, x: Any) -> Any:
    """Return d2P/(da dx) = p (log x - digamma(a)), which is 0 where p = dP/dx is."""
    mixed = mul(p, sub(bind("log", x), bind("digamma", a)))
    return select(bind("eq", p, scalar_like(p, 0)), scalar_like(p, 0), mixed)


def _special_incomplete_curvature(p: Any, a: Any, x: Any) -> Any:
    """Return d2P/dx2 = p ((a - 1) / x - 1), at x = 0 by its limit."""
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    at_zero = bind("eq", x, zero)
    less = sub(a, one)
    inner = mul(p, sub(table.div(less, select(at_zero, one, x)), one))
    # p(a - 1, 0), of which Gamma(a - 1) has the sign, less p(a, 0)
    below = select(bind("eq", less, zero), neg(one), scalar_like(x, -math.inf))
    # 1 where it is not used: a density without a value has no derivative to multiply by zero
    positive = select(bind("gt", less, zero), less, table.scalar_like(a, 1))
    limit = select(bind("gt", less, zero), bind("igamma_grad_x", positive, x), below)
    return select(at_zero, limit, inner)


def _grad_x(a: Any, x: Any) -> Any:
    return bind("igamma_grad_x", a, x)


igamma_p = binary(
    "igamma", FLOATING, numpy=numpy_rule(igamma), stablehlo=stablehlo_rule(igamma),
    jvp=(lambda a_dot, y, a, x: mul(a_dot, bind("igamma_grad_a", a, x)),
         lambda x_dot, y, a, x: mul(x_dot, _grad_x(a, x))),
    cost=costs.special,
)  # fmt: skip

igammac_p = binary(
    "igammac", FLOATING, numpy=numpy_rule(igammac), stablehlo=stablehlo_rule(igammac),
    jvp=(lambda a_dot, y, a, x: neg(mul(a_dot, bind("igamma_grad_a", a, x))),
         lambda x_dot, y, a, x: neg(mul(x_dot, _grad_x(a, x)))),
    cost=costs.special,
)  # fmt: skip

igamma_grad_x_p = binary(
    "igamma_grad_x", FLOATING, numpy=numpy_rule(igamma_grad_x),
    stablehlo=stablehlo_rule(igamma_grad_x),
    jvp=(lambda a_dot, p, a, x: mul(a_dot, _mix(p, a, x)),
         lambda x_dot, p, a, x: mul(x_dot, _special_incomplete_curvature(p, a, x))),
    cost=costs.special,
)  # fmt: skip

igamma_grad_a_p = binary(
    "igamma_grad_a", FLOATING, numpy=numpy_rule(igamma_grad_a),
    stablehlo=stablehlo_rule(igamma_grad_a),
    jvp=(refuse_derivative("igamma_grad_a", "a"),
         lambda x_dot, y, a, x: mul(x_dot, _mix(_grad_x(a, x), a, x))),
    cost=costs.special,
)  # fmt: skip

random_gamma_grad_p = binary(
    "random_gamma_grad", FLOATING, numpy=numpy_rule(random_gamma_grad),
    stablehlo=stablehlo_rule(random_gamma_grad),
    jvp=(refuse_derivative("random_gamma_grad", "a"), refuse_derivative("random_gamma_grad", "x")),
    cost=costs.special,
)  # fmt: skip


# ---------------------------------------------------------------------------------- special beta
# The incomplete beta function and its density.
#
#     betainc(a, b, x) = I_x(a, b) = 1/B(a, b) int_0^x t^(a-1) (1-t)^(b-1) dt
#
# Of I_x(a, b) and I_(1-x)(b, a) = 1 - I_x(a, b) that one is computed whose x is below the mean:
# for min(a, b) <= 30 by its continued fraction (DLMF 8.17.22) with Lentz's method as modified by
# Thompson and Barnett (1986), beyond as the tail of the density (`special_densities`), each as a
# multiple of D = x^a (1-x)^b / B(a, b). For b <= 1, where I may be small above the mean too, it
# is there
#
#     I_x(a, b) = 1 - g - g b sum_{n > 0} (1-a)_n y^n / (n! (b+n)),   y = 1 - x,
#     g = y^b Gamma(a+b) / (Gamma(a) Gamma(1+b))        (DLMF 8.17.7, 15.2.1)
#
# with an expm1 for 1 - g.

_MOST_STEPS = 150  # of the continued fraction: it needs 50 at most


def gamma_ratio(m: Any, a: Any, b: Any) -> Any:
    """Return log(Gamma(a + b) / Gamma(a)) for b <= 10, with all digits for small b too.

    By recurrence to z = a + 10 and Stirling's formula there, both without differences.
    """
    finite = m.minimum(a, 1e28)  # beyond, what follows is 0
    product, excess = finite, b  # of a (a + 1) ..., and what that of a + b is more
    for k in range(1, 10):
        product, excess = product * (finite + k), excess * (finite + (b + k)) + product * b
    z = a + 10.0
    u, v = 1.0 / z, 1.0 / (z + b)
    power, sums, total = u, 1.0 + 0.0 * z, 1 / 12 + 0.0 * z
    for c in (-1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156):
        sums = v * v * sums + power * (u + v)  # (v^k - u^k) / (v - u) for k = 3, 5, ...
        power = power * (u * u)
        total = total + c * sums
    first = m.where(b * u < 1e-17, b, (z - 0.5) * m.log1p(b * u))  # 1 / z may be denormal
    stirling = first + b * (m.log(z + b) - 1.0) - b * u * v * total
    return stirling - m.log1p(excess / product)


def _special_beta_density(m: Any, a: Any, b: Any, x: Any, y: Any, ratio: Any) -> Any:
    """Return D = x^a y^b / B(a, b) where y = 1 - x.

    `ratio` is log(Gamma(p + q) / Gamma(p)) for q <= 10, the lesser of a and b, and the greater p.
    """
    u, v = m.maximum(a, 10.0), m.maximum(b, 10.0)
    # about the mode, by Stirling's formula
    excess = x * v - y * u
    e, f = excess / u, -excess / v
    far = u * log1p_less(m, e, m.log(x * (v / u + 1.0)))
    far = far + v * log1p_less(m, f, m.log(y * (u / v + 1.0)))
    far = far + stirling_error(u + v) - stirling_error(u) - stirling_error(v)
    root = m.sqrt(m.minimum(u, v) / (1.0 + m.minimum(u, v) / m.maximum(u, v)) * (0.5 / math.pi))
    log_x = m.where(x > 0.5, m.log1p(-m.minimum(y, 0.5)), m.log(x))
    log_y = m.where(y > 0.5, m.log1p(-m.minimum(x, 0.5)), m.log(y))
    least = m.minimum(m.minimum(a, b), 10.0)
    exponent = a * log_x + b * log_y + ratio - gamma_shifted(m, least)[0]
    both = (a > 10.0) & (b > 10.0)
    return m.exp(m.where(both, far, exponent)) * m.where(both, root, least)


def _special_beta_fraction(m: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return I_x(a, b) / D for x below the mean or so.

    The even part of the continued fraction of DLMF 8.17.22 (DiDonato and Morris, "Algorithm 708",
    1992), with b x and a y - b x, which are not large though a or b be.
    """
    bx, excess = b * x, a * y - b * x

    def is_unfinished(m: Any, *state: Any) -> Any:
        return m.matters(state[-1], 1.0, m.precision.eps)

    def step(m: Any, n: Any, a: Any, x: Any, bx: Any, excess: Any, c: Any, d: Any, h: Any,
             change: Any) -> Any:  # fmt: skip
        inverse = 1.0 / (a + (2.0 * n - 1.0))
        difference = bx - n * x
        numerator = (a + (n - 1.0)) * inverse * (a * x * inverse + (bx + (n - 1.0) * x) * inverse)
        numerator = numerator * (n * difference)
        coefficient = (a + n) / (a + (2.0 * n + 1.0))
        denominator = n + n * difference * inverse + coefficient * (excess + 1.0 + n * (2.0 - x))
        d = 1.0 / (denominator + numerator * d)
        c = denominator + numerator / c
        ratio = c * d
        return a, x, bx, excess, c, d, h / ratio, ratio - 1.0

    first = a / (a + 1.0) * (excess + 1.0)
    # as a goes to infinity, what the first term is divided by depends on it no more
    finite, one = m.minimum(a, 1e12), 1.0 + 0.0 * a
    start = (finite, x, bx, m.minimum(excess, 1e12), m.minimum(first, 1e12), 0.0 * a, one, one)
    return m.loop(is_unfinished, step, start, _MOST_STEPS, wide=True)[6] / first


def _near_one(m: Any, a: Any, b: Any, y: Any, ratio: Any, needed: Any) -> Any:
    """Return I_(1-y)(a, b) for b <= 1 and y a < 2 or so."""

    def is_unfinished(m: Any, ay: Any, b: Any, y: Any, power: Any, total: Any) -> Any:
        return m.matters(power, 1.0, m.precision.eps)

    def step(m: Any, n: Any, ay: Any, b: Any, y: Any, power: Any, total: Any) -> Any:
        power = power * ((n * y - ay) / n)
        return ay, b, y, power, total + power / (b + n)

    y0 = m.where(needed, y, 0.0)
    start = (y0 * a, m.where(needed, b, 1.0), y0, 1.0 + 0.0 * a, 0.0 * a)
    total = m.loop(is_unfinished, step, start, _MOST_TERMS)[4]
    log_g = b * m.log(y) + ratio - lgamma1p(m, m.minimum(b, 1.0))
    less = m.expm1(log_g)
    return -less - (1.0 + less) * (b * total)


def _special_beta_tail(m: Any, a: Any, b: Any, x: Any, y: Any, needed: Any) -> Any:
    """Return the mass beyond x on its side of the mean by D, for 30 < a <= b.

    With t = x (1 + d) and r = x / y, the density in d is (1 + d)^(a-1) (1 - r d)^(b-1) D / y.
    """
    upwards = x * b > y * a
    r = x / y
    linear = (a - 1.0) - (b - 1.0) * r
    length = reach(m, m.abs(linear), (a - 1.0) + 0.6 * ((b - 1.0) * r) * r, upwards)
    length = m.where(upwards, m.minimum(length, 1.0 / r), -m.minimum(length, 1.0))

    def integrand(m: Any, t: Any, length: Any, of_b: Any, linear: Any, curvature: Any,
                  curvature_b: Any) -> tuple[Any]:  # fmt: skip
        d, e = t * length, t * of_b
        bent = curvature * bend(m, d, m.log1p(d)) + curvature_b * bend(m, e, m.log1p(e))
        return (m.exp(t * (linear + t * bent)),)

    of_b = -r * length
    values = (length, of_b, linear * length, (a - 1.0) * length * length, (b - 1.0) * of_b * of_b)
    (value,) = tail(m, integrand, needed, values, 1)
    return value * m.abs(length) / y


def _special_beta_inside(m: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the mask of finite a, b > 0 with 0 < x < 1, and operands that are such everywhere."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    return inside, m.where(inside, a, 1.0), m.where(inside, b, 1.0), m.where(inside, x, 0.5)


def betainc(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return I_x(a, b), with the limits where operands are 0 or infinite."""
    inside, a0, b0, x0 = _special_beta_inside(m, a, b, x)
    y0 = 1.0 - x0
    large = m.minimum(a0, b0) > _LARGE
    # the fraction converges below its mean, a tail is taken on the side of the density's
    swap = m.where(large, a0 - b0, x0 - (a0 + 1.0) / (a0 + b0 + 2.0)) > 0.0
    u, v = m.where(swap, b0, a0), m.where(swap, a0, b0)
    w, z = m.where(swap, y0, x0), m.where(swap, x0, y0)
    near_one = swap & (b0 <= 1.0) & ~large
    others = ~(large | near_one)
    tails = _special_beta_tail(m, u, v, w, z, large)
    lower = _special_beta_fraction(m, m.where(others, u, 1.0), m.where(others, v, 1.0),
                      m.where(others, w, 0.0), m.where(others, z, 1.0))  # fmt: skip
    greater, lesser = m.maximum(a0, b0), m.minimum(m.minimum(a0, b0), 10.0)
    ratio = gamma_ratio(m, m.where(near_one, a0, greater), m.where(near_one, b0, lesser))
    small = _near_one(m, a0, b0, y0, ratio, near_one)
    value = m.minimum(
        _special_beta_density(m, u, v, w, z, ratio) * m.where(large, tails, lower), 1.0
    )
    is_lower = m.where(large, y0 * a0 - x0 * b0, m.where(swap, -1.0, 1.0)) >= 0.0
    value = m.where(is_lower, value, 1.0 - value)
    value = m.where(inside, m.where(near_one, small, value), math.nan)
    # all mass is at 0, or at 1, or not anywhere
    at_zero = ((a == 0.0) & (b > 0.0)) | ((b == math.inf) & (a < math.inf) & (a >= 0.0))
    at_one = ((b == 0.0) & (a > 0.0)) | ((a == math.inf) & (b < math.inf) & (b >= 0.0))
    proper = ((a > 0.0) & (b > 0.0) & ((a < math.inf) | (b < math.inf))) | at_zero | at_one
    value = m.where(at_zero & (x > 0.0) & (x < 1.0), 1.0, value)
    value = m.where(at_one & (x > 0.0) & (x < 1.0), 0.0, value)
    return m.where(proper & (x == 0.0), 0.0, m.where(proper & (x == 1.0), 1.0, value))


def betainc_grad_x(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return dI/dx = x^(a-1) (1-x)^(b-1) / B(a, b)."""
    inside, a0, b0, x0 = _special_beta_inside(m, a, b, x)
    y0 = 1.0 - x0
    ratio = gamma_ratio(m, m.maximum(a0, b0), m.minimum(m.minimum(a0, b0), 10.0))
    value = m.where(inside, _special_beta_density(m, a0, b0, x0, y0, ratio) / x0 / y0, math.nan)
    finite = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    at_zero = m.where(a < 1.0, math.inf, m.where(a == 1.0, b, 0.0))
    at_one = m.where(b < 1.0, math.inf, m.where(b == 1.0, a, 0.0))
    value = m.where(finite & (x == 0.0), at_zero, m.where(finite & (x == 1.0), at_one, value))
    # all mass is at one end
    end = ((a == 0.0) | (a == math.inf)) & (b > 0.0) & (b < math.inf)
    end = end | (((b == 0.0) | (b == math.inf)) & (a > 0.0) & (a < math.inf))
    return m.where(end & (x > 0.0) & (x < 1.0), 0.0, value)


# --- primitives ---------------------------------------------------------------------------------


def _special_beta_curvature(p: Any, a: Any, b: Any, x: Any) -> Any:
    """Return d2I/dx2 = p ((a - 1) / x - (b - 1) / (1 - x)), at 0 and 1 by its limits."""
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    y = sub(one, x)
    at_zero, at_one = bind("eq", x, zero), bind("eq", y, zero)
    first = table.div(sub(a, one), select(at_zero, one, x))
    second = table.div(sub(b, one), select(at_one, one, y))
    inner = mul(p, sub(first, second))
    return select(at_zero, _differentiate_at_zero(a, b, x),
                    select(at_one, neg(_differentiate_at_zero(b, a, y)), inner))  # fmt: skip


def _differentiate_at_zero(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of the density at x = 0: (a + b - 1) times that of a - 1, for a > 1."""
    one = scalar_like(x, 1)
    # 1 where it is not used: a density without a value has no derivative to multiply by zero
    less = select(bind("gt", a, one), sub(a, one), table.scalar_like(a, 1))
    below = select(bind("eq", a, one), mul(b, sub(one, b)), scalar_like(x, -math.inf))
    above = mul(sub(add(a, b), one), bind("betainc_grad_x", less, b, x))
    return select(bind("gt", a, one), above, below)


def _density_jvp(primals: Any, tangents: Any) -> Any:
    a, b, x = primals
    (p,) = state.trace.process(betainc_grad_x_p, primals, {})
    zero = scalar_like(x, 0)
    empty, both = bind("eq", p, zero), bind("digamma", add(a, b))

    def by(shape: Any, log: Any) -> Any:
        partial = mul(p, sub(add(log, both), bind("digamma", shape)))
        return select(empty, zero if zero.aval.shape == p.aval.shape else sub(p, p), partial)

    partials = (lambda: by(a, bind("log", x)), lambda: by(b, bind("log1p", neg(x))),
              lambda: _special_beta_curvature(p, a, b, x))  # fmt: skip
    return (p,), (_sum_of_products(tangents, partials, p.aval),)


def _sum_of_products(tangents: Any, partials: Any, aval: Any) -> Any:
    total: Any = Zero(aval)
    for dot, partial in zip(tangents, partials, strict=True):
        if type(dot) is not Zero:
            product = table.repeat_scalar(mul(dot, partial()), aval.shape)
            total = product if type(total) is Zero else add(total, product)
    return total


def _differentiate_in_x(derivative: Any, orders: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the density, or its derivatives in the parameters."""
    if not any(orders):
        return bind("betainc_grad_x", a, b, x)
    return bind("betainc_grad_x_derivative", a, b, x, orders=(*orders, 0))


regularized_incomplete_beta_p = with_parameters(
    "regularized_incomplete_beta", betainc, 2, _differentiate_in_x, "betainc"
)
regularized_incomplete_beta_derivative_p = derivatives_of(
    "regularized_incomplete_beta_derivative", betainc, 2, _differentiate_in_x
)
betainc_grad_x_derivative_p = derivatives_of("betainc_grad_x_derivative", betainc_grad_x, 3)

betainc_grad_x_p = Primitive(
    "betainc_grad_x",
    shape=table.elementwise_shape("betainc_grad_x", FLOATING),
    numpy=lambda a, b, x: (numpy_rule(betainc_grad_x)(a, b, x),),
    stablehlo=stablehlo_rule(betainc_grad_x),
    jvp=_density_jvp,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
    eager=costs.special,
)


# ------------------------------------------------------------------------------ special products
# Products that the gamma function extends: gamma, beta, betaln, poch.
#
#     beta(a, b) = Gamma(a) Gamma(b) / Gamma(a + b),   poch(z, n) = Gamma(z + n) / Gamma(z)
#
# gamma by recurrence from [3/4, 9/4) up to 12, by Stirling's formula (DLMF 5.11.3) beyond, by
# reflection (DLMF 5.5.3) below 0. Quotients of gamma functions come of the differences of
# Stirling's formulas, not of formulas that were rounded first. Signs and poles are those of
# SciPy.

_START = 12.0  # of Stirling's formula


def _is_whole(m: Any, x: Any) -> Any:
    return m.floor(x) == x


def _is_odd(m: Any, x: Any) -> Any:
    return ~(m.floor(0.5 * x) == 0.5 * x)


def _gamma_positive(m: Any, x: Any) -> Any:
    """Return Gamma(x) for x >= 3/4."""
    if m.precision is NarrowPrecision:
        return _narrow_gamma_positive(m, x)
    inner, product = m.minimum(x, _START), 1.0 + 0.0 * x
    for _ in range(int(_START) - 2):
        above = inner > 2.25
        inner = m.where(above, inner - 1.0, inner)
        product = m.where(above, product * inner, product)
    near = product * m.exp(lgamma1p(m, inner - 1.0))
    far = m.minimum(m.maximum(x, _START), 175.0)
    half = m.pow(far, 0.5 * (far - 0.5))  # its square may overflow where the product does not
    outer = half * m.exp(-far) * half * m.exp(stirling_error(far) + HALF_LOG_2PI)
    return m.where(x > _START, outer, near)


def _narrow_gamma_positive(m: Any, x: Any) -> Any:
    """Return it to 1e-8 in float64, whose exponential has digits enough for that of float32."""
    start = m.precision.stirling_start
    is_far, inner, product = x > start, m.minimum(x, start), None
    for _ in range(int(start) - 2):
        above = inner > 2.25
        inner = m.where(above, inner - 1.0, inner)
        factor = m.where(above, inner, 1.0)
        product = factor if product is None else product * factor
    near = (inner - 1.0) * (inner - 2.0) * m.chebyshev((inner - 1.5) * (4.0 / 3.0), LGAMMA[:13])
    far = m.minimum(m.maximum(x, start), 175.0)
    outer = (far - 0.5) * m.log(far) - far + _HALF_LOG_2PI
    outer = outer + _in_powers_of_inverse_square(m, far, _STIRLING) / far
    return m.where(is_far, 1.0, product) * m.exp(m.where(is_far, outer, near))


def gamma(m: Any, x: Any) -> Any:
    """Return Gamma(x): infinite at 0, NaN at -1, -2, ... and at -inf."""
    near_zero = (x > -0.25) & (x < 0.75)
    reflected = x <= -0.25
    value = _gamma_positive(m, m.where(near_zero, 1.0 + x, m.where(reflected, 1.0 - x, x)))
    whole = m.floor(x + 0.5)
    sine = m.sin(math.pi * (x - whole))  # of pi x, but for the sign (-1)^whole
    mirrored = math.pi / m.where(reflected, sine, 1.0) / value
    mirrored = m.where(_is_odd(m, whole), -mirrored, mirrored)
    result = m.where(near_zero, value / m.where(near_zero, x, 1.0),
                     m.where(reflected, mirrored, value))  # fmt: skip
    result = m.where(x > 175.0, math.inf, result)
    return m.where((x < 0.0) & _is_whole(m, x), math.nan, result)


def gamma_sign(m: Any, x: Any) -> Any:
    """Return the sign of Gamma(x): 1 or -1."""
    return m.where((x < 0.0) & _is_odd(m, m.floor(x)), -1.0, 1.0)


def _is_mirrored(m: Any, p: Any, q: Any) -> Any:
    """Return where p = 0, -1, ... and q is a whole number > 0 with p + q <= 0."""
    return (p <= 0.0) & _is_whole(m, p) & _is_whole(m, q) & (q > 0.0) & (p + q <= 0.0)


def betaln(m: Any, a: Any, b: Any) -> Any:
    """Return log |B(a, b)|: infinite at its poles, where a or b is 0, -1, ..."""
    low, high = m.minimum(a, b), m.maximum(a, b)
    mirrored = _is_mirrored(m, low, high)
    pole = ((a <= 0.0) & _is_whole(m, a)) | ((b <= 0.0) & _is_whole(m, b))
    pole = pole & ~mirrored & (a == a) & (b == b)
    a, b = m.where(mirrored, 1.0 - low - high, a), m.where(mirrored, high, b)
    return m.where(pole, math.inf, _betaln(m, a, b))


def _betaln(m: Any, a: Any, b: Any) -> Any:
    positive = (a > 0.0) & (b > 0.0)
    p, q = m.where(positive, m.maximum(a, b), 1.0), m.where(positive, m.minimum(a, b), 1.0)
    small = lgamma(m, m.minimum(q, 10.0)) - gamma_ratio(m, p, m.minimum(q, 10.0))
    u, v = m.maximum(p, 10.0), m.maximum(q, 10.0)
    ratio = v / u
    both = HALF_LOG_2PI + stirling_error(u) + stirling_error(v) - stirling_error(u + v)
    both = both - 0.5 * m.log(v) - (u - 0.5) * m.log1p(ratio)
    both = both + v * m.where(ratio < 1e-300, -math.inf, m.log(ratio) - m.log1p(ratio))
    value = m.where(q > 10.0, both, small)
    value = m.where((p == math.inf) & (q > 0.0), -math.inf, value)
    sums = lgamma(m, a) + lgamma(m, b) - lgamma(m, a + b)
    low, high = m.minimum(a, b), m.maximum(a, b)
    sums = m.where((high == math.inf) & (low < 0.0) & (low > -math.inf), math.inf, sums)
    return m.where(positive, value, sums)


def beta(m: Any, a: Any, b: Any) -> Any:
    """Return B(a, b)."""
    size = gamma_sign(m, a) * gamma_sign(m, b) * gamma_sign(m, a + b) * m.exp(betaln(m, a, b))
    # B(-n, b) = (-1)^b B(1 - n - b, b) for whole b <= n
    p, q = m.minimum(a, b), m.maximum(a, b)
    mirrored = _is_mirrored(m, p, q)
    return m.where(mirrored & _is_odd(m, q), -m.abs(size), m.where(mirrored, m.abs(size), size))


def poch(m: Any, z: Any, n: Any) -> Any:
    """Return the rising factorial Gamma(z + n) / Gamma(z), of whole z <= 0 with whole n too."""
    end = z + n
    positive = (z > 0.0) & (end > 0.0)
    low, step = m.where(positive, m.minimum(z, end), 1.0), m.where(positive, m.abs(n), 0.0)
    ratio = gamma_ratio(m, low, step)
    value = m.exp(m.where(n < 0.0, -ratio, ratio))
    # z (z + 1) ... = (-1)^n (1 - end)(2 - end) ... (-z)
    pole = (z <= 0.0) & _is_whole(m, z)
    mirrored = pole & _is_whole(m, n) & (end <= 0.0) & (m.abs(n) < math.inf)
    # or its inverse, for n < 0
    last = m.where(mirrored, 1.0 - m.maximum(z, end), 1.0)
    falling = gamma_ratio(m, last, m.where(mirrored, m.abs(n), 0.0))
    falling = m.exp(m.where(n < 0.0, -falling, falling))
    falling = m.where(_is_odd(m, n), -falling, falling)
    other = gamma_sign(m, z) * gamma_sign(m, end) * m.exp(lgamma(m, end) - lgamma(m, z))
    other = m.where(pole, 0.0 * end, other)
    value = m.where(positive, value, m.where(mirrored, falling, other))
    value = m.where((n == math.inf) & (z > 0.0), math.inf, value)
    value = m.where((z == math.inf) & (m.abs(n) < math.inf), m.where(n < 0.0, 0.0, math.inf), value)
    return m.where((n == 0.0) & (z == z), 1.0, value)


def _is_pole(x: Any) -> Any:
    """Return where x is 0, -1, -2, ..."""
    return bind("and", bind("le", x, scalar_like(x, 0)), bind("eq", bind("floor", x), x))


def _digamma_less(x: Any, y: Any) -> Any:
    """Return digamma(x) - digamma(y), at poles of both its limit along x - y.

    By reflection (DLMF 5.5.4) it is digamma(1 - x) - digamma(1 - y), x - y being a whole number.
    """
    one, poles = scalar_like(x, 1), bind("and", _is_pole(x), _is_pole(y))
    x, y = select(poles, sub(one, x), x), select(poles, sub(one, y), y)
    return sub(bind("digamma", x), bind("digamma", y))


def _near_zero(value: Any, x: Any, log: Any) -> Any:
    """Return the derivative of F / Gamma(x) in x, for F with d log F/dx = `log`, where x is a pole.

    By reflection (DLMF 5.5.3) it is F Gamma(1 - x) sin(pi x) / pi, whose derivatives are right.
    """
    less, angle = sub(scalar_like(x, 1), x), table.scale_by(x, math.pi)
    sine = mul(bind("sin", angle), sub(log, bind("digamma", less)))
    inner = add(bind("cos", angle), table.scale_by(sine, 1 / math.pi))
    return mul(mul(value, bind("gamma", less)), inner)


def _differentiate_poch(y: Any, z: Any, n: Any) -> Any:
    """Return d/dz Gamma(z + n) / Gamma(z), at the zeros of 1 / Gamma(z), too."""
    one, end = scalar_like(z, 1), add(z, n)
    zero = bind("and", _is_pole(z), bind("not", _is_pole(end)))
    # near 0 too, where second derivatives of y digamma(z) lose all digits, unless Gamma overflows
    inside = bind("and", bind("gt", end, scalar_like(z, 0.25)), bind("lt", end, scalar_like(z, 30)))
    near = bind("and", bind("lt", bind("abs", z), scalar_like(z, 0.25)), inside)
    zero = bind("or", zero, near)
    safe = select(zero, end, one)
    at_zero = _near_zero(bind("gamma", safe), select(zero, z, sub(one, one)),
                         bind("digamma", safe))  # fmt: skip
    return select(zero, at_zero, mul(y, _digamma_less(end, select(zero, one, z))))


def _differentiate_beta(y: Any, a: Any, b: Any) -> Any:
    """Return dB/da, at the zeros of 1 / Gamma(a + b), too."""
    one, both = scalar_like(a, 1), add(a, b)
    regular = bind("not", bind("or", _is_pole(a), _is_pole(b)))
    zero = bind("and", _is_pole(both), regular)
    first, second = select(zero, a, one), select(zero, b, one)
    value = mul(bind("gamma", first), bind("gamma", second))
    at_zero = _near_zero(value, select(zero, both, sub(one, one)), bind("digamma", first))
    return select(zero, at_zero, mul(y, _digamma_less(a, select(zero, one, both))))


gamma_p = table.unary(
    "gamma", FLOATING, numpy=numpy_rule(gamma), stablehlo=stablehlo_rule(gamma),
    jvp=lambda x_dot, y, x: mul(x_dot, mul(y, bind("digamma", x))), cost=costs.special,
)  # fmt: skip

betaln_p = binary(
    "betaln", FLOATING, numpy=numpy_rule(betaln), stablehlo=stablehlo_rule(betaln),
    jvp=(lambda a_dot, z, a, b: mul(a_dot, _digamma_less(a, add(a, b))),
         lambda b_dot, z, a, b: mul(b_dot, _digamma_less(b, add(a, b)))),
    cost=costs.special,
)  # fmt: skip

beta_p = binary(
    "beta", FLOATING, numpy=numpy_rule(beta), stablehlo=stablehlo_rule(beta),
    jvp=(lambda a_dot, y, a, b: mul(a_dot, _differentiate_beta(y, a, b)),
         lambda b_dot, y, a, b: mul(b_dot, _differentiate_beta(y, b, a))),
    cost=costs.special,
)  # fmt: skip

poch_p = binary(
    "poch", FLOATING, numpy=numpy_rule(poch), stablehlo=stablehlo_rule(poch),
    jvp=(lambda z_dot, y, z, n: mul(z_dot, _differentiate_poch(y, z, n)),
         lambda n_dot, y, z, n: mul(n_dot, mul(y, bind("digamma", add(z, n))))),
    cost=costs.special,
)  # fmt: skip
