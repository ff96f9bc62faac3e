"""Elementary functions for CPUs, as operations that become vector code.

XLA calls a scalar function of the C library for each element of `sine`, `cosine`, `tan`, `atan2`
(which `asin` and `acos` are made of) and `cbrt` on a CPU: 10 to 40 ns. Here they are written as
arithmetic of float64, which every CPU of ours has as vector instructions. For float32 and narrower
dtypes it rounds once, so the results are within 0.51 ulp, and exact where the function is. Some
have a second form for float64 itself, within 2 ulp.

What: `vectorised`, which puts a formula in the place of an operation: on a CPU, from `_LEAST`
elements on. A formula is a function of the program that XLA does not
inline: fused with several users it would be computed once for each.

The polynomials are of `tools/minimax.py`. Sources: range reduction, W. J. Cody and W. Waite,
Software Manual for the Elementary Functions, 1980; the first guess of a cube root, W. Kahan,
Computing a Real Cube Root, 1991; its refinement by Halley's method; the sum that makes a logarithm
exact to less than an ulp, K. C. Ng, Argument Reduction for Logarithms, in FDLIBM, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.primitives.lowering_text import Text, any_element, is_split, where
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder, outline

__all__ = ()

_LEAST = 1024  # elements: fewer take as long as the call

# The quotient of the arc tangent and r for 0 <= r <= 1, in r^2.
_ATAN = (
    0.9999999999887381, -0.3333333295165722, 0.19999978336217084, -0.1428522560816021,
    0.11105306732424464, -0.09049179093720577, 0.07495262378099696, -0.06022196387937433,
    0.04364658944281667, -0.02600599597760862, 0.011427633277375594, -0.0031954252407363944,
    0.00041922786011272897,
)  # fmt: skip
# The quotient of the sine and r for 0 <= r <= pi / 4, in r^2.
_SIN = (
    0.9999999999956515, -0.16666666631450996, 0.00833332876883547, -0.00019839198092453864,
    2.7173075444014035e-06,
)  # fmt: skip
# The cosine for the same, in r^2.
_COS = (
    0.999999999999944, -0.4999999999934787, 0.041666666543420654, -0.0013888880368345476,
    2.4798923457970708e-05, -2.7173048390198084e-07,
)  # fmt: skip
# The first for float64, 0 <= r <= 1/2.
_ATAN_WIDE = (
    1.0, -0.3333333333333333, 0.19999999999999396, -0.14285714285642884, 0.11111111106676229,
    -0.0909090892459431, 0.0769230360866171, -0.0666659763438319, 0.05881523847883739,
    -0.05255951820054856, 0.04716207948630676, -0.041365831858098286, 0.03294889024511551,
    -0.020329512254261873, 0.0068702280293702804,
)  # fmt: skip
# f with log((1 + s) / (1 - s)) = 2 s + s t f(t), t = s^2, for float64.
_LOG_WIDE = (
    0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045,
    0.18181795547521137, 0.15386244737621665, 0.13268638369266825, 0.13088034850927555,
)  # fmt: skip

# pi / 2 as the sum of a number of 33 bits, whose products with numbers of 20 are exact, and a rest.
_HALF_PI = (1.5707963267341256, 6.077100506506192e-11)
_MOST_QUARTERS = 1 << 20

Formula = Callable[..., Text]
"""From values of float64 and the signs of those they were, masks where set, to the result."""


def vectorised(
    formula: Formula | None,
    rule: Callable[..., list[str]],
    limit: float | None = None,
    wide: Formula | None = None,
) -> Callable[..., list[str]]:
    """Return a `stablehlo` rule that writes a formula where that is faster than an operation.

    Args:
      formula: what is written for float32 and narrower dtypes; None has the operation written.
      rule: of the operation, for other dtypes, platforms and sizes, and where an accuracy is asked.
      limit: where the magnitude of any element is above, all are computed by the operation.
      wide: what is written for float64; None has the operation written.
    """

    def write(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Any = None
    ) -> list[str]:
        params = {} if accuracy is None else {"accuracy": accuracy}
        (out,) = avals_out
        is_large = type(out.size) is int and out.size >= _LEAST
        found = formula if out.dtype in _NARROW else wide if out.dtype == dtypes.float64 else None
        is_ours = b.platform == "cpu" and is_large and not params
        if found is None or not is_ours or is_split(b):  # the compiler cuts operations itself
            return rule(b, operands, avals_in, avals_out, **params)

        operands = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        avals_in = [a.update(shape=out.shape) for a in avals_in]

        def body(inner: Builder, names: list[str]) -> list[str]:
            if limit is None:
                return [_written(inner, found, names, avals_in, out)]
            return _either(inner, found, rule, limit, names, avals_in, avals_out)

        name = found.__name__.strip("_")
        return outline(b, body, operands, avals_in, avals_out, f"vector {name}", name)

    return write


_NARROW = frozenset([dtypes.float32, dtypes.float16, dtypes.bfloat16])


def _written(
    b: Builder, formula: Formula, names: Sequence[str], avals: Sequence[ShapedArray],
    out: ShapedArray,
) -> str:  # fmt: skip
    if out.dtype == dtypes.float64:
        return formula(*[Text(b, x, a) for x, a in zip(names, avals, strict=True)]).name
    single = shaped_array(out.shape, dtypes.float32)
    values = [_widened(Text(b, b.convert(x, a, dtypes.float32), single))
              for x, a in zip(names, avals, strict=True)]  # fmt: skip
    return b.convert(_narrowed(formula(*values)).name, single, out.dtype)


# The runtime has the processor take subnormal numbers of float32 for zeros, and make none.
_SUBNORMAL = 1 << 23  # the bits of the least normal number
_MAGNITUDE = (1 << 31) - 1
_UNITS = 2.0**149


def _widened(x: Text) -> Text:
    """Write float32 as float64, subnormal numbers by their bits, which count units of 2^-149."""
    bits = _bits(x)
    size = bits.op("and", _MAGNITUDE)
    tiny = _converted(size, dtypes.float64) * (1 / _UNITS)
    usual = _converted(x, dtypes.float64)
    return where(size < _SUBNORMAL, where(bits < 0, -tiny, tiny), usual)


def _narrowed(x: Text) -> Text:
    """Write float64 as float32, subnormal numbers by their bits."""
    units = abs_(x * _UNITS)
    is_tiny = units < float(_SUBNORMAL)
    count = _converted(where(is_tiny, units, 0.0).op("round_nearest_even"), np.dtype(np.int32))
    sign = _converted(_bits(x).op("shift_right_logical", 32), np.dtype(np.int32))
    tiny = _floats(count.op("or", sign.op("and", -1 - _MAGNITUDE)))
    return where(is_tiny, tiny, _converted(x, dtypes.float32))


def _either(
    b: Builder, formula: Formula, rule: Callable[..., list[str]], limit: float,
    names: list[str], avals_in: Sequence[ShapedArray], avals_out: Sequence[ShapedArray],
) -> list[str]:  # fmt: skip
    """Write a formula, and an operation for arrays with an element above its limit."""
    (x,), (aval,) = names, avals_in
    is_far = any_element(b, abs_(Text(b, x, aval)) > limit)  # NaN is not: its results are NaN

    def operation(inner: Builder, _: list[str]) -> list[str]:
        # without the barrier the compiler computes both and selects
        (kept,) = inner.op("stablehlo.optimization_barrier", [x], [aval], [aval])
        return rule(inner, [kept], avals_in, avals_out)

    far = b.region([], operation, avals_out)
    near = b.region([], lambda inner, _: [_written(inner, formula, [x], avals_in, avals_out[0])],
                    avals_out)  # fmt: skip
    truth = shaped_array((), dtypes.bool_)
    return b.op("stablehlo.if", [is_far], [truth], avals_out, "", b.regions(far, near))


def _bits(x: Text) -> Text:
    """Write the bits of floats as integers."""
    return _reinterpreted(x, np.dtype(f"i{x.aval.dtype.itemsize}"))


def _floats(x: Text) -> Text:
    """Write the floats that have such bits."""
    return _reinterpreted(x, np.dtype(f"f{x.aval.dtype.itemsize}"))


def _reinterpreted(x: Text, dtype: np.dtype[Any]) -> Text:
    aval = shaped_array(x.aval.shape, dtype)
    (name,) = x.builder.op("stablehlo.bitcast_convert", [x.name], [x.aval], [aval])
    return Text(x.builder, name, aval)


def _converted(x: Text, dtype: np.dtype[Any]) -> Text:
    aval = shaped_array(x.aval.shape, dtype)
    return Text(x.builder, x.builder.convert(x.name, x.aval, dtype), aval)


def _polynomial(t: Text, coefficients: Sequence[float]) -> Text:
    """Write sum_k c_k t^k by Horner's rule."""
    result = t.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result * t + c
    return result


