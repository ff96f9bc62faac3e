"""The error function and the normal distribution: erf, erfc, erf_inv, ndtr, ndtri, ...

Chebyshev series, whose coefficients stand in the tables, are summed by Clenshaw's recurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs, formula_backends, table
from xnp.primitives.formula_backends import ERF_SMALL, NarrowPrecision, numpy_rule, stablehlo_rule
from xnp.primitives.lowering_text import Text, upcast
from xnp.primitives.table import FLOATING, add, bind, div, mul, scalar_like, scale_by, select, unary
from xnp.primitives.vector_functions import complementary_error
from xprim import dtypes
from xprim.contracts import Builder

__all__ = ()


# --------------------------------------------------------------------------------- special error
# The error function and its relatives: erf, erfc, erf_inv.
#
#     erf(x) = 2/sqrt(pi) int_0^x exp(-t^2) dt,   erfc = 1 - erf,   erf_inv(erf(x)) = x
#
# On the host they are computed in float64, to a few ulp, but for erf_inv of float32 and narrower,
# which has the polynomials that the compiler uses. Semantics: CHLO, ops erf, erfc, erf_inv.

_SPECIAL_ERROR_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy rule that computes in float64 and rounds to the operands' dtype."""

    def rule(*operands: Any) -> Any:
        return function(*[x.astype(np.float64) for x in operands]).astype(operands[0].dtype)

    return rule


def in_float32_stablehlo(op: str) -> Callable[..., list[str]]:
    """Return the rule of an operation that XLA has not for floats of 8 bits and fewer."""
    return upcast(table.retype_stablehlo(op), dtypes.SMALL_FLOATS, np.float32)


def erf64(x: Any) -> Any:
    """Return erf of float64 values."""
    size = np.abs(x)
    small = np.minimum(size, 1.0)
    inner = small * formula_backends.chebyshev(2.0 * small * small - 1.0, ERF_SMALL)
    return np.where(np.isnan(x), x, np.copysign(np.where(size <= 1, inner, 1.0 - _tail(size)), x))


def erfc64(x: Any) -> Any:
    """Return erfc of float64 values, accurate in the tail too."""
    tail = _tail(np.abs(x))
    outer = np.where(x < 0, 2.0 - tail, tail)
    return np.where(np.isnan(x), x, np.where(np.abs(x) <= 1, 1.0 - erf64(np.clip(x, -1, 1)), outer))


def _tail(x: Any) -> Any:
    """Return erfc(x) for x >= 1."""
    x = np.clip(x, 1.0, 30.0)  # erfc(28) is 0 in float64
    s = (x - 3.0) / (x + 3.0)
    scaled_value = formula_backends.chebyshev(
        (s + 0.5) * (4.0 / 3.0) - 1.0, formula_backends.ERFC_LARGE
    )
    # exp(-x^2) by x^2 = c^2 + (x - c)(x + c) with c of few bits: squaring x would round
    coarse = np.round(x * 1024.0) / 1024.0
    gauss = np.exp(-coarse * coarse) * np.exp(-(x - coarse) * (x + coarse))
    return gauss * scaled_value / x


def erf_inv64(p: Any) -> Any:
    """Return the inverse of erf: a first guess, and three steps of Halley's method.

    The guess is Winitzki's, "A handy approximation for the error function and its inverse" (2008).
    """
    size = np.minimum(np.abs(p), 1.0)
    q = 1.0 - size  # exact where it is used, for size > 1/2
    log_pq = np.log(np.maximum(q * (1.0 + size), 1e-300))
    a = 0.147
    b = 2.0 / (math.pi * a) + log_pq / 2.0
    y = np.sqrt(np.sqrt(b * b - log_pq / a) - b)
    for _ in range(3):
        error = np.where(size > 0.5, q - erfc64(y), erf64(y) - size)
        step = error / (_SPECIAL_ERROR_SLOPE * np.exp(-y * y))
        y = y - step / (1.0 + y * step)
    # erf(y) is y times a constant where its square is lost
    y = np.where(size < 1e-8, size / _SPECIAL_ERROR_SLOPE, y)
    y = np.where(size == 1, np.inf, np.where(np.abs(p) > 1, np.nan, y))
    return np.where(np.isnan(p), p, np.copysign(np.where(np.abs(p) > 1, np.nan, y), p))


