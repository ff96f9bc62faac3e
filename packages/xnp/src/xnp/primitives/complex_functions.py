"""Lengths; functions of complex numbers by their real parts, for compiled programs; quotients.

XLA's own operations on complex numbers lose digits near zeros and poles, the signs of zeros, which
say on which side of a branch cut a number is, and values at infinities. What is written here has
the values of C99, Annex G, which NumPy has, too: `by_parts` writes a function from formulas of
both parts; `correct` corrects the parts of an operation's result, and `mirror` those on the
other side of a cut. A zero or an infinity of one part is exact whatever the other is, so a formula
puts 1 in the place of a sine or cosine that is NaN beside it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, lowering_text, table
from xnp.primitives.lowering_text import Text, choose, of_parts, parts_of, where, without_subnormals
from xnp.primitives.table import Accuracy, bind, mul, retype_stablehlo, tunable_stablehlo
from xnp.primitives.vector_functions import bits_of, bits_of_one, floats, over_least_normal
from xprim import Primitive, ShapedArray, Zero, dtypes, state
from xprim.contracts import Builder, outline

__all__ = ()


# ------------------------------------------------------------------------------- lengths and angles
# The length of two numbers, sqrt(x^2 + y^2), their angle, atan2(x, y), and the derivatives of both.
#
# `hypot_derivative[orders=(i, j)]` is the derivative i times by x and j times by y, as is
# `angle_derivative`. With z = hypot(x, y), u = x / z and v = y / z both are p(u, v) / z^m, p a
# polynomial and m the number of times n = i + j, less 1 for the length: 1 for n = 0 of the length,
# v and -u for n = 1 of the angle, and then, as u' = v^2 / z, v' = -u v / z and z' = u by x, and
# likewise by y, found by recurrence. So no order forms the square of what is tiny or huge, and only
# its result may leave the range of a dtype.

# ------------------------------------------------------------------------- numbers within a range

# By bytes of a number: what is squared is between the inverse of the first power of 2 and it;
# what is above is first divided by the second, what is below by the least normal number and then
# by the third. So no square is infinite or loses digits.
_IN_RANGE = {4: (2.0**40, 2.0**80, 2.0**32), 8: (2.0**450, 2.0**600, 2.0**260)}


class _Range:
    """Two sizes times a power of 2, subnormal ones by their bits: some processors flush those."""

    def __init__(self, x: Text, y: Text) -> None:
        dtype = x.aval.dtype
        self.bound, self.most, self.least = _IN_RANGE[dtype.itemsize]
        self.tiny, self.one = float(dtypes.finfo(dtype).tiny), bits_of_one(dtype)
        sizes = [x.op("abs"), y.op("abs")]
        top = sizes[0].op("maximum", sizes[1])
        self.is_high, self.is_low = top > self.bound, top < 1 / self.bound
        self.sizes = [self._scale(size) for size in sizes]

    def _scale(self, x: Text) -> Text:
        is_subnormal, fraction = over_least_normal(x)
        low = where(is_subnormal, fraction * (1 / self.least), x * (1 / self.tiny / self.least))
        return where(self.is_low, low, x * where(self.is_high, x.like(1 / self.most), 1.0))

    def scale(self, *operands: Text) -> list[Text]:
        """Write the operands whose sizes these are, times the power."""
        return [where(bits_of(x) < 0, -size, size)
                for x, size in zip(operands, self.sizes, strict=True)]  # fmt: skip

    def length(self) -> Text:
        """Write the length of the two, times the power."""
        x, y = self.sizes
        return (x * x + y * y).op("sqrt")

    def restore(self, x: Text) -> Text:
        """Write a length divided by the power, subnormal numbers by their bits."""
        in_tiny = x * self.least
        subnormal = floats(bits_of(in_tiny + 1.0) - self.one)
        low = where(in_tiny < 1.0, subnormal, in_tiny * self.tiny)
        return where(self.is_low, low, x * where(self.is_high, x.like(self.most), 1.0))

    def powers(self) -> tuple[Text, Text]:
        """Write two factors of the power: what a quotient by a tiny length exceeds, and the rest.

        That is before the quotient, which else may be too small, and no product is too large.
        """
        one = self.sizes[0].like(1.0)
        rest = where(self.is_low, one.like(1 / self.tiny / self.least / self.bound), 1.0)
        before = where(self.is_low, one.like(self.bound), 1.0)
        return before, where(self.is_high, one.like(1 / self.most), rest)


def magnitude(x: Text, y: Text) -> Text:
    """Write sqrt(x^2 + y^2): infinite where an operand is, also beside a NaN."""
    scaled = _Range(x, y)
    length = scaled.restore(scaled.length())
    return where(is_infinite(x) | is_infinite(y), length.like(math.inf), length)


def direction(x: Text, y: Text) -> list[Text]:
    """Write x and y over their length, 0 of zeros."""
    scaled = _Range(x, y)
    length = scaled.length()
    is_zero = length == 0.0
    return [where(is_zero, part.like(0.0), part / length) for part in scaled.scale(x, y)]


def is_infinite(x: Text) -> Text:
    """Write whether real numbers are infinite."""
    return x.op("abs").compare("EQ", math.inf)


# ------------------------------------------------------------------------------------ derivatives


Rule = Callable[..., Any]
Orders = tuple[int, int]
Terms = dict[tuple[int, int], int]

# p of the derivatives that the others are found from, by the powers of u and v
_FIRST: dict[str, dict[Orders, Terms]] = {
    "hypot": {(0, 0): {(0, 0): 1}},
    "angle": {(1, 0): {(0, 1): 1}, (0, 1): {(1, 0): -1}},
}


def _power_of_length(function: str, orders: Orders) -> int:
    """Return m, the power of the length that a derivative is divided by."""
    return sum(orders) - (function == "hypot")


@functools.cache
def _terms(function: str, orders: Orders) -> Terms:
    """Return p of a derivative: the coefficient by the powers of u and v."""
    first = _FIRST[function]
    if orders in first:
        return first[orders]
    by_x, by_y = orders
    lower = (by_x - 1, by_y) if by_x else (by_x, by_y - 1)
    m = _power_of_length(function, lower)
    found: Terms = {}
    for (a, b), c in _terms(function, lower).items():
        # by x: a u^(a-1) v^(b+2) - (b + m) u^(a+1) v^b; by y with u and v swapped
        steps = [((a - 1, b + 2), a), ((a + 1, b), -b - m)] if by_x else [
            ((a + 2, b - 1), b), ((a, b + 1), -a - m)]  # fmt: skip
        for powers, factor in steps:
            found[powers] = found.get(powers, 0) + c * factor
    return {powers: c for powers, c in found.items() if c}


def _over_length(
    function: str, orders: Orders, x: Any, y: Any, length: Any, powers: Any = None
) -> Any:
    """Return p(u, v) / z^m of operands and their length z, all times powers of 2, if given.

    Each quotient by z is multiplied by them: the result is of the operands as they were.
    """
    total, u, v = None, x / length, y / length
    for (a, b), c in _terms(function, orders).items():
        term = functools.reduce(lambda x, y: x * y, [u] * a + [v] * b)
        term = term if c == 1 else term * float(c)
        total = term if total is None else total + term
    for _ in range(_power_of_length(function, orders)):
        if powers is None:
            total = total / length
        else:
            total = total * powers[0] / length * powers[1]
    return total


def _first_of_angle(by_x: bool, x: Any, y: Any) -> Any:
    """Return y / (x^2 + y^2) or -x / (x^2 + y^2), of the ratio of the operands and no square."""
    squares, info = x * x + y * y, dtypes.finfo(x.dtype)
    if squares.size and info.tiny / info.eps < squares.min() and squares.max() < math.inf:
        return (y if by_x else -x) / squares
    is_steep, one = np.abs(x) > np.abs(y), np.ones((), x.dtype)
    greater, lesser = np.where(is_steep, x, y), np.where(is_steep, y, x)
    ratio = lesser / greater
    total = greater + lesser * ratio
    found = np.where(is_steep, ratio, one) / total if by_x else np.where(
        is_steep, one, ratio) / -total  # fmt: skip
    is_far = np.isinf(greater) & ~np.isnan(lesser)
    return np.where(is_far, np.zeros((), x.dtype), found)


def _first_of_angle_text(by_x: bool, x: Text, y: Text) -> Text:
    """Write the same of operands times a power of 2, which the exponent of the greater gives.

    So both squares are in range at the cost of integer operations alone: the exponents of what is
    multiplied have the sum of that of 2 and that of 1, and only 0 has an infinite factor.
    """
    info = dtypes.finfo(x.aval.dtype)
    highest = ((1 << info.nexp) - 1) << info.nmant
    greater = bits_of(x.op("abs")).op("maximum", bits_of(y.op("abs")))
    exponent = greater.op("and", highest)
    power = floats(highest - exponent)
    u, v = x * power, y * power
    found = (v if by_x else -u) / (u * u + v * v) * power
    is_far = greater.compare("EQ", highest)  # those of NaN are greater
    return where(is_far, found.like(0.0), found)


def _derivative_numpy(function: str) -> Callable[..., Any]:
    @lowering_text.in_wider
    def rule(x: Any, y: Any, *, orders: Orders) -> Any:
        one_by_one = sum(orders) == 1
        if function == "angle" and one_by_one:
            return _first_of_angle(orders[0] == 1, x, y)
        info, length, m = dtypes.finfo(x.dtype), np.hypot(x, y), _power_of_length(function, orders)
        if length.size and info.tiny / info.eps < length.min() and length.max() < math.inf:
            return _over_length(function, orders, x, y, length)
        size, zero = np.maximum(np.abs(x), np.abs(y)), np.zeros((), x.dtype)
        _, exponent = np.frexp(size)
        a, b = np.ldexp(x, -exponent), np.ldexp(y, -exponent)
        found = np.ldexp(_over_length(function, orders, a, b, np.hypot(a, b)), -m * exponent)
        if function == "hypot":
            found = np.where(size == 0, zero, found)
        first = x if orders[0] else y
        at_infinity = np.where(np.isinf(first), np.sign(first), zero) if one_by_one else zero
        return np.where(np.isinf(x) | np.isinf(y), at_infinity, found)

    return rule


def _derivative_text(
    function: str, orders: Orders, b: Builder, operands: Any, aval: ShapedArray
) -> str:
    x, y = [Text(b, name, aval) for name in operands]
    if function == "angle" and sum(orders) == 1:
        return _first_of_angle_text(orders[0] == 1, x, y).name
    scaled = _Range(x, y)
    length = scaled.length()
    is_zero = length == 0.0
    length = where(is_zero, length.like(1.0), length)
    u, v = scaled.scale(x, y)
    found = _over_length(function, orders, u, v, length, scaled.powers())
    limit = found.like(0.0)
    found = where(is_zero, limit if function == "hypot" else limit.like(math.nan), found)
    if sum(orders) == 1:
        first = x if orders[0] else y
        limit = where(is_infinite(first), first.op("sign"), limit)
    return where(is_infinite(x) | is_infinite(y), limit, found).name


def _derivative_stablehlo(function: str) -> Rule:
    def stablehlo(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, orders: Orders
    ) -> list[str]:
        def in_place(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
            (out,) = avals_out
            names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
            return [_derivative_text(function, orders, b, names, out)]

        write = lowering_text.upcast(in_place, lowering_text.WIDER, np.float32)
        if function == "angle":
            (out,), types = avals_out, [avals_out[0]] * 2
            names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
            return outline(
                b, lambda inner, xs: write(inner, xs, types, [out]), names, types, [out],
                f"angle_derivative {orders}", "angle_derivative",
            )  # fmt: skip
        found: list[str] = write(b, operands, avals_in, avals_out)
        return found

    return stablehlo


@xprim.primitive_maker
def _define_derivative(name: str, function: str) -> Primitive:
    """Define the derivatives of `hypot` or of the angle, of all orders."""
    by_numpy = _derivative_numpy(function)

    def jvp(primals: Any, tangents: Any, *, orders: Orders) -> Any:
        (x, y), (i, j) = primals, orders
        (z,) = state.trace.process(primitive, (x, y), {"orders": orders})
        total = None
        for dot, more in zip(tangents, ((i + 1, j), (i, j + 1)), strict=True):
            if type(dot) is not Zero:
                # derivatives may be infinite, and tangents zero: of an imaginary part, say
                term = bind("absorbing_product", dot, primitive.bind(x, y, orders=more)[0])
                term = table.repeat_scalar(term, z.aval.shape)
                total = term if total is None else table.add(total, term)
        return (z,), (Zero(z.aval) if total is None else total,)

    primitive = Primitive(
        name,
        shape=table.elementwise_shape(name, table.FLOATING),
        numpy=lambda x, y, *, orders: (by_numpy(x, y, orders=orders),),
        stablehlo=_derivative_stablehlo(function),
        jvp=jvp,
        transpose=xprim.undefined("it is not linear"),
        batch=xprim.ELEMENTWISE,
    )
    return primitive


hypot_derivative_p = _define_derivative("hypot_derivative", "hypot")
angle_derivative_p = _define_derivative("angle_derivative", "angle")


def _derivative(x: Any, y: Any, by_x: int, by_y: int) -> Any:
    return hypot_derivative_p.bind(x, y, orders=(by_x, by_y))[0]


hypot_p = table.binary(
    "hypot", table.FLOATING, numpy=lowering_text.in_wider(np.hypot), ufunc=np.hypot,
    ufunc_kinds=table.FLOATING & table.NATIVE, cost=costs.choice,
    stablehlo=lowering_text.apart_from_uses(
        lambda b, operands, aval: magnitude(*[Text(b, x, aval) for x in operands]).name, "hypot"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, _derivative(x, y, 1, 0)),
         lambda y_dot, z, x, y: mul(y_dot, _derivative(x, y, 0, 1))),
)  # fmt: skip


Parts = tuple[Text, Text]
# from the parts of the operand to those of the result
Formula = Callable[[Text, Text], Parts]
# from the parts of the operand and those that an operation found to the right ones
Correction = Callable[[Parts, Parts], Parts]


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


def correct(rule: Rule, *corrections: Correction) -> Rule:
    """Return the rule of a function of one operand whose results are corrected."""

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> list[str]:
        (result,) = rule(b, operands, avals_in, avals_out, **params)
        (aval,) = avals_out
        given, found = parts_of(b, operands[0], aval), parts_of(b, result, aval)
        for correction in corrections:
            found = correction(given, found)
        return [of_parts(aval, *found)]

    return write


def mirror(rule: Rule, axis: str = "real") -> Rule:
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


def _scale(parts: Parts, factor: float) -> Parts:
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
        return _replace(found, axis, where(is_near, value, found[axis]))

    return correction


def _replace(parts: Parts, index: int, part: Text) -> Parts:
    return (part, parts[1]) if index == 0 else (parts[0], part)


def logarithm(rule: Rule, *corrections: Correction) -> Rule:
    """Return the rule of a logarithm, right at infinities and subnormal numbers, from XLA's."""
    right = correct(rule, *corrections, _infinite_size)

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
        return _replace(found, axis, _nan_as(given, found[axis]))

    return correction


