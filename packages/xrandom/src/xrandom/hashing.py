"""The Threefry 2x32 hash on the host: words in, words out.

Threefry encrypts a pair of 32-bit words, the counter, under a pair of 32-bit words, the key: twenty
rounds of add, rotate and exclusive-or, with the key added again after every fourth.

A few blocks are hashed in two Python integers, one for each word of the counter, every block in a
64-bit lane of its own: one big addition then is an addition in all lanes, and twenty rounds cost
the same few microseconds for one block as for eight. Many blocks are hashed by NumPy, in pieces
that stay in the cache.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
Neighbours: `threefry` is the primitive, `bit_generator` says which counters a draw uses.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

__all__ = ()

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
        a, b, c, d = [_packed(w, shape, size) for w in (k0, k1, x0, x1)]
        low, high = hash_lanes(a, b, c, d, lanes_of_ones(size))
        return _unpacked(low, shape, size), _unpacked(high, shape, size)
    k0, k1 = [w if w.ndim == 0 else np.broadcast_to(w, shape).reshape(-1) for w in (k0, k1)]
    # in C order, so that the flat views below are views
    y0, y1 = [np.array(np.broadcast_to(x, shape), order="C") for x in (x0, x1)]
    _hash_in_pieces(k0, k1, y0.reshape(-1), y1.reshape(-1))
    return y0, y1


def hash_range(k0: int, k1: int, size: int) -> Words:
    """Return the hashes of the 64-bit counters 0, 1, ..., size - 1 under one key.

    Returns:
      uint32 of shape (size, 2): the two words of each hash.
    """
    if 0 < size <= MAX_LANES:
        ones = lanes_of_ones(size)
        low, high = hash_lanes(k0 * ones, k1 * ones, 0, _counting_lanes(size), ones)
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


def _packed(words: Words, shape: tuple[int, ...], size: int) -> int:
    if words.ndim == 0:
        return int(words) * lanes_of_ones(size)
    return int.from_bytes(np.broadcast_to(words, shape).astype("<u8").tobytes(), "little")


def _unpacked(lanes: int, shape: tuple[int, ...], size: int) -> Words:
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