# Giles, "Approximating the erfinv function" (2010), table 5: polynomials in w - 5/2 for w < 5 and
# in sqrt(w) - 3 above, of w = -log(1 - x^2). The compiler uses the same, so samples made with and
# without it agree to rounding.
_GILES_CENTRE = tuple(np.array(c, np.float32) for c in (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
))  # fmt: skip
_GILES_TAIL = tuple(np.array(c, np.float32) for c in (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
))  # fmt: skip


def erf_inv32(x: Any) -> Any:
    """Return the inverse of erf of float32 numbers by Giles' polynomials."""
    w = -np.log1p(-x * x)
    p = _horner(_GILES_CENTRE, w - _CENTRE)
    tail = w >= _SPECIAL_ERROR_TAIL_START
    if np.count_nonzero(tail):  # quicker than `any` for a few; so are the ends, where w is infinite
        in_tail = _horner(_GILES_TAIL, np.sqrt(w) - np.float32(3))
        p = np.where(tail, in_tail, p)
        return np.where(np.abs(x) == 1, np.copysign(np.float32(np.inf), x), p * x)
    return p * x


# Constants of rank 0: NumPy takes half as long over them as over its scalars.
_CENTRE, _SPECIAL_ERROR_TAIL_START = np.array(2.5, np.float32), np.array(5, np.float32)


def _horner(coefficients: tuple[Any, ...], w: Any) -> Any:
    first, second, *others = coefficients
    p = first * w
    p += second
    for c in others:
        p *= w
        p += c
    return p


