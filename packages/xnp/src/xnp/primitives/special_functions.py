"""Further special functions: Bessel, hypergeometric, integrals, logarithms."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives import costs, formula_backends, special_gamma, table
from xnp.primitives.formula_backends import I0E_LARGE, chebyshev, numpy_rule, stablehlo_rule
from xnp.primitives.formula_derivatives import derivatives_of, with_parameters
from xnp.primitives.lowering_text import apart_from_uses, choose, compare
from xnp.primitives.special_error import (
    in_float64,
    normal_density,
    normal_tail,
)
from xnp.primitives.special_gamma import digamma, lgamma, lgamma_positive, refuse_derivative
from xnp.primitives.table import FLOATING, add, bind, div, mul, scalar_like, scale_by, select, unary
from xprim import ShapedArray, dtypes
from xprim.contracts import Builder, outline

__all__ = ()


# -------------------------------------------------------------------------------- special bessel
# Modified Bessel functions, scaled: bessel_i0e = exp(-|x|) I0(x), bessel_i1e = exp(-|x|) I1(x).
#
# Computed by Chebyshev series in x up to 8, in 1/x beyond; on the host in float64. The functions
# that are not scaled, bessel_i0 and bessel_i1, are products whose factors have kinks at 0 that
# cancel, so they have rules of their own: I0' = I1, I1' = I0 - I1 / x.


def _i0e64(x: Any) -> Any:
    size = np.abs(x)
    outer = np.maximum(size, 8.0)
    far = chebyshev(16.0 / outer - 1.0, I0E_LARGE) / np.sqrt(outer)
    return np.where(
        size <= 8, chebyshev(np.minimum(size, 8.0) / 4.0 - 1.0, formula_backends.I0E_SMALL), far
    )


def _i1e64(x: Any) -> Any:
    size = np.abs(x)
    inner, outer = np.minimum(size, 8.0), np.maximum(size, 8.0)
    near = inner * chebyshev(inner / 4.0 - 1.0, formula_backends.I1E_SMALL)
    far = chebyshev(16.0 / outer - 1.0, formula_backends.I1E_LARGE) / np.sqrt(outer)
    return np.copysign(np.where(size <= 8, near, far), x)


def _i0e_text(b: Builder, operands: Sequence[str], wide: ShapedArray) -> str:
    """Write the two series out: CHLO has no operation for this function."""
    (x,) = operands
    precision = 1e-17 if wide.dtype == dtypes.float64 else 1e-9

    def op(name: str, *names: str) -> str:
        return b.same_type_op(f"stablehlo.{name}", names, wide)

    def const(value: float) -> str:
        return b.constant(value, wide)

    def series(t: str, coefficients: Sequence[float]) -> str:
        kept = [c for c in coefficients if abs(c) > precision]
        twice, result, after = op("add", t, t), const(kept[-1]), const(0.0)
        for c in kept[-2:0:-1]:
            step = op("subtract", op("multiply", twice, result), after)
            result, after = op("add", const(c), step), result
        return op("subtract", op("add", const(kept[0]), op("multiply", t, result)), after)

    size = op("abs", x)
    eight, one = const(8.0), const(1.0)
    inner, outer = op("minimum", size, eight), op("maximum", size, eight)
    near = series(
        op("subtract", op("multiply", inner, const(0.25)), one), formula_backends.I0E_SMALL
    )
    far = series(op("subtract", op("divide", const(16.0), outer), one), I0E_LARGE)
    far = op("multiply", far, op("rsqrt", outer))
    return choose(b, compare(b, "GT", size, eight, wide), far, near, wide)


def _i1e_text(b: Builder, operands: Sequence[str], aval: ShapedArray) -> str:
    return b.op("chlo.bessel_i1e", operands, [aval], [aval])[0]


# I1(x) = x / 2 sum of t^k / (k! (k + 1)!) with t = x^2 / 4 (DLMF 10.25.2), and its derivative:
# to 2e-19 for t <= 1/16.
_I1_NEAR = [0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(8)]
_I1_SLOPE_NEAR = [(2 * k + 1) * c for k, c in enumerate(_I1_NEAR)]


# exp(-x) (I0(x) - I1(x)) = (2 pi x)^(-1/2) / (2 x) sum of c_k (8 x)^-k for x > 40, of the
# asymptotic series of both (DLMF 10.40.1): the difference itself loses 2 x units of rounding.
_BESSEL_FAR = 40.0


def _asymptotic(order: int, count: int) -> list[float]:
    terms = [1.0]
    for k in range(1, count):
        terms.append(terms[-1] * -(4 * order * order - (2 * k - 1) ** 2) / k)
    return terms


_BESSEL_TERMS = [(a - b) / 4 for a, b in zip(_asymptotic(0, 20), _asymptotic(1, 20), strict=True)][
    1:
]


def _far_difference(size: Any, is_far: Any) -> Any:
    """Return exp(-x) (I0(x) - I1(x)) where x is far from 0."""
    one = scalar_like(size, 1)
    inverse = div(one, select(is_far, size, one))
    count = 19 if size.aval.dtype == dtypes.float64 else 7
    terms = [scalar_like(size, c / 8**k) for k, c in enumerate(_BESSEL_TERMS[:count])]
    root = scale_by(bind("sqrt", inverse), 0.5 / math.sqrt(2 * math.pi))
    return mul(mul(inverse, root), bind("polynomial", inverse, *terms))


def _i0e_slope(y: Any, x: Any) -> Any:
    """Return d/dx exp(-|x|) I0(x) = exp(-|x|) I1(x) - sign(x) y, as I0' = I1."""
    size, sign = bind("abs", x), bind("sign", x)
    is_far = bind("gt", size, scalar_like(x, _BESSEL_FAR))
    far = bind("neg", mul(sign, _far_difference(size, is_far)))
    return select(is_far, far, table.sub(bind("bessel_i1e", x), mul(sign, y)))


