"""The length of two numbers, sqrt(x^2 + y^2), and its derivatives of every order.

`hypot_derivative[orders=(i, j)]` is the derivative i times by x and j times by y. With z = hypot(x,
y), u = x / z and v = y / z it is p(u, v) / z^(n - 1), n = i + j, p a polynomial: 1 for n = 0, and
then, as u' = v^2 / z, v' = -u v / z and z' = u by x, and likewise by y, found by recurrence. So no
order forms the square of what is tiny or huge, and only its result may leave the range of a dtype.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, lowering_text
from xnp.primitives.lowering_text import WIDER, Text, in_wider, upcast, where
from xnp.primitives.table import (
    FLOATING,
    NATIVE,
    add,
    binary,
    bind,
    elementwise_shape,
    mul,
    repeated,
)
from xnp.primitives.vector_functions import bits_of, bits_of_one, floats, over_least_normal
from xprim import Primitive, ShapedArray, Zero, dtypes, state
from xprim.contracts import Builder

__all__ = ()

# ------------------------------------------------------------------------- numbers within a range

# By bytes of a number: what is squared is between the inverse of the first power of 2 and it;
# what is above is first divided by the second, what is below by the least normal number and then
# by the third. So no square is infinite or loses digits.
_IN_RANGE = {4: (2.0**40, 2.0**80, 2.0**32), 8: (2.0**450, 2.0**600, 2.0**260)}


class _Range:
    """Two sizes times a power of 2, subnormal ones by their bits: some processors flush those."""

    def __init__(self, x: Text, y: Text) -> None:
        dtype = x.aval.dtype
        bound, self.most, self.least = _IN_RANGE[dtype.itemsize]
        self.tiny, self.one = float(dtypes.finfo(dtype).tiny), bits_of_one(dtype)
        sizes = [x.op("abs"), y.op("abs")]
        top = sizes[0].op("maximum", sizes[1])
        self.is_high, self.is_low = top > bound, top < 1 / bound
        self.sizes = [self._scaled(size) for size in sizes]

    def _scaled(self, x: Text) -> Text:
        is_subnormal, fraction = over_least_normal(x)
        low = where(is_subnormal, fraction * (1 / self.least), x * (1 / self.tiny / self.least))
        return where(self.is_low, low, x * where(self.is_high, x.like(1 / self.most), 1.0))

    def signed(self, *operands: Text) -> list[Text]:
        """Write the operands whose sizes these are, times the power."""
        return [where(bits_of(x) < 0, -size, size)
                for x, size in zip(operands, self.sizes, strict=True)]  # fmt: skip

    def length(self) -> Text:
        """Write the length of the two, times the power."""
        x, y = self.sizes
        return (x * x + y * y).op("sqrt")

    def restored(self, x: Text) -> Text:
        """Write a length divided by the power, subnormal numbers by their bits."""
        in_tiny = x * self.least
        subnormal = floats(bits_of(in_tiny + 1.0) - self.one)
        low = where(in_tiny < 1.0, subnormal, in_tiny * self.tiny)
        return where(self.is_low, low, x * where(self.is_high, x.like(self.most), 1.0))

    def power(self) -> Text:
        """Write the power."""
        low = where(self.is_low, self.sizes[0].like(1 / self.tiny / self.least), 1.0)
        return where(self.is_high, low.like(1 / self.most), low)


def magnitude(x: Text, y: Text) -> Text:
    """Write sqrt(x^2 + y^2): infinite where an operand is, also beside a NaN."""
    scaled = _Range(x, y)
    length = scaled.restored(scaled.length())
    return where(is_infinite(x) | is_infinite(y), length.like(math.inf), length)


def direction(x: Text, y: Text) -> list[Text]:
    """Write x and y over their length, 0 of zeros."""
    scaled = _Range(x, y)
    length = scaled.length()
    is_zero = length == 0.0
    return [where(is_zero, part.like(0.0), part / length) for part in scaled.signed(x, y)]


def is_infinite(x: Text) -> Text:
    """Write whether real numbers are infinite."""
    return x.op("abs").compare("EQ", math.inf)


# ------------------------------------------------------------------------------------ derivatives


@functools.cache
def _terms(by_x: int, by_y: int) -> dict[tuple[int, int], int]:
    """Return p of a derivative: the coefficient by the powers of u and v."""
    if not by_x and not by_y:
        return {(0, 0): 1}
    found: dict[tuple[int, int], int] = {}
    lower = _terms(by_x - 1, by_y) if by_x else {(b, a): c for (a, b), c in
                                                 _terms(by_y - 1, 0).items()}  # fmt: skip
    n = by_x + by_y - 1
    for (a, b), c in lower.items():
        # by x: a u^(a-1) v^(b+2) - b u^(a+1) v^b + (1 - n) u^(a+1) v^b; by y with u and v swapped
        steps = [((a - 1, b + 2), a), ((a + 1, b), 1 - n - b)] if by_x else [
            ((a + 2, b - 1), b), ((a, b + 1), 1 - n - a)]  # fmt: skip
        for powers, factor in steps:
            found[powers] = found.get(powers, 0) + c * factor
    return {powers: c for powers, c in found.items() if c}


def _over_length(orders: tuple[int, int], x: Any, y: Any, length: Any, power: Any = None) -> Any:
    """Return p(u, v) / z^(n - 1) of operands and their length z, all times a power of 2, if given.

    Each quotient by z is multiplied by the power: the result is of the operands as they were.
    """
    total, u, v = None, x / length, y / length
    for (a, b), c in _terms(*orders).items():
        term = functools.reduce(lambda x, y: x * y, [u] * a + [v] * b)
        term = term if c == 1 else term * float(c)
        total = term if total is None else total + term
    for _ in range(sum(orders) - 1):
        total = total / length
        total = total if power is None else total * power
    return total


@in_wider
def _derivative_numpy(x: Any, y: Any, *, orders: tuple[int, int]) -> Any:
    length, info = np.hypot(x, y), dtypes.finfo(x.dtype)
    if length.size and info.tiny / info.eps < length.min() and length.max() < math.inf:
        return _over_length(orders, x, y, length)
    size, zero = np.maximum(np.abs(x), np.abs(y)), np.zeros((), x.dtype)
    _, exponent = np.frexp(size)
    a, b = np.ldexp(x, -exponent), np.ldexp(y, -exponent)
    found = np.ldexp(_over_length(orders, a, b, np.hypot(a, b)), (1 - sum(orders)) * exponent)
    found = np.where(size == 0, zero, found)
    first = x if orders[0] else y
    at_infinity = np.where(np.isinf(first), np.sign(first), zero) if sum(orders) == 1 else zero
    return np.where(np.isinf(x) | np.isinf(y), at_infinity, found)


def _derivative_text(orders: tuple[int, int], b: Builder, operands: Any, aval: ShapedArray) -> str:
    x, y = [Text(b, name, aval) for name in operands]
    scaled = _Range(x, y)
    length = scaled.length()
    is_zero = length == 0.0
    length = where(is_zero, length.like(1.0), length)
    u, v = scaled.signed(x, y)
    found = _over_length(orders, u, v, length, scaled.power())
    limit = found.like(0.0)
    found = where(is_zero, limit, found)
    if sum(orders) == 1:
        first = x if orders[0] else y
        limit = where(is_infinite(first), first.op("sign"), limit)
    return where(is_infinite(x) | is_infinite(y), limit, found).name


def _derivative_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, orders: tuple[int, int]
) -> list[str]:
    def in_place(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        return [_derivative_text(orders, b, names, out)]

    found: list[str] = upcast(in_place, WIDER, np.float32)(b, operands, avals_in, avals_out)
    return found


def _derivative(x: Any, y: Any, by_x: int, by_y: int) -> Any:
    return hypot_derivative_p.bind(x, y, orders=(by_x, by_y))[0]


def _derivative_jvp(primals: Any, tangents: Any, *, orders: tuple[int, int]) -> Any:
    (x, y), (i, j) = primals, orders
    (z,) = state.trace.process(hypot_derivative_p, (x, y), {"orders": orders})
    total = None
    for dot, more in zip(tangents, ((i + 1, j), (i, j + 1)), strict=True):
        if type(dot) is not Zero:
            # slopes may be infinite, and tangents zero: of the imaginary part of a number, say
            term = bind("absorbing_product", dot, _derivative(x, y, *more))
            term = repeated(term, z.aval.shape)
            total = term if total is None else add(total, term)
    return (z,), (Zero(z.aval) if total is None else total,)


hypot_derivative_p = Primitive(
    "hypot_derivative",
    shape=elementwise_shape("hypot_derivative", FLOATING),
    numpy=lambda x, y, *, orders: (_derivative_numpy(x, y, orders=orders),),
    stablehlo=_derivative_stablehlo,
    jvp=_derivative_jvp,
    transpose=xprim.undefined("it is not linear"),
    batch=xprim.ELEMENTWISE,
)

hypot_p = binary(
    "hypot", FLOATING, numpy=in_wider(np.hypot), ufunc=np.hypot,
    ufunc_kinds=FLOATING & NATIVE, cost=costs.choice,
    stablehlo=lowering_text.apart_from_uses(
        lambda b, operands, aval: magnitude(*[Text(b, x, aval) for x in operands]).name, "hypot"),
    jvp=(lambda x_dot, z, x, y: mul(x_dot, _derivative(x, y, 1, 0)),
         lambda y_dot, z, x, y: mul(y_dot, _derivative(x, y, 0, 1))),
)  # fmt: skip
