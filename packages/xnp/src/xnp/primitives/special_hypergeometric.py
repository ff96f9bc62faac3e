"""Confluent and Gauss's hypergeometric functions, and Owen's T: hyp1f1, hyp2f1, owens_t.

    hyp1f1(a, b, x) = sum (a)_k / (b)_k x^k / k!
    hyp2f1(a, b, c, x) = sum (a)_k (b)_k / (c)_k x^k / k!
    owens_t(h, a) = 1/(2 pi) int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx

By their series where it ends, or where its terms do not cancel: for x < 0 after Kummer's
transformation (DLMF 13.2.39) or Pfaff's (15.8.1), for x < -600 by the asymptotic series of hyp1f1
(13.7.2). For x near 1 by the linear transformation to 1 - x (15.8.4); where c - a - b is near a
whole number its two parts have opposite poles, which are taken together in divided differences
(N. Michel and M. Stoitsov, Fast computation of the Gauss hypergeometric function, 2008). Parameters
of different signs may make terms cancel; then digits are lost. The derivatives in parameters are
those of the formulas (`formula_derivatives`). Owen's T is integrated by the Gauss-Legendre rule,
for a > 1 after T(h, a) = (q + r)/2 - q r - T(a h, 1/a), with the tails q of h and r of a h (Owen,
1956).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.formula_derivatives import derivatives_of, with_parameters
from xnp.primitives.operations import add, bind, div, mul, scalar_like, scaled
from xnp.primitives.special_gamma import digamma_positive, lgamma, lgamma_positive
from xnp.primitives.special_normal import normal_density, normal_tail
from xnp.primitives.table import FLOATING, binary

__all__ = ()

_MOST_TERMS = 2000
_EPS = 5e-17  # what is left of a series may be many times its last term
_FAR = 600.0
_NEAR_ONE = 0.9  # from where on the series is one in 1 - x
_NEAR_WHOLE = 0.1  # distance of c - a - b from a whole number below which parts are taken together
_MOST_WHOLE = 60.0  # of the greatest such number: beyond, the series in x has few terms


def _series(m: Any, a: Any, b: Any, c: Any, x: Any, first: Any, confluent: bool) -> Any:
    """Return `first` times the series; `b` is not looked at where it is confluent."""

    def unfinished(m: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any) -> Any:
        return m.matters(term, total, _EPS)

    def step(m: Any, n: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any) -> Any:
        k = n - 1.0
        above = (a + k) if confluent else (a + k) * (b + k)
        following = term * (above / (c + k) * (x / n))
        if not (m.varies(a) or m.varies(b)):  # it ends, also where c + k is 0 or x is infinite
            following = m.where(above == 0.0, 0.0, following)
        # a sum that is done, or infinite, stays what it is while others go on
        term = m.where(unfinished(m, a, b, c, x, term, total), following, 0.0)
        return a, b, c, x, term, total + term

    start = (a, b, c, x, first, first)
    return m.loop(unfinished, step, start, _MOST_TERMS, wide=True)[5]


def _is_whole(m: Any, x: Any) -> Any:
    return m.floor(x) == x


def _ends(m: Any, a: Any) -> Any:
    """Return where a series ends for a = 0, -1, ...: if a is no variable of differentiation."""
    ends = (a <= 0.0) & _is_whole(m, a)
    return ends & ~ends if m.varies(a) else ends


def _within(m: Any, x: Any) -> Any:
    """Return infinite values as large ones, at which a polynomial has the sign of its last term."""
    return m.where(m.abs(x) == math.inf, m.where(x > 0.0, 1e15, -1e15), x)


def _sine(m: Any, x: Any) -> Any:
    """Return sin(pi x)."""
    whole = m.floor(x + 0.5)
    sine = m.sin(math.pi * (x - whole))
    return m.where(m.floor(0.5 * whole) == 0.5 * whole, sine, -sine)


def _inverse_gamma(m: Any, x: Any) -> tuple[Any, Any]:
    """Return (factor, l) with 1 / Gamma(x) = factor e^-l: the factor is 0 at 0, -1, -2, ..."""
    near_zero, reflected = (x > -0.25) & (x < 0.75), x <= -0.25
    log = lgamma_positive(m, m.where(near_zero, 1.0 + x, m.where(reflected, 1.0 - x, x)))
    one = 1.0 + 0.0 * x
    sine = _sine(m, m.where(reflected, x, 0.5)) * (1.0 / math.pi)
    return m.where(near_zero, x, m.where(reflected, sine, one)), m.where(reflected, -log, log)


def _gamma_quotient(m: Any, above: Any, below: Any) -> Any:
    """Return the product of Gamma of some values by that of others, 0 at the others' poles."""
    factor, log = 1.0, 0.0
    for x in above:
        of_x, log_x = _inverse_gamma(m, x)
        factor, log = factor / of_x, log + log_x
    for x in below:
        of_x, log_x = _inverse_gamma(m, x)
        factor, log = factor * of_x, log - log_x
    return factor * m.exp(log)


