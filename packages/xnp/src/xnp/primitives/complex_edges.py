"""StableHLO text of complex functions where the compiler's formulas lose digits or leave the range.

XLA has sinh(x) = (e^x - e^-x) / 2 inside of its complex functions, whose digits cancel near 0;
|z|^2, which overflows and vanishes long before z does; and the quotient z / |z|, whose size is
infinite for numbers that are not. Each rule here corrects a part of a result where that shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xnp.primitives.choice_text import chosen, compared
from xnp.primitives.complex_text import of_parts, parts_of
from xprim import ShapedArray, dtypes
from xprim.contracts import Builder

__all__ = ()

# from the builder, the parts of the operand and of the result, and their type, to the right parts
Correction = Callable[[Builder, list[str], list[str], ShapedArray], list[str]]


def corrected(rule: Any, correction: Correction) -> Any:
    """Return the rule of a function of one operand whose complex results are corrected."""

    def write(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        results = rule(b, operands, avals_in, avals_out, **params)
        (aval,) = avals_in
        if not dtypes.is_complex(aval.dtype):
            return results
        given, part = parts_of(b, operands[0], aval)
        found, _ = parts_of(b, results[0], aval)
        return [of_parts(b, correction(b, given, found, part), part, aval)]

    return write


def by_hyperbolic_sine(axis: int, out: int, factor: str, sign: float = 1.0) -> Correction:
    """Return the correction of a part that is a hyperbolic sine times a factor, near its zero.

    Args:
      axis: the part of the operand whose hyperbolic sine it is: 0 the real one, 1 the imaginary.
      out: the part of the result.
      factor: the operation on the operand's other part.
      sign: of the product.
    """

    def correction(b: Builder, given: list[str], found: list[str], part: ShapedArray) -> list[str]:
        x, other = given[axis], given[1 - axis]
        # sinh(x) = (e + e / (e + 1)) / 2 of e = e^x - 1, which has all digits near 0
        e = b.same_type_op("stablehlo.exponential_minus_one", [x], part)
        inverse = b.same_type_op("stablehlo.add", [e, b.constant(1, part)], part)
        inverse = b.same_type_op("stablehlo.divide", [e, inverse], part)
        double = b.same_type_op("stablehlo.add", [e, inverse], part)
        sine = b.same_type_op("stablehlo.multiply", [double, b.constant(sign / 2, part)], part)
        turned = b.same_type_op(factor, [other], part)
        product = b.same_type_op("stablehlo.multiply", [sine, turned], part)
        is_near = _less(b, x, 1.0, part)
        product = chosen(b, _less(b, other, math.inf, part), product, found[out], part)
        found[out] = chosen(b, is_near, product, found[out], part)
        return found

    return correction


def beside_a_pole(axis: int) -> Correction:
    """Return the correction of atanh (axis 0) and atan (axis 1) beside their poles at 1 and -1.

    With p = 1 or -1 on the axis and a small distance q from it the part along the axis is
    p (log 2 - log|q|) / 2.
    """

    def correction(b: Builder, given: list[str], found: list[str], part: ShapedArray) -> list[str]:
        pole, distance = given[axis], given[1 - axis]
        difference = b.same_type_op(
            "stablehlo.subtract",
            [b.constant(math.log(2), part), _log_size(b, distance, part)],
            part,
        )
        half = b.same_type_op("stablehlo.multiply", [pole, b.constant(0.5, part)], part)
        value = b.same_type_op("stablehlo.multiply", [half, difference], part)
        size = b.same_type_op("stablehlo.abs", [pole], part)
        value = chosen(b, _less(b, distance, 1e-10, part), value, found[axis], part)
        is_pole = compared(b, "EQ", size, b.constant(1, part), part)
        found[axis] = chosen(b, is_pole, value, found[axis], part)
        return found

    return correction


def above_minus_one(b: Builder, given: list[str], found: list[str], part: ShapedArray) -> list[str]:
    """Correct log(1 + z) of z = -1 + iy, which is log|y| along the real axis."""
    is_above = compared(b, "EQ", given[0], b.constant(-1, part), part)
    return [chosen(b, is_above, _log_size(b, given[1], part), found[0], part), found[1]]


def in_range(b: Builder, z: str, aval: ShapedArray) -> str:
    """Write complex numbers as far from zero as they are, but a quarter so where it is very far.

    So that their size is not infinite where they are not.
    """
    parts, part = parts_of(b, z, aval)
    sizes = [b.same_type_op("stablehlo.abs", [x], part) for x in parts]
    greater = b.same_type_op("stablehlo.maximum", sizes, part)
    is_far = compared(b, "GT", greater, b.constant(2.0**100, part), part)
    factor = chosen(b, is_far, b.constant(0.25, part), b.constant(1, part), part)
    scaled = [b.same_type_op("stablehlo.multiply", [x, factor], part) for x in parts]
    return of_parts(b, scaled, part, aval)


def _log_size(b: Builder, x: str, part: ShapedArray) -> str:
    size = b.same_type_op("stablehlo.abs", [x], part)
    return b.same_type_op("stablehlo.log", [size], part)


def _less(b: Builder, x: str, bound: float, part: ShapedArray) -> str:
    """Write whether the size of real numbers is less than a bound."""
    size = b.same_type_op("stablehlo.abs", [x], part)
    return compared(b, "LT", size, b.constant(bound, part), part)
