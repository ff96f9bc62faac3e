"""Confluent and Gauss's hypergeometric functions, and Owen's T: hyp1f1, hyp2f1, owens_t.

    hyp1f1(a, b, x) = sum (a)_k / (b)_k x^k / k!
    hyp2f1(a, b, c, x) = sum (a)_k (b)_k / (c)_k x^k / k!
    owens_t(h, a) = 1/(2 pi) int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx

By their series where its terms do not cancel: for x < 0 after Kummer's transformation (DLMF
13.2.39) or Pfaff's (15.8.1), for x near 1 after the linear one to 1 - x (15.8.4) where its
coefficients are finite, for x < -600 by the asymptotic series of hyp1f1 (13.7.2). Parameters of
different signs may make terms cancel; then digits are lost. Owen's T is integrated by the
Gauss-Legendre rule, for a > 1 after T(h, a) = (q + r)/2 - q r - T(a h, 1/a), with the tails q of h
and r of a h (Owen, 1956).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.operations import add, bind, div, mul, scalar_like, scaled
from xnp.primitives.special_gamma import lgamma, unsupported
from xnp.primitives.special_normal import normal_density, normal_tail
from xnp.primitives.special_products import gamma_sign
from xnp.primitives.table import FLOATING, binary, elementwise_shape, repeated
from xprim import ELEMENTWISE, Primitive, Zero, primitive_maker, state, undefined

__all__ = ()

_MOST_TERMS = 2000
_EPS = 5e-17  # what is left of a series may be many times its last term
_FAR = 600.0


def _series(m: Any, a: Any, b: Any, c: Any, x: Any, first: Any, confluent: bool) -> Any:
    """Return `first` times the series; `b` is not looked at where it is confluent."""

    def unfinished(m: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any) -> Any:
        return m.abs(term) > _EPS * m.abs(total)

    def step(m: Any, n: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any) -> Any:
        k = n - 1.0
        ratio = (a + k) / (c + k) * (x / n)
        following = term * (ratio if confluent else ratio * (b + k))
        # a sum that is done, or infinite, stays what it is while others go on
        term = m.where(unfinished(m, a, b, c, x, term, total), following, 0.0)
        return a, b, c, x, term, total + term

    start = (a, b, c, x, first, first)
    return m.loop(unfinished, step, start, _MOST_TERMS, wide=True)[5]


def hyp1f1(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return Kummer's function M(a, b, x); 1 where a = 0, infinite where b = 0, -1, ..."""
    negative = x < 0.0
    far = x < -_FAR
    p, y = m.where(negative, b - a, a), m.minimum(m.abs(x), 1500.0)
    y = m.where(far, 1.0, y)
    pole = (b <= 0.0) & (m.floor(b) == b)
    q = m.where(pole, 1.0, b)
    first = m.exp(m.where(negative, -y, 0.0))
    value = _series(m, p, 0.0 * p, q, y, first, True)
    # Gamma(b) / Gamma(b - a) (-x)^-a sum (a)_k (a - b + 1)_k / (k! (-x)^k)
    z = m.where(far, -x, 1e3)
    total, term = 1.0 + 0.0 * z, 1.0 + 0.0 * z
    for k in range(16):
        term = term * (a + float(k)) * (a - q + float(k + 1)) / (float(k + 1) * z)
        total = total + term
    size = m.exp(lgamma(m, q) - lgamma(m, q - a) - a * m.log(z))
    distant = gamma_sign(m, q) * gamma_sign(m, q - a) * size * total
    value = m.where(far, distant, value)
    value = m.where(pole, math.inf, value)
    return m.where((a == 0.0) & (x == x) & (b == b), 1.0, value)


def _gauss_ratio(m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return Gamma(a) Gamma(b) / (Gamma(c) Gamma(d)), 0 at the poles of the denominator."""
    size = m.exp(lgamma(m, a) + lgamma(m, b) - lgamma(m, c) - lgamma(m, d))
    signs = gamma_sign(m, a) * gamma_sign(m, b) * gamma_sign(m, c) * gamma_sign(m, d)
    return signs * size


def hyp2f1(m: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return Gauss's function F(a, b; c; x) for x <= 1."""
    pole = (c <= 0.0) & (m.floor(c) == c)
    c = m.where(pole, 1.0, c)
    negative = x < 0.0
    # F(a, b; c; x) = (1 - x)^-a F(a, c - b; c; x / (x - 1))
    z = m.where(negative, x / (m.minimum(x, 0.0) - 1.0), x)
    factor = m.exp(-a * m.log1p(-m.minimum(x, 0.0)))
    factor = m.where(negative, factor, 1.0 + 0.0 * x)
    b1 = m.where(negative, c - b, b)
    gap = c - a - b1
    generic = m.abs(gap - m.floor(gap + 0.5)) > 0.1  # else its two parts nearly cancel
    near_one = (z > 0.9) & (z < 1.0) & generic
    inner = m.where((z >= 1.0) | near_one, 0.5, z)
    direct = _series(m, a, b1, c, inner, 1.0 + 0.0 * inner, False)
    g = m.where(generic, gap, 0.5)
    w = m.where(near_one, 1.0 - z, 0.25)
    one = 1.0 + 0.0 * w
    first = _gauss_ratio(m, c, g, c - a, c - b1) * _series(m, a, b1, 1.0 - g, w, one, False)
    other = _series(m, c - a, c - b1, 1.0 + g, w, one, False)
    second = m.exp(g * m.log(w)) * _gauss_ratio(m, c, -g, a, b1) * other
    value = m.where(near_one, first + second, direct)
    positive = m.where(gap > 0.0, gap, 1.0)
    at_one = m.where(gap > 0.0, _gauss_ratio(m, c, positive, c - a, c - b1), math.inf)
    value = m.where(z == 1.0, at_one, m.where(z > 1.0, math.nan, value))
    return m.where(pole, math.inf, factor * value)


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


@primitive_maker
def _series_primitive(name: str, formula: Any, slope: Any) -> Primitive:
    """Define a primitive that is differentiated in its last operand alone."""

    def jvp(primals: Any, tangents: Any) -> Any:
        outs = state.trace.process(primitive, tuple(primals), {})
        *parameters, x_dot = tangents
        if any(type(t) is not Zero for t in parameters):
            unsupported(name, "a parameter")()
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, (mul(x_dot, repeated(slope(*primals), outs[0].aval.shape)),)

    numpy_formula = numpy_rule(formula)
    primitive = Primitive(
        name,
        shape=elementwise_shape(name, FLOATING),
        numpy=lambda *operands: (numpy_formula(*operands),),
        stablehlo=stablehlo_rule(formula),
        jvp=jvp,
        transpose=undefined("it is not linear"),
        batch=ELEMENTWISE,
        cost=costs.special,
    )
    return primitive


def _next(x: Any) -> Any:
    return add(x, scalar_like(x, 1))


# d/dx M(a, b, x) = a / b M(a + 1, b + 1, x)   (DLMF 13.3.15)
hyp1f1_p = _series_primitive(
    "hyp1f1", hyp1f1, lambda a, b, x: mul(div(a, b), bind("hyp1f1", _next(a), _next(b), x))
)

# d/dx F(a, b; c; x) = a b / c F(a + 1, b + 1; c + 1; x)   (DLMF 15.5.1)
hyp2f1_p = _series_primitive(
    "hyp2f1", hyp2f1,
    lambda a, b, c, x: mul(div(mul(a, b), c), bind("hyp2f1", _next(a), _next(b), _next(c), x)),
)  # fmt: skip


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
