"""The incomplete beta function and its density.

    betainc(a, b, x) = I_x(a, b) = 1/B(a, b) int_0^x t^(a-1) (1-t)^(b-1) dt

Of I_x(a, b) and I_(1-x)(b, a) = 1 - I_x(a, b) that one is computed whose x is below the mean: for
min(a, b) <= 30 by its continued fraction (DLMF 8.17.22) with Lentz's method as modified by Thompson
and Barnett (1986), beyond as the tail of the density (`special_densities`), each as a multiple of
D = x^a (1-x)^b / B(a, b). For b <= 1, where I may be small above the mean too, it is there

    I_x(a, b) = 1 - g - g b sum_{n > 0} (1-a)_n y^n / (n! (b+n)),   y = 1 - x,
    g = y^b Gamma(a+b) / (Gamma(a) Gamma(1+b))        (DLMF 8.17.7, 15.2.1)

with an expm1 for 1 - g.

Neighbours: `special_incomplete` has the incomplete gamma functions.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.formula_derivatives import derivatives_of, with_parameters
from xnp.primitives.operations import add, bind, div, mul, neg, scalar_like, selected, sub
from xnp.primitives.special_densities import (
    bend,
    gamma_shifted,
    log1p_less,
    reach,
    stirling_error,
    tail,
)
from xnp.primitives.special_gamma import lgamma1p
from xnp.primitives.table import FLOATING, elementwise_shape, repeated
from xprim import ELEMENTWISE, Primitive, Zero, state, undefined

__all__ = ()

_LARGE = 30.0  # the least a and b whose density is integrated
_MOST_STEPS = 150  # of the continued fraction: it needs 50 at most
_MOST_TERMS = 150  # of the series: it needs 90 at most


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


def _density(m: Any, a: Any, b: Any, x: Any, y: Any, ratio: Any) -> Any:
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


def _fraction(m: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return I_x(a, b) / D for x below the mean or so.

    The even part of the continued fraction of DLMF 8.17.22 (DiDonato and Morris, "Algorithm 708",
    1992), with b x and a y - b x, which are not large though a or b be.
    """
    bx, excess = b * x, a * y - b * x

    def unfinished(m: Any, *state: Any) -> Any:
        return m.matters(state[-1], 1.0, m.precision.eps)

    def step(m: Any, n: Any, a: Any, x: Any, bx: Any, excess: Any, c: Any, d: Any, h: Any,
             change: Any) -> Any:  # fmt: skip
        inverse = 1.0 / (a + (2.0 * n - 1.0))
        difference = bx - n * x
        numerator = (a + (n - 1.0)) * inverse * (a * x * inverse + (bx + (n - 1.0) * x) * inverse)
        numerator = numerator * (n * difference)
        slope = (a + n) / (a + (2.0 * n + 1.0))
        denominator = n + n * difference * inverse + slope * (excess + 1.0 + n * (2.0 - x))
        d = 1.0 / (denominator + numerator * d)
        c = denominator + numerator / c
        ratio = c * d
        return a, x, bx, excess, c, d, h / ratio, ratio - 1.0

    first = a / (a + 1.0) * (excess + 1.0)
    # as a goes to infinity, what the first term is divided by depends on it no more
    finite, one = m.minimum(a, 1e12), 1.0 + 0.0 * a
    start = (finite, x, bx, m.minimum(excess, 1e12), m.minimum(first, 1e12), 0.0 * a, one, one)
    return m.loop(unfinished, step, start, _MOST_STEPS, wide=True)[6] / first