def _i1e_slope(y: Any, x: Any) -> Any:
    """Return d/dx exp(-|x|) I1(x) = exp(-|x|) I0(x) - y (sign(x) + 1/x), near 0 by the series.

    There the difference has no digits left for further derivatives.
    """
    size = bind("abs", x)
    near = bind("lt", size, scalar_like(x, 0.5))
    is_far = bind("gt", size, scalar_like(x, _BESSEL_FAR))
    safe = select(near, scalar_like(x, 1), x)
    difference = table.sub(bind("bessel_i0e", safe), mul(y, bind("sign", safe)))
    difference = select(is_far, _far_difference(size, is_far), difference)
    derivative = table.sub(difference, div(y, safe))
    small = select(near, size, scalar_like(x, 0))
    t = mul(mul(small, small), scalar_like(x, 0.25))
    series = [bind("polynomial", t, *[scalar_like(x, c) for c in terms])
              for terms in (_I1_SLOPE_NEAR, _I1_NEAR)]  # fmt: skip
    difference = table.sub(series[0], mul(small, series[1]))
    return select(near, mul(bind("exp", bind("neg", small)), difference), derivative)


bessel_i0e_p = unary(
    "bessel_i0e", FLOATING, numpy=in_float64(_i0e64),
    stablehlo=apart_from_uses(_i0e_text, "bessel_i0e"),
    jvp=lambda x_dot, y, x: mul(x_dot, _i0e_slope(y, x)), cost=costs.special,
)  # fmt: skip

bessel_i1e_p = unary(
    "bessel_i1e", FLOATING, numpy=in_float64(_i1e64),
    stablehlo=apart_from_uses(_i1e_text, "bessel_i1e"),
    jvp=lambda x_dot, y, x: mul(x_dot, _i1e_slope(y, x)), cost=costs.special,
)  # fmt: skip


# --- not scaled -------------------------------------------------------------------------------


