"""The Threefry 2x32 hash: on the host, as a primitive, and as a function of counters."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import xprim
from xnp import lax
from xprim import ELEMENTWISE, ZERO, Array, Primitive, ShapedArray, as_array, dtypes, undefined
from xprim.contracts import Builder, outline
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["threefry2x32_p", "threefry_2x32"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------------------- hashing
# The Threefry 2x32 hash on the host: words in, words out.
#
# Threefry encrypts a pair of 32-bit words, the counter, under a pair of 32-bit words, the key:
# twenty rounds of add, rotate and exclusive-or, with the key added again after every fourth.
#
# A few blocks are hashed in two Python integers, one for each word of the counter, every block in
# a 64-bit lane of its own: one big addition then is an addition in all lanes, and twenty rounds
# cost the same few microseconds for one block as for eight. Many blocks are hashed by NumPy, in
# pieces that stay in the cache.
#
# Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Words = np.ndarray[Any, Any]  # of dtype uint32

# Section 4.2 and table 2 of the paper: rotation distances of 2x32, and the key-schedule parity.
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY: Final = 0x1BD11BDA

# Measured: below this many blocks the big integers win, above it NumPy does.
MAX_LANES: Final = 192
# 64 kB for each of the three arrays that a piece needs.
_PIECE: Final = 16384

_SHIFTS: Final = tuple([tuple([(r, 32 - r) for r in group]) for group in ROTATIONS])


def hash_words(k0: Words, k1: Words, x0: Words, x1: Words) -> tuple[Words, Words]:
    """Return the two words of the hash of counters `(x0, x1)` under keys `(k0, k1)`.

    Args:
      k0: the first words of the keys, uint32; all four are of shapes that broadcast.
      k1: the second words of the keys.
      x0: the first words of the counters.
      x1: the second words of the counters.
    """
    shape = np.broadcast_shapes(k0.shape, k1.shape, x0.shape, x1.shape)
    size = math.prod(shape)
    if 0 < size <= MAX_LANES:
        a, b, c, d = [_pack(w, shape, size) for w in (k0, k1, x0, x1)]
        low, high = hash_lanes(a, b, c, d, lanes_of_ones(size))
        return _unpack(low, shape, size), _unpack(high, shape, size)
    k0, k1 = [w if w.ndim == 0 else np.broadcast_to(w, shape).reshape(-1) for w in (k0, k1)]
    # in C order, so that the flat views below are views
    y0, y1 = [np.array(np.broadcast_to(x, shape), order="C") for x in (x0, x1)]
    _hash_in_pieces(k0, k1, y0.reshape(-1), y1.reshape(-1))
    return y0, y1


def hash_range_joined(k0: int, k1: int, size: int) -> Words:
    """Return `low ^ high` of the hashes of `hash_range`: uint32 of shape (size,)."""
    if 0 < size <= MAX_LANES:
        joined_lanes = hash_range_lanes(k0, k1, size)
        return np.frombuffer(joined_lanes.to_bytes(8 * size, "little"), "<u4")[::2].copy()
    words = hash_range(k0, k1, size)
    joined: Words = words[:, 0] ^ words[:, 1]
    return joined


def hash_range_lanes(k0: int, k1: int, size: int) -> int:
    """Return what `hash_range_joined` does, in lanes of 64 bits, for at most `MAX_LANES`."""
    low, high = _range_lanes(k0, k1, size)
    return low ^ high


def _range_lanes(k0: int, k1: int, size: int) -> tuple[int, int]:
    ones = lanes_of_ones(size)
    return hash_lanes(k0 * ones, k1 * ones, 0, _counting_lanes(size), ones)


def hash_range(k0: int, k1: int, size: int) -> Words:
    """Return the hashes of the 64-bit counters 0, 1, ..., size - 1 under one key.

    Returns:
      uint32 of shape (size, 2): the two words of each hash.
    """
    if 0 < size <= MAX_LANES:
        low, high = _range_lanes(k0, k1, size)
        words = np.frombuffer((low | high << 32).to_bytes(8 * size, "little"), "<u4")
        return words.reshape(size, 2)
    counters = np.arange(size, dtype=np.uint64)
    y0 = (counters >> np.uint64(32)).astype(np.uint32)
    y1 = counters.astype(np.uint32)
    _hash_in_pieces(np.array(k0, np.uint32), np.array(k1, np.uint32), y0, y1)
    return np.stack([y0, y1], axis=1)


def hash_lanes(k0: int, k1: int, x0: int, x1: int, ones: int) -> tuple[int, int]:
    """Hash blocks that are packed into integers, in lanes of 64 bits.

    Args:
      k0: the first words of the keys, one in each lane.
      k1: the second words of the keys.
      x0: the first words of the counters.
      x1: the second words of the counters.
      ones: the integer with a 1 in each lane.
    """
    mask = ones * 0xFFFFFFFF
    k2 = k0 ^ k1 ^ PARITY * ones
    # x0 outgrows its 32 bits: a lane has room for all the sums, and what leaves x1 is masked.
    # The rounds are written out because a loop over them takes a quarter longer.
    x0 += k0
    x1 = (x1 + k1) & mask
    x0 += x1
    x1 = ((x1 << 13 | x1 >> 19) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 15 | x1 >> 17) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 26 | x1 >> 6) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 6 | x1 >> 26) ^ x0) & mask
    x0 += k1
    x1 = (x1 + k2 + ones) & mask
    x0 += x1
    x1 = ((x1 << 17 | x1 >> 15) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 29 | x1 >> 3) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 16 | x1 >> 16) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 24 | x1 >> 8) ^ x0) & mask
    x0 += k2
    x1 = (x1 + k0 + 2 * ones) & mask
    x0 += x1
    x1 = ((x1 << 13 | x1 >> 19) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 15 | x1 >> 17) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 26 | x1 >> 6) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 6 | x1 >> 26) ^ x0) & mask
    x0 += k0
    x1 = (x1 + k1 + 3 * ones) & mask
    x0 += x1
    x1 = ((x1 << 17 | x1 >> 15) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 29 | x1 >> 3) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 16 | x1 >> 16) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 24 | x1 >> 8) ^ x0) & mask
    x0 += k1
    x1 = (x1 + k2 + 4 * ones) & mask
    x0 += x1
    x1 = ((x1 << 13 | x1 >> 19) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 15 | x1 >> 17) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 26 | x1 >> 6) ^ x0) & mask
    x0 += x1
    x1 = ((x1 << 6 | x1 >> 26) ^ x0) & mask
    x0 += k2
    x1 = (x1 + k0 + 5 * ones) & mask
    return x0 & mask, x1


@functools.lru_cache(maxsize=MAX_LANES)
def lanes_of_ones(count: int) -> int:
    """Return the integer with a 1 in each of `count` lanes."""
    return int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little")


@functools.lru_cache(maxsize=MAX_LANES)
def _counting_lanes(count: int) -> int:
    """Return the integer whose lanes hold 0, 1, 2, ..."""
    return int.from_bytes(np.arange(count, dtype="<u8").tobytes(), "little")


def _pack(words: Words, shape: tuple[int, ...], size: int) -> int:
    if words.ndim == 0:
        return int(words) * lanes_of_ones(size)
    return int.from_bytes(np.broadcast_to(words, shape).astype("<u8").tobytes(), "little")


def _unpack(lanes: int, shape: tuple[int, ...], size: int) -> Words:
    words = np.frombuffer(lanes.to_bytes(8 * size, "little"), "<u8")
    return words.astype(np.uint32).reshape(shape)


def _hash_in_pieces(k0: Words, k1: Words, x0: Words, x1: Words) -> None:
    """Replace the counters in flat arrays by their hashes; keys are flat or of rank 0."""
    scratch = np.empty(min(_PIECE, x0.size), np.uint32)
    for start in range(0, x0.size, _PIECE):
        piece = slice(start, start + _PIECE)
        _hash_piece(
            k0 if k0.ndim == 0 else k0[piece],
            k1 if k1.ndim == 0 else k1[piece],
            x0[piece],
            x1[piece],
            scratch[: x0[piece].size],
        )


def _hash_piece(k0: Words, k1: Words, x0: Words, x1: Words, scratch: Words) -> None:
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0 += keys[0]
    x1 += keys[1]
    for i in range(5):
        for left, right in _SHIFTS[i & 1]:
            np.add(x0, x1, out=x0)
            np.right_shift(x1, right, out=scratch)
            np.left_shift(x1, left, out=x1)
            np.bitwise_or(x1, scratch, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        x0 += keys[(i + 1) % 3]
        x1 += keys[(i + 2) % 3]
        x1 += np.uint32(i + 1)


# -------------------------------------------------------------------------------------- threefry
# The primitive `threefry2x32`: the Threefry 2x32 hash of pairs of words, element by element.
#
#     y0, y1 = threefry2x32(k0, k1, x0, x1)        all uint32; operands of rank 0 are repeated
#
# Keys and counters are operands alike, so it maps over either. Integers have no derivative.
# Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.


def _shape(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.dtype != dtypes.uint32 or (aval.shape and shape and aval.shape != shape):
            raise TypeError(message(
                "threefry2x32", "the words of keys and counters must be uint32 of one shape.",
                got=", ".join(a.str_long() for a in avals),
                expected="uint32 arrays of equal shapes, or of rank 0",
            ))  # fmt: skip
        shape = shape or aval.shape
    out = xprim.shaped_array(shape, dtypes.uint32)
    return out, out


def _numpy(k0: Any, k1: Any, x0: Any, x1: Any) -> Any:
    return hash_words(k0, k1, x0, x1)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    def body(inner: Builder, names: Any) -> Any:
        return _rounds(inner, names, avals_in, avals_out)

    return outline(b, body, operands, avals_in, avals_out, "threefry2x32", "threefry2x32")


def _rounds(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    """Write the rounds out: about 120 operations, which fuse into one loop."""
    out = avals_out[0]

    def both(op: str, x: str, y: str) -> str:
        return b.same_type_op(f"stablehlo.{op}", [x, y], out)

    def constant(value: int) -> str:
        return b.constant(np.uint32(value), out)

    k0, k1, x0, x1 = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
    keys = (k0, k1, both("xor", both("xor", k0, k1), constant(PARITY)))
    x0, x1 = both("add", x0, keys[0]), both("add", x1, keys[1])
    for i in range(5):
        for r in ROTATIONS[i & 1]:
            x0 = both("add", x0, x1)
            high = both("shift_left", x1, constant(r))
            low = both("shift_right_logical", x1, constant(32 - r))
            x1 = both("xor", both("or", high, low), x0)
        x0 = both("add", x0, keys[(i + 1) % 3])
        x1 = both("add", both("add", x1, keys[(i + 2) % 3]), constant(i + 1))
    return [x0, x1]


def _cost(avals_in: Any, avals_out: Any) -> float:
    """Say what the twenty rounds save where a compiler joins them: 70 ns for each number."""
    return 64.0 * float(avals_out[0].size)


threefry2x32_p = Primitive(
    "threefry2x32",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("the hash is not linear"),
    batch=ELEMENTWISE,
    eager=_cost,
)


# --------------------------------------------------------------------------------- threefry hash
# `threefry_2x32`: the Threefry hash of an array of counters under one key.


@boundary
def threefry_2x32(keypair: Sequence[ArrayLike], count: ArrayLike) -> Array:
    """Return the hash of counters, of which the first half and the second make the pairs.

    Args:
      keypair: the two words of a key, uint32.
      count: counters, uint32 of any shape; an odd number of them is filled up with a zero.

    Returns:
      A uint32 array of the shape of `count`.

    Raises:
      TypeError: an operand is not uint32.

    Example:
      >>> import numpy as np
      >>> threefry_2x32((np.uint32(0), np.uint32(0)), np.uint32([0, 0])).tolist()
      [1797259609, 2579123966]
    """
    k0, k1, counters = [as_array(x, what="threefry_2x32") for x in (*keypair, count)]
    if {x.dtype for x in (k0, k1, counters)} != {dtypes.uint32}:
        raise TypeError(message(
            "threefry_2x32", "keys and counters are uint32.",
            got=", ".join(x.aval.str_long() for x in (k0, k1, counters)),
        ))  # fmt: skip
    flat = lax.reshape(counters, (counters.size,))
    is_odd = counters.size % 2
    if is_odd:
        flat = lax.concatenate([flat, lax.full((1,), 0, dtypes.uint32)], 0)
    half = flat.size // 2
    first, second = lax.slice(flat, (0,), (half,)), lax.slice(flat, (half,), (2 * half,))
    words = lax.concatenate(threefry2x32_p.bind(k0, k1, first, second), 0)
    return lax.reshape(words[: counters.size] if is_odd else words, counters.shape)