# --------------------------------------------------------------------------------- trigonometric


def _reduced(x: Text) -> tuple[Text, Text, Text]:
    """Write sin(r) and cos(r) with x = r + n pi / 2 and |r| <= pi / 4, and n as an integer."""
    n = (x * (2 / np.pi)).op("round_nearest_even")
    # where nothing is subtracted the sign of a zero stays
    r = where(n == 0.0, x, (x - n * _HALF_PI[0]) - n * _HALF_PI[1])
    t = r * r
    return r * _polynomial(t, _SIN), _polynomial(t, _COS), _converted(n, np.dtype(np.int32))


def _sine_of(x: Text, shift: int) -> Text:
    sine, cosine, n = _reduced(x)
    n = n + shift
    result = where(n.op("and", 1) == 0, sine, cosine)
    return where(n.op("and", 2) == 0, result, -result)


def sine(x: Text) -> Text:
    """Write sin(x)."""
    return _sine_of(x, 0)


def cosine(x: Text) -> Text:
    """Write cos(x) = sin(x + pi / 2)."""
    return _sine_of(x, 1)


def tangent(x: Text) -> Text:
    """Write tan(x): sin(r) / cos(r), or -cos(r) / sin(r)."""
    sine, cosine, n = _reduced(x)
    is_even = n.op("and", 1) == 0
    return where(is_even, sine, -cosine) / where(is_even, cosine, sine)


