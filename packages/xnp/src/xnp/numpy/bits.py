"""Operations on the bits of integers: and, or, xor, not, shifts, counts; powers of two.

Booleans are integers of one bit for `bitwise_and`, `bitwise_or`, `bitwise_xor` and `invert`.
Neighbours: `ufuncs` has the makers; `elementary` has `ldexp` and `frexp`, made of what is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_functions import BITS
from xnp.numpy.promoting import (
    bind,
    broadcast,
    cast,
    converted,
    promoted,
    scalar_like,
    selected,
)
from xnp.numpy.ufuncs import binary_function, unary_function
from xprim import Array, ConcreteArray, dtypes, shaped_array

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "invert", "left_shift", "right_shift",
]  # fmt: skip

__dir__ = __all__.copy


def _integers(name: str, *operands: Any) -> Any:
    arrays = promoted(name, *operands)
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


def _left_shift(x: Any, y: Any) -> Any:
    return bind("shift_left", *_numbers_of_bits("left_shift", x, y))


def _right_shift(x: Any, y: Any) -> Any:
    x, y = _numbers_of_bits("right_shift", x, y)
    signed = dtypes.is_signed_integer(x.aval.dtype)
    return bind("shift_right_arithmetic" if signed else "shift_right_logical", x, y)


def _bitwise_count(x: Any) -> Any:
    (x,) = _integers("bitwise_count", x)
    if dtypes.is_bool(x.aval.dtype):
        return converted(x, dtypes.uint8)
    if dtypes.is_signed_integer(x.aval.dtype):
        x = bind("abs", x)
    return bind("convert_element_type", bind("population_count", x), new_dtype=dtypes.uint8,
                weak_type=False)  # fmt: skip


def _bitwise(name: str, primitive: str) -> Callable[[Any, Any], Any]:
    def written(x: Any, y: Any) -> Any:
        return bind(primitive, *_integers(name, x, y))

    return written


bitwise_and = binary_function(
    "bitwise_and", _bitwise("bitwise_and", "and"), "Return the bits that x and y both have."
)
bitwise_or = binary_function(
    "bitwise_or", _bitwise("bitwise_or", "or"), "Return the bits that x or y has."
)
bitwise_xor = binary_function(
    "bitwise_xor", _bitwise("bitwise_xor", "xor"), "Return the bits that one of x and y has."
)
invert = unary_function(
    "invert", lambda x: bind("not", *_integers("invert", x)), "Return x with all bits turned."
)
bitwise_not = bitwise_invert = invert
left_shift = binary_function("left_shift", _left_shift, "Return x 2^y, without the bits above.")
right_shift = binary_function(
    "right_shift", _right_shift, "Return x / 2^y rounded down; the sign stays."
)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
bitwise_count = unary_function(
    "bitwise_count", _bitwise_count, "Return the number of bits set in |x|, as uint8."
)


# --- powers of two in floats: for `ldexp` and `frexp` ---------------------------------------------


OF_C = frozenset([dtypes.float32, dtypes.float64])  # of which NumPy has C's functions
EXPONENT_BITS = {
    dtypes.bfloat16: dtypes.int16, dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64
}  # fmt: skip


def scaled_by_power(x: Any, n: Any) -> Array:
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
        step = selected(down, scalar_like(n, low + info.nmant + 1), scalar_like(n, 0))
        step = selected(up, scalar_like(n, high), step)
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


complete(globals(), BITS)