def _unscaled64(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def unscale(x: Any) -> Any:
        scale = np.exp(np.abs(x) / 2)  # twice: e^|x| overflows before the product does
        value = function(x)
        # infinite where exp is, though the scaled function may be 0 there
        return scale * np.where(np.isinf(scale), np.copysign(1.0, value), value) * scale

    return unscale


def _unscale_stablehlo(name: str, sign: Callable[[Any], Any]) -> Callable[..., Any]:
    def unscale(narrow: Any) -> list[Any]:
        dtype = narrow.aval.dtype
        wide = dtype if dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
        x = table.in_dtype(narrow, wide)
        # e^|x| in two factors: it overflows before the product with the scaled function does
        scale, value = bind("exp", scale_by(bind("abs", x), 0.5)), bind(name, x)
        infinite = bind("eq", scale, scalar_like(x, float("inf")))
        product = mul(mul(scale, select(infinite, sign(x), value)), scale)
        return [table.in_dtype(product, dtype)]

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        def body(inner: Builder, names: Any) -> list[str]:
            return inner.traced(unscale, names, avals_in, key=name)

        return outline(b, body, operands, avals_in, avals_out, f"unscaled {name}", name[:-1])

    return stablehlo_rule


def _i1_slope(x: Any) -> Any:
    """Return I0(x) - I1(x) / x, which is 1/2 + 3 x^2 / 16 + 5 x^4 / 384 near 0."""
    limit = float(dtypes.finfo(x.aval.dtype).eps) ** 0.25
    near = bind("lt", bind("abs", x), scalar_like(x, limit))
    safe, square = select(near, scalar_like(x, 1), x), bind("square", x)
    series = scale_by(add(scalar_like(x, 1), scale_by(square, 3 / 8)), 0.5)
    return select(
        near, series, table.sub(bind("bessel_i0", safe), div(bind("bessel_i1", safe), safe))
    )


bessel_i0_p = unary(
    "bessel_i0", FLOATING, numpy=in_float64(_unscaled64(_i0e64)),
    stablehlo=_unscale_stablehlo(
        "bessel_i0e", lambda x: table.fill(x.aval.shape, 1, x.aval.dtype)
    ),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("bessel_i1", x)), cost=costs.special,
)  # fmt: skip

bessel_i1_p = unary(
    "bessel_i1", FLOATING, numpy=in_float64(_unscaled64(_i1e64)),
    stablehlo=_unscale_stablehlo("bessel_i1e", lambda x: bind("sign", x)),
    jvp=lambda x_dot, y, x: mul(x_dot, _i1_slope(x)), cost=costs.special,
)  # fmt: skip


# ------------------------------------------------------------------------ special hypergeometric
# Confluent and Gauss's hypergeometric functions, and Owen's T: hyp1f1, hyp2f1, owens_t.
#
#     hyp1f1(a, b, x) = sum (a)_k / (b)_k x^k / k!
#     hyp2f1(a, b, c, x) = sum (a)_k (b)_k / (c)_k x^k / k!
#     owens_t(h, a) = 1/(2 pi) int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx
#
# By their series where it ends, or where its terms do not cancel: for x < 0 after Kummer's
# transformation (DLMF 13.2.39) or Pfaff's (15.8.1), for x < -600 by the asymptotic series of
# hyp1f1 (13.7.2). For x near 1 by the linear transformation to 1 - x (15.8.4); where c - a - b is
# near a whole number its two parts have opposite poles, which are taken together in divided
# differences (N. Michel and M. Stoitsov, Fast computation of the Gauss hypergeometric function,
# 2008). Parameters of different signs may make terms cancel; then digits are lost. The
# derivatives in parameters are those of the formulas (`formula_derivatives`). Owen's T is
# integrated by the Gauss-Legendre rule, for a > 1 after T(h, a) = (q + r)/2 - q r - T(a h, 1/a),
# with the tails q of h and r of a h (Owen, 1956).

_SPECIAL_HYPERGEOMETRIC_MOST_TERMS = 2000
_EPS = 5e-17  # what is left of a series may be many times its last term
_FAR = 600.0
_NEAR_ONE = 0.9  # from where on the series is one in 1 - x
_NEAR_WHOLE = 0.1  # distance of c - a - b from a whole number below which parts are taken together
_MOST_WHOLE = 60.0  # of the greatest such number: beyond, the series in x has few terms


