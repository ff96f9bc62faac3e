"""Elementary functions: exponentials, trigonometry, roots, complex parts, rounding, bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp import lax
from xnp.numpy import dispatch
from xnp.numpy.dispatch import (
    array_of,
    broadcast,
    broadcast_checked,
    cast,
    convert_to,
    dispatch_on,
    inexact,
    no_out,
    promote,
    qualify,
    wide,
)
from xnp.numpy.ufuncs import binary_function, unary_function
from xnp.primitives.table import bind, broadcast_to, fill, scalar_like, select
from xprim import Array, ConcreteArray, dtypes, shaped_array, state
from xprim.array import check_numbers
from xprim.avals import size_of
from xprim.errors import ArgumentError, message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "invert", "left_shift", "right_shift",
    "around", "ceil", "fix", "floor", "nan_to_num", "rint", "round", "trunc", "acos", "acosh",
    "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin",
    "asinh", "atan", "atan2", "atanh", "cbrt", "conj", "conjugate", "copysign", "cos", "cosh",
    "deg2rad", "degrees", "exp", "exp2", "expm1", "frexp", "heaviside", "hypot", "i0", "imag",
    "ldexp", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "nextafter", "rad2deg",
    "radians", "real", "sin", "sinc", "sinh", "spacing", "sqrt", "tan", "tanh", "gcd", "lcm",
]  # fmt: skip

__dir__ = __all__.copy

# ------------------------------------------------------------------------------------------ bits
# Operations on the bits of integers: and, or, xor, not, shifts, counts; powers of two.
#
# Booleans are integers of one bit for `bitwise_and`, `bitwise_or`, `bitwise_xor` and `invert`.


def _integers(name: str, *operands: Any) -> Any:
    arrays = dispatch.promote(name, *operands)
    dtype = arrays[0].aval.dtype
    if not (dtypes.is_integer(dtype) or dtypes.is_bool(dtype)):
        raise TypeError(f"{name}: takes integers and booleans, got dtype {dtype.name}.")
    return broadcast(name, *arrays)


def _numbers_of_bits(name: str, x: Any, y: Any) -> Any:
    """Promote the operands of a shift; booleans count as integers."""
    x, y = _integers(name, x, y)
    if dtypes.is_bool(x.aval.dtype):
        return [cast(v, dtypes.python_scalar_dtype(int)) for v in (x, y)]
    return x, y


@binary_function()
def bitwise_and(x1: Any, x2: Any) -> Any:
    """Return the bits that x1 and x2 both have.

    Args:
        x1: an array of integers or booleans, or a number.
        x2: an array of integers or booleans, or a number. Both are broadcast to one
            shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.bitwise_and(xnp.array([12, 10]), 6)
        Array([4, 2], dtype=int32)
    """
    return bind("and", *_integers("bitwise_and", x1, x2))


@binary_function()
def bitwise_or(x1: Any, x2: Any) -> Any:
    """Return the bits that x1 or x2 has.

    Args:
        x1: an array of integers or booleans, or a number.
        x2: an array of integers or booleans, or a number. Both are broadcast to one
            shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.bitwise_or(xnp.array([12, 10]), 6)
        Array([14, 14], dtype=int32)
    """
    return bind("or", *_integers("bitwise_or", x1, x2))


@binary_function()
def bitwise_xor(x1: Any, x2: Any) -> Any:
    """Return the bits that one of x1 and x2 has.

    Args:
        x1: an array of integers or booleans, or a number.
        x2: an array of integers or booleans, or a number. Both are broadcast to one
            shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.bitwise_xor(xnp.array([12, 10]), 6)
        Array([10, 12], dtype=int32)
    """
    return bind("xor", *_integers("bitwise_xor", x1, x2))


@unary_function
def invert(x: Any) -> Any:
    """Return x with all bits turned.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of integers or booleans, or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.bitwise_invert(xnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
    """
    return bind("not", *_integers("invert", x))


bitwise_not = bitwise_invert = invert


@binary_function()
def left_shift(x1: Any, x2: Any) -> Any:
    """Return x1 2^x2, without the bits above.

    Args:
        x1: an array of integers or booleans, or a number.
        x2: an array of integers or booleans, or a number. Both are broadcast to one
            shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.bitwise_left_shift(xnp.array([1, 3]), 2)
        Array([ 4, 12], dtype=int32)
    """
    return bind("shift_left", *_numbers_of_bits("left_shift", x1, x2))


@binary_function()
def right_shift(x1: Any, x2: Any) -> Any:
    """Return x1 / 2^x2 rounded down; the sign stays.

    Args:
        x1: an array of integers or booleans, or a number.
        x2: an array of integers or booleans, or a number. Both are broadcast to one
            shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.bitwise_right_shift(xnp.array([8, -8]), 2)
        Array([ 2, -2], dtype=int32)
    """
    x1, x2 = _numbers_of_bits("right_shift", x1, x2)
    signed = dtypes.is_signed_integer(x1.aval.dtype)
    return bind("shift_right_arithmetic" if signed else "shift_right_logical", x1, x2)


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@unary_function
def bitwise_count(x: Any) -> Any:
    """Return the number of bits set in |x|, as uint8.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of integers or booleans, or a number.

    Returns:
        A uint8 array of the shape of x; of a negative number the bits of its size
        count.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.bitwise_count(xnp.array([7, 8, -1]))
        Array([3, 1, 1], dtype=uint8)
    """
    (x,) = _integers("bitwise_count", x)
    if dtypes.is_bool(x.aval.dtype):
        return convert_to(x, dtypes.uint8)
    if dtypes.is_signed_integer(x.aval.dtype):
        x = bind("abs", x)
    return bind("convert_element_type", bind("population_count", x), new_dtype=dtypes.uint8,
                weak_type=False)  # fmt: skip


# --- powers of two in floats: for `ldexp` and `frexp` ---------------------------------------------


OF_C = frozenset([dtypes.float32, dtypes.float64])  # of which NumPy has C's functions
EXPONENT_BITS = {
    dtypes.bfloat16: dtypes.int16, dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64
}  # fmt: skip


def scale_by_power(x: Any, n: Any) -> Array:
    """Multiply by at most three powers of two that are normal numbers, so exactly.

    Steps down stop short of the subnormal numbers by the digits of the mantissa: a product that one
    step has rounded is rounded to zero by the next. Source: scalbn of the musl C library.
    """
    info, whole = dtypes.finfo(x.aval.dtype), EXPONENT_BITS[x.aval.dtype]
    high, low = info.maxexp - 1, info.minexp
    bounds = dtypes.iinfo(n.aval.dtype)
    least, most = max(4 * low, int(bounds.min)), min(4 * high, int(bounds.max))
    n = bind("clamp", scalar_like(n, least), n, scalar_like(n, most))
    n = cast(n, whole)
    for _ in range(2):
        up = bind("gt", n, scalar_like(n, high))
        down = bind("lt", n, scalar_like(n, low))
        step = select(down, scalar_like(n, low + info.nmant + 1), scalar_like(n, 0))
        step = select(up, scalar_like(n, high), step)
        x, n = bind("mul", x, _power_of_two(step, x.aval.dtype)), bind("sub", n, step)
    n = bind("clamp", scalar_like(n, low), n, scalar_like(n, high))
    result: Array = bind("mul", x, _power_of_two(n, x.aval.dtype))
    return result


def _power_of_two(n: Any, dtype: Any) -> Any:
    """Return 2^n by its bits, for n in the range of normal exponents."""
    info = dtypes.finfo(dtype)
    field = bind("add", n, scalar_like(n, info.maxexp - 1))
    bits = bind("shift_left", field, scalar_like(n, info.nmant))
    return bind("bitcast_convert_type", bits, new_dtype=dtype)


def split_now(x: Any, host: Any) -> tuple[Array, Array]:
    """Return what `frexp` does of elements that are there."""
    mantissa, exponent = [np.asarray(part) for part in np.frexp(host)]
    exponent = exponent.astype(np.int32, copy=False)
    finite = np.isfinite(host)
    if not finite.all():  # C leaves open what the exponent of the others is
        exponent = np.where(finite, exponent, np.int32(0))
    aval = shaped_array(host.shape, dtypes.int32)
    return ConcreteArray(mantissa, x.aval.strong()), ConcreteArray(exponent, aval)


# -------------------------------------------------------------------------------------- rounding
# Whole numbers from floats, and floats without NaN: floor, round, trunc, nan_to_num.


def _whole(x: Any, name: str, primitive: str, **params: Any) -> Any:
    x = array_of(x, name)
    dtype = x.aval.dtype
    if dtypes.is_integer(dtype) or dtypes.is_bool(dtype):
        return cast(x, dtypes.python_scalar_dtype(float)) if name == "rint" else x
    if dtypes.is_complex(dtype):
        if name != "rint":
            raise TypeError(f"{name}: does not take complex numbers, got {x.aval.str_long()}.")
        parts = [bind(primitive, bind(p, x), **params) for p in ("real", "imag")]
        return bind("complex", *parts)
    return bind(primitive, x, **params)


@unary_function
def floor(x: Any) -> Any:
    """Return the largest whole number <= x.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape of x; integers keep their dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.floor(xnp.array([-1.5, 0.5, 2.5]))
        Array([-2.,  0.,  2.], dtype=float32)
    """
    return _whole(x, "floor", "floor")


@unary_function
def ceil(x: Any) -> Any:
    """Return the smallest whole number >= x.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape of x; integers keep their dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.ceil(xnp.array([-1.5, 0.5, 2.5]))
        Array([-1.,  1.,  3.], dtype=float32)
    """
    return _whole(x, "ceil", "ceil")


@unary_function
def rint(x: Any) -> Any:
    """Return the next whole number, halves even.

    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape of x; integers keep their dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.rint(xnp.array([-1.5, 0.5, 2.5]))
        Array([-2.,  0.,  2.], dtype=float32)
    """
    return _whole(x, "rint", "round", rounding_method=1)


@unary_function
def trunc(x: Any) -> Any:
    """Return x without its fraction: rounded towards zero.

    NumPy's takes `out` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape of x; integers keep their dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.fix(xnp.array([-1.5, 0.5, 2.5]))
        Array([-1.,  0.,  2.], dtype=float32)
    """
    x = array_of(x, "trunc")
    if not dtypes.is_floating(x.aval.dtype):
        return _whole(x, "trunc", "floor")
    below = bind("lt", x, scalar_like(x, 0))
    return select(below, bind("ceil", x), bind("floor", x))


fix = trunc


@dispatch_on(1)
def _round(a: Any, decimals: int) -> Array:
    a = array_of(a, "round")
    dtype = a.aval.dtype
    if dtypes.is_bool(dtype) or dtypes.is_integer(dtype):
        if decimals >= 0:
            return array_of(a, "round")
        floats = cast(a, dtypes.float64 if dtype.itemsize > 4 else dtypes.float32)
        return cast(_round(floats, decimals), dtype)
    if dtypes.is_complex(dtype):
        return bind("complex", *[_round(bind(p, a), decimals) for p in ("real", "imag")])
    if decimals == 0:
        return bind("round", a, rounding_method=1)
    x = wide(a)
    factor = scalar_like(x, 10.0 ** min(abs(decimals), 308))
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    rounded = bind(back, bind("round", bind(there, x, factor), rounding_method=1), factor)
    # Where the detour overflows: no digits to lose behind the point, none left before it.
    otherwise = x if decimals > 0 else bind("mul", x, scalar_like(x, 0))
    rounded = select(bind("is_finite", rounded), rounded, otherwise)
    return convert_to(rounded, dtype, a.aval.weak_type)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Return elements rounded to a number of decimals, halves to even; integers stay.

    Booleans stay booleans, where NumPy makes them numbers.

    Args:
      a: an array.
      decimals: how many digits behind the point stay; may be negative.
      out: not supported, must be None.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
        TypeError: `a` is not an array; `out` is given.

    Example:
      >>> import xnp
      >>> xnp.round(xnp.array([0.125, 2.5]), 2)
      Array([0.12, 2.5 ], dtype=float32)
    """
    no_out("round", out)
    return _round(a, size_of(decimals))


around = round


def as_python_rounds(x: Any, ndigits: int | None = None) -> Array:
    """Return what the built-in `round` gives: integers, if no number of digits is requested."""
    if ndigits is not None:
        return round(x, ndigits)
    result = round(x)
    if not dtypes.is_floating(result.aval.dtype):
        return result
    return cast(result, dtypes.python_scalar_dtype(int))


def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return `x` with NaN and infinities replaced by numbers.

    Args:
      x: an array.
      copy: has no effect: arrays do not change.
      nan: what stands for NaN; an array broadcasts with `x`.
      posinf: what stands for +inf; None for the largest finite number.
      neginf: what stands for -inf; None for the least finite number.

    Returns:
      An array of the dtype of `x`; a new one, also with `copy=False`, where NumPy writes
      into `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> xnp.nan_to_num(xnp.array([1.0, xnp.nan, -xnp.inf]), neginf=-9)
      Array([ 1.,  0., -9.], dtype=float32)
    """
    del copy
    x = array_of(x, "nan_to_num")
    dtype = x.aval.dtype
    if not dtypes.is_inexact(dtype):
        check_numbers(x.aval, "nan_to_num")
        return x
    if dtypes.is_complex(dtype):
        parts = [nan_to_num(bind(p, x), True, nan, posinf, neginf) for p in ("real", "imag")]
        return bind("complex", *parts)
    info = dtypes.finfo(dtype)
    posinf = float(info.max) if posinf is None else posinf
    neginf = float(info.min) if neginf is None else neginf
    return _replace(x, nan, posinf, neginf)  # type: ignore[no-any-return]


@dispatch_on(4)
def _replace(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    dtype = x.aval.dtype
    replacements = [(bind("ne", x, x), nan), (bind("eq", x, scalar_like(x, math.inf)), posinf),
                    (bind("eq", x, scalar_like(x, -math.inf)), neginf)]  # fmt: skip
    for mask, value in replacements:
        x = dispatch.choose("nan_to_num", mask, cast(array_of(value, "nan_to_num"), dtype), x)
    return x


# ------------------------------------------------------------------------------------ elementary
# Elementary functions: exponentials, logarithms, trigonometry, roots, complex parts.
#
# Integers and booleans become float32 first. Accuracy: that of NumPy (a few ulp) on the host, of
# XLA in compiled programs.


@unary_function
def sin(x: Any) -> Any:
    """Return the sine of an angle in radians.

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
        >>> xnp.sin(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.841], dtype=float32)
    """
    return bind("sin", *inexact("sin", x))


@unary_function
def cos(x: Any) -> Any:
    """Return the cosine of an angle in radians.

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
        >>> xnp.cos(xnp.array([0.0, 1.0])).round(3)
        Array([1.  , 0.54], dtype=float32)
    """
    return bind("cos", *inexact("cos", x))


@unary_function
def tan(x: Any) -> Any:
    """Return the tangent of an angle in radians.

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
        >>> xnp.tan(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.557], dtype=float32)
    """
    return bind("tan", *inexact("tan", x))


@unary_function
def arcsin(x: Any) -> Any:
    """Return the angle in [-pi/2, pi/2] whose sine is x.

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
        >>> xnp.arcsin(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.571], dtype=float32)
    """
    return bind("asin", *inexact("arcsin", x))


asin = arcsin


@unary_function
def arccos(x: Any) -> Any:
    """Return the angle in [0, pi] whose cosine is x.

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
        >>> xnp.arccos(xnp.array([0.0, 1.0])).round(3)
        Array([1.571, 0.   ], dtype=float32)
    """
    return bind("acos", *inexact("arccos", x))


acos = arccos


@unary_function
def arctan(x: Any) -> Any:
    """Return the angle in [-pi/2, pi/2] whose tangent is x.

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
        >>> xnp.arctan(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.785], dtype=float32)
    """
    return bind("atan", *inexact("arctan", x))


atan = arctan


@unary_function
def sinh(x: Any) -> Any:
    """Return (e^x - e^-x) / 2.

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
        >>> xnp.sinh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.175], dtype=float32)
    """
    return bind("sinh", *inexact("sinh", x))


@unary_function
def cosh(x: Any) -> Any:
    """Return (e^x + e^-x) / 2.

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
        >>> xnp.cosh(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 1.543], dtype=float32)
    """
    return bind("cosh", *inexact("cosh", x))


@unary_function
def tanh(x: Any) -> Any:
    """Return sinh(x) / cosh(x).

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
        >>> xnp.tanh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.762], dtype=float32)
    """
    return bind("tanh", *inexact("tanh", x))


@unary_function
def arcsinh(x: Any) -> Any:
    """Return y with sinh(y) = x.

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
        >>> xnp.arcsinh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.881], dtype=float32)
    """
    return bind("asinh", *inexact("arcsinh", x))


asinh = arcsinh


@unary_function
def arccosh(x: Any) -> Any:
    """Return the y >= 0 with cosh(y) = x.

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
        >>> xnp.arccosh(xnp.array([1.0, 2.0])).round(3)
        Array([0.   , 1.317], dtype=float32)
    """
    return bind("acosh", *inexact("arccosh", x))


acosh = arccosh


@unary_function
def arctanh(x: Any) -> Any:
    """Return y with tanh(y) = x.

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
        >>> xnp.arctanh(xnp.array([0.0, 0.5])).round(3)
        Array([0.   , 0.549], dtype=float32)
    """
    return bind("atanh", *inexact("arctanh", x))


atanh = arctanh


@unary_function
def exp(x: Any) -> Any:
    """Return e^x.

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
        >>> xnp.exp(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 2.718], dtype=float32)
    """
    return bind("exp", *inexact("exp", x))


@unary_function
def exp2(x: Any) -> Any:
    """Return 2^x.

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
        >>> xnp.exp2(xnp.array([0.0, 3.0])).round(3)
        Array([1., 8.], dtype=float32)
    """
    return bind("exp2", *inexact("exp2", x))


@unary_function
def expm1(x: Any) -> Any:
    """Return e^x - 1, exact also for small x.

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
        >>> xnp.expm1(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.718], dtype=float32)
    """
    return bind("expm1", *inexact("expm1", x))


@unary_function
def log(x: Any) -> Any:
    """Return the natural logarithm.

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
        >>> xnp.log(xnp.array([1.0, 10.0])).round(3)
        Array([0.   , 2.303], dtype=float32)
    """
    return bind("log", *inexact("log", x))


@unary_function
def log1p(x: Any) -> Any:
    """Return log(1 + x), exact also for small x.

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
        >>> xnp.log1p(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.693], dtype=float32)
    """
    return bind("log1p", *inexact("log1p", x))


@unary_function
def sqrt(x: Any) -> Any:
    """Return the square root; NaN of negative numbers.

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
        >>> xnp.sqrt(xnp.array([0.0, 9.0])).round(3)
        Array([0., 3.], dtype=float32)
    """
    return bind("sqrt", *inexact("sqrt", x))


@unary_function
def cbrt(x: Any) -> Any:
    """Return the cube root, also of negative numbers.

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
        >>> xnp.cbrt(xnp.array([8.0, -27.0])).round(3)
        Array([ 2., -3.], dtype=float32)
    """
    return bind("cbrt", *inexact("cbrt", x))


def _logarithm(x: Any, name: str, base: float) -> Any:
    (x,) = inexact(name, x)
    is_real = not dtypes.is_complex(x.aval.dtype)
    if is_real and base == 2:
        return bind("log2", x)
    aval, y = x.aval, bind("log", wide(x))
    if is_real:
        quotient = bind("div", y, scalar_like(y, math.log(base)))
        return convert_to(quotient, aval.dtype, aval.weak_type)
    # part by part: infinity divided by a complex number would be NaN
    parts = [bind("real", y), bind("imag", y)]
    return bind("complex", *[bind("div", p, scalar_like(p, math.log(base))) for p in parts])


@unary_function
def log2(x: Any) -> Any:
    """Return the logarithm to base 2.

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
        >>> xnp.log2(xnp.array([1.0, 8.0])).round(3)
        Array([0., 3.], dtype=float32)
    """
    return _logarithm(x, "log2", 2)


@unary_function
def log10(x: Any) -> Any:
    """Return the logarithm to base 10.

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
        >>> xnp.log10(xnp.array([1.0, 100.0])).round(3)
        Array([0., 2.], dtype=float32)
    """
    return _logarithm(x, "log10", 10)


def _scale(x: Any, name: str, factor: float) -> Any:
    (x,) = inexact(name, x)
    aval, x = x.aval, wide(x)  # the factor of float16 has an error, too
    return convert_to(bind("mul", x, scalar_like(x, factor)), aval.dtype, aval.weak_type)


@unary_function
def radians(x: Any) -> Any:
    """Return degrees as radians.

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
        >>> xnp.radians(xnp.array([0.0, 180.0])).round(3)
        Array([0.   , 3.142], dtype=float32)
    """
    return _scale(x, "radians", math.pi / 180)


deg2rad = radians


@unary_function
def degrees(x: Any) -> Any:
    """Return radians as degrees.

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
        >>> xnp.degrees(xnp.array([0.0, xnp.pi])).round(3)
        Array([  0., 180.], dtype=float32)
    """
    return _scale(x, "degrees", 180 / math.pi)


rad2deg = degrees


# --- of two operands ------------------------------------------------------------------------------


def sign_is_negative(x: Any) -> Any:
    """Return whether the sign of each float is negative, also of -0.0."""
    integer = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
    bits = bind("bitcast_convert_type", x, new_dtype=integer[x.aval.dtype.itemsize])
    return bind("lt", bits, scalar_like(bits, 0))


@binary_function()
def arctan2(x1: Any, x2: Any) -> Any:
    """Return the angle of the point with ordinate x1 and abscissa x2, from -pi to pi.

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.arctan2(xnp.array([1.0, -1.0]), 0.0).round(3)
        Array([ 1.571, -1.571], dtype=float32)
    """
    return bind("atan2", *broadcast("arctan2", *inexact("arctan2", x1, x2)))


atan2 = arctan2


@binary_function()
def hypot(x1: Any, x2: Any) -> Any:
    """Return sqrt(x1^2 + x2^2) without overflow.

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.hypot(3.0, xnp.array([4.0, 0.0]))
        Array([5., 3.], dtype=float32)
    """
    x1, x2 = inexact("hypot", x1, x2)
    if dtypes.is_complex(x1.aval.dtype):
        raise ValueError(message(
            "hypot", f"{qualify('hypot')} is not well defined for complex-valued inputs.",
            hint="give the magnitudes: abs(x)",
        ))  # fmt: skip
    return bind("hypot", *dispatch.broadcast_checked("hypot", x1, x2))


@binary_function()
def logaddexp(x1: Any, x2: Any) -> Any:
    """Return log(e^x1 + e^x2).

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.logaddexp(xnp.array([0.0, 1000.0]), 0.0).round(3)
        Array([6.93e-01, 1.00e+03], dtype=float32)
    """
    return bind("logaddexp", *broadcast("logaddexp", *inexact("logaddexp", x1, x2)))


@binary_function()
def logaddexp2(x1: Any, x2: Any) -> Any:
    """Return log2(2^x1 + 2^x2).

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.logaddexp2(xnp.array([0.0, 1000.0]), 0.0).round(3)
        Array([   1., 1000.], dtype=float32)
    """
    return bind("logaddexp2", *broadcast("logaddexp2", *inexact("logaddexp2", x1, x2)))


@binary_function()
def heaviside(x1: Any, x2: Any) -> Any:
    """Return 0 for x1 < 0, x2 for x1 = 0, 1 for x1 > 0.

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.heaviside(xnp.array([-1.0, 0.0, 2.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = dispatch.broadcast_checked("heaviside", *inexact("heaviside", x1, x2))
    zero = scalar_like(x1, 0)
    positive = bind("convert_element_type", bind("gt", x1, zero), new_dtype=x1.aval.dtype,
                    weak_type=x1.aval.weak_type)  # fmt: skip
    step = select(bind("eq", x1, zero), x2, positive)
    return select(bind("ne", x1, x1), x1, step)


@binary_function()
def copysign(x1: Any, x2: Any) -> Any:
    """Return |x1| with the sign of x2.

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.copysign(xnp.array([1.0, 2.0]), -0.0)
        Array([-1., -2.], dtype=float32)
    """
    x1, x2 = inexact("copysign", x1, x2)
    if dtypes.is_complex(x1.aval.dtype):
        raise TypeError("copysign: complex numbers have no sign.")
    x1, x2 = dispatch.broadcast_checked("copysign", bind("abs", x1), x2)
    return select(sign_is_negative(x2), bind("neg", x1), x1)


@binary_function()
def nextafter(x1: Any, x2: Any) -> Any:
    """Return the float next to x1 in the direction of x2.

    Booleans and small integers are spaced as the default float, where NumPy takes float16.

    Args:
        x1: a real array or a number.
        x2: a real array or a number. Both are broadcast to one shape.
        out: must be None: arrays do not change, so nothing is written into one.
        where: must be None, as `out`; `xnp.where` chooses elements of the result.

    Returns:
        An array of the shape and the dtype that the operands have in common; a Python
        number takes the dtype of the array beside it. Integers and floats together
        have the dtype of the floats, where NumPy may widen it. Integers become the
        default float.

    Raises:
        TypeError: an operand is not an array; `out` is given; `where` is given.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.nextafter(xnp.array([1.0]), 2.0) > 1.0
        Array([ True], dtype=bool)
    """
    return bind("nextafter", *broadcast("nextafter", *inexact("nextafter", x1, x2)))


@unary_function
def _spacing_anywhere(x: Any) -> Any:
    (x,) = inexact("spacing", x)
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        raise ArgumentError("spacing: takes real numbers.")
    x = bind("stop_gradient", x)  # steps: 1 less 1 in a derivative would not cancel for large ones
    if dtype.itemsize > 1:
        return _spacing_by_bits(x)
    has_infinity = np.isinf(np.asarray(math.inf).astype(dtype))
    far = math.inf if has_infinity else float(dtypes.finfo(dtype).max)
    away = select(sign_is_negative(x), fill(x.aval.shape, -far, dtype),
                    fill(x.aval.shape, far, dtype))  # fmt: skip
    return bind("sub", bind("nextafter", x, away), x)


def _spacing_by_bits(x: Any) -> Any:
    """Return the power of two that the last bit of each float stands for, with its sign.

    No arithmetic on floats: in compiled programs that takes subnormal numbers for zero, and most
    distances from small numbers are subnormal.
    """
    dtype, digits = x.aval.dtype, int(dtypes.finfo(x.aval.dtype).nmant)
    integer: Any = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[dtype.itemsize]
    bits = bind("bitcast_convert_type", x, new_dtype=integer)

    def number(value: int) -> Any:
        return scalar_like(bits, value)

    def bits_of(value: float) -> Any:
        whole: Any = integer
        return number(int(np.asarray(value).astype(dtype).view(whole)))

    size = bind("and", bits, number((1 << (8 * dtype.itemsize - 1)) - 1))
    exponent = bind("max", bind("shift_right_logical", size, number(digits)), number(1))
    above = bind("sub", exponent, number(digits))
    is_normal = bind("gt", above, number(0))
    normal = bind("shift_left", select(is_normal, above, number(0)), number(digits))
    place = select(is_normal, number(0), bind("sub", exponent, number(1)))
    step = select(is_normal, normal, bind("shift_left", number(1), place))
    infinity = bits_of(math.inf)
    step = select(bind("eq", size, bind("sub", infinity, number(1))), infinity, step)
    step = select(bind("ge", size, infinity), bits_of(math.nan), step)
    found = bind("bitcast_convert_type", step, new_dtype=dtype)
    negative = bind("and", bind("lt", bits, number(0)), bind("ne", size, number(0)))
    return select(negative, bind("neg", found), found)


def spacing(x: ArrayLike, /) -> Array:
    """Return the distance to the next float of larger size.

    Booleans and small integers are spaced as the default float, where NumPy takes float16.
    NumPy's takes `out` and `where` as well.

    Args:
        x: a real array or a number; integers become the default float.

    Returns:
        An array of the shape of x, floating: the distance from each element to the
        next one away from 0.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.spacing(xnp.array([1.0, 1024.0])) * 2**23
        Array([1.000e+00, 1.024e+03], dtype=float32)
    """
    if type(x) is ConcreteArray and x.aval.dtype in OF_C:
        hosts = dispatch.elements_now(x)
        if hosts is not None:
            with np.errstate(all="ignore"):
                return ConcreteArray(np.asarray(np.spacing(*hosts)), x.aval.strong())
    return _spacing_anywhere(x)


# --- special forms --------------------------------------------------------------------------------


# The last term left out is below half an ulp for |r| <= 1/2.
_SINC_TERMS = {dtypes.float32: 8, dtypes.float64: 12}


def _complex_sinc(x: Any) -> Any:
    at_zero = bind("eq", x, scalar_like(x, 0))
    # near zero sin(t)/t = 1 - t^2/6 + t^4/120, whose derivatives are right at zero itself
    t = bind("mul", x, scalar_like(x, math.pi))
    square = bind("mul", t, t)
    series = bind("add", scalar_like(x, 1), bind("mul", square, bind(
        "add", scalar_like(x, -1 / 6), bind("mul", square, scalar_like(x, 1 / 120)))))  # fmt: skip
    # far along the real axis the sine is bounded: the quotient ends at 0
    real, imag = bind("real", x), bind("imag", x)
    end = bind("and", bind("eq", bind("abs", real), scalar_like(real, math.inf)),
               bind("lt", bind("abs", imag), scalar_like(imag, math.inf)))  # fmt: skip
    special = bind("or", at_zero, end)
    safe = bind("mul", select(special, scalar_like(x, 1), x), scalar_like(x, math.pi))
    quotient = bind("div", bind("sin", safe), safe)
    return select(at_zero, series, select(end, scalar_like(x, 0), quotient))


@unary_function
def sinc(x: Any) -> Any:
    """Return sin(pi x) / (pi x): 1 at 0, 0 at the infinities, which are its limits.

    Exactly 0 at whole numbers and at inf - 2j, where NumPy has some 1e-17, and NaN.

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
        >>> xnp.sinc(xnp.array([0.0, 0.5])).round(3)
        Array([1.   , 0.637], dtype=float32)
    """
    # Reduce to r = x - n in [-1/2, 1/2]: sin(pi x) = (-1)^n sin(pi r), which is a short series.
    #
    # The series is even exact where sin(pi x) by a rounded pi x is not, its derivatives are right
    # at zero, and it is vectorised, which XLA's sine on a CPU is not.
    (x,) = inexact("sinc", x)
    if dtypes.is_complex(x.aval.dtype):
        return _complex_sinc(x)
    dtype = x.aval.dtype
    wide = x if dtype in _SINC_TERMS else cast(x, dtypes.float32)
    infinite = bind("eq", bind("abs", wide), scalar_like(wide, math.inf))
    wide = select(infinite, scalar_like(wide, 2), wide)  # zero there too, with finite derivatives
    n = bind("round", wide, rounding_method=1)  # half to even
    r = bind("sub", wide, n)
    squared = bind("mul", r, r)
    terms = range(_SINC_TERMS[wide.aval.dtype])
    # sin(pi r) / (pi r) = sum_k (-1)^k (pi r)^(2k) / (2k + 1)!
    series = bind("polynomial", squared, *[
        scalar_like(wide, (-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1))
        for k in terms
    ])  # fmt: skip
    near = bind("eq", n, scalar_like(wide, 0))
    half = bind("mul", n, scalar_like(wide, 0.5))
    even = bind("eq", half, bind("floor", half))
    far = bind("mul", series, bind("div", r, select(near, scalar_like(wide, 1), wide)))
    signed = select(even, far, bind("neg", far))
    result = select(near, series, signed)
    return result if dtype in _SINC_TERMS else cast(result, dtype)


@unary_function
def i0(x: Any) -> Any:
    """Return the modified Bessel function of the first kind of order 0.

    Infinite at both infinities, where NumPy has NaN.

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
        >>> xnp.i0(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 1.266], dtype=float32)
    """
    (x,) = inexact("i0", x)
    if dtypes.is_complex(x.aval.dtype):
        raise ArgumentError("i0: takes real numbers.")
    return bind("bessel_i0", x)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 2^x2 for integers x2, rounded once, also where 2^x2 itself is out of range.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: a real array or a number, the mantissas.
        x2: integers, the exponents. Both are broadcast to one shape.

    Returns:
        A floating array, x1 2^x2.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.ldexp(xnp.array([1.0, 1.5]), 3)
        Array([ 8., 12.], dtype=float32)
    """
    x1, x2 = array_of(x1, "ldexp"), array_of(x2, "ldexp")
    if dtypes.is_bool(x2.aval.dtype):
        x2 = convert_to(x2, dtypes.int32)
    if not dtypes.is_integer(x2.aval.dtype):
        raise ValueError(f"ldexp: the exponent must be of integers, got {x2.aval.str_long()}.")
    (x1,) = inexact("ldexp", x1)
    dtype = x1.aval.dtype
    if dtypes.is_complex(dtype):
        raise ValueError("ldexp: complex numbers have no exponent.")
    dispatch.check_ranks("ldexp", x1, x2)
    hosts = dispatch.elements_now(x1, x2)
    if hosts is not None and dtype in OF_C and x2.aval.dtype == dtypes.int32:
        scaled = np.asarray(state.run_quietly(np.ldexp, *hosts), dtype)
        return ConcreteArray(scaled, shaped_array(scaled.shape, dtype))
    x1, x2 = dispatch.broadcast_all("ldexp", x1, x2)
    if dtype not in EXPONENT_BITS:  # exact in float32, and rounded where it is converted back
        return cast(scale_by_power(cast(x1, dtypes.float32), x2), dtype)
    return scale_by_power(x1, x2)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Return mantissas in [0.5, 1) and exponents with x = mantissa 2^exponent.

    NumPy's takes `out` and `where` as well.

    Args:
        x: a real array or a number.

    Returns:
        Two arrays of the shape of x: mantissas between 0.5 and 1 (or 0), and int32
        exponents.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.frexp(xnp.array([1.0, 10.0]))
        (Array([0.5  , 0.625], dtype=float32), Array([1, 4], dtype=int32))
    """
    (x,) = inexact("frexp", x)
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        raise TypeError("frexp: complex numbers have no exponent.")
    hosts = dispatch.elements_now(x)
    if hosts is not None and dtype in OF_C:
        return split_now(x, *hosts)
    tiny, y = _as_units(x)
    mantissa, exponent = _split_bits(y)
    info = dtypes.finfo(dtype)
    below = bind("sub", exponent, scalar_like(exponent, info.nmant - info.minexp))
    exponent = select(tiny, below, exponent)
    plain = bind("or", bind("eq", y, scalar_like(x, 0)), bind("not", bind("is_finite", x)))
    exponent = select(plain, scalar_like(exponent, 0), exponent)
    mantissa = bind("add", mantissa, _movement(x, y, mantissa, tiny, plain))
    return select(plain, x, mantissa), cast(exponent, dtypes.int32)


_INTEGER_BY_WIDTH = {16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def _bits(x: Array) -> Array:
    integer = _INTEGER_BY_WIDTH[8 * x.aval.dtype.itemsize]
    return bind("bitcast_convert_type", x, new_dtype=integer)


def _as_units(x: Array) -> tuple[Array, Array]:
    """Return where x is subnormal, and x with such numbers as multiples of the least one.

    Their bits count the least ones; compiled, a product would be of zero.
    """
    info, bits = dtypes.finfo(x.aval.dtype), _bits(x)
    count = bind("and", bits, scalar_like(bits, (1 << info.nmant) - 1))
    tiny = bind("lt", bind("abs", x), scalar_like(x, float(info.smallest_normal)))
    units = cast(count, x.aval.dtype)
    units = select(bind("lt", bits, scalar_like(bits, 0)), bind("neg", units), units)
    return tiny, select(tiny, units, x)


def _split_bits(y: Array) -> tuple[Array, Array]:
    """Return the mantissa in [0.5, 1) and the exponent of normal numbers."""
    dtype, bits = y.aval.dtype, _bits(y)
    nmant = dtypes.finfo(dtype).nmant
    field = (1 << (8 * dtype.itemsize - 1 - nmant)) - 1
    shifted = bind("shift_right_logical", bits, scalar_like(bits, nmant))
    exponent = bind("sub", bind("and", shifted, scalar_like(bits, field)),
                    scalar_like(bits, field // 2 - 1))  # fmt: skip
    cleared = bind("and", bits, scalar_like(bits, ~(field << nmant)))
    halved = bind("or", cleared, scalar_like(bits, (field // 2 - 1) << nmant))
    return bind("bitcast_convert_type", halved, new_dtype=dtype), exponent


def _movement(x: Array, y: Array, mantissa: Array, tiny: Array, plain: Array) -> Array:
    """Return a zero with the tangent of the mantissa: that of x divided by 2^exponent."""
    info = dtypes.finfo(x.aval.dtype)
    y = select(plain, scalar_like(x, 1), y)
    rate = bind("stop_gradient", bind("div", mantissa, y))
    scale = select(tiny, scalar_like(x, 2.0 ** (info.nmant + 2)), scalar_like(x, 1))
    rest = 2.0 ** -(info.minexp + 2)  # of the units, which are 2^(nmant - minexp) times as many
    rate = bind("mul", rate, select(tiny, scalar_like(x, rest), scalar_like(x, 1)))
    scaled = bind("mul", x, scale)
    scaled = select(plain, scalar_like(x, 0), scaled)
    return bind("mul", bind("sub", scaled, bind("stop_gradient", scaled)), rate)


# --- complex parts --------------------------------------------------------------------------------


def _of_numbers(x: Any, operation: str) -> Any:
    """Return an array that stays as it is, if its elements are numbers."""
    check_numbers(x.aval, operation)
    return x


@unary_function
def real(val: Any) -> Any:
    """Return the real part; `val` itself where it is real.

    Args:
        val: an array of any shape, or a number.

    Returns:
        An array of the shape of val; of a complex val the real dtype of half its width,
        else its own dtype.

    Example:
        >>> import xnp
        >>> xnp.real(xnp.array([1 + 2j, 3.0]))
        Array([1., 3.], dtype=float32)
    """
    x = array_of(val, "real")
    return bind("real", x) if dtypes.is_complex(x.aval.dtype) else _of_numbers(x, "real")


@unary_function
def imag(val: Any) -> Any:
    """Return the imaginary part; zeros where `val` is real.

    Args:
        val: an array of any shape, or a number.

    Returns:
        An array of the shape of val; of a complex val the real dtype of half its width,
        else its own dtype.

    Example:
        >>> import xnp
        >>> xnp.imag(xnp.array([1 + 2j, 3.0]))
        Array([2., 0.], dtype=float32)
    """
    x = array_of(val, "imag")
    if dtypes.is_complex(x.aval.dtype):
        return bind("imag", x)
    return broadcast_to(scalar_like(_of_numbers(x, "imag"), 0), x.aval.shape)


@unary_function
def conjugate(x: Any) -> Any:
    """Return the complex conjugate.

    Booleans stay booleans, where NumPy makes them numbers.
    NumPy's takes `out` and `where` as well.

    Args:
        x: an array of any shape, or a number.

    Returns:
        An array of the shape and dtype of x; what is real is returned as it is.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> xnp.conj(xnp.array([1 + 2j, 3.0]))
        Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = array_of(x, "conjugate")
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        return bind("conj", x, input_dtype=dtype)
    return _of_numbers(x, "conjugate")


conj = conjugate


@dispatch_on(1)
def _angle(z: Any, deg: bool) -> Array:
    z = array_of(z, "angle")
    if not dtypes.is_inexact(z.aval.dtype):
        z = cast(z, dtypes.python_scalar_dtype(float))
    if dtypes.is_complex(z.aval.dtype):
        re, im = bind("real", z), bind("imag", z)
    else:
        re, im = z, fill(z.aval.shape, 0, z.aval.dtype)
    result = bind("atan2", im, re)
    result = convert_to(result, result.aval.dtype)
    return bind("mul", result, scalar_like(result, 180 / math.pi)) if deg else result


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angle of complex numbers with the real axis, in radians or degrees.

    Args:
        z: a complex or real array, or a number.
        deg: whether the angle is in degrees; by default in radians.

    Returns:
        A real array of the shape of z, from -pi to pi (from -180 to 180).

    Example:
        >>> import xnp
        >>> xnp.angle(xnp.array([1j, -1.0]), deg=True)
        Array([ 90., 180.], dtype=float32)
    """
    return _angle(z, bool(deg))


# -------------------------------------------------------------------- common divisors and multiples


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisor of integers, not negative; 0 if both are 0.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array of integers, or a number.
        x2: an array of integers, or a number. Both are broadcast to one shape.

    Returns:
        An array of integers, not negative, of the shape and the dtype that the
        operands have in common.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.gcd(xnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    x, y = _integers_of_one_dtype("gcd", x1, x2)
    dtype, weak = x.aval.dtype, x.aval.weak_type
    if dtypes.is_signed_integer(dtype):  # the magnitude of the least integer needs all bits
        unsigned = getattr(dtypes, f"u{dtype.name}")
        x, y = [cast(bind("abs", v), unsigned) for v in (x, y)]
    # A loop: XLA takes minutes for the 1.44 * bits steps of Euclid's algorithm written out.
    return cast(lax.while_loop(_is_unfinished, _step_of_euclid, (x, y))[0], dtype, weak)


def _is_unfinished(pair: Any) -> Any:
    return bind("ne", pair[1], scalar_like(pair[1], 0)).any()


def _step_of_euclid(pair: Any) -> Any:
    x, y = pair
    done = bind("eq", y, scalar_like(y, 0))
    rest = bind("rem", x, select(done, scalar_like(y, 1), y))
    return select(done, x, y), select(done, y, rest)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiple of integers, not negative; 0 if one is 0.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array of integers, or a number.
        x2: an array of integers, or a number. Both are broadcast to one shape.

    Returns:
        An array of integers, not negative, of the shape and the dtype that the
        operands have in common.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.lcm(xnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x, y = _integers_of_one_dtype("lcm", x1, x2)
    divisor = array_of(gcd(x, y), "lcm")
    none = bind("eq", divisor, scalar_like(divisor, 0))
    safe = select(none, scalar_like(divisor, 1), divisor)
    if dtypes.is_signed_integer(x.aval.dtype):
        x, y = bind("abs", x), bind("abs", y)  # what does not fit wraps around, as in NumPy
    return bind("mul", bind("div", x, safe), y)


def _integers_of_one_dtype(name: str, x1: Any, x2: Any) -> Any:
    x, y = promote(name, x1, x2)
    if not dtypes.is_integer(x.aval.dtype):
        raise ValueError(f"{name}: takes integers, got dtype {x.aval.dtype.name}.")
    return broadcast_checked(name, x, y)


boundaries(globals())