def hyp1f1(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return Kummer's function M(a, b, x); infinite where b = 0, -1, ..., unless it ends before."""
    ends = _ends(m, a)
    pole = (b <= 0.0) & _is_whole(m, b) & ~(ends & (a >= b))
    q = m.where(pole, 1.0, b)
    transformed = (x < 0.0) & ~ends
    far = transformed & (x < -_FAR) & ~_ends(m, q - a)
    p, y = m.where(transformed, q - a, a), m.where(transformed, -x, x)
    y = _within(m, m.where(far, 1.0, y))
    first = m.exp(m.where(transformed, -m.minimum(y, 1500.0), 0.0 * y))
    y = m.where(transformed | ~ends, m.minimum(y, 1500.0), y)
    value = _series(m, p, 0.0 * p, q, y, first, True)
    # Gamma(b) / Gamma(b - a) (-x)^-a sum (a)_k (a - b + 1)_k / (k! (-x)^k)
    z = m.where(far, m.minimum(-x, 1e300), 1e3)
    total, term = 1.0 + 0.0 * z, 1.0 + 0.0 * z
    for k in range(16):
        term = term * (a + float(k)) * (a - q + float(k + 1)) / (float(k + 1) * z)
        total = total + term
    distant = _gamma_quotient(m, [m.where(far, q, 1.0)], [m.where(far, q - a, 1.0)]) * total
    distant = distant * m.exp(-a * m.log(z))
    distant = m.where((x == -math.inf) & (a > 0.0), 0.0, distant)
    value = m.where(far, distant, value)
    value = m.where(ends & (m.abs(x) == math.inf) & ~(a == 0.0), value * math.inf, value)
    value = m.where(pole & ~(x == 0.0), math.inf, value)
    return m.where((a == a) & (b == b) & (x == x), value, math.nan)


# --- Gauss's function -----------------------------------------------------------------------------


def _two_parts(m: Any, a: Any, b: Any, c: Any, gap: Any, w: Any, ratio: Any) -> Any:
    """Return F(a, b; c; 1 - w) for a gap c - a - b that is no whole number.

    `ratio` is Gamma(c) Gamma(gap) / (Gamma(c - a) Gamma(c - b)).
    """
    one = 1.0 + 0.0 * w
    first = ratio * _series(m, a, b, 1.0 - gap, w, one, False)
    second = _gamma_quotient(m, [c, -gap], [a, b]) * m.exp(gap * m.log(w))
    return first + second * _series(m, c - a, c - b, 1.0 + gap, w, one, False)


def _growth(m: Any, u: Any) -> Any:
    """Return (e^u - 1) / u."""
    near = m.abs(u) < 0.3
    small, large = m.where(near, u, 0.0), m.where(near, 1.0, u)
    series = 1.0 + 0.0 * u
    for k in range(13, 1, -1):
        series = 1.0 + small * (1.0 / k) * series
    return m.where(near, series, m.expm1(large) / large)


def _sine_ratio(m: Any, x: Any) -> Any:
    """Return sin(pi x) / (pi x) for |x| <= 1/4."""
    square = x * x * (-math.pi * math.pi)
    series = 1.0 + 0.0 * x
    for k in range(18, 0, -2):
        series = 1.0 + square * (1.0 / (k * (k + 1))) * series
    return series


_NODES = 10


def _mean_digamma(m: Any, x: Any, width: Any) -> Any:
    """Return the mean of digamma from x to x + width, for x >= 1/2 and |width| <= 1/10."""

    def step(m: Any, n: Any, node: Any, weight: Any, x: Any, width: Any, total: Any) -> Any:
        return x, width, total + weight * digamma_positive(m, x + node * width)

    return m.loop(None, step, (x, width, 0.0 * x), _NODES, _rule(_NODES), wide=True)[2]


# The coefficients of 1 / Gamma(1 + z) from z on (DLMF 5.7.1).
_INVERSE_GAMMA = (
    0.5772156649015329, -0.6558780715202539, -0.04200263503409524, 0.16653861138229148,
    -0.04219773455554433, -0.009621971527876973, 0.0072189432466631, -0.0011651675918590652,
    -0.00021524167411495098, 0.0001280502823881162, -2.013485478078824e-05,
    -1.2504934821426706e-06, 1.133027231981696e-06, -2.056338416977607e-07,
)  # fmt: skip


def _slope_at_1(m: Any, width: Any) -> Any:
    """Return (1 / Gamma(1 + width) - 1) / width."""
    *others, last = _INVERSE_GAMMA
    series = last + 0.0 * width
    for c in others[::-1]:
        series = series * width + c
    return series


def _inverse_gamma_slope(m: Any, x: Any, width: Any, positive: bool = False) -> tuple[Any, Any]:
    """Return 1 / Gamma(x), and (1 / Gamma(x + width) - 1 / Gamma(x)) / width or its limit.

    For |width| <= 1/10. `positive` says that x is 1/2 or more.
    """
    if positive:
        mean, value = _mean_digamma(m, x, width), m.exp(-lgamma_positive(m, m.maximum(x, 0.75)))
        return value, -mean * _growth(m, -width * mean) * value
    # below 1/2 of Gamma(1 - x) sin(pi x) / pi
    reflected = x < 0.5
    y, d = m.where(reflected, 1.0 - x, x), m.where(reflected, -width, width)
    mean = _mean_digamma(m, y, d)
    rise = d * mean
    log = lgamma(m, y)
    size = m.exp(m.where(reflected, log, -log))
    change = -mean * _growth(m, m.where(reflected, rise, -rise)) * size
    sine = _sine(m, x) * (1.0 / math.pi)
    middle = m.cos(math.pi * (x + 0.5 * width - 2.0 * m.floor(0.5 * x)))
    sines = middle * _sine_ratio(m, 0.5 * width) * size * m.exp(m.where(reflected, rise, 0.0))
    value = m.where(reflected, sine * size, size)
    return value, m.where(reflected, sines + sine * change, change)


def _whole_gap(m: Any, a: Any, b: Any, c: Any, gap: Any, w: Any, ratio: Any) -> Any:
    """Return F(a, b; c; 1 - w) for a gap c - a - b >= 0 near a whole number n.

    With e = gap - n the parts are, beside the n terms that have no pole,

        (-1)^n pi e / sin(pi e) Gamma(c) sum_k w^(n + k) (u_k - v_k) / e

    `ratio` is Gamma(c) Gamma(gap) / (Gamma(c - a) Gamma(c - b)).
    """
    n = m.floor(gap + 0.5)
    e = gap - n
    x, y = a + n, b + n

    def head(m: Any, k: Any, a: Any, b: Any, w: Any, n: Any, e: Any, term: Any, total: Any,
             start: Any) -> Any:  # fmt: skip
        j = k - 1.0
        active = j < n
        total = m.where(active, total + term, total)
        left = m.where(j < n - 1.0, n - k + e, 1.0)
        product = (a + j) * (b + j) * (w / k)
        term = m.where(active, -term * product / left, term)
        return a, b, w, n, e, term, total, m.where(active, start * product, start)

    one = 1.0 + 0.0 * w
    values = (a, b, w, n, e, one, 0.0 * w, one)
    total, start = m.loop(None, head, values, int(_MOST_WHOLE) + 1, wide=True)[6:8]
    # u_0 - v_0 by its factors; `start` is (a)_n (b)_n w^n / n!
    of_x, x_slope = _inverse_gamma_slope(m, x, e)
    of_y, y_slope = _inverse_gamma_slope(m, y, e)
    of_n, n_slope = _inverse_gamma_slope(m, 1.0 + n, e, positive=True)
    e_slope = _slope_at_1(m, -e)
    next_x, next_y, of_e = of_x + e * x_slope, of_y + e * y_slope, 1.0 - e * e_slope
    first = x_slope * next_y * of_e + of_x * (y_slope * of_e - of_y * e_slope)
    log_w = m.log(w)
    later = log_w * _growth(m, e * log_w) * (of_n + e * n_slope) + n_slope
    beta = start * (first - of_x * of_y * (later / of_n))
    gamma = start * next_x * next_y * of_e

    def unfinished(m: Any, x: Any, y: Any, w: Any, n: Any, e: Any, beta: Any, gamma: Any,
                   total: Any) -> Any:  # fmt: skip
        return m.matters(beta, total, _EPS) | m.matters(gamma, total, _EPS)

    def tail(m: Any, k: Any, x: Any, y: Any, w: Any, n: Any, e: Any, beta: Any, gamma: Any,
             total: Any) -> Any:  # fmt: skip
        active = unfinished(m, x, y, w, n, e, beta, gamma, total)
        j = k - 1.0
        p, q, r = x + j, y + j, n + k
        # the quotients of successive u and v, and their difference by e
        of_v = (p + e) * (q + e) / (k * (r + e))
        of_u = p * q / (r * (k - e))
        difference = (of_u * ((r + k) / k) - (p + q + e) / k) / (r + e)
        beta = m.where(active, w * (of_v * beta + difference * gamma), 0.0)
        gamma = m.where(active, w * gamma * of_u, 0.0)
        return x, y, w, n, e, beta, gamma, total + beta

    values = (x, y, w, n, e, beta, gamma, beta)
    tails = m.loop(unfinished, tail, values, _MOST_TERMS, wide=True)[7]
    factor, log = _inverse_gamma(m, c)
    tails = tails * m.exp(log) / (_sine_ratio(m, e) * factor)
    tails = m.where(m.floor(0.5 * n) == 0.5 * n, tails, -tails)
    return m.where(n > 0.0, ratio * total + tails, tails)


def _near_one(m: Any, a: Any, b: Any, c: Any, w: Any, z: Any, direct: Any, near_one: Any) -> Any:
    """Return F(a, b; c; z) for z near 1, where w = 1 - z, and by Gauss's formula at 1."""
    # F(a, b; c; z) = w^gap F(c - a, c - b; c; z)
    gap = c - a - b
    turned = (gap < -0.5) & near_one
    factor = m.where(turned, m.exp(gap * m.log(w)), 1.0)
    a, b, gap = m.where(turned, c - a, a), m.where(turned, c - b, b), m.where(turned, -gap, gap)
    is_whole = m.abs(gap - m.floor(gap + 0.5)) < _NEAR_WHOLE
    infinite = (gap == 0.0) | ((gap < 0.0) & (z == 1.0))
    ratio = _gamma_quotient(m, [c, m.where(infinite, 0.5, gap)], [c - a, c - b])
    whole, parts = near_one & is_whole, near_one & ~is_whole

    def of(mask: Any, formula: Any) -> Any:
        pairs = ((a, 0.3), (b, 0.6), (c, 1.3), (gap, 0.4), (w, 0.05), (ratio, 1.0))
        values = [m.where(mask, value, other) for value, other in pairs]
        return m.if_any(mask, formula, values)

    value = m.where(whole, of(whole, _whole_gap), m.where(parts, of(parts, _two_parts), direct))
    at_one = m.where(gap > 0.0, ratio, math.inf)
    return factor * m.where((z == 1.0) & ~near_one, at_one, value)


def hyp2f1(m: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return Gauss's function F(a, b; c; x) for x <= 1, and where it ends; beyond infinite."""
    # beyond 1 it is real where it is a whole power of 1 - x times a series that ends (15.8.1)
    gap = c - a - b
    turned = (x > 1.0) & _is_whole(m, gap) & (_ends(m, c - a) | _ends(m, c - b))
    turned = turned & ~(_ends(m, a) | _ends(m, b))
    power = m.exp(m.where(turned, gap * m.log(m.where(turned, x - 1.0, 1.0)), 0.0))
    power = m.where(turned & ~(m.floor(0.5 * gap) == 0.5 * gap), -power, power)
    a, b = m.where(turned, c - a, a), m.where(turned, c - b, b)
    ends = turned | _ends(m, a) | _ends(m, b)
    # where c = 0, -1, ... the series has a pole, unless it ends before
    before = (_ends(m, a) & (a >= c)) | (_ends(m, b) & (b >= c)) | turned
    pole = (c <= 0.0) & _is_whole(m, c) & ~before
    a, b, c = [m.where(pole, v, u) for v, u in ((0.5, a), (0.5, b), (1.0, c))]
    negative = (x < 0.0) & ~ends
    # F(a, b; c; x) = (1 - x)^-a F(a, c - b; c; x / (x - 1)); 1 - x / (x - 1) = 1 / (1 - x)
    swapped = negative & (a > b)
    a, b = m.where(swapped, b, a), m.where(swapped, a, b)
    below = m.maximum(m.where(negative, x, -0.5), -1e300)
    z = m.where(negative, below / (below - 1.0), x)
    factor = m.where(negative, m.exp(-a * m.log1p(-below)), power)
    b1 = m.where(negative, c - b, b)
    near_one = (z > _NEAR_ONE) & (z < 1.0) | (negative & (below < -9.0))
    near_one = near_one & ~ends & (m.abs(c - a - b1) < _MOST_WHOLE)
    w = m.where(near_one, m.where(negative, 1.0 / (1.0 - below), 1.0 - z), 0.05)
    inside = ((z < 1.0) | ends) & ~near_one
    z0 = _within(m, m.where(inside, z, 0.5))
    direct = _series(m, a, b1, c, z0, 1.0 + 0.0 * z0, False)
    value = _near_one(m, a, b1, c, w, m.where(ends, 0.5, z), direct, near_one)
    value = factor * value
    end = m.where(a > 0.0, 0.0, m.where(a == 0.0, value, value * math.inf))
    value = m.where((x == -math.inf) & ~ends, end, value)
    endless = ends & (m.abs(x) == math.inf) & ~((a == 0.0) | (b == 0.0))
    value = m.where(endless, value * math.inf, value)
    value = m.where(((x > 1.0) & ~ends) | (pole & ~(x == 0.0)), math.inf, value)
    return m.where((a == a) & (b == b) & (c == c) & (x == x), value, math.nan)


# --- Owen's T -------------------------------------------------------------------------------------


@functools.cache
def _rule(points: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return tuple((0.5 + 0.5 * nodes).tolist()), tuple((0.5 * weights).tolist())


_POINTS = 40


def _owens_within(m: Any, h: Any, a: Any) -> Any:
    """Return T(h, a) for h >= 0 and 0 <= a <= 1: the integrand ends where h x is 9."""
    end = m.minimum(a, 9.0 / m.maximum(h, 1e-3))

    def step(m: Any, n: Any, node: Any, weight: Any, h: Any, end: Any, total: Any) -> Any:
        x = end * node
        square = x * x
        return h, end, total + weight * m.exp(-0.5 * h * h * square) / (1.0 + square)

    h = m.minimum(h, 50.0)
    start = (h, end, 0.0 * h)
    total = m.loop(None, step, start, _POINTS, _rule(_POINTS), wide=True)[2]
    return m.exp(-0.5 * h * h) * end * total * (0.5 / math.pi)


def owens_t(m: Any, h: Any, a: Any) -> Any:
    """Return Owen's T function, even in h and odd in a."""
    size, width = m.abs(h), m.abs(a)
    large = width > 1.0
    scaled_h = m.where(large, m.minimum(size * m.minimum(width, 1e300), 1e3), size)
    scaled_h = m.where(size == 0.0, 0.0, scaled_h)
    inner = _owens_within(m, scaled_h, m.where(large, 1.0 / m.maximum(width, 1.0), width))
    q, r = normal_tail(m, size), normal_tail(m, scaled_h)
    # at infinite a, r and the rest are 0, but for h = 0, where T is 1/4
    value = m.where(large, 0.5 * (q + r) - q * r - inner, inner)
    value = m.where(a < 0.0, -value, value)
    return m.where((h == h) & (a == a), value, math.nan)


# --- primitives -----------------------------------------------------------------------------------


def _next(x: Any) -> Any:
    return add(x, scalar_like(x, 1))


def hyp1f1_slope(derivative: Any, orders: Any, a: Any, b: Any, x: Any) -> Any:
    """d/dx M(a, b, x) = a / b M(a + 1, b + 1, x)   (DLMF 13.3.15), and so on by Leibniz's rule."""
    return _leibniz(orders, (a, None), b, lambda left: derivative(left, (_next(a), _next(b), x)))


def hyp2f1_slope(derivative: Any, orders: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    """d/dx F(a, b; c; x) = a b / c F(a + 1, b + 1; c + 1; x)   (DLMF 15.5.1), and so on."""
    operands = (_next(a), _next(b), _next(c), x)
    return _leibniz(orders, (a, b, None), c, lambda left: derivative(left, operands))


def _leibniz(orders: Any, factors: Any, divisor: Any, derivative: Any) -> Any:
    """Return the derivative of f times the factors by the divisor, the last parameter.

    The j-th derivative of 1 / c is (-1)^j j! / c^(j + 1).
    """
    choices = [range(min(n, 1) + 1) for n in orders[:-1]] + [range(orders[-1] + 1)]
    total = None
    for chosen in itertools.product(*choices):
        left = tuple([n - j for n, j in zip(orders, chosen, strict=True)])
        count = math.prod(math.comb(n, j) for n, j in zip(orders, chosen, strict=True))
        term = derivative(left)
        for j, factor in zip(chosen, factors[:-1], strict=False):
            term = term if j else mul(term, factor)
        for _ in range(chosen[-1] + 1):
            term = div(term, divisor)
        term = scaled(term, float((-1) ** chosen[-1] * math.factorial(chosen[-1]) * count))
        total = term if total is None else add(total, term)
    return total


hyp1f1_p = with_parameters("hyp1f1", hyp1f1, 2, hyp1f1_slope)
hyp1f1_derivative_p = derivatives_of("hyp1f1_derivative", hyp1f1, 2, hyp1f1_slope)
hyp2f1_p = with_parameters("hyp2f1", hyp2f1, 3, hyp2f1_slope)
hyp2f1_derivative_p = derivatives_of("hyp2f1_derivative", hyp2f1, 3, hyp2f1_slope)


def _owens_h(h_dot: Any, y: Any, h: Any, a: Any) -> Any:
    """dT/dh = -density(h) erf(a h / sqrt(2)) / 2."""
    slope = scaled(bind("erf", scaled(mul(h, a), math.sqrt(0.5))), -0.5)
    return mul(h_dot, mul(normal_density(h), slope))


def _owens_a(a_dot: Any, y: Any, h: Any, a: Any) -> Any:
    """dT/da = exp(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2))."""
    square = _next(mul(a, a))
    exponent = scaled(mul(mul(h, h), square), -0.5)
    return mul(a_dot, div(scaled(bind("exp", exponent), 0.5 / math.pi), square))


owens_t_p = binary(
    "owens_t", FLOATING, numpy=numpy_rule(owens_t), stablehlo=stablehlo_rule(owens_t),
    jvp=(_owens_h, _owens_a), cost=costs.special,
)  # fmt: skip