def _series(
    m: Any, a: Any, b: Any, c: Any, x: Any, first: Any, confluent: bool, degree: Any = None
) -> Any:
    """Return `first` times the series.

    Args:
      m: the functions of the back end.
      a: the first upper parameter.
      b: the second one, which is not looked at where it is confluent.
      c: the lower one.
      x: the variable.
      first: the first term.
      confluent: whether it is Kummer's function.
      degree: after which power the series ends by a parameter that is not differentiated.
    """

    def is_unfinished(
        m: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any, *degree: Any
    ) -> Any:
        return m.matters(term, total, _EPS)

    def step(
        m: Any, n: Any, a: Any, b: Any, c: Any, x: Any, term: Any, total: Any, *degree: Any
    ) -> Any:
        k = n - 1.0
        above = (a + k) if confluent else (a + k) * (b + k)
        following = term * (above / (c + k) * (x / n))
        # it ends, also where c + k is 0 or x is infinite
        if degree:
            following = m.where(degree[0] == k, 0.0, following)
        elif not (m.varies(a) or m.varies(b)):
            following = m.where(above == 0.0, 0.0, following)
        # a sum that is done, or infinite, stays what it is while others continue
        term = m.where(is_unfinished(m, a, b, c, x, term, total), following, 0.0)
        return a, b, c, x, term, total + term, *degree

    start: tuple[Any, ...] = (a, b, c, x, first, first)
    if degree is not None:
        start = (*start, degree)
    return m.loop(is_unfinished, step, start, _SPECIAL_HYPERGEOMETRIC_MOST_TERMS, wide=True)[5]


def _degree(m: Any, *parameters: Any) -> Any:
    """Return the degree of a series that a parameter 0, -1, ... ends, else a large number."""
    degrees = [m.where(_ends(m, p), -m.floor(p), 1e30) for p in parameters]
    return functools.reduce(m.minimum, degrees)


def _is_whole(m: Any, x: Any) -> Any:
    return m.floor(x) == x


def _ends(m: Any, a: Any) -> Any:
    """Return where a series ends for a = 0, -1, ...: if a is not a variable of differentiation."""
    ends = (a <= 0.0) & _is_whole(m, a)
    return ends & ~ends if m.varies(a) else ends


def _any_infinite(m: Any, *values: Any) -> Any:
    mask = m.abs(values[0]) == math.inf
    for x in values[1:]:
        mask = mask | (m.abs(x) == math.inf)
    return mask


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
    value = _series(m, p, 0.0 * p, q, y, first, True, _degree(m, a) if m.varies(p) else None)
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
    value = m.where((a == 0.0) & _any_infinite(m, b, x), 1.0, value)
    return m.where((a == a) & (b == b) & (x == x), value, math.nan)


# --- Gauss's function -----------------------------------------------------------------------------