def _near_one(m: Any, a: Any, b: Any, y: Any, ratio: Any, needed: Any) -> Any:
    """Return I_(1-y)(a, b) for b <= 1 and y a < 2 or so."""

    def unfinished(m: Any, ay: Any, b: Any, y: Any, power: Any, total: Any) -> Any:
        return m.matters(power, 1.0, m.precision.eps)

    def step(m: Any, n: Any, ay: Any, b: Any, y: Any, power: Any, total: Any) -> Any:
        power = power * ((n * y - ay) / n)
        return ay, b, y, power, total + power / (b + n)

    y0 = m.where(needed, y, 0.0)
    start = (y0 * a, m.where(needed, b, 1.0), y0, 1.0 + 0.0 * a, 0.0 * a)
    total = m.loop(unfinished, step, start, _MOST_TERMS)[4]
    log_g = b * m.log(y) + ratio - lgamma1p(m, m.minimum(b, 1.0))
    less = m.expm1(log_g)
    return -less - (1.0 + less) * (b * total)


def _tail(m: Any, a: Any, b: Any, x: Any, y: Any, needed: Any) -> Any:
    """Return the mass beyond x on its side of the mean by D, for 30 < a <= b.

    With t = x (1 + d) and r = x / y, the density in d is (1 + d)^(a-1) (1 - r d)^(b-1) D / y.
    """
    upwards = x * b > y * a
    r = x / y
    slope = (a - 1.0) - (b - 1.0) * r
    length = reach(m, m.abs(slope), (a - 1.0) + 0.6 * ((b - 1.0) * r) * r, upwards)
    length = m.where(upwards, m.minimum(length, 1.0 / r), -m.minimum(length, 1.0))

    def integrand(m: Any, t: Any, length: Any, of_b: Any, slope: Any, curvature: Any,
                  curvature_b: Any) -> tuple[Any]:  # fmt: skip
        d, e = t * length, t * of_b
        bent = curvature * bend(m, d, m.log1p(d)) + curvature_b * bend(m, e, m.log1p(e))
        return (m.exp(t * (slope + t * bent)),)

    of_b = -r * length
    values = (length, of_b, slope * length, (a - 1.0) * length * length, (b - 1.0) * of_b * of_b)
    (value,) = tail(m, integrand, needed, values, 1)
    return value * m.abs(length) / y


