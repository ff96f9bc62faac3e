"""Operations on bits: and, or, xor, not, shifts, population_count, clz, mulhi.

Semantics: StableHLO specification, sections of these names. A shift by the width of the dtype or
more gives 0, or all sign bits for the arithmetic one; shift counts are read as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.narrow_dtypes import BYTES, same_dtype
from xnp.primitives.table import BITS, INTEGER, binary, retyped_stablehlo, unary
from xprim import ZERO, dtypes
from xprim.contracts import Builder

__all__ = ()

and_p = binary(
    "and", BITS, numpy=same_dtype(np.bitwise_and), stablehlo="stablehlo.and", jvp=ZERO,
    ufunc=np.bitwise_and, cost=costs.arithmetic,
)  # fmt: skip
or_p = binary(
    "or", BITS, numpy=same_dtype(np.bitwise_or), stablehlo="stablehlo.or", jvp=ZERO,
    ufunc=np.bitwise_or, cost=costs.arithmetic,
)  # fmt: skip
xor_p = binary(
    "xor", BITS, numpy=same_dtype(np.bitwise_xor), stablehlo="stablehlo.xor", jvp=ZERO,
    ufunc=np.bitwise_xor, cost=costs.arithmetic,
)  # fmt: skip
not_p = unary(
    "not",
    BITS,
    numpy=same_dtype(np.invert),
    stablehlo="stablehlo.not",
    jvp=ZERO,
    ufunc=np.invert,
    cost=costs.arithmetic,
)


# --- shifts -------------------------------------------------------------------------------------


def _unsigned(x: Any) -> Any:
    """Return the bits of integers of 8 bits or more as unsigned integers."""
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


def _shift(function: Callable[[Any, Any, Any, int], Any]) -> Callable[[Any, Any], Any]:
    """Return a NumPy rule; `function` gets values, counts below the width, overflow mask, width.

    The mask is None where nothing is over.
    """

    def rule(x: Any, y: Any) -> Any:
        width = dtypes.itemsize_bits(x.dtype)
        dtype, wide = x.dtype, BYTES.get(x.dtype)
        if wide is not None:
            x, y = x.astype(wide), y.astype(wide)
        count = _unsigned(y)
        over = count >= width  # a negative count reads as a large one
        if not over.any():
            over = None
        else:
            count = np.where(over, np.zeros((), count.dtype), count)
        shifted = function(x, count, over, width)
        return shifted.astype(dtype) if wide is not None else shifted.view(dtype)

    return rule


def _left(x: Any, count: Any, over: Any, width: int) -> Any:
    bits = _unsigned(x)
    return _zero_where(over, np.left_shift(bits, count))


def _right_arithmetic(x: Any, count: Any, over: Any, width: int) -> Any:
    shifted = np.right_shift(x, count.astype(x.dtype))
    if x.dtype.kind == "i":
        return (
            shifted
            if over is None
            else np.where(
                over, np.where(x < 0, -np.ones((), x.dtype), np.zeros((), x.dtype)), shifted
            )
        )
    # unsigned: the top bit is the sign that is repeated
    signed = x.view(f"i{x.dtype.itemsize}") if width == 8 * x.dtype.itemsize else (
        (x.astype(np.int8) << (8 - width)) >> (8 - width))  # fmt: skip
    most = count.astype(signed.dtype)
    if over is not None:
        most = np.where(over, np.asarray(width - 1, signed.dtype), most)
    return np.right_shift(signed, most)


def _right_logical(x: Any, count: Any, over: Any, width: int) -> Any:
    bits = _unsigned(x)
    if width < 8:  # widened with its sign, which is no bit of it
        bits = bits & np.uint8((1 << width) - 1)
    return _zero_where(over, np.right_shift(bits, count))


def _zero_where(over: Any, shifted: Any) -> Any:
    return shifted if over is None else np.where(over, np.zeros((), shifted.dtype), shifted)


shift_left_p = binary(
    "shift_left", INTEGER, numpy=_shift(_left), stablehlo="stablehlo.shift_left", jvp=ZERO,
)  # fmt: skip
shift_right_arithmetic_p = binary(
    "shift_right_arithmetic", INTEGER, numpy=_shift(_right_arithmetic),
    stablehlo="stablehlo.shift_right_arithmetic", jvp=ZERO,
)  # fmt: skip
shift_right_logical_p = binary(
    "shift_right_logical", INTEGER, numpy=_shift(_right_logical),
    stablehlo="stablehlo.shift_right_logical", jvp=ZERO,
)  # fmt: skip


# --- counts -------------------------------------------------------------------------------------


def _own_bits(x: Any) -> tuple[Any, int]:
    """Return the bits as unsigned integers of 8 bits or more, and how many of them count."""
    width = dtypes.itemsize_bits(x.dtype)
    wide = BYTES.get(x.dtype)
    if wide is None:
        return _unsigned(x), width
    return _unsigned(x.astype(wide)) & np.uint8((1 << width) - 1), width


def _population_count_numpy(x: Any) -> Any:
    return np.bitwise_count(_own_bits(x)[0]).astype(x.dtype)


def _clz_numpy(x: Any) -> Any:
    bits, width = _own_bits(x)
    # smear the highest set bit downwards; the zeros above it are what is left to count
    shift = 1
    while shift < width:
        bits = bits | (bits >> np.asarray(shift, bits.dtype))
        shift *= 2
    return (np.uint8(width) - np.bitwise_count(bits)).astype(x.dtype)


def _population_count_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    wide = BYTES.get(aval.dtype)
    if wide is None:
        return [b.same_type_op("stablehlo.popcnt", [x], aval)]
    wide_aval = aval.update(dtype=wide)  # XLA counts the copies of the sign bit, too
    mask = b.constant((1 << dtypes.itemsize_bits(aval.dtype)) - 1, wide_aval)
    bits = b.same_type_op("stablehlo.and", [b.convert(x, aval, wide), mask], wide_aval)
    return [b.convert(b.same_type_op("stablehlo.popcnt", [bits], wide_aval), wide_aval, aval.dtype)]


population_count_p = unary(
    "population_count", INTEGER, numpy=_population_count_numpy,
    stablehlo=_population_count_stablehlo, jvp=ZERO,
)  # fmt: skip
clz_p = unary(
    "clz", INTEGER, numpy=_clz_numpy, stablehlo="stablehlo.count_leading_zeros", jvp=ZERO,
)  # fmt: skip


# --- mulhi --------------------------------------------------------------------------------------


def _mulhi_numpy(x: Any, y: Any) -> Any:
    """Return the upper half of the bits of the exact product."""
    width = dtypes.itemsize_bits(x.dtype)
    if width < 64:
        wide = np.int64 if x.dtype in dtypes.SIGNED else np.uint64
        product = x.astype(wide) * y.astype(wide)
        return (product >> wide(width)).astype(x.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    u, v = x.astype(np.uint64), y.astype(np.uint64)
    u0, u1, v0, v1 = u & low, u >> half, v & low, v >> half
    middle = u1 * v0 + ((u0 * v0) >> half)
    other = u0 * v1 + (middle & low)
    high = u1 * v1 + (middle >> half) + (other >> half)
    if x.dtype.kind == "i":  # of two's complement: take away what the signs added
        zero = np.uint64(0)
        high = high - np.where(x < 0, v, zero) - np.where(y < 0, u, zero)
    return high.astype(x.dtype)


_plain_mulhi = retyped_stablehlo("chlo.mulhi")


def _mulhi_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    wide = BYTES.get(out.dtype)
    if wide is None:
        return _plain_mulhi(b, operands, avals_in, avals_out)
    aval = out.update(dtype=wide)  # 8 bits hold the whole product of 4
    factors = [b.broadcast(b.convert(x, a, wide), a.update(dtype=wide), out.shape)
               for x, a in zip(operands, avals_in, strict=True)]  # fmt: skip
    product = b.same_type_op("stablehlo.multiply", factors, aval)
    shift = "arithmetic" if out.dtype in dtypes.SIGNED else "logical"
    width = b.constant(dtypes.itemsize_bits(out.dtype), aval)
    high = b.same_type_op(f"stablehlo.shift_right_{shift}", [product, width], aval)
    return [b.convert(high, aval, out.dtype)]


mulhi_p = binary(
    "mulhi", INTEGER, numpy=_mulhi_numpy, stablehlo=_mulhi_stablehlo, jvp=ZERO,
)  # fmt: skip
