"""Functions of complex numbers by their real parts, for compiled programs; and quotients for both.

XLA's own operations on complex numbers lose digits near zeros and poles, the signs of zeros, which
say on which side of a branch cut a number is, and values at infinities. What is written here has
the values of C99, Annex G, which NumPy has, too: `by_parts` writes a function from formulas of
both parts; `corrected` corrects the parts of an operation's result, and `mirrored` those on the
other side of a cut. A zero or an infinity of one part is exact whatever the other is, so a formula
puts 1 in the place of a sine or cosine that is NaN beside it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.lengths import direction, is_infinite, magnitude
from xnp.primitives.lowering_text import (
    Text,
    chosen,
    of_parts,
    parts_of,
    where,
    without_subnormals,
)
from xnp.primitives.table import Accuracy, retyped_stablehlo, tunable_stablehlo
from xnp.primitives.vector_functions import bits_of
from xprim import dtypes
from xprim.contracts import Builder

__all__ = ()

Parts = tuple[Text, Text]
# from the parts of the operand to those of the result
Formula = Callable[[Text, Text], Parts]
# from the parts of the operand and those that an operation found to the right ones
Correction = Callable[[Parts, Parts], Parts]
Rule = Callable[..., Any]


def by_parts(formula: Formula, op: str = "") -> Rule:
    """Return the rule of a formula of parts; if an accuracy is requested, of XLA's `op`."""
    to_accuracy = tunable_stablehlo(op)

    def write(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, accuracy: Accuracy = None
    ) -> list[str]:
        if accuracy is not None:
            return to_accuracy(b, operands, avals_in, avals_out, accuracy=accuracy)
        (aval,) = avals_out
        return [of_parts(aval, *formula(*parts_of(b, operands[0], aval)))]

    return write


def corrected(rule: Rule, *corrections: Correction) -> Rule:
    """Return the rule of a function of one operand whose results are corrected."""

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> list[str]:
        (result,) = rule(b, operands, avals_in, avals_out, **params)
        (aval,) = avals_out
        given, found = parts_of(b, operands[0], aval), parts_of(b, result, aval)
        for correction in corrections:
            found = correction(given, found)
        return [of_parts(aval, *found)]

    return write


def mirrored(rule: Rule, axis: str = "real") -> Rule:
    """Return the rule of a function of symmetric values, right on both sides of its cuts.

    XLA's operations take -0 for 0 on a cut. Functions that are real on a part of the real line
    have f(conj z) = conj f(z): they are computed above the line, and mirrored for numbers below it.

    Args:
      rule: a `stablehlo` rule of one operand, right for imaginary parts (real parts for the other
        axis) that are not negative, a zero among them.
      axis: which axis a number and its value are mirrored at: "real" where f(conj z) = conj f(z),
        "imaginary" where f(-conj z) = -conj f(z).
    """
    turned = 1 if axis == "real" else 0

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> list[str]:
        (aval,) = avals_out
        parts = list(parts_of(b, operands[0], aval))
        below = is_negative(parts[turned])
        parts[turned] = parts[turned].op("abs")
        (result,) = rule(b, [of_parts(aval, *parts)], avals_in, avals_out, **params)
        found = list(parts_of(b, result, aval))
        found[turned] = where(below, -found[turned], found[turned])
        return [of_parts(aval, *found)]

    return write


# ------------------------------------------------------------------------------ parts of numbers


def is_negative(x: Text) -> Text:
    """Write whether real numbers, zeros among them, have the sign bit."""
    return bits_of(x) < 0


def _is_nan(x: Text) -> Text:
    return x.compare("NE", x)


def _is_finite(x: Text) -> Text:
    return x.op("abs") < math.inf


def _scaled(parts: Parts, factor: float) -> Parts:
    """Write numbers times a real one: parts apart, for infinity times the imaginary 0 is NaN."""
    x, y = parts
    return x * factor, y * factor


