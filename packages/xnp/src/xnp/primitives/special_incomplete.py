"""Incomplete gamma and beta functions: igamma, igammac, their derivatives, and betainc.

    igamma(a, x) = P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt,    igammac = Q = 1 - P
    betainc(a, b, x) = I_x(a, b) = 1/B(a, b) int_0^x t^(a-1) (1-t)^(b-1) dt

P by its series for x <= a + 1, Q by its continued fraction beyond (DLMF 8.7.1, 8.9.2), each with
the derivative in a carried along; I_x by its continued fraction (DLMF 8.17.22), all evaluated by
Lentz's method as modified by Thompson and Barnett (1986). `random_gamma_grad` is dx/da of a sample
x of a gamma distribution with its quantile held fixed: -(dP/da) / (dP/dx).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.shorthand import add, bind, mul, neg, scalar_like, sub
from xnp.primitives.special_gamma import unsupported
from xnp.primitives.table import FLOATING, binary, elementwise_shape, repeated
from xnp.primitives.written_once import HostMath, Text, TextMath
from xprim import ELEMENTWISE, Primitive, Zero, dtypes, state, undefined
from xprim.contracts import Builder

_LIMIT = 20_000  # steps; the series needs about 9 sqrt(a) of them near x = a
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _stirling_error(a: Any) -> Any:
    """Return lgamma(a) - ((a - 1/2) log a - a + log(2 pi) / 2) for a >= 10 (DLMF 5.11.1)."""
    z = 1.0 / (a * a)
    series = 1 / 156 + 0.0 * z  # B_2k / (2k (2k - 1)), k = 7 ... 1
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series * z + c
    return series / a


def _log_density(m: Any, a: Any, x: Any) -> Any:
    """Return log(x^a e^-x / Gamma(a)), without the cancellation there is for large a near x."""
    large = m.maximum(a, 10.0)
    excess = (x - large) / large
    far = large * (m.log1p(excess) - excess) + 0.5 * m.log(large) - _HALF_LOG_2PI
    near = a * m.log(x) - x - m.lgamma(a)
    return m.where(a > 10.0, far - _stirling_error(large), near)


def _series(m: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Return S = sum x^n / ((a+1) ... (a+n)) and dS/da; P = x^a e^-x / Gamma(a + 1) S."""
    one, zero = 1.0 + 0.0 * a, 0.0 * a

    def unfinished(a: Any, x: Any, term: Any, dterm: Any, total: Any, dtotal: Any) -> Any:
        return (m.abs(term) > m.eps * total) | (m.abs(dterm) > m.eps * m.abs(dtotal))

    def step(n: Any, a: Any, x: Any, term: Any, dterm: Any, total: Any, dtotal: Any) -> Any:
        ratio = x / (a + n)
        dterm = (dterm - term / (a + n)) * ratio
        term = term * ratio
        return a, x, term, dterm, total + term, dtotal + dterm

    out = m.loop(unfinished, step, (a, x, one, zero, one, zero), _LIMIT)
    return out[4], out[5]