REACH = float(np.float32(_MOST_QUARTERS * np.pi / 2 - 2))
"""Up to this magnitude arguments are reduced exactly enough."""


# ------------------------------------------------------------------------- inverse trigonometric


def angle(y: Text, x: Text) -> Text:
    """Write atan2(y, x), by the smaller over the larger magnitude."""
    less, more = abs_(y), abs_(x)
    is_steep = less > more
    less, more = less.op("minimum", more), less.op("maximum", more)
    ratio = less / more
    # 0 / 0 is 0 here, and inf / inf is 1
    ratio = where(more == 0.0, more, where(less == np.inf, more.like(1.0), ratio))
    result = ratio * _polynomial(ratio * ratio, _ATAN)
    result = where(is_steep, np.pi / 2 - result, result)
    result = where(_bits(x) < 0, np.pi - result, result)
    return where(_bits(y) < 0, -result, result)


def arctangent(x: Text) -> Text:
    """Write atan(x)."""
    return angle(x, x.like(1.0))


# What float64 leaves of pi.
_PI_REST = 1.2246467991473532e-16
_HUGE, _TINY = 2.0**1000, 2.0**-30


def wide_angle(y: Text, x: Text) -> Text:
    """Write atan2(y, x) of float64: above 1/2, where less - more is exact, beside the diagonal."""
    less, more = abs_(y), abs_(x)
    is_steep = less > more
    less, more = less.op("minimum", more), less.op("maximum", more)
    scale = where(more > _HUGE, more.like(0.25), 1.0)
    low, high = less * scale, more * scale
    are_infinite = less == np.inf
    is_far = (low > high * 0.5) | are_infinite
    ratio = where(is_far, low - high, low) / where(is_far, low + high, high)
    ratio = where(more == 0.0, more, where(are_infinite, more.like(0.0), ratio))
    t = ratio * ratio
    result = ratio + ratio * (t * _polynomial(t, _ATAN_WIDE[1:]))
    result = where(is_far, np.pi / 4 + (result + _PI_REST / 4), result)
    result = where(is_steep, np.pi / 2 - (result - _PI_REST / 2), result)
    result = where(_bits(x) < 0, np.pi - (result - _PI_REST), result)
    return where(_bits(y) < 0, -result, result)


def _like_tiny(x: Text, result: Text) -> Text:
    """Write tiny arguments themselves for functions that begin with x + O(x^3)."""
    return where(abs_(x) < _TINY, x, result)


def wide_arctangent(x: Text) -> Text:
    """Write atan(x) of float64."""
    return _like_tiny(x, wide_angle(x, x.like(1.0)))


def wide_arcsine(x: Text) -> Text:
    """Write asin(x) of float64, the angle of (sqrt(1 - x^2), x)."""
    return _like_tiny(x, wide_angle(x, _cofunction(x)))