def _size(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    return [magnitude(*parts_of(b, operands[0], avals_in[0])).name]


def _direction(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write z / |z|: 0 of zeros, the axis of one infinite part, NaN of two, as NumPy has it."""
    (aval,) = avals_out
    x, y = parts_of(b, operands[0], aval)
    has_axis = is_infinite(x).compare("NE", is_infinite(y)) & ~_is_nan(x) & ~_is_nan(y)
    along = [where(is_infinite(part), part.op("sign"), 0.0) for part in (x, y)]
    found = [where(has_axis, limit, part)
             for limit, part in zip(along, direction(x, y), strict=True)]  # fmt: skip
    return [of_parts(aval, *found)]


# ---------------------------------------------------------------------- exponentials of z and i z


def exponential(x: Text, y: Text) -> Parts:
    """Write e^x cos y, e^x sin y by e^(x/2) twice, which leave the range only where these do."""
    half = (x * 0.5).op("exponential")
    is_astray = ~_is_finite(y)
    cosine = where(is_infinite(x) & is_astray, x.like(1.0), y.op("cosine"))
    sine = where((x == -math.inf) & is_astray, x.like(1.0), y.op("sine"))
    return (half * cosine) * half, where(y == 0, y, (half * sine) * half)


def exponential_minus_one(x: Text, y: Text) -> Parts:
    """Write e^x cos y - 1, near zero as (e^x - 1) cos y - 2 sin(y/2)^2, and e^x sin y."""
    real, imag = exponential(x, y)
    less = (y * 0.5).op("sine")
    near = x.op("exponential_minus_one") * y.op("cosine") - less * less * 2.0
    real = where(x < 1.0, near, real - 1.0)
    is_nothing = (x == -math.inf) & ~_is_finite(y)
    real = where(is_nothing, real.like(-1.0), real)
    return where((x == 0) & (y == 0), x, real), imag


def logistic(x: Text, y: Text) -> Parts:
    """Write 1 / (1 + e^-z), by the power p = e^z or e^-z that is at most 1 in size."""
    is_left = x < 0
    a, b = exponential(-x.op("abs"), where(is_left, y, -y))
    inverse = 1.0 / ((a + 1.0) * (a + 1.0) + b * b)
    real = where(is_left, a + (a * a + b * b), a + 1.0) * inverse
    return real, where(is_left, b, -b) * inverse


def hyperbolic_sine(x: Text, y: Text) -> Parts:
    """Write sinh x cos y, cosh x sin y."""
    is_exact = ((x == 0) | is_infinite(x)) & ~_is_finite(y)
    cosine = where(is_exact, x.like(1.0), y.op("cosine"))
    return _sinh_times(x, cosine), where(y == 0, y, _cosh_times(x, y.op("sine")))


def hyperbolic_cosine(x: Text, y: Text) -> Parts:
    """Write cosh x cos y, sinh x sin y."""
    is_astray = ~_is_finite(y)
    cosine = where(is_infinite(x) & is_astray, x.like(1.0), y.op("cosine"))
    sine = where((x == 0) & is_astray, x.like(1.0), y.op("sine"))
    is_real = (y == 0) & ~(x.op("abs") < 1.0)  # where sinh x may be infinite, or NaN
    return _cosh_times(x, cosine), where(is_real, where(x < 0, -y, y), _sinh_times(x, sine))


def sine(x: Text, y: Text) -> Parts:
    """Write sin z = -i sinh(i z)."""
    imag, real = hyperbolic_sine(y, x)
    return real, imag


def cosine(x: Text, y: Text) -> Parts:
    """Write cos z = cosh(i z)."""
    real, imag = hyperbolic_cosine(y, x)
    return real, -imag


def _cosh_times(x: Text, factor: Text) -> Text:
    """Write cosh(x) times a factor; by e^(|x|/2) twice only the product leaves the range."""
    half = (x.op("abs") * 0.5).op("exponential")
    return ((half * 0.5) * factor) * half + ((0.5 / half) * factor) / half


def _sinh_times(x: Text, factor: Text) -> Text:
    size = x.op("abs")
    # sinh(x) = (e + e / (e + 1)) / 2 of e = e^x - 1, which has all digits near 0
    e = x.op("exponential_minus_one")
    near = ((e + e / (e + 1.0)) * 0.5) * factor
    half = (size * 0.5).op("exponential")
    far = ((half * 0.5) * factor) * half - ((0.5 / half) * factor) / half
    return where(size < 1.0, near, where(x < 0, -far, far))


# ------------------------------------------------------------------------------------ corrections


def with_zeros(*parts: int) -> Correction:
    """Return the correction of functions whose part (0 or 1) is zero where the operand's is."""

    def correction(given: Parts, found: Parts) -> Parts:
        x, y = [where(g == 0, g, f) if i in parts else f
                for i, (g, f) in enumerate(zip(given, found, strict=True))]  # fmt: skip
        return x, y

    return correction


def beside_a_pole(axis: int) -> Correction:
    """Return the correction of atanh (axis 0) and atan (axis 1) beside their poles at 1 and -1.

    With p = 1 or -1 on the axis and a small distance q from it the part along the axis is
    p (log 2 - log|q|) / 2.
    """

    def correction(given: Parts, found: Parts) -> Parts:
        pole, distance = given[axis], given[1 - axis].op("abs")
        value = pole * 0.5 * (math.log(2) - distance.op("log"))
        is_near = (pole.op("abs") == 1.0) & (distance < 1e-10)
        return _replaced(found, axis, where(is_near, value, found[axis]))

    return correction


def _replaced(parts: Parts, index: int, part: Text) -> Parts:
    return (part, parts[1]) if index == 0 else (parts[0], part)


def logarithm(rule: Rule, *corrections: Correction) -> Rule:
    """Return the rule of a logarithm, right at infinities and subnormal numbers, from XLA's."""
    right = corrected(rule, *corrections, _infinite_size)

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        (aval,) = avals_out
        if b.platform == "cpu":
            x, y = parts_of(b, operands[0], aval)
            operands = [of_parts(aval, without_subnormals(x), without_subnormals(y))]
        return right(b, operands, avals_in, avals_out, **params)

    return write


def _infinite_size(given: Parts, found: Parts) -> Parts:
    """Correct logarithms: the real part is infinite where a part is, also beside a NaN."""
    either = is_infinite(given[0]) | is_infinite(given[1])
    return where(either, found[0].like(math.inf), found[0]), found[1]


def above_minus_one(given: Parts, found: Parts) -> Parts:
    """Correct log(1 + z) of z = -1 + iy, which is log|y| along the real axis."""
    (x, y), (real, imag) = given, found
    return where(x == -1.0, y.op("abs").op("log"), real), imag


def infinite_root(given: Parts, found: Parts) -> Parts:
    """Correct sqrt(z) of z above the real axis: infinite beside a NaN, too."""
    (x, y), (real, imag) = given, found
    high = y == math.inf
    real = where(high | (x == math.inf), real.like(math.inf), real)
    return real, where(high | (x == -math.inf), imag.like(math.inf), imag)


def size_of_nan(axis: int) -> Correction:
    """Return the correction of inverse functions: the part that grows as log|z| is NaN as z is."""

    def correction(given: Parts, found: Parts) -> Parts:
        return _replaced(found, axis, _nan_as(given, found[axis]))

    return correction


def _nan_as(given: Parts, part: Text) -> Text:
    """Write a part of a value, but NaN where one of the operand's is and none is infinite."""
    x, y = given
    is_unknown = (_is_nan(x) | _is_nan(y)) & ~(is_infinite(x) | is_infinite(y))
    return where(is_unknown, part.like(math.nan), part)


def on_imaginary_axis(index: int, value: float) -> Correction:
    """Return the correction of a part (0 or 1) that is constant where the operand is i y."""
    return lambda given, found: _replaced(
        found, index, where(given[0] == 0, found[index].like(value), found[index])
    )


def tangent_of_nan(axis: int) -> Correction:
    """Return the correction of atanh (axis 0) and atan (axis 1) at NaN.

    The part along the axis is NaN as the operand is; the angle, along the other, also where an
    operand's part along that axis is NaN, whatever the first.
    """

    def correction(given: Parts, found: Parts) -> Parts:
        size, angle = found[axis], found[1 - axis]
        size, angle = _nan_as(given, size), _nan_as(given, angle)
        angle = where(_is_nan(given[1 - axis]), angle.like(math.nan), angle)
        return (size, angle) if axis == 0 else (angle, size)

    return correction


def base_two(given: Parts, found: Parts) -> Parts:
    """Make natural logarithms binary ones."""
    return _scaled(found, 1 / math.log(2))


def reciprocal(given: Parts, found: Parts) -> Parts:
    """Make a root r = x + i y its reciprocal, conj(r) / |r|^2."""
    x, y = found
    length = magnitude(x, y)
    is_far = is_infinite(x) | is_infinite(y)
    x, y = [where(is_far, where(is_negative(p), p.like(-0.0), 0.0), p) for p in (x, -y)]
    inverse = 1.0 / length  # a quotient of a quotient would be divided by the square
    real, imag = (x * inverse) * inverse, (y * inverse) * inverse
    return where(length == 0, real.like(math.inf), real), imag


# ------------------------------------------------------------------------------------- division
# Division of complex numbers that leaves the range only where the quotient does.
#
# NumPy and XLA divide as Smith did (Algorithm 116, CACM 1962): with |c| >= |d| the divisor of
# both parts is c + d (d / c), which reaches twice the greatest part of the denominator, and the
# numerators twice that of the numerator. Compiled programs divide quarters of both where one of
# the operands is near the end of the range: an exact scale (after Baudin and Smith, A robust
# complex division in Scilab, 2012, section 3, who scale each by itself), and what falls below the
# range then is nothing beside it. XLA's has the infinities and zeros of C99, G.5.1, NumPy's none
# of them: outside of `jit` operands whose quotient raises a flag or is NaN are scaled to numbers
# near 1, and the quotients that are NaN then are recovered as that section has it.

_QUARTER = 0.25


def divided(x: Any, y: Any) -> Any:
    """Divide complex arrays of NumPy."""
    try:
        with np.errstate(over="raise", under="ignore", invalid="raise", divide="raise"):
            quotient = np.true_divide(x, y)
    except FloatingPointError:
        return _divided_at_ends(x, y)
    return _divided_at_ends(x, y) if np.isnan(quotient).any() else quotient


def _divided_at_ends(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, x.dtype)
    with np.errstate(all="ignore"):
        (near_x, power_x), (near_y, power_y) = _near_one(x), _near_one(y)
        quotient = np.true_divide(near_x, near_y)
        out.real = np.ldexp(quotient.real, power_x - power_y)
        out.imag = np.ldexp(quotient.imag, power_x - power_y)
        lost = np.isnan(out.real) & np.isnan(out.imag)
        by_zero = (y == 0) & ~(np.isnan(x.real) & np.isnan(x.imag))
        if (lost | by_zero).any():
            recovered = _recovered(x, y)
            np.copyto(out, recovered, where=(lost | by_zero))
    return out


def _near_one(z: Any) -> tuple[Any, Any]:
    """Return complex numbers times a power of two that has the greater part in [1/2, 1), and it."""
    size = np.maximum(np.abs(z.real), np.abs(z.imag))
    power = np.where(np.isfinite(size), np.frexp(size)[1], 0)
    near = np.empty(z.shape, z.dtype)
    near.real, near.imag = np.ldexp(z.real, -power), np.ldexp(z.imag, -power)
    return near, power


def _recovered(x: Any, y: Any) -> Any:
    """Return quotients that are infinite or zero although a step of them is NaN (C99, G.5.1)."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    out = np.full(x.shape, complex(np.nan, np.nan), x.dtype)

    def put(where: Any, factor: Any, parts: tuple[Any, Any, Any, Any]) -> None:
        a, b, c, d = parts
        np.copyto(out.real, factor * (a * c + b * d), where=where)
        np.copyto(out.imag, factor * (b * c - a * d), where=where)

    def boxed(part: Any) -> Any:  # the corner or side of a box around 0 that infinity is beyond
        return np.copysign(np.isinf(part).astype(part.dtype), part)

    is_far, is_far_divisor = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    put(is_far & np.isfinite(c) & np.isfinite(d), np.inf, (boxed(a), boxed(b), c, d))
    put(is_far_divisor & np.isfinite(a) & np.isfinite(b), 0, (a, b, boxed(c), boxed(d)))
    by_zero = (c == 0) & (d == 0) & ~(np.isnan(a) & np.isnan(b))
    infinity = np.copysign(np.asarray(np.inf, c.dtype), c)
    np.copyto(out.real, infinity * a, where=by_zero)
    np.copyto(out.imag, infinity * b, where=by_zero)
    return out


def _quotient(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write a division, of quarters of numbers far out."""
    (out,) = avals_out
    numbers = [parts_of(b, b.broadcast(z, a, out.shape), out)
               for z, a in zip(operands, avals_in, strict=True)]  # fmt: skip
    sizes = [part.op("abs") for parts in numbers for part in parts]
    greatest = functools.reduce(lambda x, y: x.op("maximum", y), sizes)
    far = float(dtypes.finfo(greatest.aval.dtype).max) * _QUARTER
    factor = where(greatest > far, greatest.like(_QUARTER), 1.0)
    near = [of_parts(out, x * factor, y * factor) for x, y in numbers]
    return [b.same_type_op("stablehlo.divide", near, out)]


# ----------------------------------------------------------------------------- powers and squares


def _power(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    """Write x^y, by its exponent where a factor of |x^y| is no number, or an operand.

    |x^y| is exp(Re(y) log|x| - Im(y) arg x). The compiler multiplies |x|^Re(y) by the rest, which
    is NaN, infinite or 0 where one of the two overflows or vanishes alone. Where the exponent is
    -inf the power is 0: 0 to a power with a positive real part, and 1 / inf. Infinity times the
    angle 0 turns nothing; x^0 and 1^y are 1.
    """
    (x, y), (aval,) = operands, avals_out
    power = b.same_type_op("stablehlo.power", [x, y], aval)
    (real, imag), (x_real, x_imag) = parts_of(b, y, aval), parts_of(b, x, aval)
    angle = x_imag.op("atan2", x_real)
    logarithm, _ = parts_of(b, RULES["log"](b, [x], [aval], [aval])[0], aval)
    grown, turned = real * logarithm, imag * angle
    turned = where(turned.compare("EQ", turned), turned, 0.0)
    exponent = grown - turned
    direction = real * angle + imag * logarithm
    by_exponent = of_parts(aval, *exponential(exponent, direction))
    parts = [real, imag, x_real, x_imag, *parts_of(b, power, aval)]
    sizes = [part.op("abs") for part in parts]
    is_finite = functools.reduce(lambda x, y: x & y, [size < math.inf for size in sizes])
    is_spoilt = _spoilt([logarithm, grown, turned], exponent) | ~is_finite
    power = chosen(b, is_spoilt.name, by_exponent, power, aval)
    is_one = ((x_real == 1.0) & (x_imag == 0)) | ((real == 0) & (imag == 0))
    return [chosen(b, is_one.name, b.constant(1, aval), power, aval)]


def _spoilt(logarithms: list[Text], exponent: Text) -> Text:
    """Write where the size of the base or a factor of the power is no number; its exponent is."""
    least = float(np.log(dtypes.finfo(exponent.aval.dtype).smallest_normal))
    sizes = [x.op("abs") for x in logarithms]
    greatest = functools.reduce(lambda x, y: x.op("maximum", y), sizes)
    return (greatest > -least - 0.5) & (exponent < math.inf)


def _square(x: Text, y: Text) -> Parts:
    """Write (x + i y)^2 = (x - y)(x + y) + 2 i x y, whose digits do not cancel."""
    nothing = x.op("abs") - y.op("abs")  # 0, or NaN of infinite parts
    is_diagonal = x.op("abs") == y.op("abs")
    return where(is_diagonal, nothing, (x - y) * (x + y)), x * y + x * y


# ---------------------------------------------------------------------------------- the functions


def _exponential_of_two(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
) -> Any:
    (aval,) = avals_in
    power = of_parts(aval, *_scaled(parts_of(b, operands[0], aval), math.log(2)))
    return RULES["exp"](b, [power], avals_in, avals_out, **params)


RULES: dict[str, Rule] = {
    "abs": _size,
    "sign": _direction,
    "div": _quotient,
    "exp": by_parts(exponential, "stablehlo.exponential"),
    "exp2": _exponential_of_two,
    "expm1": by_parts(exponential_minus_one, "stablehlo.exponential_minus_one"),
    "logistic": by_parts(logistic, "stablehlo.logistic"),
    "log": logarithm(tunable_stablehlo("stablehlo.log")),
    "log1p": logarithm(tunable_stablehlo("stablehlo.log_plus_one"), above_minus_one),
    "log2": logarithm(tunable_stablehlo("stablehlo.log"), base_two),
    "sin": by_parts(sine, "stablehlo.sine"),
    "cos": by_parts(cosine, "stablehlo.cosine"),
    "tan": corrected(tunable_stablehlo("stablehlo.tan"), with_zeros(0, 1)),
    "sinh": by_parts(hyperbolic_sine),
    "cosh": by_parts(hyperbolic_cosine),
    "tanh": corrected(tunable_stablehlo("stablehlo.tanh"), with_zeros(0, 1)),
    "asin": corrected(
        mirrored(retyped_stablehlo("chlo.asin")), size_of_nan(1), with_zeros(0)
    ),
    "acos": corrected(
        mirrored(retyped_stablehlo("chlo.acos")), size_of_nan(1), on_imaginary_axis(0, math.pi / 2)
    ),
    "atan": corrected(
        mirrored(retyped_stablehlo("chlo.atan"), "imaginary"),
        beside_a_pole(1), tangent_of_nan(1), with_zeros(1),
    ),
    "asinh": corrected(
        mirrored(retyped_stablehlo("chlo.asinh"), "imaginary"), size_of_nan(0), with_zeros(1)
    ),
    "acosh": mirrored(corrected(
        retyped_stablehlo("chlo.acosh"), size_of_nan(0), on_imaginary_axis(1, math.pi / 2)
    )),
    "atanh": corrected(
        mirrored(retyped_stablehlo("chlo.atanh")),
        beside_a_pole(0), tangent_of_nan(0), with_zeros(0),
    ),
    "sqrt": mirrored(corrected(tunable_stablehlo("stablehlo.sqrt"), infinite_root)),
    "rsqrt": mirrored(
        corrected(tunable_stablehlo("stablehlo.sqrt"), infinite_root, reciprocal)
    ),
    "square": by_parts(_square),
    "pow": _power,
}  # fmt: skip