def _two_parts(m: Any, a: Any, b: Any, c: Any, gap: Any, w: Any, ratio: Any) -> Any:
    """Return F(a, b; c; 1 - w) for a gap c - a - b that is not a whole number.

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
        return x, width, total + weight * special_gamma.digamma_positive(m, x + node * width)

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

    def is_unfinished(m: Any, x: Any, y: Any, w: Any, n: Any, e: Any, beta: Any, gamma: Any,
                   total: Any) -> Any:  # fmt: skip
        return m.matters(beta, total, _EPS) | m.matters(gamma, total, _EPS)

    def tail(m: Any, k: Any, x: Any, y: Any, w: Any, n: Any, e: Any, beta: Any, gamma: Any,
             total: Any) -> Any:  # fmt: skip
        active = is_unfinished(m, x, y, w, n, e, beta, gamma, total)
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
    tails = m.loop(is_unfinished, tail, values, _SPECIAL_HYPERGEOMETRIC_MOST_TERMS, wide=True)[7]
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
    are_numbers = (a == a) & (b == b) & (c == c) & (x == x)
    of_one_term = ((a == 0.0) | (b == 0.0)) & _any_infinite(m, a, b, c, x)
    turned = (x > 1.0) & _is_whole(m, gap) & (_ends(m, c - a) | _ends(m, c - b))
    of_a, of_b = _ends(m, a), _ends(m, b)
    turned = turned & ~(of_a | of_b)
    degree = m.where(turned, _degree(m, c - a, c - b), _degree(m, a, b)) if m.varies(gap) else None
    # where c = 0, -1, ... the series has a pole, unless it ends before
    before = (of_a & (a >= c)) | (of_b & (b >= c)) | turned
    pole = (c <= 0.0) & _is_whole(m, c) & ~before
    power = m.exp(m.where(turned, gap * m.log(m.where(turned, x - 1.0, 1.0)), 0.0))
    power = m.where(turned & ~(m.floor(0.5 * gap) == 0.5 * gap), -power, power)
    a, b = m.where(turned, c - a, a), m.where(turned, c - b, b)
    ends = turned | of_a | of_b
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
    direct = _series(m, a, b1, c, z0, 1.0 + 0.0 * z0, False, degree)
    value = _near_one(m, a, b1, c, w, m.where(ends, 0.5, z), direct, near_one)
    value = factor * value
    end = m.where(a > 0.0, 0.0, m.where(a == 0.0, value, value * math.inf))
    value = m.where((x == -math.inf) & ~ends, end, value)
    endless = ends & (m.abs(x) == math.inf) & ~((a == 0.0) | (b == 0.0))
    value = m.where(endless, value * math.inf, value)
    value = m.where(((x > 1.0) & ~ends) | (pole & ~(x == 0.0)), math.inf, value)
    value = m.where(of_one_term, 1.0, value)
    return m.where(are_numbers, value, math.nan)


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
    operands = (_next(a), _next(b), x)
    return _leibniz(orders, (a, None), b, lambda left: derivative(left, operands), operands)


def hyp2f1_slope(derivative: Any, orders: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    """d/dx F(a, b; c; x) = a b / c F(a + 1, b + 1; c + 1; x)   (DLMF 15.5.1), and so on."""
    operands = (_next(a), _next(b), _next(c), x)
    return _leibniz(orders, (a, b, None), c, lambda left: derivative(left, operands), operands)


def _leibniz(orders: Any, factors: Any, divisor: Any, derivative: Any, operands: Any) -> Any:
    """Return the derivative of f times the factors by the divisor, the last parameter.

    The j-th derivative of 1 / c is (-1)^j j! / c^(j + 1).
    """
    choices = [range(min(n, 1) + 1) for n in orders[:-1]] + [range(orders[-1] + 1)]
    total = None
    are_numbers = functools.reduce(
        lambda x, y: bind("and", x, y), [bind("eq", v, v) for v in operands]
    )
    for picks in itertools.product(*choices):
        left = tuple([n - j for n, j in zip(orders, picks, strict=True)])
        count = math.prod(math.comb(n, j) for n, j in zip(orders, picks, strict=True))
        term = derivative(left)
        for _ in range(picks[-1] + 1):
            term = div(term, divisor)
        for j, factor in zip(picks, factors[:-1], strict=False):
            term = term if j else _zero_times(factor, term, are_numbers)
        term = scale_by(term, float((-1) ** picks[-1] * math.factorial(picks[-1]) * count))
        total = term if total is None else add(total, term)
    return total


def _zero_times(factor: Any, term: Any, are_numbers: Any) -> Any:
    """Return the product, 0 of a factor 0, also at a pole of the term: the function is 1 there.

    Where an operand is NaN, and so the function, the product is NaN.
    """
    zero = scalar_like(term, 0)
    ends = bind("and", bind("eq", factor, scalar_like(factor, 0)),
                bind("not", bind("is_finite", term)))  # fmt: skip
    return mul(factor, select(bind("and", ends, are_numbers), zero, term))


hyp1f1_p = with_parameters("hyp1f1", hyp1f1, 2, hyp1f1_slope)
hyp1f1_derivative_p = derivatives_of("hyp1f1_derivative", hyp1f1, 2, hyp1f1_slope)
hyp2f1_p = with_parameters("hyp2f1", hyp2f1, 3, hyp2f1_slope)
hyp2f1_derivative_p = derivatives_of("hyp2f1_derivative", hyp2f1, 3, hyp2f1_slope)


def _owens_h(h_dot: Any, y: Any, h: Any, a: Any) -> Any:
    """dT/dh = -density(h) erf(a h / sqrt(2)) / 2."""
    factor = scale_by(bind("erf", scale_by(mul(h, a), math.sqrt(0.5))), -0.5)
    return mul(h_dot, mul(normal_density(h), factor))


def _owens_a(a_dot: Any, y: Any, h: Any, a: Any) -> Any:
    """dT/da = exp(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2)), also where the square overflows."""
    square, product = _next(mul(a, a)), bind("absorbing_product", a, h)
    exponent = scale_by(add(mul(h, h), mul(product, product)), -0.5)
    return mul(a_dot, div(scale_by(bind("exp", exponent), 0.5 / math.pi), square))


owens_t_p = table.binary(
    "owens_t", FLOATING, numpy=numpy_rule(owens_t), stablehlo=stablehlo_rule(owens_t),
    jvp=(_owens_h, _owens_a), cost=costs.special,
)  # fmt: skip


# ----------------------------------------------------------------------------- special integrals
# Integrals of elementary functions: expi, exp1, expn, spence, and those of sine and cosine.
#
#     expi(x) = int_-inf^x e^t / t dt,          expn(n, x) = int_1^inf e^(-x t) / t^n dt
#     spence(x) = int_1^x log(t) / (1 - t) dt
#     sine_integral(x) = int_0^x sin(t) / t dt,         cosine_integral(x) = -int_x^inf cos(t) / t
#     dt
#     fresnel_sine(x) = int_0^x sin(pi t^2 / 2) dt,     fresnel_cosine alike
#
# Near 0 by power series, far out by continued fractions (DLMF 6.9.1, 8.19.17, 7.9.4) with Lentz's
# method as modified by Thompson and Barnett (1986), in real and imaginary parts where they are
# complex; expi beyond 40 by its asymptotic series (DLMF 6.12.2).

_EULER = float(np.euler_gamma)
_SPECIAL_INTEGRALS_MOST_TERMS = 150


# --- exponentials ---------------------------------------------------------------------------------


def _ein(m: Any, x: Any) -> Any:
    """Return sum_{k > 0} x^k / (k k!), which is expi(x) less Euler's constant and log |x|."""

    def is_unfinished(m: Any, x: Any, power: Any, total: Any) -> Any:
        return m.abs(power) > m.precision.eps * m.abs(total)

    def step(m: Any, n: Any, x: Any, power: Any, total: Any) -> Any:
        power = power * (x / n)
        return x, power, total + power / n

    start = (x, 1.0 + 0.0 * x, 0.0 * x)
    return m.loop(is_unfinished, step, start, _SPECIAL_INTEGRALS_MOST_TERMS, wide=True)[2]


