"""StableHLO text of functions of complex numbers, where XLA's own operation is not enough.

The sign of a zero says on which side of a branch cut a number lies (C99, Annex G): sqrt(-2 - 0i) is
-1.41i. XLA's operations take -0 for 0 there. Their functions are real on a part of the real line,
so that f(conj z) = conj f(z): computed above the line, and mirrored for numbers below it.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_parts import part_dtype
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder

__all__ = ()


def parts_of(b: Builder, z: str, aval: ShapedArray) -> tuple[list[str], ShapedArray]:
    """Write the real and imaginary parts of complex numbers; return them and their type."""
    part = shaped_array(aval.shape, part_dtype(aval.dtype))
    return [b.op(f"stablehlo.{name}", [z], [aval], [part])[0] for name in ("real", "imag")], part


def of_parts(b: Builder, parts: list[str], part: ShapedArray, aval: ShapedArray) -> str:
    """Write complex numbers of the type `aval` from their parts."""
    return b.op("stablehlo.complex", parts, [part, part], [aval])[0]


def scaled(b: Builder, x: str, factor: float, aval: ShapedArray) -> str:
    """Write numbers times a real one: parts apart, for infinity times the imaginary 0 is NaN."""
    if not dtypes.is_complex(aval.dtype):
        return b.same_type_op("stablehlo.multiply", [x, b.constant(factor, aval)], aval)
    parts, part = parts_of(b, x, aval)
    return of_parts(b, [scaled(b, p, factor, part) for p in parts], part, aval)


# Powers of 2 by the bytes of a part: what is squared lies between the inverse of the first and it,
# after a product with the second or its inverse, so that no square is infinite or loses digits.
_IN_RANGE = {4: (2.0**40, 2.0**80), 8: (2.0**450, 2.0**600)}


def magnitude(b: Builder, z: str, aval: ShapedArray) -> str:
    """Write sqrt(x^2 + y^2) of x + y i: infinite where a part is, also beside a NaN."""
    parts, part = parts_of(b, z, aval)
    sizes = [b.same_type_op("stablehlo.abs", [p], part) for p in parts]
    top = b.same_type_op("stablehlo.maximum", sizes, part)
    bound, power = _IN_RANGE[part.dtype.itemsize]
    high = compared(b, "GT", top, b.constant(bound, part), part)
    low = compared(b, "LT", top, b.constant(1 / bound, part), part)
    up, down, one, infinity = [b.constant(v, part) for v in (power, 1 / power, 1.0, math.inf)]
    factor = chosen(b, high, down, chosen(b, low, up, one, part), part)
    inverse = chosen(b, high, up, chosen(b, low, down, one, part), part)
    squares = []
    for size in sizes:
        size = b.same_type_op("stablehlo.multiply", [size, factor], part)
        squares.append(b.same_type_op("stablehlo.multiply", [size, size], part))
    length = b.same_type_op("stablehlo.add", squares, part)
    length = b.same_type_op("stablehlo.sqrt", [length], part)
    length = b.same_type_op("stablehlo.multiply", [length, inverse], part)
    for size in sizes:
        infinite = compared(b, "EQ", size, infinity, part)
        length = chosen(b, infinite, infinity, length, part)
    return length


def mirrored(rule: Any, axis: str = "real") -> Any:
    """Return the rule of a function of symmetric values, right on both sides of its cuts.

    Args:
      rule: a `stablehlo` rule of one operand, right for imaginary parts (real parts for the other
        axis) that are not negative, a zero among them.
      axis: which axis a number and its value are mirrored at: "real" where f(conj z) = conj f(z),
        "imaginary" where f(-conj z) = -conj f(z).
    """
    turned = 1 if axis == "real" else 0

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        (aval,) = avals_in
        if not dtypes.is_complex(aval.dtype):
            return rule(b, operands, avals_in, avals_out, **params)
        parts, part = parts_of(b, operands[0], aval)
        below = _is_negative(b, parts[turned], part)
        parts[turned] = b.same_type_op("stablehlo.abs", [parts[turned]], part)
        (result,) = rule(b, [of_parts(b, parts, part, aval)], avals_in, avals_out, **params)
        parts, _ = parts_of(b, result, aval)
        negated = b.same_type_op("stablehlo.negate", [parts[turned]], part)
        parts[turned] = chosen(b, below, negated, parts[turned], part)
        return [of_parts(b, parts, part, aval)]

    return write


def _is_negative(b: Builder, x: str, aval: ShapedArray) -> str:
    """Write whether real numbers, zeros among them, have the sign bit."""
    wide = aval.dtype == dtypes.float64
    bits = shaped_array(aval.shape, dtypes.int64 if wide else dtypes.int32)
    (whole,) = b.op("stablehlo.bitcast_convert", [x], [aval], [bits])
    return compared(b, "LT", whole, b.constant(0, bits), bits)