def wide_arccosine(x: Text) -> Text:
    """Write acos(x) of float64, the angle of (x, sqrt(1 - x^2))."""
    return wide_angle(_cofunction(x), x)


def _cofunction(x: Text) -> Text:
    """Write sqrt(1 - x^2), near 1 by factors, of which one is exact."""
    factored = (1.0 - x) * (1.0 + x)
    return where(abs_(x) < 0.5, 1.0 - x * x, factored).op("sqrt")


def abs_(x: Text) -> Text:
    """Write |x|."""
    return x.op("abs")


def arcsine(x: Text) -> Text:
    """Write asin(x), the angle of (sqrt(1 - x^2), x)."""
    return angle(x, (1.0 - x * x).op("sqrt"))


def arccosine(x: Text) -> Text:
    """Write acos(x), the angle of (x, sqrt(1 - x^2))."""
    return angle((1.0 - x * x).op("sqrt"), x)


# ------------------------------------------------------------------------------------ cube roots

_CBRT_BIAS = 715094163  # a third of the bits of 1.0, for the upper 32 bits of float64


def cube_root(x: Text) -> Text:
    """Write the cube root: a third of the exponent, then y (y^3 + 2 a) / (2 y^3 + a) twice."""
    a = abs_(x)
    upper = _converted(_bits(a).op("shift_right_logical", 32), np.dtype(np.int32))
    guess = upper / 3 + _CBRT_BIAS
    y = _floats(_converted(guess, np.dtype(np.int64)).op("shift_left", 32))
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + a + a) / (cube + cube + a)
    y = where((a == 0.0).op("or", _not_finite(a)), a, y)
    return where(_bits(x) < 0, -y, y)


_LEAST_NORMAL = 1 << 52  # as bits; subnormal numbers count units of 2^-1074


def wide_cube_root(x: Text) -> Text:
    """Write the cube root of float64, by one step of Newton's more; subnormal numbers by bits."""
    bits = _bits(x).op("and", (1 << 63) - 1)
    is_subnormal, a = bits < _LEAST_NORMAL, _floats(bits)
    # y^4 must neither overflow nor vanish
    is_huge, is_tiny = a > 2.0**600, a < 2.0**-600
    powers = [where(is_huge, a.like(high), where(is_tiny, a.like(low), 1.0))
              for high, low in ((2.0**-600, 2.0**600), (2.0**200, 2.0**-200))]  # fmt: skip
    scaled = where(is_subnormal, _converted(bits, dtypes.float64), a * powers[0])
    y = cube_root(scaled)
    y = y + (scaled / (y * y) - y) * (1 / 3)
    y = y * where(is_subnormal, y.like(2.0**-358), powers[1])
    y = where((bits == 0).op("or", _not_finite(a)), a, y)
    return where(_bits(x) < 0, -y, y)


# ------------------------------------------------------------------------------------ logarithms

_LOG_2 = (0.6931471803691238, 1.9082149292705877e-10)  # the first has 33 bits


def wide_logarithm(x: Text) -> Text:
    """Write log(x) = k log 2 + log(1 + f) of float64, with 1 + f between sqrt(1/2) and sqrt(2)."""
    bits, integer = _bits(x), np.dtype(np.int32)
    is_tiny = bits < _LEAST_NORMAL
    units = _converted(bits, dtypes.float64)
    whole = _bits(where(is_tiny, units, x))
    exponent = _converted(whole.op("shift_right_logical", 52), integer) - 1023
    mantissa = _floats(whole.op("and", _LEAST_NORMAL - 1).op("or", 1023 << 52))
    is_high = mantissa > 2**0.5
    f = where(is_high, mantissa * 0.5, mantissa) - 1.0
    k = _converted(exponent + _converted(is_high, integer), dtypes.float64)
    k = k + where(is_tiny, k.like(-1074.0), 0.0)
    s = f / (f + 2.0)
    t = s * s
    half = f * f * 0.5
    rest = s * (half + t * _polynomial(t, _LOG_WIDE)) + k * _LOG_2[1]
    result = k * _LOG_2[0] - ((half - rest) - f)
    result = where(x < np.inf, result, x)
    # a comparison of the bits with zero is made one of the number, which takes 1e-310 for zero
    result = where(units == 0.0, x.like(-np.inf), result)
    is_below_zero = bits > -(1 << 63)
    return where(bits < 0, where(is_below_zero, x.like(np.nan), -np.inf), result)


def _not_finite(a: Text) -> Text:
    return ~(a < np.inf)