def _expn_fraction(m: Any, n: Any, x: Any) -> Any:
    """Return e^x expn(n, x) for x >= 1."""
    b = x + n
    d = 1.0 / b

    def is_unfinished(m: Any, *state: Any) -> Any:
        return state[-1] > m.precision.eps

    def step(m: Any, k: Any, n: Any, b: Any, c: Any, d: Any, h: Any, change: Any) -> Any:
        a = -k * (n - 1.0 + k)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        return n, b, c, d, h * (c * d), m.abs(c * d - 1.0)

    start = (n, b, 1e30 + 0.0 * b, d, d, 1.0 + 0.0 * b)
    return m.loop(is_unfinished, step, start, _SPECIAL_INTEGRALS_MOST_TERMS, wide=True)[4]


def _expn_series(m: Any, n: Any, x: Any) -> Any:
    """Return expn(n, x) for n >= 1 and 0 < x <= 1 (DLMF 8.19.8)."""
    order = n - 1.0

    def is_unfinished(m: Any, order: Any, x: Any, power: Any, total: Any) -> Any:
        return m.abs(power) > 1e-18

    def step(m: Any, k: Any, order: Any, x: Any, power: Any, total: Any) -> Any:
        gap = k - order
        power = power * (-x / k)
        return order, x, power, total - m.where(gap == 0.0, 0.0, power / m.where(gap == 0.0, 1.0,
                                                                                 gap))  # fmt: skip

    first = m.where(order == 0.0, 0.0, 1.0 / m.where(order == 0.0, 1.0, order))
    total = m.loop(is_unfinished, step, (order, x, 1.0 + 0.0 * x, first), 30, wide=True)[3]
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
    lower = bind("expn", select(first, one, table.sub(n, one)), x)
    below = div(mul(bind("exp", table.neg(x)), add(x, scalar_like(x, 1))), mul(x, x))
    return table.neg(select(first, below, lower))


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