def _erf_inv_numpy(x: Any) -> Any:
    if x.dtype == np.float64:
        return erf_inv64(x)
    if x.dtype == np.float32:
        return erf_inv32(x)
    return erf_inv32(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


def _gauss(x: Any) -> Any:
    # beyond 30 it is 0, and so are its derivatives, where x^2 would be infinite
    limit = scalar_like(x, 30)
    far = bind("gt", bind("abs", x), limit)
    x = bind("select_n", far, x, table.fill(x.aval.shape, 30, x.aval.dtype))
    return bind("exp", table.neg(bind("square", x)))


erf_p = unary(
    "erf", FLOATING, numpy=in_float64(erf64), stablehlo=in_float32_stablehlo("chlo.erf"),
    jvp=lambda x_dot, y, x: mul(x_dot, scale_by(_gauss(x), _SPECIAL_ERROR_SLOPE)),
    cost=costs.special,
)  # fmt: skip


def _erfc_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (x,), (aval,) = operands, avals_in
    is_known = type(aval.size) is int and aval.dtype in (dtypes.float32, dtypes.float64)
    if b.platform != "cpu" or not is_known:
        return in_float32_stablehlo("chlo.erfc")(b, operands, avals_in, avals_out)
    return [complementary_error(Text(b, x, aval)).name]


erfc_p = unary(
    "erfc",
    FLOATING,
    numpy=in_float64(erfc64),
    stablehlo=_erfc_stablehlo,
    jvp=lambda x_dot, y, x: mul(x_dot, scale_by(_gauss(x), -_SPECIAL_ERROR_SLOPE)),
    cost=costs.special,
)

erf_inv_p = unary(
    "erf_inv", FLOATING, numpy=_erf_inv_numpy,
    stablehlo=in_float32_stablehlo("chlo.erf_inv"),
    # 1 / erf'(y)
    jvp=lambda x_dot, y, x: mul(x_dot, mul(scalar_like(y, 1 / _SPECIAL_ERROR_SLOPE),
                                           bind("exp", bind("square", y)))),
    cost=costs.special,
)  # fmt: skip


# -------------------------------------------------------------------------------- special normal
# The normal distribution and kin: erfcx, ndtr, log_ndtr, ndtri, dawsn.
#
#     erfcx(x) = exp(x^2) erfc(x),     ndtr(x) = erfc(-x / sqrt(2)) / 2,     ndtri(ndtr(x)) = x,
#     dawsn(x) = exp(-x^2) int_0^x exp(t^2) dt
#
# All tails go through exp(x^2 / 2) ndtr(-x), which neither overflows nor underflows there, and
# powers e^(x^2) through a square of few bits, since x^2 rounded would lose digits. ndtri is a
# series of ten digits, in float64 with a step of Halley's method, which trebles them. dawsn is
# Rybicki's sum of Gauss functions ("Dawson's integral and the sampling theorem", Computers in
# Physics 3, 1989).

_ROOT_HALF = math.sqrt(0.5)
_ROOT_2_BY_PI = math.sqrt(2 / math.pi)
_SPECIAL_NORMAL_SLOPE = 2 / math.sqrt(math.pi)  # of erf at 0
_SPECIAL_NORMAL_TAIL_START, _TAIL_END = (
    (2.14 - 4) / (2.14 + 4),
    (38.7 - 4) / (38.7 + 4),
)  # of NDTRI_TAIL


def _exp_square(m: Any, x: Any, sign: float) -> Any:
    """Return exp(sign x^2) by x^2 = c^2 + (x - c)(x + c), with c of few bits."""
    size = m.minimum(m.abs(x), 1e3)
    c = m.floor(size * 1024.0 + 0.5) * (1 / 1024)
    return m.exp(sign * c * c) * m.exp(sign * (size - c) * (size + c))


def _erf_small(m: Any, x: Any) -> Any:
    """Return erf(x) for |x| <= 1."""
    return x * m.chebyshev(2.0 * x * x - 1.0, ERF_SMALL)


def _ratio(m: Any, x: Any) -> Any:
    """Return exp(x^2 / 2) ndtr(-x) for x >= 0, by one series, which float32 needs half of."""
    inverse = 1.0 / (x + 3.0)
    count = 13 if m.precision is NarrowPrecision else len(formula_backends.NORMAL_TAIL)
    return m.chebyshev(1.0 - 6.0 * inverse, formula_backends.NORMAL_TAIL[:count]) * inverse


def erfcx(m: Any, x: Any) -> Any:
    """Return exp(x^2) erfc(x)."""
    value = 2.0 * _ratio(m, m.abs(x) * math.sqrt(2))
    return m.where(x < 0.0, 2.0 * _exp_square(m, x, 1.0) - value, value)


def normal_tail(m: Any, x: Any) -> Any:
    """Return ndtr(-x) for x >= 0."""
    size = m.minimum(x, 1e3)
    if m.precision is NarrowPrecision:  # the square of a float32 is exact
        gauss = m.exp(-0.5 * size * size)
    else:  # exp(-x^2 / 2) as the root of a square, without that of the root of 1/2
        c = m.floor(size * 1024.0 + 0.5) * (1 / 1024)
        gauss = m.exp(-0.5 * c * c) * m.exp(-0.5 * (size - c) * (size + c))
    return gauss * _ratio(m, size)


def ndtr(m: Any, x: Any) -> Any:
    """Return the distribution function of the standard normal distribution."""
    tail = normal_tail(m, m.abs(x))
    return m.where(x > 0.0, 1.0 - tail, tail)


def log_ndtr(m: Any, x: Any) -> Any:
    """Return log(ndtr(x)), which is near -x^2 / 2 for negative x."""
    size = m.abs(x)
    above = m.log1p(-normal_tail(m, size))
    below = m.log(_ratio(m, size)) - 0.5 * size * size
    below = m.where(size == math.inf, -math.inf, below)
    return m.where(x > 0.0, above, below)


def ndtri(m: Any, p: Any) -> Any:
    """Return x with ndtr(x) = p; infinite at 0 and 1, NaN outside."""
    upper = p > 0.5
    q = m.where(upper, 1.0 - p, p)
    inside = q > 0.0
    q = m.where(inside, q, 0.25)
    y = m.narrow(_ndtri_half, q)
    y = m.where(upper, -y, y)
    y = m.where(inside, y, math.nan)
    return m.where(p == 0.0, -math.inf, m.where(p == 1.0, math.inf, y))


def _ndtri_half(m: Any, q: Any) -> Any:
    """Return ndtri(q) for 0 < q <= 1/2."""
    return m.where(q < 0.1, _ndtri_tail(m, m.minimum(q, 0.1)), _ndtri_centre(m, q))


def _ndtri_centre(m: Any, q: Any) -> Any:
    """Return ndtri(q) for 0.1 <= q <= 1/2, in float64 after a step of Halley's method on erf."""
    z = m.maximum(q - 0.5, -0.4)
    value = z * m.chebyshev(z * z * 12.5 - 1.0, formula_backends.NDTRI_CENTRE)
    if m.precision is NarrowPrecision:
        return value
    y = value * _ROOT_HALF
    step = (_erf_small(m, y) - 2.0 * z) / (_SPECIAL_NORMAL_SLOPE * m.exp(-y * y))
    return (y - step / (1.0 + y * step)) * math.sqrt(2)


def _ndtri_tail(m: Any, q: Any) -> Any:
    """Return ndtri(q) for q <= 0.1, in float64 after a step of Halley's method on the logarithm.

    That of ndtr has the derivative h.
    """
    log = m.log(q)
    size = m.sqrt(-2.0 * log)
    t = ((size - 4.0) / (size + 4.0) - _SPECIAL_NORMAL_TAIL_START) * (
        2 / (_TAIL_END - _SPECIAL_NORMAL_TAIL_START)
    ) - 1.0
    y = size + m.chebyshev(t, formula_backends.NDTRI_TAIL)
    if m.precision is NarrowPrecision:
        return -y
    ratio = _ratio(m, y)
    h = (0.5 * _ROOT_2_BY_PI) / ratio
    step = (m.log(ratio) - 0.5 * y * y - log) / -h
    return step / (1.0 + 0.5 * (h - y) * step) - y


# --- Dawson's integral ----------------------------------------------------------------------------

_WIDTH = 0.2  # h of Rybicki's sum: its error is exp(-(pi / 2h)^2), 1e-27
_HALF_COUNT = 16  # terms on each side: they go down to exp(-(31 h)^2), 2e-17
_FAR = 16.0
_SERIES = tuple([(-2.0) ** k / math.prod(range(2 * k + 1, 0, -2)) for k in range(12)])
_ASYMPTOTIC = tuple([math.prod(range(2 * k - 1, 0, -2)) / 2 ** (k + 1) for k in range(9)])


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    result = coefficients[-1] + 0.0 * x
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def dawsn(m: Any, x: Any) -> Any:
    """Return Dawson's integral: by its power series, Rybicki's sum, and 1/(2x) + 1/(4x^3) + ..."""
    size = m.abs(x)
    near = m.minimum(size, 0.4)
    series = near * _polynomial(near * near, _SERIES)
    far = m.maximum(size, _FAR)
    inverse = 1.0 / far
    outer = inverse * _polynomial(inverse * inverse, _ASYMPTOTIC)
    middle = m.minimum(size, _FAR)
    even = 2.0 * m.floor(middle * (0.5 / _WIDTH) + 0.5)
    offset = middle - even * _WIDTH
    total = 0.0 * size
    for k in range(_HALF_COUNT):
        n = float(2 * k + 1)
        a, b = offset - n * _WIDTH, offset + n * _WIDTH
        total = total + m.exp(-a * a) / (even + n) + m.exp(-b * b) / (even - n)
    total = total * (1 / math.sqrt(math.pi))
    value = m.where(size < 0.4, series, m.where(size > _FAR, outer, total))
    return m.where(x < 0.0, -value, value)


def _dawsn_slope(y: Any, x: Any) -> Any:
    """Return 1 - 2 x y, far out by its asymptotic series -1/(2x^2) - 3/(4x^4) - ..."""
    far = bind("gt", bind("abs", x), scalar_like(x, _FAR))
    inverse = div(scalar_like(x, 1), select(far, x, scalar_like(x, 1)))
    z = mul(inverse, inverse)
    total = scalar_like(x, (2 * 5 + 1) * _ASYMPTOTIC[5])
    for k in range(4, -1, -1):
        total = add(mul(total, z), scalar_like(x, (2 * k + 1) * _ASYMPTOTIC[k]))
    return select(
        far, table.neg(mul(z, total)), table.sub(scalar_like(x, 1), scale_by(mul(x, y), 2))
    )


# --- derivatives ----------------------------------------------------------------------------------


def _erfcx_slope(y: Any, x: Any) -> Any:
    """Return 2 x y - 2/sqrt(pi), far out by its series (-1/(2x^2) + 3/(4x^4) - ...) 2/sqrt(pi)."""
    far = bind("gt", x, scalar_like(x, _FAR))
    inverse = div(scalar_like(x, 1), select(far, x, scalar_like(x, 1)))
    z = mul(inverse, inverse)
    total = scalar_like(x, 0)
    for k in range(6, 0, -1):
        term = (-0.5) ** k * math.prod(range(2 * k - 1, 0, -2))
        total = mul(add(total, scalar_like(x, term)), z)
    near = mul(select(far, scalar_like(x, 0), x), y)
    return select(
        far,
        scale_by(total, _SPECIAL_NORMAL_SLOPE),
        table.sub(scale_by(near, 2), scalar_like(x, _SPECIAL_NORMAL_SLOPE)),
    )


# --- primitives -----------------------------------------------------------------------------------


def normal_density(x: Any) -> Any:
    """Return exp(-x^2/2) / sqrt(2 pi); beyond 40, where x^2 might be infinite, 0."""
    far = bind("gt", bind("abs", x), scalar_like(x, 40))
    x = select(far, scalar_like(x, 0), x)
    density = scale_by(bind("exp", scale_by(mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return select(far, scalar_like(x, 0), density)


erfcx_p = unary(
    "erfcx", FLOATING, numpy=numpy_rule(erfcx), stablehlo=stablehlo_rule(erfcx),
    jvp=lambda x_dot, y, x: mul(x_dot, _erfcx_slope(y, x)),
    cost=costs.special,
)  # fmt: skip

ndtr_p = unary(
    "ndtr", FLOATING, numpy=numpy_rule(ndtr), stablehlo=stablehlo_rule(ndtr),
    jvp=lambda x_dot, y, x: mul(x_dot, normal_density(x)), cost=costs.special,
)  # fmt: skip


def _log_ndtr_slope(x: Any) -> Any:
    """Return density / ndtr, of E = erfcx(|x|/sqrt(2)): below 0 c / E, c = sqrt(2/pi).

    Above it is density / (1 - density E / c): erfcx of a number below 0 grows until it is infinite,
    as its derivative does, with which the second one would be a product of 0.
    """
    is_above = bind("gt", x, scalar_like(x, 0))
    size = select(is_above, bind("min", x, scalar_like(x, 100)), bind("neg", x))
    scaled, c = bind("erfcx", scale_by(size, _ROOT_HALF)), scalar_like(x, _ROOT_2_BY_PI)
    density = normal_density(size)
    rest = table.sub(scalar_like(x, 1), scale_by(mul(density, scaled), 1 / _ROOT_2_BY_PI))
    return select(is_above, div(density, rest), div(c, scaled))


log_ndtr_p = unary(
    "log_ndtr", FLOATING, numpy=numpy_rule(log_ndtr), stablehlo=stablehlo_rule(log_ndtr),
    jvp=lambda x_dot, y, x: mul(x_dot, _log_ndtr_slope(x)), cost=costs.special,
)  # fmt: skip

ndtri_p = unary(
    "ndtri", FLOATING, numpy=numpy_rule(ndtri), stablehlo=stablehlo_rule(ndtri),
    # the derivative of an inverse: one by the density at y
    jvp=lambda x_dot, y, x: mul(
        x_dot, scale_by(bind("exp", scale_by(mul(y, y), 0.5)), math.sqrt(2 * math.pi))),
    cost=costs.special,
)  # fmt: skip

dawsn_p = unary(
    "dawsn", FLOATING, numpy=numpy_rule(dawsn), stablehlo=stablehlo_rule(dawsn),
    jvp=lambda x_dot, y, x: mul(x_dot, _dawsn_slope(y, x)), cost=costs.special,
)  # fmt: skip