def _inside(m: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the mask of finite a, b > 0 with 0 < x < 1, and operands that are such everywhere."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    return inside, m.where(inside, a, 1.0), m.where(inside, b, 1.0), m.where(inside, x, 0.5)


def betainc(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return I_x(a, b), with the limits where operands are 0 or infinite."""
    inside, a0, b0, x0 = _inside(m, a, b, x)
    y0 = 1.0 - x0
    large = m.minimum(a0, b0) > _LARGE
    # the fraction converges below its mean, a tail is taken on the side of the density's
    swap = m.where(large, a0 - b0, x0 - (a0 + 1.0) / (a0 + b0 + 2.0)) > 0.0
    u, v = m.where(swap, b0, a0), m.where(swap, a0, b0)
    w, z = m.where(swap, y0, x0), m.where(swap, x0, y0)
    near_one = swap & (b0 <= 1.0) & ~large
    others = ~(large | near_one)
    tails = _tail(m, u, v, w, z, large)
    lower = _fraction(m, m.where(others, u, 1.0), m.where(others, v, 1.0),
                      m.where(others, w, 0.0), m.where(others, z, 1.0))  # fmt: skip
    greater, lesser = m.maximum(a0, b0), m.minimum(m.minimum(a0, b0), 10.0)
    ratio = gamma_ratio(m, m.where(near_one, a0, greater), m.where(near_one, b0, lesser))
    small = _near_one(m, a0, b0, y0, ratio, near_one)
    value = m.minimum(_density(m, u, v, w, z, ratio) * m.where(large, tails, lower), 1.0)
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
    inside, a0, b0, x0 = _inside(m, a, b, x)
    y0 = 1.0 - x0
    ratio = gamma_ratio(m, m.maximum(a0, b0), m.minimum(m.minimum(a0, b0), 10.0))
    value = m.where(inside, _density(m, a0, b0, x0, y0, ratio) / x0 / y0, math.nan)
    finite = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    at_zero = m.where(a < 1.0, math.inf, m.where(a == 1.0, b, 0.0))
    at_one = m.where(b < 1.0, math.inf, m.where(b == 1.0, a, 0.0))
    value = m.where(finite & (x == 0.0), at_zero, m.where(finite & (x == 1.0), at_one, value))
    # all mass is at one end
    end = ((a == 0.0) | (a == math.inf)) & (b > 0.0) & (b < math.inf)
    end = end | (((b == 0.0) | (b == math.inf)) & (a > 0.0) & (a < math.inf))
    return m.where(end & (x > 0.0) & (x < 1.0), 0.0, value)


# --- primitives ---------------------------------------------------------------------------------


def _curvature(p: Any, a: Any, b: Any, x: Any) -> Any:
    """Return d2I/dx2 = p ((a - 1) / x - (b - 1) / (1 - x)), at 0 and 1 by its limits."""
    zero, one = scalar_like(x, 0), scalar_like(x, 1)
    y = sub(one, x)
    at_zero, at_one = bind("eq", x, zero), bind("eq", y, zero)
    first = div(sub(a, one), selected(at_zero, one, x))
    second = div(sub(b, one), selected(at_one, one, y))
    inner = mul(p, sub(first, second))
    return selected(at_zero, _slope_at_zero(a, b, x),
                    selected(at_one, neg(_slope_at_zero(b, a, y)), inner))  # fmt: skip


def _slope_at_zero(a: Any, b: Any, x: Any) -> Any:
    """Return the slope of the density at x = 0: (a + b - 1) times that of a - 1, for a > 1."""
    one = scalar_like(x, 1)
    less = sub(a, one)
    below = selected(bind("eq", a, one), mul(b, sub(one, b)), scalar_like(x, -math.inf))
    above = mul(sub(add(a, b), one), bind("betainc_grad_x", less, b, x))
    return selected(bind("gt", a, one), above, below)


def _density_jvp(primals: Any, tangents: Any) -> Any:
    a, b, x = primals
    (p,) = state.trace.process(betainc_grad_x_p, primals, {})
    zero = scalar_like(x, 0)
    empty, both = bind("eq", p, zero), bind("digamma", add(a, b))

    def by(shape: Any, log: Any) -> Any:
        slope = mul(p, sub(add(log, both), bind("digamma", shape)))
        return selected(empty, zero if zero.aval.shape == p.aval.shape else sub(p, p), slope)

    slopes = (lambda: by(a, bind("log", x)), lambda: by(b, bind("log1p", neg(x))),
              lambda: _curvature(p, a, b, x))  # fmt: skip
    return (p,), (_sum_of_products(tangents, slopes, p.aval),)


def _sum_of_products(tangents: Any, slopes: Any, aval: Any) -> Any:
    total: Any = Zero(aval)
    for dot, slope in zip(tangents, slopes, strict=True):
        if type(dot) is not Zero:
            product = repeated(mul(dot, slope()), aval.shape)
            total = product if type(total) is Zero else add(total, product)
    return total


def _slope_in_x(derivative: Any, orders: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the density, or its derivatives in the parameters."""
    if not any(orders):
        return bind("betainc_grad_x", a, b, x)
    return bind("betainc_grad_x_derivative", a, b, x, orders=(*orders, 0))


regularized_incomplete_beta_p = with_parameters(
    "regularized_incomplete_beta", betainc, 2, _slope_in_x, "betainc"
)
regularized_incomplete_beta_derivative_p = derivatives_of(
    "regularized_incomplete_beta_derivative", betainc, 2, _slope_in_x
)
betainc_grad_x_derivative_p = derivatives_of("betainc_grad_x_derivative", betainc_grad_x, 3)

betainc_grad_x_p = Primitive(
    "betainc_grad_x",
    shape=elementwise_shape("betainc_grad_x", FLOATING),
    numpy=lambda a, b, x: (numpy_rule(betainc_grad_x)(a, b, x),),
    stablehlo=stablehlo_rule(betainc_grad_x),
    jvp=_density_jvp,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
    cost=costs.special,
)
