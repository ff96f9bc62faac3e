"""Arithmetic of arrays, element by element: add, multiply, divide, power, maximum, ...

Each function promotes its operands (Python scalars are weakly typed), broadcasts them by NumPy's
rules and binds a primitive. The two makers at the top serve the sibling modules as well:
`elementary` (exp, sin, ...), `logic` (comparisons) and `bits`.

Source of the semantics: NumPy's functions of these names; dtypes as `xprim.promotion` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from xnp.numpy import dispatch
from xnp.numpy.dispatch import binary_operator, broadcast, convert_to, dispatch_on, inexact, promote
from xnp.primitives.table import bind, broadcast_to, scalar_like, select
from xprim import Array, ConcreteArray, Tracer, dtypes
from xprim.array import check_numbers
from xprim.requirements import require
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "abs", "absolute", "add", "divide", "divmod", "fabs", "float_power", "floor_divide", "fmax",
    "fmin", "fmod", "maximum", "minimum", "mod", "modf", "multiply", "negative", "positive", "pow",
    "power", "reciprocal", "remainder", "sign", "square", "subtract", "true_divide",
]  # fmt: skip

__dir__ = __all__.copy


class Unary(Protocol):
    """An array function of one operand."""

    def __call__(self, x: ArrayLike, /) -> Array:
        """Apply the function to each element."""
        ...


class Binary(Protocol):
    """An array function of two operands, which are broadcast."""

    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, out: None = None, where: ArrayLike | None = None
    ) -> Array:
        """Apply the function to the elements of both."""
        ...


_OF_OPERATOR = {
    "x1": "ArrayLike", "x2": "ArrayLike", "out": "None", "where": "ArrayLike | None",
    "return": "Array",
}  # fmt: skip


def unary_function(written: Callable[[Any], Any]) -> Unary:
    """Return the public function of one operand that `written` is for every trace; a decorator."""
    return _publish(dispatch_on(1)(written), written)  # type: ignore[no-any-return]


def binary_function(direct: Any = None) -> Callable[[Callable[[Any, Any], Any]], Binary]:
    """Return a decorator that makes the public function of two operands, `x1` and `x2`.

    Args:
      direct: a NumPy function that gives the same where both operands have one native dtype.
    """

    def publish(written: Callable[[Any, Any], Any]) -> Binary:
        function = _publish(binary_operator(written, direct), written)
        function.__annotations__ = _OF_OPERATOR
        function.routes = written, direct  # for the operators of concrete arrays
        return function  # type: ignore[no-any-return]

    return publish


def _publish(function: Any, written: Any) -> Any:
    """Give a function the name and the documentation of the one it runs, and both public types."""
    operands = written.__code__.co_varnames[: written.__code__.co_argcount]
    written.__annotations__ = {**dict.fromkeys(operands, "ArrayLike"), "return": "Array"}
    function.__name__ = function.__qualname__ = written.__name__
    function.__doc__ = written.__doc__
    function.__module__ = "xnp"
    return function


def broadcast_promoted(name: str, x: Any, y: Any) -> Sequence[Any]:
    """Return operands with the dtype and the shape that they have in common."""
    if isinstance(x, Array) and isinstance(y, Array) and x.aval is y.aval:
        return x, y
    return broadcast(name, *promote(name, x, y))


# --- sums and products ----------------------------------------------------------------------------


@binary_function(np.add)
def add(x1: Any, x2: Any) -> Any:
    """Return x1 + x2; of booleans, x1 or x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.add(xnp.array([1.0, 2.0]), xnp.array([10, 20]))
        Array([11., 22.], dtype=float32)
    """
    return bind("add", *broadcast_promoted("add", x1, x2))


@binary_function(np.subtract)
def subtract(x1: Any, x2: Any) -> Any:
    """Return x1 - x2, not of booleans.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.subtract(xnp.array([1, 2]), xnp.array([10, 20]))
        Array([ -9, -18], dtype=int32)
    """
    return bind("sub", *broadcast_promoted("subtract", x1, x2))


@binary_function(np.multiply)
def multiply(x1: Any, x2: Any) -> Any:
    """Return x1 x2; of booleans, x1 and x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.multiply(xnp.array([1.5, 2.0]), 2)
        Array([3., 4.], dtype=float32)
    """
    return bind("mul", *broadcast_promoted("multiply", x1, x2))


@unary_function
def plain_negative(x: Any) -> Any:
    """Return -x, element by element."""
    return bind("neg", *promote("negative", x))


def negative(x: ArrayLike, out: None = None, where: ArrayLike | None = None) -> Array:
    """Return -x, element by element.

    Args:
        x: an array of any shape, or a number.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and dtype of x; unsigned integers wrap around.

    Raises:
        TypeError: `x` is not an array; `out` is given; `where` is given.

    Example:
        >>> import xnp
        >>> xnp.negative(xnp.array([1, -2]))
        Array([-1,  2], dtype=int32)
    """
    if out is not None or where is not None:
        dispatch.check_out_and_where("negative", out, where)
    return plain_negative(x)


@unary_function
def positive(x: Any) -> Any:
    """Return x as an array.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.positive(xnp.array([-1, 2]))
        Array([-1,  2], dtype=int32)
    """
    (x,) = promote("positive", x)
    check_numbers(x.aval, "positive")
    return x


@unary_function
def absolute(x: Any) -> Any:
    """Return |x|; real for complex x.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape and dtype of x; the size of a complex number is real.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.absolute(xnp.array([-1.5, 2.0])), xnp.absolute(3 + 4j)
        (Array([1.5, 2. ], dtype=float32), Array(5., dtype=float32, weak_type=True))
    """
    (x,) = promote("absolute", x)
    dtype = x.aval.dtype
    return x if dtypes.is_bool(dtype) or dtypes.is_unsigned_integer(dtype) else bind("abs", x)


abs = absolute


@unary_function
def fabs(x: Any) -> Any:
    """Return |x| as a floating number.

    Args:
        x: an array of any shape, or a number; integers and booleans become the default
            float.

    Returns:
        An array of the shape of x: floating, of the dtype of x where that is floating
        or complex, else of the default float (float32, where NumPy has float64).

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.fabs(xnp.array([-1, 2]))
        Array([1., 2.], dtype=float32)
    """
    (x,) = inexact("fabs", x)
    require(
        not dtypes.is_complex(x.aval.dtype), "fabs", "takes real numbers.",
        hint="abs takes complex ones", error=TypeError,
    )  # fmt: skip
    return bind("abs", x)


@unary_function
def sign(x: Any) -> Any:
    """Return -1, 0 or 1 by the sign; x / |x| for complex x.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.sign(xnp.array([-3.0, 0.0, 2.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return bind("sign", *promote("sign", x))


@unary_function
def square(x: Any) -> Any:
    """Return x^2.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.square(xnp.array([-3, 2]))
        Array([9, 4], dtype=int32)
    """
    (x,) = promote("square", x)
    if dtypes.is_bool(x.aval.dtype):
        x = convert_to(x, dtypes.int32)
    return bind("square", x)


# --- division -------------------------------------------------------------------------------------


def _both(name: str, x: Any, y: Any) -> Any:
    x, y = promote(name, x, y)
    if dtypes.is_bool(x.aval.dtype):
        x, y = convert_to(x, dtypes.int32), convert_to(y, dtypes.int32)
    require(
        not dtypes.is_complex(x.aval.dtype), name,
        "does not take complex operands, which have no order.", error=TypeError,
    )  # fmt: skip
    return broadcast(name, x, y)


def _rest(x: Any, y: Any) -> Any:
    """Return x - y trunc(x / y); of integers by 0 it is 0, as in NumPy, not the dividend."""
    if dtypes.is_integer(x.aval.dtype):
        y = select(bind("eq", y, scalar_like(y, 0)), scalar_like(y, 1), y)
    return bind("rem", x, y)


def _float_quotient(x: Any, y: Any) -> Any:
    # CPython's float_divmod: (x - rem) is nearly a multiple of y, so that rounding finds it
    rest = bind("rem", x, y)
    quotient = bind("div", bind("sub", x, rest), y)
    zero = scalar_like(x, 0)
    wrong = bind("and", bind("ne", rest, zero), bind("ne", bind("sign", y), bind("sign", rest)))
    quotient = select(wrong, bind("sub", quotient, scalar_like(x, 1)), quotient)
    by_zero = bind("eq", y, zero)  # an infinity, or NaN: there is no rest
    whole = select(by_zero, bind("div", x, y), bind("round", quotient, rounding_method=0))
    return bind("stop_gradient", whole)  # constant between jumps


@binary_function()
def divide(x1: Any, x2: Any) -> Any:
    """Return x1 / x2 in a floating or complex dtype.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.divide(xnp.array([1, 2]), 2)
        Array([0.5, 1. ], dtype=float32)
    """
    x1, x2 = inexact("divide", x1, x2)
    return bind("div", *broadcast("divide", x1, x2))


true_divide = divide


@binary_function()
def floor_divide(x1: Any, x2: Any) -> Any:
    """Return the largest integer not above x1 / x2, in their dtype.

    An integer divided by 0 gives -1 or -2, which mean nothing, where NumPy warns and gives 0.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.floor_divide(xnp.array([7, -7]), 2)
        Array([ 3, -4], dtype=int32)
    """
    given = x2
    x1, x2 = _both("floor_divide", x1, x2)
    dtype = x1.aval.dtype
    if dtypes.is_floating(dtype):
        return _float_quotient(x1, x2)
    if not dtypes.is_signed_integer(dtype):
        return bind("div", x1, x2)
    if number := _positive_number(given, dtype):
        return _quotient_by_a_number(x1, x2, number)
    quotient = bind("div", x1, x2)
    differ = bind("ne", bind("sign", x1), bind("sign", x2))
    inexactly = bind("ne", bind("rem", x1, x2), scalar_like(x1, 0))
    lower = bind("sub", quotient, scalar_like(x1, 1))
    return select(bind("and", *broadcast("floor_divide", differ, inexactly)), lower, quotient)


@binary_function()
def remainder(x1: Any, x2: Any) -> Any:
    """Return x1 - x2 floor(x1 / x2), which has the sign of x2.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.remainder(xnp.array([7, -7]), 3)
        Array([1, 2], dtype=int32)
    """
    given = x2
    x1, x2 = _both("remainder", x1, x2)
    number = _positive_number(given, x1.aval.dtype)
    if number and not number & (number - 1):
        return bind("and", x1, scalar_like(x1, number - 1))
    rest = bind("rem", x1, x2) if number else _rest(x1, x2)
    if dtypes.is_unsigned_integer(x1.aval.dtype):
        return rest
    zero = scalar_like(x1, 0)
    if number:
        return select(bind("lt", rest, zero), bind("add", rest, x2), rest)
    differ = bind("ne", bind("lt", rest, zero), bind("lt", x2, zero))
    wrong = bind("and", differ, bind("ne", rest, zero))
    return select(wrong, bind("add", rest, x2), rest)


mod = remainder


def _positive_number(x: Any, dtype: Any) -> int:
    """Return a divisor that is an integer above 0 and that no program computes, else 0.

    Args:
        x: the divisor as it was given.
        dtype: that of the quotient.
    """
    is_number = type(x) is int or isinstance(x, np.integer)
    is_known = is_number and dtypes.is_integer(dtype) and 0 < x <= dtypes.iinfo(dtype).max
    return int(x) if is_known else 0


def _quotient_by_a_number(x: Any, divisor: Any, number: int) -> Any:
    """Return the floor of signed integers by a number above 0, without a choice of signs."""
    if not number & (number - 1):
        return bind("shift_right_arithmetic", x, scalar_like(x, number.bit_length() - 1))
    sign = bind("shift_right_arithmetic", x, scalar_like(x, dtypes.iinfo(x.aval.dtype).bits - 1))
    return bind("add", bind("div", bind("sub", x, sign), divisor), sign)  # (x + 1) / n - 1 below 0


@binary_function()
def fmod(x1: Any, x2: Any) -> Any:
    """Return x1 - x2 trunc(x1 / x2), which has the sign of x1.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.fmod(xnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
    """
    return _rest(*_both("fmod", x1, x2))


@unary_function
def reciprocal(x: Any) -> Any:
    """Return 1 / x, a floating number.

    Integers become the default float, where NumPy keeps integers.

    Args:
        x: an array of any shape, or a number; integers and booleans become the default
            float.

    Returns:
        An array of the shape of x: floating, of the dtype of x where that is floating
        or complex, else of the default float (float32, where NumPy has float64).

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.reciprocal(xnp.array([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    (x,) = inexact("reciprocal", x)
    return bind("div", scalar_like(x, 1), x)


def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """Return `floor_divide(x, y)` and `remainder(x, y)`.

    An integer divided by 0 gives -1 or -2, which mean nothing, where NumPy warns and gives 0.

    Args:
      x: the dividend, a real array or a number.
      y: the divisor; the two broadcast.

    Returns:
      A pair of arrays. The remainder has the sign of `y`; what integers divided by 0 give is
      nothing to rely on, where NumPy has 0 and 0.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> [int(v) for v in xnp.divmod(-7, 3)]
      [-3, 2]
    """
    return floor_divide(x, y), remainder(x, y)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Return the fractional and the whole part of each element; both have the sign of x.

    NumPy's takes `where` as well.

    Args:
        x: a real array or a number.
        out: must be None: arrays do not change, so nothing is written into one.

    Returns:
        Two floating arrays of the shape of x, the fractions and the whole parts, both
        with the sign of x.

    Raises:
        TypeError: `x` is not an array; `out` is given.

    Example:
        >>> import xnp
        >>> xnp.modf(xnp.array([1.5, -2.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    dispatch.check_out_and_where("modf", out, None)
    (x,) = inexact("modf", x)
    negative_mask = bind("lt", x, scalar_like(x, 0))
    whole = select(negative_mask, bind("ceil", x), bind("floor", x))
    finite = bind("is_finite", x)
    rest = select(finite, bind("sub", x, whole), bind("mul", x, scalar_like(x, 0)))
    nan = bind("ne", x, x)
    zero = scalar_like(x, 0)
    rest = select(bind("or", finite, nan), rest, zero)
    return rest, whole


# --- powers ---------------------------------------------------------------------------------------


@dispatch_on(1)
def _static_power(x: Any, y: int) -> Array:
    (x,) = promote("power", x)
    if dtypes.is_bool(x.aval.dtype):
        x = convert_to(x, dtypes.int32)
    require(
        y >= 0 or not dtypes.is_integer(x.aval.dtype), "power",
        "integers to negative integer powers are not integers, got exponent {}.", y,
        hint="convert the base to a floating dtype first: x.astype('float32')",
    )  # fmt: skip
    return bind("integer_pow", x, y=y)


def _power(x: Any, y: Any) -> Any:
    exponent = _exponent_of_program(x, y)
    x, y = promote("power", x, y)
    dtype = x.aval.dtype
    if exponent is not None and (dtypes.is_inexact(dtype) or exponent >= 0):
        if x.aval.weak_type and not y.aval.weak_type:
            x = dispatch.cast(x, dtype, weak=False)
        return bind("integer_pow", x, y=exponent)
    if dtypes.is_bool(dtype):
        x, y = convert_to(x, dtypes.int32), convert_to(y, dtypes.int32)
    x, y = broadcast("power", x, y)
    return bind("pow", x, y) if dtypes.is_inexact(dtype) else _integer_power(x, y)


def _exponent_of_program(x: Any, y: Any) -> int | None:
    """Return the exponent of a traced base if it is a known integer, as NumPy's scalars are."""
    if not isinstance(x, Tracer):
        return None
    known = isinstance(y, np.integer) or (isinstance(y, ConcreteArray) and not y.ndim)
    return int(y) if known and dtypes.is_integer(y.dtype) else None


def _integer_power(x: Any, y: Any) -> Any:
    """Multiply by repeated squaring, over the bits of the exponent."""
    dtype = x.aval.dtype
    if x.aval.weak_type and not y.aval.weak_type:  # the exponent is read, but never multiplied
        x = dispatch.cast(x, dtype, weak=False)
    one, zero = scalar_like(x, 1), scalar_like(x, 0)
    result = one
    base, exponent = x, y
    for i in range(dtypes.itemsize_bits(dtype)):
        odd = bind("ne", bind("and", exponent, one), zero)
        result = select(odd, bind("mul", result, base), result)
        exponent = bind("shift_right_logical", exponent, one)
        base = bind("mul", base, base) if i + 1 < dtypes.itemsize_bits(dtype) else base
    if dtypes.is_signed_integer(dtype):  # x to a negative power is 0, but for 1 and -1
        below = bind("lt", y, zero)
        unit = bind("eq", bind("abs", x), one)
        result = select(bind("and", below, bind("not", unit)), zero, result)
    return result


_traced_power = binary_operator(_power)


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return x to the power y; a Python int `y` is part of the program (`integer_pow[y=2]`).

    Integers to negative powers are 0, but for those of 1 and -1; NumPy raises an error.
    NumPy's takes `out` and `where` as well. A complex power is 1 where x is 1 or y is 0, and
    e^(y log x) elsewhere: C99, Annex G, leaves open what it is of infinite parts.

    Args:
      x: the base.
      y: the exponent. Integers to negative integer powers raise for a Python int `y`; of
        arrays they are 0, but for the bases 1 and -1.

    Returns:
      An array of the shape that the operands have in common, of the dtype that they promote to.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> xnp.power(xnp.array([1., 2., 3.]), 2)
      Array([1., 4., 9.], dtype=float32)
    """
    if type(y) is int:
        return _static_power(x, y)
    return _traced_power(x, y)  # type: ignore[no-any-return]


pow = power


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return x to the power y in a floating dtype.

    The result has the floating dtype of the operands, where NumPy's is always float64.
    NumPy's takes `out` and `where` as well.

    Args:
        x: an array or a number: the base.
        y: an array or a number: the exponent. Both are broadcast to one shape.

    Returns:
        A floating or complex array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> xnp.float_power(xnp.array([2, 3]), -1).round(3)
        Array([0.5  , 0.333], dtype=float32)
    """
    x, y = inexact("float_power", x, y)
    return bind("pow", *broadcast("float_power", x, y))


# --- maximum and minimum --------------------------------------------------------------------------


def _extremum_without_nan(x: Any, y: Any, name: str, primitive: str) -> Any:
    x, y = broadcast(name, *promote(name, x, y))
    if not dtypes.is_inexact(x.aval.dtype):
        return bind(primitive, x, y)
    chosen = select(bind("ne", x, x), *_like_shapes(y, x))
    return select(bind("ne", y, y), *_like_shapes(x, bind(primitive, chosen, y)))


def _like_shapes(*arrays: Any) -> Any:
    shapes = [a.aval.shape for a in arrays]
    largest = max(shapes, key=len)
    return [broadcast_to(a, largest) for a in arrays]


@binary_function()
def maximum(x1: Any, x2: Any) -> Any:
    """Return the greater of x1 and x2; NaN where either is NaN.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.maximum(xnp.array([1.0, xnp.nan, 3.0]), 2.0)
        Array([ 2., nan,  3.], dtype=float32)
    """
    return bind("max", *broadcast_promoted("maximum", x1, x2))


@binary_function()
def minimum(x1: Any, x2: Any) -> Any:
    """Return the lesser of x1 and x2; NaN where either is NaN.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.minimum(xnp.array([1.0, xnp.nan, 3.0]), 2.0)
        Array([ 1., nan,  2.], dtype=float32)
    """
    return bind("min", *broadcast_promoted("minimum", x1, x2))


@binary_function()
def fmax(x1: Any, x2: Any) -> Any:
    """Return the greater of x1 and x2; of a number and NaN, the number.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.fmax(xnp.array([1.0, xnp.nan, 3.0]), 2.0)
        Array([2., 2., 3.], dtype=float32)
    """
    return _extremum_without_nan(x1, x2, "fmax", "max")


@binary_function()
def fmin(x1: Any, x2: Any) -> Any:
    """Return the lesser of x1 and x2; of a number and NaN, the number.

    Args:
        x1: an array or a number.
        x2: an array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.fmin(xnp.array([1.0, xnp.nan, 3.0]), 2.0)
        Array([1., 2., 2.], dtype=float32)
    """
    return _extremum_without_nan(x1, x2, "fmin", "min")


boundaries(globals(), written=True)
