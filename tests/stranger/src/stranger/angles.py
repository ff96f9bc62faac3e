"""Arrays of angles, a dtype of one's own: 16 bits that count 65536ths of a turn.

Angles are moved about by every array function and go through every transformation; arithmetic on
them is refused, for the sum of two numbers of turns is none. `opposite` is an operation of their
own, a primitive that says what it does to the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import (
    ELEMENTWISE,
    ZERO,
    Array,
    Primitive,
    ShapedArray,
    as_array,
    dtypes,
    get_primitive,
    scalar_array,
    undefined,
)
from xprim.extended import unwrap, wrap

__all__ = ["ANGLE", "angles", "opposite", "opposite_p", "turns"]


class Angle(dtypes.ExtendedDType):
    """The dtype of angles."""

    __slots__ = ()
    name = "angle<16>"
    base = dtypes.uint16
    elements = "angles"
    hint = "stranger.angles.turns(x) gives numbers"

    def __reduce__(self) -> str:
        return "ANGLE"


ANGLE = Angle()


def angles(parts: Any) -> Array:
    """Return the angles of so many 65536ths of a turn, given as uint16."""
    return wrap(as_array(parts, what="angles"), ANGLE)


def turns(x: Array) -> Array:
    """Return the 65536ths of a turn that angles are, as uint16."""
    return unwrap(x)


def opposite(x: Array) -> Array:
    """Return each angle half a turn further."""
    (y,) = opposite_p.bind(x)
    return y


def _shape(x: ShapedArray) -> tuple[ShapedArray, ...]:
    if x.dtype is not ANGLE:
        raise TypeError(f"opposite: takes angles, got {x.str_long()}.")
    return (x,)


def _physical(_trailing: int, x: Any) -> Any:
    half = scalar_array(1 << 15, np.dtype(np.uint16))
    return get_primitive("xor").bind(x, half)


_ON_NUMBERS = undefined("it is an operation on angles, of which the physical rule speaks")

opposite_p = Primitive(
    "opposite",
    shape=_shape,
    numpy=_ON_NUMBERS,
    stablehlo=_ON_NUMBERS,
    jvp=ZERO,
    transpose=_ON_NUMBERS,
    batch=ELEMENTWISE,
    physical=_physical,
)