def _fraction(m: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Return h with Q = x^a e^-x / Gamma(a) h, and d log(h) / da, by Lentz's method."""
    b = x + 1.0 - a
    d = 1.0 / b
    big, zero = 1e30 + 0.0 * a, 0.0 * a

    def unfinished(a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any, slope: Any,
                   change: Any) -> Any:  # fmt: skip
        return change > m.eps

    def step(n: Any, a: Any, b: Any, c: Any, d: Any, dc: Any, dd: Any, h: Any, slope: Any,
             change: Any) -> Any:  # fmt: skip
        an = -n * (n - a)  # its derivative in a is n, that of b is -1
        b = b + 2.0
        below = an * d + b
        below = m.where(m.abs(below) < m.tiny, m.tiny, below)
        dd = -(n * d + an * dd - 1.0) / (below * below)
        d = 1.0 / below
        dc = n / c - an * dc / (c * c) - 1.0
        c = b + an / c
        c = m.where(m.abs(c) < m.tiny, m.tiny, c)
        added = dd / d + dc / c
        change = m.maximum(m.abs(c * d - 1.0), m.abs(added))
        return a, b, c, d, dc, dd, h * (c * d), slope + added, change

    out = m.loop(unfinished, step, (a, b, big, d, zero, d * d, d, d, 1.0 + zero), _LIMIT)
    return out[6], out[7]


def _split(m: Any, a: Any, x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the domain's mask, that of the series, and operands safe for all branches."""
    valid = (a > 0.0) & (x > 0.0) & (x < math.inf) & (a < math.inf)
    a, x = m.where(valid, a, 1.0), m.where(valid, x, 1.0)
    by_series = x <= a + 1.0
    x_fraction = m.where(by_series, a + 2.0, x)
    return valid, by_series, a, m.where(by_series, x, a), x_fraction


def _edges(m: Any, a: Any, x: Any, value: Any, at_zero: float, at_infinity: float) -> Any:
    """Put in what P or Q is where an operand is 0 or infinite, and NaN outside the domain."""
    low, high = (x == 0.0) | (a == math.inf), (x == math.inf) | (a == 0.0)
    value = m.where(low, at_zero, m.where(high, at_infinity, value))
    both = (low & high) | (a < 0.0) | (x < 0.0) | ~((a == a) & (x == x))
    return m.where(both, math.nan, value)


def _regularized(m: Any, a: Any, x: Any, upper: bool) -> Any:
    _, by_series, a0, x_series, x_fraction = _split(m, a, x)
    total, _ = _series(m, a0, x_series)
    lower_part = m.exp(_log_density(m, a0, x_series)) * total / a0
    h, _ = _fraction(m, a0, x_fraction)
    upper_part = m.exp(_log_density(m, a0, x_fraction)) * h
    if upper:
        value = m.where(by_series, 1.0 - lower_part, upper_part)
        return _edges(m, a, x, value, 1.0, 0.0)
    value = m.where(by_series, lower_part, 1.0 - upper_part)
    return _edges(m, a, x, value, 0.0, 1.0)


def _slope(m: Any, a: Any, x: Any, of_sample: bool) -> Any:
    """Return dP/da, or -(dP/da) / (dP/dx)."""
    valid, by_series, a0, x_series, x_fraction = _split(m, a, x)
    digamma = m.digamma(a0)
    total, dtotal = _series(m, a0, x_series)
    lower = ((m.log(x_series) - digamma - 1.0 / a0) * total + dtotal) / a0
    h, slope = _fraction(m, a0, x_fraction)
    upper = -h * (m.log(x_fraction) - digamma + slope)
    value = m.where(by_series, lower, upper)
    x0 = m.where(by_series, x_series, x_fraction)
    value = -(x0 * value) if of_sample else m.exp(_log_density(m, a0, x0)) * value
    at_end = (a > 0.0) & ((x == 0.0) | (x == math.inf))
    return m.where(valid, value, m.where(at_end, 0.0, math.nan))


# --- beta ---------------------------------------------------------------------------------------


def _log_beta_density(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return log(x^a (1 - x)^b / B(a, b)), by Stirling's formula where a and b are large."""
    u, v = m.maximum(a, 10.0), m.maximum(b, 10.0)
    both = u + v
    excess = x * both - u
    far = u * m.log1p(excess / u) + v * m.log1p(-excess / v)
    far = far + 0.5 * (m.log(u) + m.log(v / both)) - _HALF_LOG_2PI
    far = far + _stirling_error(both) - _stirling_error(u) - _stirling_error(v)
    near = a * m.log(x) + b * m.log1p(-x) + m.lgamma(a + b) - m.lgamma(a) - m.lgamma(b)
    return m.where((a > 10.0) & (b > 10.0), far, near)


def _beta_fraction(m: Any, a: Any, b: Any, x: Any) -> Any:
    """Return the continued fraction of I_x(a, b) a B(a, b) / (x^a (1 - x)^b)."""
    one = 1.0 + 0.0 * a
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / m.where(m.abs(d) < m.tiny, m.tiny, d)

    def unfinished(a: Any, b: Any, x: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        return change > m.eps

    def advanced(coefficient: Any, c: Any, d: Any, h: Any) -> tuple[Any, Any, Any]:
        below, c = 1.0 + coefficient * d, 1.0 + coefficient / c
        d = 1.0 / m.where(m.abs(below) < m.tiny, m.tiny, below)
        c = m.where(m.abs(c) < m.tiny, m.tiny, c)
        return c, d, h * (c * d)

    def step(n: Any, a: Any, b: Any, x: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        twice = a + 2.0 * n
        c, d, h = advanced(n * (b - n) * x / ((twice - 1.0) * twice), c, d, h)
        c, d, h = advanced(-(a + n) * (a + b + n) * x / (twice * (twice + 1.0)), c, d, h)
        return a, b, x, c, d, h, m.abs(c * d - 1.0)

    return m.loop(unfinished, step, (a, b, x, one, d, d, one), _LIMIT)[5]


def _beta(m: Any, a: Any, b: Any, x: Any) -> Any:
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    a0, b0, x0 = m.where(inside, a, 1.0), m.where(inside, b, 1.0), m.where(inside, x, 0.5)
    swap = x0 > (a0 + 1.0) / (a0 + b0 + 2.0)  # I_x(a, b) = 1 - I_(1-x)(b, a)
    u, v, w = m.where(swap, b0, a0), m.where(swap, a0, b0), m.where(swap, 1.0 - x0, x0)
    front = m.exp(_log_beta_density(m, a0, b0, x0)) / u
    value = front * _beta_fraction(m, u, v, w)
    value = m.where(swap, 1.0 - value, value)
    domain = (a > 0.0) & (b > 0.0)
    value = m.where(inside, value, math.nan)
    value = m.where(domain & (x == 0.0), 0.0, value)
    return m.where(domain & (x == 1.0), 1.0, value)


# --- primitives ---------------------------------------------------------------------------------

Formula = Callable[..., Any]


def _numpy(formula: Formula) -> Callable[..., Any]:
    def rule(*operands: Any) -> Any:
        values = np.broadcast_arrays(*[x.astype(np.float64) for x in operands])
        return formula(HostMath(), *values).astype(operands[0].dtype)

    return rule


def _stablehlo(formula: Formula) -> Callable[..., list[str]]:
    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        dtype = dtypes.float64 if out.dtype == dtypes.float64 else dtypes.float32
        wide = out.update(dtype=dtype, weak_type=False)
        values = []
        for x, aval in zip(operands, avals_in, strict=True):
            name = b.convert(x, aval, dtype)
            name = b.broadcast(name, aval.update(dtype=dtype), out.shape)
            values.append(Text(b, name, wide))
        result = formula(TextMath(b, wide), *values)
        return [b.convert(result.name, wide, out.dtype)]

    return rule


def _igamma(m: Any, a: Any, x: Any) -> Any:
    return _regularized(m, a, x, upper=False)


def _igammac(m: Any, a: Any, x: Any) -> Any:
    return _regularized(m, a, x, upper=True)


def _igamma_grad_a(m: Any, a: Any, x: Any) -> Any:
    return _slope(m, a, x, of_sample=False)


def _random_gamma_grad(m: Any, a: Any, x: Any) -> Any:
    return _slope(m, a, x, of_sample=True)


def _gamma_density(a: Any, x: Any) -> Any:
    """Return dP/dx = x^(a-1) e^-x / Gamma(a)."""
    log_x = mul(sub(a, scalar_like(a, 1)), bind("log", x))
    return bind("exp", sub(sub(log_x, x), bind("lgamma", a)))


igamma_p = binary(
    "igamma", FLOATING, numpy=_numpy(_igamma), stablehlo=_stablehlo(_igamma),
    jvp=(lambda a_dot, y, a, x: mul(a_dot, bind("igamma_grad_a", a, x)),
         lambda x_dot, y, a, x: mul(x_dot, _gamma_density(a, x))),
    cost=costs.special,
)  # fmt: skip

igammac_p = binary(
    "igammac", FLOATING, numpy=_numpy(_igammac), stablehlo=_stablehlo(_igammac),
    jvp=(lambda a_dot, y, a, x: neg(mul(a_dot, bind("igamma_grad_a", a, x))),
         lambda x_dot, y, a, x: neg(mul(x_dot, _gamma_density(a, x)))),
    cost=costs.special,
)  # fmt: skip

igamma_grad_a_p = binary(
    "igamma_grad_a", FLOATING, numpy=_numpy(_igamma_grad_a), stablehlo=_stablehlo(_igamma_grad_a),
    jvp=(unsupported("igamma_grad_a", "a"), unsupported("igamma_grad_a", "x")), cost=costs.special,
)  # fmt: skip

random_gamma_grad_p = binary(
    "random_gamma_grad", FLOATING, numpy=_numpy(_random_gamma_grad),
    stablehlo=_stablehlo(_random_gamma_grad),
    jvp=(unsupported("random_gamma_grad", "a"), unsupported("random_gamma_grad", "x")),
    cost=costs.special,
)  # fmt: skip


def _betainc_numpy(a: Any, b: Any, x: Any) -> Any:
    return (_numpy(_beta)(a, b, x),)


def _betainc_jvp(primals: Any, tangents: Any) -> Any:
    """dI/dx = x^(a-1) (1 - x)^(b-1) / B(a, b)."""
    a, b, x = primals
    a_dot, b_dot, x_dot = tangents
    (y,) = state.trace.process(regularized_incomplete_beta_p, (a, b, x), {})
    for name, dot in (("a", a_dot), ("b", b_dot)):
        if type(dot) is not Zero:
            unsupported("betainc", name)()
    if type(x_dot) is Zero:
        return (y,), (Zero(y.aval),)
    one = scalar_like(x, 1)
    powers = add(mul(sub(a, one), bind("log", x)), mul(sub(b, one), bind("log1p", neg(x))))
    log_beta = sub(add(bind("lgamma", a), bind("lgamma", b)), bind("lgamma", add(a, b)))
    slope = bind("exp", sub(powers, log_beta))
    return (y,), (repeated(mul(x_dot, slope), y.aval.shape),)


regularized_incomplete_beta_p = Primitive(
    "regularized_incomplete_beta",
    shape=elementwise_shape("betainc", FLOATING),
    numpy=_betainc_numpy,
    stablehlo=_stablehlo(_beta),
    jvp=_betainc_jvp,
    transpose=undefined("it is not linear"),
    batch=ELEMENTWISE,
    cost=costs.special,
)
