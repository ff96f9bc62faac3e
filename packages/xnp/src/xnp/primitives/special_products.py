"""Products that the gamma function extends: gamma, beta, betaln, poch.

    beta(a, b) = Gamma(a) Gamma(b) / Gamma(a + b),   poch(z, n) = Gamma(z + n) / Gamma(z)

gamma by recurrence from [3/4, 9/4) up to 12, by Stirling's formula (DLMF 5.11.3) beyond, by
reflection (DLMF 5.5.3) below 0. Quotients of gamma functions come of the differences of Stirling's
formulas, not of formulas that were rounded first. Signs and poles are those of SciPy.

Neighbours: `special_gamma` has logarithms, `special_beta` the incomplete beta function.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.primitives import costs
from xnp.primitives.formula_backends import numpy_rule, stablehlo_rule
from xnp.primitives.operations import add, bind, mul, sub
from xnp.primitives.special_beta import gamma_ratio
from xnp.primitives.special_densities import HALF_LOG_2PI, stirling_error
from xnp.primitives.special_gamma import lgamma, lgamma1p
from xnp.primitives.table import FLOATING, binary, unary

__all__ = ()

_START = 12.0  # of Stirling's formula


def _is_whole(m: Any, x: Any) -> Any:
    return m.floor(x) == x


def _is_odd(m: Any, x: Any) -> Any:
    return ~(m.floor(0.5 * x) == 0.5 * x)


def _gamma_positive(m: Any, x: Any) -> Any:
    """Return Gamma(x) for x >= 3/4."""
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


def _digamma_less(x: Any, y: Any) -> Any:
    return sub(bind("digamma", x), bind("digamma", y))


gamma_p = unary(
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
    jvp=(lambda a_dot, z, a, b: mul(a_dot, mul(z, _digamma_less(a, add(a, b)))),
         lambda b_dot, z, a, b: mul(b_dot, mul(z, _digamma_less(b, add(a, b))))),
    cost=costs.special,
)  # fmt: skip

poch_p = binary(
    "poch", FLOATING, numpy=numpy_rule(poch), stablehlo=stablehlo_rule(poch),
    jvp=(lambda z_dot, y, z, n: mul(z_dot, mul(y, _digamma_less(add(z, n), z))),
         lambda n_dot, y, z, n: mul(n_dot, mul(y, bind("digamma", add(z, n))))),
    cost=costs.special,
)  # fmt: skip
