"""`xnp.lax`: the elementwise functions, strict about dtypes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import xprim
from xnp.placing import place, shard_like
from xnp.primitives import conversion, elementwise, special_gamma
from xnp.primitives.elementwise import RoundingMethod
from xnp.primitives.shapes import broadcast_in_dim_p
from xnp.primitives.special_error import erf_inv_p, erf_p, erfc_p
from xnp.primitives.special_functions import bessel_i0e_p, bessel_i1e_p
from xnp.primitives.table import Accuracy, AccuracyMode, Tolerance, repeat_scalar
from xprim import EAGER, Array, ConcreteArray, Primitive, as_array, dtypes, scalar_array, state
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require_choice, static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, PyTree, ShardingLike
from xtree import tree_flatten, tree_map, tree_unflatten

__all__ = [
    "RoundingMethod", "abs", "add", "cbrt", "ceil", "div", "floor", "integer_pow", "is_finite",
    "max", "min", "mul", "neg", "nextafter", "one_minus_square", "polynomial", "pow", "reciprocal",
    "rem", "round", "rsqrt", "sign", "sqrt", "square", "sub", "bitcast_convert_type", "complex",
    "conj", "convert_element_type", "full", "full_like", "imag", "optimization_barrier", "real",
    "reduce_precision", "stage", "stop_gradient", "AccuracyMode", "Tolerance", "acos", "acosh",
    "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp", "exp2", "expm1", "log",
    "log1p", "log2", "logistic", "sin", "sinh", "tan", "tanh", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "clamp", "clz", "eq", "ge", "gt", "le", "lt", "mulhi", "ne",
    "population_count", "select", "select_n", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "bessel_i0e", "bessel_i1e", "betainc", "digamma", "erf", "erf_inv",
    "erfc", "igamma", "igamma_grad_a", "igammac", "lgamma", "polygamma", "random_gamma_grad",
    "zeta",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- operands
# Operands of `xnp.lax` functions: what may be given where an array is expected.
#
# `lax` is strict: dtypes must be equal, and so must ranks. Three things are forgiven: NumPy
# arrays and Python scalars are accepted; a Python scalar beside arrays takes their dtype when it
# is of their kind, so `add(x, 1.0)` works for `x` of any floating dtype, and `add(x, 1)` for any
# integer dtype; and a dimension of size 1 is repeated to the size that it has in the other
# operand.
#
#     add(float32 array, 1.0)   float32
#     add(float32 array, 1)     TypeError: float32, int32
#     add(1, 1.0)               TypeError: int32, float32

_IS_OF_KIND = {
    bool: dtypes.is_bool,
    int: dtypes.is_integer,
    float: dtypes.is_floating,
    builtins.complex: dtypes.is_complex,
}


def pair(x: Any, y: Any) -> tuple[Array, Array]:
    """Return two operands as Arrays."""
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray:
        x, y = _arrays(x, y)
    if x.aval is not y.aval and x.aval.shape != y.aval.shape:
        x, y = level_ranks(x, y)
    return x, y


def _arrays(x: Any, y: Any) -> tuple[Array, Array]:
    x_is_scalar, y_is_scalar = type(x) in _IS_OF_KIND, type(y) in _IS_OF_KIND
    if not x_is_scalar:
        x = as_array(x)
        return x, _scalar_beside(y, x) if y_is_scalar else as_array(y)
    if y_is_scalar:
        return as_array(x), as_array(y)
    y = as_array(y)
    return _scalar_beside(x, y), y


def level_ranks(*arrays: Array) -> list[Array]:
    """Return arrays of one rank with dimensions of size 1 repeated; others stay for the errors."""
    shapes = [x.aval.shape for x in arrays if x.aval.shape]
    if len({len(shape) for shape in shapes}) != 1:
        return list(arrays)
    sizes = [{*column} - {1} or {1} for column in zip(*shapes, strict=True)]
    if builtins.max(map(len, sizes)) > 1:
        return list(arrays)
    shape = tuple([size for (size,) in sizes])
    return [x if x.aval.shape in ((), shape) else _repeat(x, shape) for x in arrays]


def _repeat(x: Array, shape: tuple[int, ...]) -> Array:
    result: Array = broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(range(len(shape)))
    )[0]
    return result


def several(*values: Any) -> list[Array]:
    """Return operands as Arrays; Python scalars follow the first one that is none."""
    other = None
    for value in values:
        if type(value) not in _IS_OF_KIND:
            other = as_array(value)
            break
    if other is None:
        return [as_array(v) for v in values]
    return [
        _scalar_beside(v, other) if type(v) in _IS_OF_KIND else as_array(v) for v in values
    ]  # fmt: skip


def _scalar_beside(value: Any, other: Array) -> Array:
    aval = other.aval
    if aval.weak_type or not _IS_OF_KIND[type(value)](aval.dtype):
        return as_array(value)
    return scalar_array(value, aval.dtype)


# ------------------------------------------------------------------------ elementwise arithmetic
# `xnp.lax`: elementwise arithmetic, powers, rounding.
#
# Operands have equal dtypes, and shapes that are equal but for sizes of 1, or rank 0 (see
# `operands`). Semantics: the StableHLO specification, in the section of the operation's name.


def apply(primitive: Primitive, x: ArrayLike, accuracy: Accuracy = None) -> Array:
    """Apply a primitive of one operand; `accuracy` is a param where it is given."""
    if type(x) is not ConcreteArray:
        x = as_array(x)
    if accuracy is None:
        return primitive.bind(x)[0]  # type: ignore[no-any-return]
    return primitive.bind(x, accuracy=accuracy)[0]  # type: ignore[no-any-return]


def neg(x: ArrayLike) -> Array:
    """Return -x. Numbers; unsigned integers wrap around.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.neg(xnp.array([1.0, -2.0]))
        Array([-1.,  2.], dtype=float32)
    """
    return apply(elementwise.neg_p, x)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + y. Any dtype; `or` for booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
      TypeError: when the dtypes or the shapes differ.

    Example:
      >>> add(2.0, 1.5).aval
      ShapedArray(~float32[])
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.add_p.bind(x, y)[0]  # type: ignore[no-any-return]


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x - y. Numbers.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.sub(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))
        Array([-2., -2.], dtype=float32)
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.sub_p.bind(x, y)[0]  # type: ignore[no-any-return]


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike = None) -> Array:
    """Return x y. Any dtype; `and` for booleans.

    With `out_dtype` both are brought to that dtype first, so that a product of int8 numbers can be
    an int32 one.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.
        out_dtype: of the result; None for that of the operands.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.mul(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))
        Array([3., 8.], dtype=float32)
    """
    if out_dtype is not None:
        x, y = pair(x, y)
        wide = {"new_dtype": dtypes.requested_dtype(out_dtype, "mul"), "weak_type": False}
        x, y = [xprim.get_primitive("convert_element_type").bind(v, **wide)[0] for v in (x, y)]
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.mul_p.bind(x, y)[0]  # type: ignore[no-any-return]


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x / y; integers round towards zero, and x / 0 is -1 (all bits set).

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.div(xnp.array([7, -7]), xnp.array([2, 2]))
        Array([ 3, -3], dtype=int32)
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.div_p.bind(x, y)[0]  # type: ignore[no-any-return]


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x - y trunc(x / y), with the sign of x. Real numbers; an integer x rem 0 is x.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.rem(xnp.array([7, -7]), xnp.array([3, 3]))
        Array([ 1, -1], dtype=int32)
    """
    return elementwise.rem_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the greater of x and y, NaN if one is. Complex numbers in lexicographic order.

    Differentiable; where x equals y, each gets half of the derivative.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.max(xnp.array([1.0, 5.0]), xnp.array([3.0, 4.0]))
        Array([3., 5.], dtype=float32)
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.max_p.bind(x, y)[0]  # type: ignore[no-any-return]


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the lesser of x and y, NaN if one is; else as `max`.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.min(xnp.array([1.0, 5.0]), xnp.array([3.0, 4.0]))
        Array([1., 4.], dtype=float32)
    """
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray or x.aval is not y.aval:
        x, y = pair(x, y)
    return elementwise.min_p.bind(x, y)[0]  # type: ignore[no-any-return]


def abs(x: ArrayLike) -> Array:
    """Return |x|, real for a complex x. Signed integers (INT_MIN stays), floats, complex.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x. (The absolute value of complex numbers is
        real.)

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.abs(xnp.array([-1.5, 2.0]))
        Array([1.5, 2. ], dtype=float32)
    """
    return apply(elementwise.abs_p, x)


def sign(x: ArrayLike) -> Array:
    """Return -1, 0 or 1 (-0.0 and NaN for themselves); x / |x| for a complex x.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.sign(xnp.array([-3.0, 0.0]))
        Array([-1.,  0.], dtype=float32)
    """
    return apply(elementwise.sign_p, x)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x^y. x floating or complex; y of the same dtype or of an integer dtype.

    The derivative in x is 0 where y is 0; in y it takes log(0) as 0.

    Args:
        x: a floating or complex array, or a number.
        y: the exponents: of the same dtype, or integers.

    Returns:
        An array of the shape of the operands and of the dtype of x.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.pow(xnp.array([2.0, 3.0]), 2)
        Array([4., 9.], dtype=float32)
    """
    if type(y) is int:
        return elementwise.pow_p.bind(as_array(x), as_array(y))[0]  # type: ignore[no-any-return]
    return elementwise.pow_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return x^y for a Python integer y, by repeated squaring. Numbers; integers for y >= 0.

    Args:
        x: an array or a number.
        y: a Python integer.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.integer_pow(xnp.array([2.0, 3.0]), -1).round(3)
        Array([0.5  , 0.333], dtype=float32)
    """
    return elementwise.integer_pow_p.bind(as_array(x), y=size_of(y))[0]  # type: ignore[no-any-return]


def square(x: ArrayLike) -> Array:
    """Return x^2. Numbers.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.square(xnp.array([-3.0, 2.0]))
        Array([9., 4.], dtype=float32)
    """
    return apply(elementwise.square_p, x)


def reciprocal(x: ArrayLike) -> Array:
    """Return 1 / x. Floats and complex.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reciprocal(xnp.array([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow(x, -1)


def sqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the square root, NaN for negative floats. Floats and complex.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.sqrt(xnp.array([4.0, 9.0]))
        Array([2., 3.], dtype=float32)
    """
    return apply(elementwise.sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 / sqrt(x). Floats and complex.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.rsqrt(xnp.array([4.0, 16.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return apply(elementwise.rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the real cube root, also of negative numbers. Floats.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cbrt(xnp.array([8.0, -27.0])).round(3)
        Array([ 2., -3.], dtype=float32)
    """
    return apply(elementwise.cbrt_p, x, accuracy)


def one_minus_square(x: ArrayLike) -> Array:
    """Return 1 - x^2 as (1 + x)(1 - x), which is accurate near 1 and -1. Numbers.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.one_minus_square(xnp.array([0.5, 1.0]))
        Array([0.75, 0.  ], dtype=float32)
    """
    x = as_array(x)
    if dtypes.is_integer(x.aval.dtype):
        return sub(1, mul(x, x))
    return apply(elementwise.one_minus_square_p, x)


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Return coeffs[0] + coeffs[1] x + coeffs[2] x^2 + ..., by Horner's scheme.

    Args:
      x: where, numbers.
      coeffs: at least one; each of the shape of x or a scalar.
      unroll: None: the scheme is always written out.

    Returns:
        An array of the shape and dtype of x.

    Raises:
      ValueError: when there are no coefficients, or for another `unroll`.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.polynomial(xnp.array([2.0]), (1.0, 0.0, 3.0))
        Array([13.], dtype=float32)
    """
    if not len(coeffs):
        raise ValueError("polynomial: needs at least one coefficient.")
    if unroll is not None:
        raise ValueError(
            f"polynomial: unroll must be None: the scheme is always written out, got {unroll}."
        )
    return elementwise.polynomial_p.bind(*level_ranks(*several(x, *coeffs)))[0]  # type: ignore[no-any-return]


def floor(x: ArrayLike) -> Array:
    """Return the greatest integer <= x. Floats.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.floor(xnp.array([-1.5, 0.5]))
        Array([-2.,  0.], dtype=float32)
    """
    return apply(elementwise.floor_p, x)


def ceil(x: ArrayLike) -> Array:
    """Return the least integer >= x. Floats.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.ceil(xnp.array([-1.5, 0.5]))
        Array([-1.,  1.], dtype=float32)
    """
    return apply(elementwise.ceil_p, x)


def round(
    x: ArrayLike,
    rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO,
) -> Array:
    """Return the nearest integer; halves away from zero, or to even. Floats.

    Args:
        x: an array or a number.
        rounding_method: a `RoundingMethod`: where halves go.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.round(xnp.array([0.5, 1.4]))
        Array([1., 1.], dtype=float32)
    """
    require_choice("round", "rounding_method", rounding_method, tuple(RoundingMethod))
    method = int(RoundingMethod(rounding_method))
    return elementwise.round_p.bind(as_array(x), rounding_method=method)[0]  # type: ignore[no-any-return]


def is_finite(x: ArrayLike) -> Array:
    """Return whether x is neither infinite nor NaN. Floats; boolean result.

    Args:
        x: an array or a number.

    Returns:
        A boolean array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.is_finite(xnp.array([1.0, xnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return apply(elementwise.is_finite_p, x)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the float next to x1 on the way to x2. Floats.

    Args:
        x1: a floating array or a number.
        x2: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.nextafter(xnp.array([1.0]), xnp.array([2.0])) > 1.0
        Array([ True], dtype=bool)
    """
    return elementwise.nextafter_p.bind(*pair(x1, x2))[0]  # type: ignore[no-any-return]


# ------------------------------------------------------------------------ elementwise conversion
# `xnp.lax`: conversions of dtype, parts of complex numbers, constants, identities.
#
# Conversions take `dtype` as users write it: 64-bit dtypes are honoured without a flag; `int`,
# `float` and `complex` stand for the default dtype of their kind.


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the same numbers in another dtype.

    Floats become integers by rounding towards zero, those out of range the nearest integer there
    is, NaN becomes 0; complex numbers lose their imaginary part; integers wrap around.

    Args:
      operand: of any dtype.
      new_dtype: the dtype.

    Returns:
        An array of the shape of the operand and of that dtype.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> convert_element_type(2.7, "int32").aval
      ShapedArray(int32[])
    """
    dtype = _require_dtype(new_dtype, "convert_element_type")
    if type(operand) is int and dtypes.is_integer(dtype):
        operand = np.array(operand & _ALL_BITS, np.uint64).astype(dtype)  # wraps around
    elif type(operand) is int and dtypes.is_inexact(dtype):
        operand = float(operand)  # no integer dtype need hold it
    x = as_array(operand)
    if x.aval.dtype == dtype and not x.aval.weak_type:
        return x
    result: Array = conversion.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)[0]
    return result


_ALL_BITS = (1 << 64) - 1


def _require_dtype(dtype: Any, operation: str) -> Any:
    if dtype is None:
        raise TypeError(f"{operation}: the dtype is missing.")
    return dtypes.requested_dtype(dtype, operation)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the same bits read as another dtype.

    Between dtypes of equal width the shape stays; a wider dtype takes the last dimension, whose
    size must be the ratio of the widths; a narrower one adds such a dimension.

    Args:
        operand: an array.
        new_dtype: another dtype; of another width, dimensions come or go.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: `operand` is not an array.

    Example:
      >>> bitcast_convert_type(1.0, "int32").to_host().item() == 0x3F800000
      True
    """
    dtype = _require_dtype(new_dtype, "bitcast_convert_type")
    result: Array = conversion.bitcast_convert_type_p.bind(as_array(operand), new_dtype=dtype)[0]
    return result


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Return floats rounded to what a format of fewer bits can hold, in the same dtype.

    Args:
      operand: floats.
      exponent_bits: at least 1. Larger magnitudes become infinite, smaller ones zero.
      mantissa_bits: at least 0. Halves round to even.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: `operand` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.reduce_precision(xnp.array([1.001]), 8, 7)
        Array([1.], dtype=float32)
    """
    return conversion.reduce_precision_p.bind(  # type: ignore[no-any-return]
        as_array(operand),
        exponent_bits=size_of(exponent_bits),
        mantissa_bits=size_of(mantissa_bits),
    )[0]


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + iy. float32 or float64.

    Args:
        x: an array of float32 or float64: the real parts.
        y: another of the same dtype: the imaginary parts.

    Returns:
        An array of complex64 or complex128.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.complex(xnp.array([1.0]), xnp.array([2.0]))
        Array([1.+2.j], dtype=complex64)
    """
    return elementwise.complex_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def real(x: ArrayLike) -> Array:
    """Return the real part. Complex.

    Args:
        x: a complex array or number.

    Returns:
        A real array of the shape of x, of half its width.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.real(xnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    return apply(elementwise.real_p, x)


def imag(x: ArrayLike) -> Array:
    """Return the imaginary part. Complex.

    Args:
        x: a complex array or number.

    Returns:
        A real array of the shape of x, of half its width.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.imag(xnp.array([1 + 2j]))
        Array([2.], dtype=float32)
    """
    return apply(elementwise.imag_p, x)


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate, complex also for floats. Complex, float32, float64.

    Args:
        x: an array or a number.

    Returns:
        A complex array of the shape of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.conj(xnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = as_array(x)
    return elementwise.conj_p.bind(x, input_dtype=x.aval.dtype)[0]  # type: ignore[no-any-return]


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array filled with a scalar.

    Args:
      shape: of the result.
      fill_value: a scalar.
      dtype: None for that of `fill_value`, whose weak type stays where no `sharding` is given.
      sharding: where the result shall lie; None leaves it to the default device.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
      >>> full((2, 3), 1.0, "bfloat16").aval
      ShapedArray(bfloat16[2,3])
    """
    value: Any = fill_value
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "full")
        if type(value) in (int, float, bool):
            value = _scalar_of(value, dtype)
        else:
            value = convert_element_type(value, dtype)
    value = as_array(value)
    if value.aval.shape:
        raise TypeError(f"full: fill_value must be a scalar, got {value.aval.str_long()}.")
    if sharding is not None and value.aval.weak_type:
        value = conversion.convert_element_type_p.bind(
            value, new_dtype=value.aval.dtype, weak_type=False
        )[0]
    shape = static_shape(shape, "full")
    if shape:
        value = broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=())[0]
    return place(value, sharding, "full")


def _scalar_of(value: Any, dtype: Any) -> Array:
    if dtypes.is_integer(dtype) and type(value) is float:
        return convert_element_type(value, dtype)
    return scalar_array(value, dtype)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Sequence[int] | None = None,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array filled with a scalar, with shape and dtype of `x` unless given.

    Args:
      x: an array, or a `ShapeDtypeStruct`.
      fill_value: a scalar.
      dtype: None for that of `x`, whose weak type stays.
      shape: None for that of `x`.
      sharding: as in `full`; None, where no other shape is given, for how `x` is cut along
        explicit axes of a mesh.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.
        ValueError: a length of `shape` is negative.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.full_like(xnp.zeros(2), 7)
        Array([7., 7.], dtype=float32)
    """
    aval = x.aval if hasattr(x, "aval") else as_array(x).aval
    result = full(aval.shape if shape is None else shape, fill_value,
                  aval.dtype if dtype is None else dtype, sharding=sharding)  # fmt: skip
    if dtype is None and aval.weak_type and sharding is None:
        result = conversion.convert_element_type_p.bind(
            result, new_dtype=aval.dtype, weak_type=True
        )[0]
    return shard_like(result, x) if shape is None and sharding is None else result


def stop_gradient(x: ArrayLike) -> PyTree:
    """Return x, with a derivative of zero; leaves of a pytree of inexact dtype alone need it.

    Args:
        x: a tree of arrays.

    Returns:
        The same tree.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> stop_gradient({"a": 1.0})["a"].aval
      ShapedArray(~float32[])
    """
    return tree_map(_stop_leaf, x)


def _stop_leaf(leaf: Any) -> Any:
    x = as_array(leaf)
    return conversion.stop_gradient_p.bind(x)[0] if dtypes.is_inexact(x.aval.dtype) else leaf


def stage(x: ArrayLike, /) -> Array:
    """Return a value as an array of the program that is being traced, or as an Array outside.

    Args:
      x: an array or a number.

    Returns:
      An array of its shape and dtype, under a trace a tracer.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> from xprim import Tracer, eval_shape
      >>> traced = []
      >>> shape = eval_shape(lambda: traced.append(stage(1.0)))
      >>> isinstance(traced[0], Tracer), stage(1.0)
      (True, Array(1., dtype=float32, weak_type=True))
    """
    value = as_array(x, what="stage")
    return value if state.trace is EAGER else conversion.copy_p.bind(value)[0]


def optimization_barrier(operand: ArrayLike, /) -> PyTree:
    """Return a pytree of arrays; the compiler moves and merges nothing across this point.

    Args:
        operand: a tree of arrays.

    Returns:
        The same tree.

    Raises:
        TypeError: `operand` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.optimization_barrier(xnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    leaves, treedef = tree_flatten(operand)
    if not leaves:
        return operand
    outs = conversion.optimization_barrier_p.bind(*[as_array(leaf) for leaf in leaves])
    return tree_unflatten(treedef, outs)


# ------------------------------------------------------------------------- elementwise functions
# `xnp.lax`: exponentials, logarithms, circular and hyperbolic functions.
#
# Floats and complex, unless said otherwise. `accuracy` (an `AccuracyMode` or a `Tolerance`) is
# what the compiled function must reach; None leaves the choice to XLA, which errs by a few ulp.


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return e^x.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.exp(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 2.718], dtype=float32)
    """
    return apply(elementwise.exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 2^x.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.exp2(xnp.array([0.0, 3.0])).round(3)
        Array([1., 8.], dtype=float32)
    """
    return apply(elementwise.exp2_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return e^x - 1, accurate near 0.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.expm1(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.718], dtype=float32)
    """
    return apply(elementwise.expm1_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the natural logarithm, -inf at 0, NaN for negative floats.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.log(xnp.array([1.0, 10.0])).round(3)
        Array([0.   , 2.303], dtype=float32)
    """
    return apply(elementwise.log_p, x, accuracy)


def log2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the logarithm to base 2.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.log2(xnp.array([1.0, 8.0])).round(3)
        Array([0., 3.], dtype=float32)
    """
    return apply(elementwise.log2_p, x, accuracy)


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return log(1 + x), accurate near 0.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.log1p(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.693], dtype=float32)
    """
    return apply(elementwise.log1p_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 / (1 + e^-x).

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.logistic(xnp.array([0.0, 2.0])).round(3)
        Array([0.5  , 0.881], dtype=float32)
    """
    return apply(elementwise.logistic_p, x, accuracy)


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the sine of x in radians.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.sin(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.841], dtype=float32)
    """
    return apply(elementwise.sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the cosine of x in radians.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cos(xnp.array([0.0, 1.0])).round(3)
        Array([1.  , 0.54], dtype=float32)
    """
    return apply(elementwise.cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the tangent of x in radians.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.tan(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.557], dtype=float32)
    """
    return apply(elementwise.tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """Return the arc sine, in [-pi/2, pi/2].

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.asin(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.571], dtype=float32)
    """
    return apply(elementwise.asin_p, x)


def acos(x: ArrayLike) -> Array:
    """Return the arc cosine, in [0, pi].

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.acos(xnp.array([0.0, 1.0])).round(3)
        Array([1.571, 0.   ], dtype=float32)
    """
    return apply(elementwise.acos_p, x)


def atan(x: ArrayLike) -> Array:
    """Return the arc tangent, in [-pi/2, pi/2].

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.atan(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.785], dtype=float32)
    """
    return apply(elementwise.atan_p, x)


def sinh(x: ArrayLike) -> Array:
    """Return the hyperbolic sine.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.sinh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 1.175], dtype=float32)
    """
    return apply(elementwise.sinh_p, x)


def cosh(x: ArrayLike) -> Array:
    """Return the hyperbolic cosine.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.cosh(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 1.543], dtype=float32)
    """
    return apply(elementwise.cosh_p, x)


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the hyperbolic tangent.

    Args:
        x: an array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.tanh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.762], dtype=float32)
    """
    return apply(elementwise.tanh_p, x, accuracy)


def asinh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic sine.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.asinh(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.881], dtype=float32)
    """
    return apply(elementwise.asinh_p, x)


def acosh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic cosine, NaN below 1.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.acosh(xnp.array([1.0, 2.0])).round(3)
        Array([0.   , 1.317], dtype=float32)
    """
    return apply(elementwise.acosh_p, x)


def atanh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic tangent, NaN outside [-1, 1].

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.atanh(xnp.array([0.0, 0.5])).round(3)
        Array([0.   , 0.549], dtype=float32)
    """
    return apply(elementwise.atanh_p, x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the angle of the point (y, x), in [-pi, pi]: atan(x / y) in its quadrant. Floats.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.atan2(xnp.array([1.0]), xnp.array([0.0])).round(3)
        Array([1.571], dtype=float32)
    """
    return elementwise.atan2_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------- elementwise logic
# `xnp.lax`: comparisons, operations on bits, choices.
#
# Comparisons give booleans. Semantics: the StableHLO specification, section of the name.


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x == y; NaN equals nothing. Any dtype.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.eq(xnp.array([1, 2, 3]), 2)
        Array([False,  True, False], dtype=bool)
    """
    return elementwise.eq_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x != y; NaN differs from all. Any dtype.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.ne(xnp.array([1, 2, 3]), 2)
        Array([ True, False,  True], dtype=bool)
    """
    return elementwise.ne_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x < y; false for NaN. Real numbers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.lt(xnp.array([1, 2, 3]), 2)
        Array([ True, False, False], dtype=bool)
    """
    return elementwise.lt_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x <= y; false for NaN. Real numbers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.le(xnp.array([1, 2, 3]), 2)
        Array([ True,  True, False], dtype=bool)
    """
    return elementwise.le_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x > y; false for NaN. Real numbers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.gt(xnp.array([1, 2, 3]), 2)
        Array([False, False,  True], dtype=bool)
    """
    return elementwise.gt_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x >= y; false for NaN. Real numbers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        A boolean array of the shape of the operands.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.ge(xnp.array([1, 2, 3]), 2)
        Array([False,  True,  True], dtype=bool)
    """
    return elementwise.ge_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in both. Integers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bitwise_and(xnp.array([12, 10]), xnp.array([6, 6]))
        Array([4, 2], dtype=int32)
    """
    return elementwise.and_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in one or both. Integers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bitwise_or(xnp.array([12, 10]), xnp.array([6, 6]))
        Array([14, 14], dtype=int32)
    """
    return elementwise.or_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the bits set in one only. Integers and booleans.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bitwise_xor(xnp.array([12, 10]), xnp.array([6, 6]))
        Array([10, 12], dtype=int32)
    """
    return elementwise.xor_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x 2^y; 0 for y outside [0, width). Integers.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.shift_left(xnp.array([1, 3]), xnp.array([2, 2]))
        Array([ 4, 12], dtype=int32)
    """
    return elementwise.shift_left_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x shifted down by y bits, its sign bit repeated. Integers.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.shift_right_arithmetic(xnp.array([8, -8]), xnp.array([2, 2]))
        Array([ 2, -2], dtype=int32)
    """
    return elementwise.shift_right_arithmetic_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x shifted down by y bits, zeros coming in. Integers.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.shift_right_logical(xnp.array([8, 9]), xnp.array([2, 2]))
        Array([2, 2], dtype=int32)
    """
    return elementwise.shift_right_logical_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the upper half of the bits of the exact product. Integers.

    Args:
        x: an array or a number.
        y: another of the same dtype; of the same shape, or a scalar.

    Returns:
        An array of the shape of the operands and of their dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.mulhi(xnp.array([2**20, 3]), xnp.array([2**20, 3]))
        Array([256,   0], dtype=int32)
    """
    return elementwise.mulhi_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def bitwise_not(x: ArrayLike) -> Array:
    """Return all bits inverted. Integers and booleans.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bitwise_not(xnp.array([0, 5]))
        Array([-1, -6], dtype=int32)
    """
    return apply(elementwise.not_p, x)


def population_count(x: ArrayLike) -> Array:
    """Return how many bits are set. Integers.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.population_count(xnp.array([7, 8]))
        Array([3, 1], dtype=int32)
    """
    return apply(elementwise.population_count_p, x)


def clz(x: ArrayLike) -> Array:
    """Return how many zero bits lead the highest set bit. Integers.

    Args:
        x: an array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.clz(xnp.array([1, 8]))
        Array([31, 28], dtype=int32)
    """
    return apply(elementwise.clz_p, x)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Return elements of `cases[which]`.

    Args:
      which: booleans (for two cases) or int32 indices; of the shape of the cases, or a scalar. An
        index out of range is clamped.
      cases: arrays of one dtype and shape, or scalars.

    Returns:
        An array of the shape and dtype of the cases.

    Example:
      >>> float(select_n(True, 1.0, 2.0).to_host())
      2.0
    """
    return conversion.select_n_p.bind(as_array(which), *several(*cases))[0]  # type: ignore[no-any-return]


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return `on_true` where `pred` holds and `on_false` elsewhere. See `select_n`.

    Args:
        pred: booleans, of the shape of the other operands or a scalar.
        on_true: an array.
        on_false: another of the same shape and dtype.

    Returns:
        An array of that shape and dtype.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.select(xnp.array([True, False]), xnp.array([1, 2]), xnp.array([3, 4]))
        Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:  # noqa: A002 - JAX's names
    """Return x limited to [min, max]; NaN stays. The bounds may be scalars.

    The derivative is 0 where x equals a bound. Complex numbers are ordered by real, then imaginary
    part: the result is `min(max(low, x), high)`.

    Args:
        min: the lower bound: of the shape and dtype of x, or a scalar.
        x: an array.
        max: the upper bound.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.clamp(0.0, xnp.array([-1.0, 0.5, 2.0]), 1.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    low, x, high = several(min, x, max)
    if not x.aval.ndim or dtypes.is_complex(x.aval.dtype):
        conversion.agreeing(low.aval, x.aval, high.aval)
    if dtypes.is_complex(x.aval.dtype):
        return _clamp_complex(low, x, high)
    return conversion.clamp_p.bind(low, x, high)[0]  # type: ignore[no-any-return]


def _clamp_complex(low: Array, x: Array, high: Array) -> Array:
    low, high = [
        bound if bound.aval.ndim else repeat_scalar(bound, x.aval.shape) for bound in (low, high)
    ]
    return elementwise.min_p.bind(elementwise.max_p.bind(low, x)[0], high)[0]  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------- special
# `xnp.lax`: special functions. Operands are floats of one dtype.
#
# They are right to a few ulp of float32, and to about 1e-13 of float64, evaluated and compiled
# alike; at poles and at the ends of their domains they have the limits that SciPy has.


def erf(x: ArrayLike) -> Array:
    """Return the error function, 2/sqrt(pi) int_0^x exp(-t^2) dt.

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.erf(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.843], dtype=float32)
    """
    return apply(erf_p, x)


def erfc(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 - erf(x), accurate for large x.

    There is one algorithm for it, so that an `accuracy` is checked but chooses nothing.

    Args:
        x: a floating array or a number.
        accuracy: an `AccuracyMode` or `Tolerance` for compiled programs; None for the
            compiler's choice.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.erfc(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 0.157], dtype=float32)
    """
    if not isinstance(accuracy, Accuracy):
        raise TypeError(message(
            "erfc", f"{accuracy!r} is not an accuracy.",
            expected="None, an AccuracyMode or a Tolerance",
        ))  # fmt: skip
    return apply(erfc_p, x)


