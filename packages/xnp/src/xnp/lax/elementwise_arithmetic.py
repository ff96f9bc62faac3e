"""`xnp.lax`: elementwise arithmetic, powers, rounding.

Operands have equal dtypes, and shapes that are equal but for sizes of 1, or rank 0 (see
`operands`). Semantics: the StableHLO specification, in the section of the operation's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from xnp.docstrings import complete
from xnp.docstrings.operations import ARITHMETIC
from xnp.lax.operands import leveled, pair, several
from xnp.primitives.accuracy import Accuracy
from xnp.primitives.arithmetic import (
    abs_p,
    add_p,
    div_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    rem_p,
    sign_p,
    sub_p,
)
from xnp.primitives.powers import (
    cbrt_p,
    integer_pow_p,
    one_minus_square_p,
    polynomial_p,
    pow_p,
    rsqrt_p,
    sqrt_p,
    square_p,
)
from xnp.primitives.rounding import (
    RoundingMethod,
    ceil_p,
    floor_p,
    is_finite_p,
    nextafter_p,
    round_p,
)
from xprim import (
    Array,
    ConcreteArray,
    Primitive,
    as_array,
    dtypes,
    get_primitive,
)
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike


def apply(primitive: Primitive, x: ArrayLike, accuracy: Accuracy = None) -> Array:
    """Apply a primitive of one operand; `accuracy` is a param where it is given."""
    if type(x) is not ConcreteArray:
        x = as_array(x)
    if accuracy is None:
        return primitive.bind(x)[0]  # type: ignore[no-any-return]
    return primitive.bind(x, accuracy=accuracy)[0]  # type: ignore[no-any-return]


def neg(x: ArrayLike) -> Array:
    """Return -x. Numbers; unsigned integers wrap around."""
    return apply(neg_p, x)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + y. Any dtype; `or` for booleans.

    Raises:
      TypeError: when the dtypes or the shapes differ.

    Example:
      >>> add(2.0, 1.5).aval
      ShapedArray(~float32[])
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return add_p.bind(x, y)[0]  # type: ignore[no-any-return]


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x - y. Numbers."""
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return sub_p.bind(x, y)[0]  # type: ignore[no-any-return]


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike = None) -> Array:
    """Return x y. Any dtype; `and` for booleans.

    With `out_dtype` both are brought to that dtype first, so that a product of int8 numbers can be
    an int32 one.
    """
    if out_dtype is not None:
        x, y = pair(x, y)
        wide = {"new_dtype": dtypes.requested_dtype(out_dtype, "mul"), "weak_type": False}
        x, y = [get_primitive("convert_element_type").bind(v, **wide)[0] for v in (x, y)]
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return mul_p.bind(x, y)[0]  # type: ignore[no-any-return]


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x / y; integers round towards zero, and x / 0 is -1 (all bits set)."""
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return div_p.bind(x, y)[0]  # type: ignore[no-any-return]


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x - y trunc(x / y), with the sign of x. Real numbers; an integer x rem 0 is x."""
    return rem_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the greater of x and y, NaN if one is. Complex numbers in lexicographic order.

    Differentiable; where x equals y, each gets half of the derivative.
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return max_p.bind(x, y)[0]  # type: ignore[no-any-return]


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the lesser of x and y, NaN if one is; else as `max`."""
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return min_p.bind(x, y)[0]  # type: ignore[no-any-return]


def abs(x: ArrayLike) -> Array:
    """Return |x|, real for a complex x. Signed integers (INT_MIN stays), floats, complex."""
    return apply(abs_p, x)


def sign(x: ArrayLike) -> Array:
    """Return -1, 0 or 1 (-0.0 and NaN for themselves); x / |x| for a complex x."""
    return apply(sign_p, x)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x^y. x floating or complex; y of the same dtype or of an integer dtype.

    The derivative in x is 0 where y is 0; in y it takes log(0) as 0.
    """
    if type(y) is int:
        return pow_p.bind(as_array(x), as_array(y))[0]  # type: ignore[no-any-return]
    return pow_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return x^y for a Python integer y, by repeated squaring. Numbers; integers for y >= 0."""
    return integer_pow_p.bind(as_array(x), y=size_of(y))[0]  # type: ignore[no-any-return]


def square(x: ArrayLike) -> Array:
    """Return x^2. Numbers."""
    return apply(square_p, x)


def reciprocal(x: ArrayLike) -> Array:
    """Return 1 / x. Floats and complex."""
    return integer_pow(x, -1)


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the square root, NaN for negative floats. Floats and complex."""
    return apply(sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 / sqrt(x). Floats and complex."""
    return apply(rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the real cube root, also of negative numbers. Floats."""
    return apply(cbrt_p, x, accuracy)


def one_minus_square(x: ArrayLike) -> Array:
    """Return 1 - x^2 as (1 + x)(1 - x), which is accurate near 1 and -1. Numbers."""
    x = as_array(x)
    if dtypes.is_integer(x.aval.dtype):
        return sub(1, mul(x, x))
    return apply(one_minus_square_p, x)


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Return coeffs[0] + coeffs[1] x + coeffs[2] x^2 + ..., by Horner's scheme.

    Args:
      x: where, numbers.
      coeffs: at least one; each of the shape of x or a scalar.
      unroll: None: the scheme is always written out.

    Raises:
      ValueError: when there are no coefficients, or for another `unroll`.
    """
    if not len(coeffs):
        raise ValueError("polynomial: needs at least one coefficient.")
    if unroll is not None:
        raise ValueError(
            f"polynomial: unroll must be None: the scheme is always written out, got {unroll}."
        )
    return polynomial_p.bind(*leveled(*several(x, *coeffs)))[0]  # type: ignore[no-any-return]


def floor(x: ArrayLike) -> Array:
    """Return the greatest integer <= x. Floats."""
    return apply(floor_p, x)


def ceil(x: ArrayLike) -> Array:
    """Return the least integer >= x. Floats."""
    return apply(ceil_p, x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Return the nearest integer; halves away from zero, or to even. Floats."""
    method = int(RoundingMethod(rounding_method))
    return round_p.bind(as_array(x), rounding_method=method)[0]  # type: ignore[no-any-return]


def is_finite(x: ArrayLike) -> Array:
    """Return whether x is neither infinite nor NaN. Floats; boolean result."""
    return apply(is_finite_p, x)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the float next to x1 on the way to x2. Floats."""
    return nextafter_p.bind(*pair(x1, x2))[0]  # type: ignore[no-any-return]


__all__ = [
    "RoundingMethod", "abs", "abs_p", "add", "add_p", "cbrt", "cbrt_p", "ceil", "ceil_p", "div",
    "div_p", "floor", "floor_p", "integer_pow", "integer_pow_p", "is_finite", "is_finite_p", "max",
    "max_p", "min", "min_p", "mul", "mul_p", "neg", "neg_p", "nextafter", "nextafter_p",
    "one_minus_square", "one_minus_square_p", "polynomial", "polynomial_p", "pow", "pow_p",
    "reciprocal", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p", "sign", "sign_p", "sqrt",
    "sqrt_p", "square", "square_p", "sub", "sub_p",
]  # fmt: skip

__dir__ = __all__.copy

complete(globals(), ARITHMETIC)


boundaries(globals(), written=True)
