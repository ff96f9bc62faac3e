"""Operations on the bits of integers: and, or, xor, not, shifts, counts; gcd and lcm.

Booleans are integers of one bit for `bitwise_and`, `bitwise_or`, `bitwise_xor` and `invert`.
Neighbours: `ufuncs` has the makers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.docstrings import complete
from xnp.docstrings.array_functions import BITS
from xnp.numpy.promoting import bind, broadcast, cast, converted, promoted
from xnp.numpy.ufuncs import binary_function, unary_function
from xprim import dtypes

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

complete(globals(), BITS)