def _nan_as(given: Parts, part: Text) -> Text:
    """Write a part of a value, but NaN where one of the operand's is and none is infinite."""
    x, y = given
    is_unknown = (_is_nan(x) | _is_nan(y)) & ~(is_infinite(x) | is_infinite(y))
    return where(is_unknown, part.like(math.nan), part)


def on_imaginary_axis(index: int, value: float) -> Correction:
    """Return the correction of a part (0 or 1) that is constant where the operand is i y."""
    return lambda given, found: _replace(
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
    return _scale(found, 1 / math.log(2))


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


def divide(x: Any, y: Any) -> Any:
    """Divide complex arrays of NumPy."""
    try:
        with np.errstate(over="raise", under="ignore", invalid="raise", divide="raise"):
            quotient = np.true_divide(x, y)
    except FloatingPointError:
        return _divide_at_ends(x, y)
    return _divide_at_ends(x, y) if np.isnan(quotient).any() else quotient


def _divide_at_ends(x: Any, y: Any) -> Any:
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
            recovered = _recover(x, y)
            np.copyto(out, recovered, where=(lost | by_zero))
    return out


def _near_one(z: Any) -> tuple[Any, Any]:
    """Return complex numbers times a power of two that has the greater part in [1/2, 1), and it."""
    size = np.maximum(np.abs(z.real), np.abs(z.imag))
    power = np.where(np.isfinite(size), np.frexp(size)[1], 0)
    near = np.empty(z.shape, z.dtype)
    near.real, near.imag = np.ldexp(z.real, -power), np.ldexp(z.imag, -power)
    return near, power


def _recover(x: Any, y: Any) -> Any:
    """Return quotients that are infinite or zero although a step of them is NaN (C99, G.5.1)."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    out = np.full(x.shape, complex(np.nan, np.nan), x.dtype)

    def put(where: Any, factor: Any, parts: tuple[Any, Any, Any, Any]) -> None:
        a, b, c, d = parts
        np.copyto(out.real, factor * (a * c + b * d), where=where)
        np.copyto(out.imag, factor * (b * c - a * d), where=where)

    def box(part: Any) -> Any:  # the corner or side of a box around 0 that infinity is beyond
        return np.copysign(np.isinf(part).astype(part.dtype), part)

    is_far, is_far_divisor = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    put(is_far & np.isfinite(c) & np.isfinite(d), np.inf, (box(a), box(b), c, d))
    put(is_far_divisor & np.isfinite(a) & np.isfinite(b), 0, (a, b, box(c), box(d)))
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
    """Write x^y, by its exponent where a factor of |x^y| is not a number, or an operand.

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
    power = choose(b, is_spoilt.name, by_exponent, power, aval)
    is_one = ((x_real == 1.0) & (x_imag == 0)) | ((real == 0) & (imag == 0))
    return [choose(b, is_one.name, b.constant(1, aval), power, aval)]


def _spoilt(logarithms: list[Text], exponent: Text) -> Text:
    """Write where the size of the base or a factor of the power is NaN; its exponent is not."""
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
    power = of_parts(aval, *_scale(parts_of(b, operands[0], aval), math.log(2)))
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
    "tan": correct(tunable_stablehlo("stablehlo.tan"), with_zeros(0, 1)),
    "sinh": by_parts(hyperbolic_sine),
    "cosh": by_parts(hyperbolic_cosine),
    "tanh": correct(tunable_stablehlo("stablehlo.tanh"), with_zeros(0, 1)),
    "asin": correct(
        mirror(retype_stablehlo("chlo.asin")), size_of_nan(1), with_zeros(0)
    ),
    "acos": correct(
        mirror(retype_stablehlo("chlo.acos")), size_of_nan(1), on_imaginary_axis(0, math.pi / 2)
    ),
    "atan": correct(
        mirror(retype_stablehlo("chlo.atan"), "imaginary"),
        beside_a_pole(1), tangent_of_nan(1), with_zeros(1),
    ),
    "asinh": correct(
        mirror(retype_stablehlo("chlo.asinh"), "imaginary"), size_of_nan(0), with_zeros(1)
    ),
    "acosh": mirror(correct(
        retype_stablehlo("chlo.acosh"), size_of_nan(0), on_imaginary_axis(1, math.pi / 2)
    )),
    "atanh": correct(
        mirror(retype_stablehlo("chlo.atanh")),
        beside_a_pole(0), tangent_of_nan(0), with_zeros(0),
    ),
    "sqrt": mirror(correct(tunable_stablehlo("stablehlo.sqrt"), infinite_root)),
    "rsqrt": mirror(
        correct(tunable_stablehlo("stablehlo.sqrt"), infinite_root, reciprocal)
    ),
    "square": by_parts(_square),
    "pow": _power,
}  # fmt: skip
