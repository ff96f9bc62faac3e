"""Incomplete gamma functions: igamma, igammac, and their derivatives.

    igamma(a, x) = P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt,    igammac = Q = 1 - P

Of P and Q that one is computed which is not near 1, the other is one minus it:

    a <= 30, x below the median: P by its series (DLMF 8.7.1, of positive terms: 8.7.2)
    a <= 30, x < 3/2, above it:  Q by the series in powers of x about 1 - x^a / Gamma(a + 1)
    a <= 30, x above both:       Q by its continued fraction (DLMF 8.9.2)
    a > 30:                      the tail of the density on the side of x (`special_densities`)

each with the derivative in a carried along, as multiples of D = x^a e^-x / Gamma(a + 1), so that
`random_gamma_grad`, dx/da of a sample x of a gamma distribution with its quantile held fixed,
which is -(dP/da) / (dP/dx) with dP/dx = D a / x, needs no D.

Neighbours: `special_beta` has the incomplete beta function.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.operations import bind, div, mul, neg, scalar_like, selected, sub
from xnp.primitives.special_densities import (
    bend,
    gamma_shifted,
    log1p_less,
    log_less_digamma,
    reach,
    stirling_error,
    tail,
)
from xnp.primitives.special_gamma import lgamma1p, unsupported
from xnp.primitives.table import FLOATING, binary

__all__ = ()

_LARGE = 30.0  # the least a whose density is integrated
_MOST_TERMS = 150  # of series and continued fraction: they need 90 at most


def _series(m: Any, a: Any, x: Any, slopes: bool) -> Any:
    """Return S = P / D = sum x^n / ((a+1) ... (a+n)), and dS/da, for x < a or so."""

    def unfinished(m: Any, a: Any, x: Any, term: Any, dterm: Any, total: Any, dtotal: Any) -> Any:
        going = term > m.precision.eps * total
        return going | (m.abs(dterm) > m.precision.eps * m.abs(dtotal)) if slopes else going

    def step(m: Any, n: Any, a: Any, x: Any, term: Any, dterm: Any, total: Any,
             dtotal: Any) -> Any:  # fmt: skip
        inverse = 1.0 / (a + n)
        ratio = x * inverse
        dterm = (dterm - term * inverse) * ratio
        term = term * ratio
        return a, x, term, dterm, total + term, dtotal + dterm

    zero = 0.0 * a
    start = (a, x, 1.0 + zero, zero, 1.0 + zero, zero)
    return m.loop(unfinished, step, start, _MOST_TERMS)[4:6]


def _powers(m: Any, a: Any, x: Any) -> Any:
    """Return S = sum_{n > 0} (-x)^n / ((a+n) n!), and dS/da, for x < 3/2."""

    def unfinished(m: Any, a: Any, x: Any, power: Any, total: Any, dtotal: Any) -> Any:
        return m.abs(power) > m.precision.eps * m.abs(total)

    def step(m: Any, n: Any, a: Any, x: Any, power: Any, total: Any, dtotal: Any) -> Any:
        power = power * (-x / n)
        inverse = 1.0 / (a + n)
        term = power * inverse
        return a, x, power, total + term, dtotal - term * inverse

    zero = 0.0 * a
    return m.loop(unfinished, step, (a, x, 1.0 + zero, zero, zero), _MOST_TERMS, wide=True)[3:5]


def _fraction(m: Any, a: Any, x: Any, slopes: bool) -> Any:
    """Return h = Q / (D a) and d log(h) / da, for x > a, x > 3/2.

    By Lentz's method as modified by Thompson and Barnett (1986).
    """
    b = x + 1.0 - a
    d, zero = 1.0 / b, 0.0 * a

    def unfinished(m: Any, a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any, slope: Any,
                   change: Any) -> Any:  # fmt: skip
        return change > m.precision.eps

    def step(m: Any, n: Any, a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any, slope: Any,
             change: Any) -> Any:  # fmt: skip
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
        if slopes:
            change = m.maximum(change, m.abs(added))
        return a, b, c, d, dc, dd, h * ratio, slope + added, change

    start = (a, b, 1e30 + zero, d, zero, d * d, d, d, 1.0 + zero)
    return m.loop(unfinished, step, start, _MOST_TERMS, wide=True)[6:8]


def _tail(m: Any, a: Any, x: Any, needed: Any) -> tuple[Any, Any]:
    """Return P / D for x < a, else Q / D, and the same with log(t / x) as a factor, for a > 30.

    With t = x (1 + d), int t^(a-1) e^-t dt = x^a e^-x int (1 + d)^(a-1) e^(-x d) dd.
    """
    upwards = x >= a
    slope = a - 1.0 - x
    length = reach(m, m.abs(slope), a - 1.0, upwards)
    length = m.where(upwards, length, -m.minimum(length, 1.0))

    def integrand(m: Any, t: Any, length: Any, slope: Any, curvature: Any) -> tuple[Any, Any]:
        d = t * length
        log = m.log1p(d)
        value = m.exp(t * (slope + t * curvature * bend(m, d, log)))
        return value, value * log

    values = (length, slope * length, (a - 1.0) * length * length)
    value, with_log = tail(m, integrand, needed, values, 2)
    scale = a * m.abs(length)
    return scale * value, scale * with_log


def _density(m: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
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

    def __init__(self, m: Any, a: Any, x: Any, slopes: bool) -> None:
        log_x = m.log(x)
        large, small_x = a > _LARGE, x < 1.5
        # where P is near 1/2
        median = m.where(x < 0.5, -0.4 / m.where(x < 0.5, log_x, -1.0), m.minimum(1.1 * x, 1.25))
        self.of_p = of_p = a > m.where(large | ~small_x, x, median)
        by_series, by_powers = of_p & ~large, small_x & ~of_p & ~large
        by_fraction = ~(large | small_x | of_p)

        self.density, digamma, log_ratio = _density(m, a, x)
        outer = m.maximum(a, 10.0)

        def operands(needed: Any, safe_x: float, least: float, most: float) -> tuple[Any, Any]:
            within = m.minimum(m.maximum(x, least), most)
            return m.where(needed, a, 1.0), m.where(needed, within, safe_x)

        series, dseries = _series(m, *operands(by_series, 0.0, 0.0, _LARGE), slopes)
        powers, dpowers = _powers(m, *operands(by_powers, 0.0, 0.0, 1.5))
        # h x is 1 beyond 1e20, and h denormal beyond 1e300
        x_far, self.x = m.minimum(x, 1e20), m.where(by_fraction, m.minimum(x, 1e290), x)
        h, dlog_h = _fraction(m, *operands(by_fraction, 1e20, 1.5, 1e20), slopes)
        h = h * (x_far / self.x)
        tails, with_log = _tail(m, outer, x, large)

        # of the fraction of small x: g = x^a / Gamma(a + 1), which is near 1
        log_g = a * log_x - lgamma1p(m, m.minimum(a, 1.25))
        less = m.expm1(m.where(by_powers, log_g, 0.0))
        value = self.density * m.where(
            large, tails, m.where(of_p, series, m.where(small_x, 0.0, a * h))
        )
        self.value = m.where(by_powers, -less - (1.0 + less) * (a * powers), value)

        gap = log_x - digamma
        slope = m.where(of_p, gap * series + dseries, h * (a * (gap + dlog_h) + 1.0))
        at_small = -m.exp(m.minimum(x, 1.5)) * (gap * (1.0 + a * powers) + powers + a * dpowers)
        slope = m.where(by_powers, at_small, slope)
        at_large = (log_ratio + log_less_digamma(outer)) * tails + with_log
        self.slope = m.abs(m.where(large, at_large, slope))


def _inside(m: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return the mask of finite a >= 0 and x > 0, and operands that are such everywhere."""
    inside = (a >= 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    return inside, m.where(inside, a, 1.0), m.where(inside, x, 1e-20)


def _regularized(m: Any, a: Any, x: Any, upper: bool) -> Any:
    inside, a0, x0 = _inside(m, a, x)
    parts = _Parts(m, a0, x0, slopes=False)
    value = m.maximum(m.minimum(parts.value, 1.0), 0.0)
    of_p, other = parts.of_p, 1.0 - value
    value = m.where(of_p, other, value) if upper else m.where(of_p, value, other)
    low, high = (x == 0.0) | (a == math.inf), (x == math.inf) | (a == 0.0)
    edge = m.where(low, 1.0 if upper else 0.0, 0.0 if upper else 1.0)
    outside = (low & high) | (a < 0.0) | (x < 0.0) | ~((a == a) & (x == x))
    return m.where(inside, value, m.where(outside, math.nan, edge))


def igamma(m: Any, a: Any, x: Any) -> Any:
    """Return P(a, x)."""
    return _regularized(m, a, x, upper=False)


def igammac(m: Any, a: Any, x: Any) -> Any:
    """Return Q(a, x)."""
    return _regularized(m, a, x, upper=True)


def igamma_grad_a(m: Any, a: Any, x: Any) -> Any:
    """Return dP/da, which is not positive."""
    inside, a0, x0 = _inside(m, a, x)
    parts = _Parts(m, a0, x0, slopes=True)
    value = m.where(inside, -parts.density * parts.slope, math.nan)
    return m.where(_at_end(m, a, x), 0.0, value)


def random_gamma_grad(m: Any, a: Any, x: Any) -> Any:
    """Return dx/da at a fixed quantile, which is not negative."""
    inside, a0, x0 = _inside(m, a, x)
    parts = _Parts(m, a0, x0, slopes=True)
    value = m.where(inside, parts.x * parts.slope / m.abs(a0), math.nan)
    return m.where(_at_end(m, a, x), m.where(x == math.inf, math.inf, 0.0), value)


def igamma_grad_x(m: Any, a: Any, x: Any) -> Any:
    """Return dP/dx = x^(a-1) e^-x / Gamma(a)."""
    inside, a0, x0 = _inside(m, a, x)
    value = m.where(inside, _density(m, a0, x0)[0] * (a0 / x0), math.nan)
    value = m.where(_at_end(m, a, x), 0.0, value)
    at_zero = m.where(a < 1.0, math.inf, m.where(a == 1.0, 1.0, 0.0))
    return m.where((x == 0.0) & (a > 0.0) & (a < math.inf), at_zero, value)


def _at_end(m: Any, a: Any, x: Any) -> Any:
    """Return the mask where one of the operands is 0 or infinite and P constant in the other."""
    by_x = (((x == 0.0) & (a > 0.0)) | ((x == math.inf) & (a >= 0.0))) & (a < math.inf)
    return by_x | ((a == math.inf) & (x >= 0.0) & (x < math.inf))


# --- primitives ---------------------------------------------------------------------------------


def _mixed(p: Any, a: Any, x: Any) -> Any:
    """Return d2P/(da dx) = p (log x - digamma(a)), which is 0 where p = dP/dx is."""
    slope = mul(p, sub(bind("log", x), bind("digamma", a)))
    return selected(bind("eq", p, scalar_like(p, 0)), scalar_like(p, 0), slope)


def _curvature(p: Any, a: Any, x: Any) -> Any:
    """Return d2P/dx2 = p ((a - 1) / x - 1), at x = 0 by its limit."""
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    at_zero = bind("eq", x, zero)
    less = sub(a, one)
    inner = mul(p, sub(div(less, selected(at_zero, one, x)), one))
    # p(a - 1, 0), of which Gamma(a - 1) has the sign, less p(a, 0)
    below = selected(bind("eq", less, zero), neg(one), scalar_like(x, -math.inf))
    limit = selected(bind("gt", less, zero), bind("igamma_grad_x", less, x), below)
    return selected(at_zero, limit, inner)


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
    jvp=(lambda a_dot, p, a, x: mul(a_dot, _mixed(p, a, x)),
         lambda x_dot, p, a, x: mul(x_dot, _curvature(p, a, x))),
    cost=costs.special,
)  # fmt: skip

igamma_grad_a_p = binary(
    "igamma_grad_a", FLOATING, numpy=numpy_rule(igamma_grad_a),
    stablehlo=stablehlo_rule(igamma_grad_a),
    jvp=(unsupported("igamma_grad_a", "a"),
         lambda x_dot, y, a, x: mul(x_dot, _mixed(_grad_x(a, x), a, x))),
    cost=costs.special,
)  # fmt: skip

random_gamma_grad_p = binary(
    "random_gamma_grad", FLOATING, numpy=numpy_rule(random_gamma_grad),
    stablehlo=stablehlo_rule(random_gamma_grad),
    jvp=(unsupported("random_gamma_grad", "a"), unsupported("random_gamma_grad", "x")),
    cost=costs.special,
)  # fmt: skip