_LOG_TERMS = 14  # of the series of log(1 + t) / t: the rest is below 1e-17 of it for t < 1/16


def _spence_slope(x: Any) -> Any:
    """Return log(x) / (1 - x), near 1 its series: the quotient's derivatives cancel there."""
    gap = table.sub(x, scalar_like(x, 1))
    near = bind("lt", bind("abs", gap), scalar_like(x, 1 / 16))
    small = select(near, gap, scalar_like(x, 0))
    series = scalar_like(x, 1 / _LOG_TERMS)
    for k in range(_LOG_TERMS - 1, 0, -1):
        series = table.sub(scalar_like(x, 1 / k), mul(small, series))
    safe = select(near, scalar_like(x, 1), gap)
    quotient = table.neg(div(bind("log", select(near, scalar_like(x, 2), x)), safe))
    return select(near, table.neg(series), quotient)


# --- sine and cosine ------------------------------------------------------------------------------


def _divide(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """Return (a + i b) / (c + i d)."""
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


def _complex_fraction(m: Any, real: Any, imaginary: Any, half: float) -> tuple[Any, Any]:
    """Return 1 / (z - n1 / (z + 2 - n2 / (z + 4 - ...))) with n_k = k (k - half), z complex."""
    zero = 0.0 * imaginary
    d = _divide(1.0 + zero, zero, real + zero, imaginary)

    def is_unfinished(m: Any, *state: Any) -> Any:
        return state[-1] > m.precision.eps

    def step(m: Any, k: Any, x: Any, y: Any, c: Any, ci: Any, d: Any, di: Any, h: Any, hi: Any,
             change: Any) -> Any:  # fmt: skip
        a = -k * (k - half)
        x = x + 2.0
        d, di = _divide(1.0, 0.0 * d, a * d + x, a * di + y)
        c, ci = _divide(a, 0.0 * c, c, ci)
        c, ci = c + x, ci + y
        p, q = c * d - ci * di, c * di + ci * d
        return x, y, c, ci, d, di, h * p - hi * q, h * q + hi * p, m.abs(p - 1.0) + m.abs(q)

    start = (real + zero, imaginary, 1e30 + zero, zero, *d, *d, 1.0 + zero)
    result = m.loop(is_unfinished, step, start, _SPECIAL_INTEGRALS_MOST_TERMS, wide=True)
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
    safe = select(near, scalar_like(x, 1), x)
    series = table.sub(scalar_like(x, 1), scale_by(mul(x, x), 1 / 6))
    return select(near, series, div(bind("sin", safe), safe))


# --- primitives -----------------------------------------------------------------------------------

expi_p = unary(
    "expi", FLOATING, numpy=numpy_rule(expi), stablehlo=stablehlo_rule(expi),
    jvp=lambda x_dot, y, x: mul(x_dot, div(bind("exp", x), x)), cost=costs.special,
)  # fmt: skip

expn_p = table.binary(
    "expn", FLOATING, numpy=numpy_rule(expn), stablehlo=stablehlo_rule(expn),
    jvp=(refuse_derivative("expn", "n"), lambda x_dot, y, n, x: mul(x_dot, _expn_slope(n, x))),
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
    jvp=lambda x_dot, y, x: mul(x_dot, bind("sin", scale_by(mul(x, x), 0.5 * math.pi))),
    cost=costs.special,
)  # fmt: skip

fresnel_cosine_p = unary(
    "fresnel_cosine", FLOATING, numpy=numpy_rule(fresnel_cosine),
    stablehlo=stablehlo_rule(fresnel_cosine),
    jvp=lambda x_dot, y, x: mul(x_dot, bind("cos", scale_by(mul(x, x), 0.5 * math.pi))),
    cost=costs.special,
)  # fmt: skip


# ---------------------------------------------------------------------------- special logarithms
# Logarithms with a limit or a difference of their own: xlogy, xlog1py, logit.
#
#     xlogy(x, y) = x log(y), 0 where x = 0;   logit(p) = log(p / (1 - p))
#
# Floats of fewer than 32 bits are computed in float32 and rounded once, eager and compiled.
# The derivative of xlogy in y is x / y, 0 where both are 0; in x it is log(y) everywhere, so that
# entropies have infinite derivatives at 0. The mixed second derivative is 1 / y in both orders.
# logit is 2 atanh(2 p - 1) near 1/2, where the quotient would be near 1: in float32 by a
# polynomial, in float64 as log(1 + (2 p - 1) / (1 - p)).


def _product_numpy(log: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def product(x: Any, y: Any) -> Any:
        zero = (x == 0) & (y == y)
        return np.where(zero, np.zeros((), x.dtype), x * log(np.where(zero, 1, y).astype(y.dtype)))

    def rule(x: Any, y: Any) -> Any:
        if x.dtype.itemsize >= 4:
            return product(x, y)
        return product(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)

    return rule


def _product_stablehlo(log: str) -> Callable[..., Any]:
    def product(x: Any, y: Any) -> list[Any]:
        dtype = x.aval.dtype
        if dtype.itemsize < 4:
            x, y = [table.convert(v, dtypes.float32) for v in (x, y)]
        zero = bind("and", bind("eq", x, scalar_like(x, 0)), bind("eq", y, y))
        value = mul(x, bind(log, select(zero, table.fill(y.aval.shape, 1, y.aval.dtype), y)))
        value = select(zero, table.fill(value.aval.shape, 0, value.aval.dtype), value)
        return [table.convert(value, dtype)]

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        (out,) = avals_out
        names = [b.broadcast(name, aval, out.shape)
                 for name, aval in zip(operands, avals_in, strict=True)]  # fmt: skip
        wide = [aval.update(shape=out.shape) for aval in avals_in]
        return b.traced(product, names, wide, key=f"product with {log}")

    return stablehlo_rule


# 2 (atanh(s) / s - 1) / s^2 by powers of s^2 for |s| <= 1/2, least squares at 200 points of
# Chebyshev's: 2 atanh(s) is right to 5e-9 of it, a twelfth of a unit of the last place of float32.
_ATANH = (
    0.6666666269302368, 0.4000099301338196, 0.28526484966278076, 0.22956450283527374,
    0.12910006940364838, 0.31627508997917175,
)  # fmt: skip


def logit(m: Any, p: Any) -> Any:
    """Return log(p / (1 - p)); infinite at 0 and 1, NaN outside.

    Nothing cancels: 2 p - 1 is exact near 1/2, as is 1 - p above it.
    """
    return m.narrow(_logit, p)


def _logit(m: Any, p: Any) -> Any:
    s, rest = 2.0 * p - 1.0, 1.0 - p
    near, far = m.abs(s) < 0.5, m.log(p / rest)
    if m.precision is not formula_backends.NarrowPrecision:
        return m.where(near, m.log1p(m.where(near, s, 0.0) / rest), far)
    square, series = s * s, _ATANH[-1]
    for c in _ATANH[-2::-1]:
        series = series * square + c
    return m.where(near, 2.0 * s + s * square * series, far)


xlogy_p = table.binary(
    "xlogy", table.INEXACT, numpy=_product_numpy(np.log), stablehlo=_product_stablehlo("log"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, bind("log", y)),
         lambda y_dot, z, x, y: mul(y_dot, bind("zero_quotient", x, y))),
    cost=costs.special,
)  # fmt: skip

xlog1py_p = table.binary(
    "xlog1py", table.INEXACT, numpy=_product_numpy(np.log1p), stablehlo=_product_stablehlo("log1p"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, bind("log1p", y)),
         lambda y_dot, z, x, y: mul(
             y_dot, bind("zero_quotient", x, bind("add", y, scalar_like(y, 1))))),
    cost=costs.special,
)  # fmt: skip

logit_p = unary(
    "logit", FLOATING, numpy=numpy_rule(logit), stablehlo=stablehlo_rule(logit, narrow=True),
    jvp=lambda x_dot, y, x: div(x_dot, mul(x, table.sub(scalar_like(x, 1), x))), cost=costs.special,
)  # fmt: skip