def erf_inv(x: ArrayLike) -> Array:
    """Return y with erf(y) = x; infinite at -1 and 1, NaN outside.

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.erf_inv(xnp.array([0.0, 0.5])).round(3)
        Array([0.   , 0.477], dtype=float32)
    """
    return apply(erf_inv_p, x)


def lgamma(x: ArrayLike) -> Array:
    """Return log |Gamma(x)|; infinite at 0, -1, -2, ...

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.lgamma(xnp.array([1.0, 5.0])).round(3)
        Array([0.   , 3.178], dtype=float32)
    """
    return apply(special_gamma.lgamma_p, x)


def digamma(x: ArrayLike) -> Array:
    """Return the derivative of lgamma; NaN at 0, -1, -2, ...

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.digamma(xnp.array([1.0, 2.0])).round(3)
        Array([-0.577,  0.423], dtype=float32)
    """
    return apply(special_gamma.digamma_p, x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Return the m-th derivative of digamma, for a whole number m given as a float.

    Differentiable in x.

    Args:
        m: whole numbers, not negative, as a floating array.
        x: an array of the same shape and dtype.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.polygamma(xnp.array([1.0]), xnp.array([1.0])).round(3)
        Array([1.645], dtype=float32)
    """
    return special_gamma.polygamma_p.bind(*pair(m, x))[0]  # type: ignore[no-any-return]


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Return the Hurwitz zeta function, sum_{k >= 0} (q + k)^-x for x > 1. Differentiable in q.

    Args:
        x: a floating array, the exponent.
        q: an array of the same shape and dtype, where the sum begins.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.zeta(xnp.array([2.0]), xnp.array([1.0])).round(3)
        Array([1.645], dtype=float32)
    """
    return special_gamma.zeta_p.bind(*pair(x, q))[0]  # type: ignore[no-any-return]


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x), for a > 0 and x >= 0.

    Args:
        a: a positive floating array: the shape of the distribution.
        x: an array of the same shape and dtype, not negative.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.igamma(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)
        Array([0.632, 0.264], dtype=float32)
    """
    return special_gamma.igamma_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Args:
        a: a positive floating array: the shape of the distribution.
        x: an array of the same shape and dtype, not negative.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.igammac(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)
        Array([0.368, 0.736], dtype=float32)
    """
    return special_gamma.igammac_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of `igamma(a, x)` with respect to a.

    Args:
        a: a positive floating array: the shape of the distribution.
        x: an array of the same shape and dtype, not negative.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.igamma_grad_a(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)
        Array([-0.432, -0.276], dtype=float32)
    """
    return special_gamma.igamma_grad_a_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Return dx/da of a sample x of the gamma distribution of shape a, its quantile held fixed.

    Args:
        a: a positive floating array: the shape of the distribution.
        x: an array of the same shape and dtype, not negative.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.random_gamma_grad(xnp.array([1.0, 2.0]), xnp.array([1.0, 1.0])).round(3)
        Array([1.174, 0.751], dtype=float32)
    """
    return special_gamma.random_gamma_grad_p.bind(*pair(a, x))[0]  # type: ignore[no-any-return]


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the regularized incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.

    Differentiable in x.

    Args:
        a: a positive floating array.
        b: another of the same shape and dtype.
        x: another, between 0 and 1.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.betainc(xnp.array([1.0]), xnp.array([2.0]), xnp.array([0.5])).round(3)
        Array([0.75], dtype=float32)
    """
    operands = level_ranks(*several(a, b, x))
    return special_gamma.regularized_incomplete_beta_p.bind(*operands)[0]  # type: ignore[no-any-return]


def bessel_i0e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I0(x), the modified Bessel function of order 0, scaled.

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bessel_i0e(xnp.array([0.0, 1.0])).round(3)
        Array([1.   , 0.466], dtype=float32)
    """
    return apply(bessel_i0e_p, x)


def bessel_i1e(x: ArrayLike) -> Array:
    """Return exp(-|x|) I1(x), the modified Bessel function of order 1, scaled.

    Args:
        x: a floating array or a number.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import lax
        >>> lax.bessel_i1e(xnp.array([0.0, 1.0])).round(3)
        Array([0.   , 0.208], dtype=float32)
    """
    return apply(bessel_i1e_p, x)


boundaries(globals(), written=True)
