"""Which counters a draw hashes: layouts for the host and for programs; generators by name."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import xnp.numpy as xn
from xnp import lax
from xnp.primitives.random_bits import philox_blocks, philox_words
from xprim import config, dtypes, scalar_array
from xprim.avals import SymbolicSize
from xprim.errors import described, message
from xprim.requirements import require
from xrandom import hashing
from xrandom.hashing import Words, hash_lanes, hash_range, hash_words, threefry2x32_p

__all__ = ()


# --------------------------------------------------------------------------------- bit generator
# Which counters a draw hashes: the two layouts, for the host and for compiled programs.
#
# A key is two words. What is drawn from it is the hash of counters, and the layouts differ in
# these:
#
#     partitionable  element i hashes the 64-bit counter i: no piece of a draw needs another
#     original       n words hash the counters 0 .. n-1, the first half paired with the second
#
# A key of the generator "rbg" is four words: bits are those of Philox, which fewer operations
# make, and such a key is split, and numbers are folded in, as two keys of Threefry side by side.
#
# Each function stands here twice, `host_...` on NumPy arrays and `lax_...` on Arrays; the samples
# hold the two together. Keys may have leading dimensions, which come first in the result.
#
# Source of the layouts: the behaviour of `jax.random` with `jax_threefry_partitionable` on and
# off.

Shape = tuple[int, ...]

UINT_BY_WIDTH: dict[int, np.dtype[Any]] = {
    8: dtypes.uint8,
    16: dtypes.uint16,
    32: dtypes.uint32,
    64: dtypes.uint64,
}

# The original layout counts in 32 bits.
MAX_ORIGINAL_WORDS: Final = 2**32 - 1

# How many words a key of the generator "rbg" has: a key of Philox and its counter.
WIDE_KEY: Final = 4


def words_needed(bit_width: int, size: int) -> int:
    """Return how many 32-bit words hold `size` elements of `bit_width` bits."""
    return -(-bit_width * size // 32)


# --- on the host -------------------------------------------------------------------------------


def host_bits(key: Words, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    """Return random bits as an unsigned integer array of shape `key.shape[:-1] + shape`."""
    size = math.prod(shape)
    if key.shape[-1] == WIDE_KEY:
        places = np.arange(philox_blocks(bit_width, shape), dtype=np.uint64)
        flat = philox_words(np, key, places, bit_width, size)
        flat = flat.astype(UINT_BY_WIDTH[bit_width], copy=False)
    elif not partitionable:
        flat = _host_original_bits(key, bit_width, size)
    elif key.ndim == 1 and bit_width <= 32:
        k0, k1 = key.tolist()
        flat = hashing.hash_range_joined(k0, k1, size)
        if bit_width != 32:
            flat = flat.astype(UINT_BY_WIDTH[bit_width])
    else:
        blocks = _host_blocks(key, size)
        high, low = blocks[..., 0], blocks[..., 1]
        if bit_width == 64:
            flat = high.astype(np.uint64) << np.uint64(32) | low
        else:
            flat = high ^ low
            if bit_width != 32:
                flat = flat.astype(UINT_BY_WIDTH[bit_width])
    return flat.reshape(key.shape[:-1] + shape)


def host_split(key: Words, shape: Shape, partitionable: bool) -> Words:
    """Return new keys, of shape `key.shape[:-1] + shape + key.shape[-1:]`."""
    if key.shape[-1] == WIDE_KEY:
        lead = key.ndim - 1
        halves = host_split(key.reshape(*key.shape[:-1], 2, 2), shape, partitionable)
        return np.moveaxis(halves, lead, -2).reshape(*key.shape[:-1], *shape, WIDE_KEY)
    size = math.prod(shape)
    words = _host_blocks(key, size) if partitionable else _host_stream(key, 2 * size)
    return words.reshape(*key.shape[:-1], *shape, 2)


def host_fold_in(key: Words, data: Words) -> Words:
    """Return the hash of the counter `(0, data)`, a new key."""
    if key.shape[-1] == WIDE_KEY:
        halves = key.reshape(*key.shape[:-1], 2, 2)
        each = np.broadcast_to(data[..., None], halves.shape[:-1])
        return host_fold_in(halves, each).reshape(key.shape)
    if key.ndim == 1:
        k0, k1 = key.tolist()
        return np.array(hash_lanes(k0, k1, 0, int(data), 1), np.uint32)
    y0, y1 = hash_words(key[..., 0], key[..., 1], np.zeros_like(data), data)
    return np.stack([y0, y1], axis=-1)


def _host_blocks(key: Words, size: int) -> Words:
    if key.ndim == 1:
        k0, k1 = key.tolist()
        return hash_range(k0, k1, size)
    counters = np.arange(size, dtype=np.uint64)
    y0, y1 = hash_words(
        key[..., :1],
        key[..., 1:],
        (counters >> np.uint64(32)).astype(np.uint32),
        counters.astype(np.uint32),
    )
    return np.stack([y0, y1], axis=-1)


def _host_stream(key: Words, count: int) -> Words:
    half = (count + 1) // 2
    first = np.arange(half, dtype=np.uint32)
    second = first + np.uint32(half)
    second[count - half :] = 0  # the partner of the middle counter of an odd number
    y0, y1 = hash_words(key[..., :1], key[..., 1:], first, second)
    return np.concatenate([y0, y1], axis=-1)[..., :count]


def _host_original_bits(key: Words, bit_width: int, size: int) -> Any:
    words = _host_stream(key, words_needed(bit_width, size))
    if bit_width == 32:
        return words
    if bit_width == 64:
        high, low = words[..., :size].astype(np.uint64), words[..., size:]
        return high << np.uint64(32) | low
    shifts = np.arange(0, 32, bit_width, dtype=np.uint32)
    parts = (words[..., None] >> shifts).astype(UINT_BY_WIDTH[bit_width])
    return parts.reshape(*key.shape[:-1], -1)[..., :size]


# --- in programs -------------------------------------------------------------------------------


@dtypes.with_64_bits
def lax_bits(key: Any, bit_width: int, shape: Shape, partitionable: bool) -> Any:
    """Return what `host_bits` returns."""
    batch = key.shape[:-1]
    if key.shape[-1] == WIDE_KEY:
        places = lax.iota(dtypes.uint64, philox_blocks(bit_width, shape))
        flat = philox_words(xn, key, places, bit_width, math.prod(shape))
        return lax.reshape(flat.astype(UINT_BY_WIDTH[bit_width]), batch + shape)
    if not partitionable:
        flat = _lax_original_bits(key, bit_width, math.prod(shape))
        return lax.reshape(flat, batch + shape)
    high, low = _lax_blocks(key, shape)
    dtype = UINT_BY_WIDTH[bit_width]
    if bit_width == 64:
        return _join(high, low)
    bits = lax.bitwise_xor(high, low)
    return bits if bit_width == 32 else lax.convert_element_type(bits, dtype)


def lax_split(key: Any, shape: Shape, partitionable: bool) -> Any:
    """Return what `host_split` returns."""
    batch = key.shape[:-1]
    if key.shape[-1] == WIDE_KEY:
        halves = lax_split(lax.reshape(key, (*batch, 2, 2)), shape, partitionable)
        side_by_side = xn.moveaxis(halves, len(batch), -2)
        return lax.reshape(side_by_side, (*batch, *shape, WIDE_KEY))
    if not partitionable:
        return lax.reshape(_lax_stream(key, 2 * math.prod(shape)), (*batch, *shape, 2))
    return _pair(*_lax_blocks(key, shape))


def lax_fold_in(key: Any, data: Any) -> Any:
    """Return what `host_fold_in` returns."""
    if key.shape[-1] == WIDE_KEY:
        halves = lax.reshape(key, (*key.shape[:-1], 2, 2))
        each = lax.broadcast_in_dim(data, halves.shape[:-1], tuple(range(data.ndim)))
        return lax.reshape(lax_fold_in(halves, each), key.shape)
    k0, k1 = _words_of(key)
    return _pair(*threefry2x32_p.bind(k0, k1, lax.full_like(data, 0), data))


def _as_number(n: int, dtype: Any) -> Any:
    """Return a size as what a counter is multiplied by: a symbolic one is an array."""
    return scalar_array(n, dtype) if isinstance(n, SymbolicSize) else n


@dtypes.with_64_bits
def _lax_blocks(key: Any, shape: Shape) -> Any:
    """Return both words of the hashes of a counter for each element, in their final shape.

    The counters are sums of one iota for each dimension, which the partitioner can split.
    """
    size = math.prod(shape)
    wide = dtypes.uint32 if size <= 2**32 else dtypes.uint64
    counter = lax.full(shape, 0, wide)
    stride = size
    for d, n in enumerate(shape):
        stride //= max(n, 1)
        if n > 1:
            place = lax.broadcasted_iota(wide, shape, d)
            step = place if stride == 1 else lax.mul(place, _as_number(stride, wide))
            counter = lax.add(counter, step)
    if wide == dtypes.uint64:
        x0 = lax.convert_element_type(lax.shift_right_logical(counter, 32), dtypes.uint32)
        x1 = lax.convert_element_type(counter, dtypes.uint32)
    else:
        x0, x1 = lax.full((), 0, dtypes.uint32), counter
    return _lax_hash(key, x0, x1, shape)


def _lax_hash(key: Any, x0: Any, x1: Any, shape: Shape) -> Any:
    """Hash counters of a shape, or of rank 0, under each key of an array of keys."""
    batch = key.shape[:-1]
    k0, k1 = _words_of(key)
    if batch:
        whole, lead = batch + shape, tuple(range(len(batch)))
        trail = tuple(range(len(batch), len(whole)))
        k0, k1 = [lax.broadcast_in_dim(k, whole, lead) for k in (k0, k1)]
        x0, x1 = [lax.broadcast_in_dim(x, whole, trail) if x.ndim else x for x in (x0, x1)]
    return threefry2x32_p.bind(k0, k1, x0, x1)


def _words_of(key: Any) -> tuple[Any, Any]:
    last = key.ndim - 1
    return (
        lax.index_in_dim(key, 0, last, keepdims=False),
        lax.index_in_dim(key, 1, last, keepdims=False),
    )


def _pair(y0: Any, y1: Any) -> Any:
    shape = y0.shape
    halves = [lax.reshape(y, (*shape, 1)) for y in (y0, y1)]
    return lax.concatenate(halves, len(shape))


def _join(high: Any, low: Any) -> Any:
    high, low = [lax.convert_element_type(x, dtypes.uint64) for x in (high, low)]
    return lax.bitwise_or(lax.shift_left(high, 32), low)


def _lax_stream(key: Any, count: int) -> Any:
    half = (count + 1) // 2
    counters = lax.iota(dtypes.uint32, 2 * half)
    if count % 2:
        zero = lax.full((1,), 0, dtypes.uint32)
        counters = lax.concatenate([lax.slice_in_dim(counters, 0, count), zero], 0)
    x0, x1 = lax.slice_in_dim(counters, 0, half), lax.slice_in_dim(counters, half, 2 * half)
    last = key.ndim - 1
    words = lax.concatenate(_lax_hash(key, x0, x1, (half,)), last)
    return lax.slice_in_dim(words, 0, count, axis=last) if count % 2 else words


def _lax_original_bits(key: Any, bit_width: int, size: int) -> Any:
    words = _lax_stream(key, words_needed(bit_width, size))
    if bit_width == 32:
        return words
    last = key.ndim - 1
    if bit_width == 64:
        return _join(
            lax.slice_in_dim(words, 0, size, axis=last),
            lax.slice_in_dim(words, size, 2 * size, axis=last),
        )
    parts = 32 // bit_width
    whole = (*words.shape, parts)
    spread = lax.broadcast_in_dim(words, whole, tuple(range(words.ndim)))
    shifts = lax.mul(lax.broadcasted_iota(dtypes.uint32, whole, words.ndim), bit_width)
    small = lax.convert_element_type(
        lax.shift_right_logical(spread, shifts), UINT_BY_WIDTH[bit_width]
    )
    flat = lax.reshape(small, (*key.shape[:-1], words.shape[-1] * parts))
    return lax.slice_in_dim(flat, 0, size, axis=last)


# ------------------------------------------------------------------------------------ generators
# The generators of random numbers, by their names, and the dtypes of their keys.
#
#     threefry2x32   key<fry>    two words    each number is the hash of its place
#     rbg            key<rbg>    four words   Philox: fewer operations for each number
#     unsafe_rbg     key<urbg>   four words   the same, and keys are split by it, too
#
# All give the same bits on every platform, uncompiled, compiled and mapped over keys. Of
# "unsafe_rbg", that the keys that `split` and `fold_in` make are independent is not shown.

THREEFRY: Final = "threefry2x32"
UNSAFE: Final = "unsafe_rbg"


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys of a generator, a subtype of `dtypes.prng_key`; one object for each."""

    __slots__ = ("_home", "element_shape", "impl", "name")
    type = dtypes.prng_key
    base = dtypes.uint32
    elements = "random keys"
    hint = "key_data(key) gives the words of a key, which are numbers"

    def __init__(self, impl: str, name: str, words: int, home: str) -> None:
        self.impl, self.name, self.element_shape, self._home = impl, name, (words,), home

    def __reduce__(self) -> str:
        return self._home  # the name in this module, which exported programs have, too


KEY_DTYPE: Final[Any] = KeyDType(THREEFRY, "key<fry>", 2, "KEY_DTYPE")
WIDE_KEY_DTYPE: Final[Any] = KeyDType("rbg", "key<rbg>", WIDE_KEY, "WIDE_KEY_DTYPE")
UNSAFE_KEY_DTYPE: Final[Any] = KeyDType(UNSAFE, "key<urbg>", WIDE_KEY, "UNSAFE_KEY_DTYPE")

_DTYPES: Final[dict[str, Any]] = {
    dtype.impl: dtype for dtype in (KEY_DTYPE, WIDE_KEY_DTYPE, UNSAFE_KEY_DTYPE)
}


def find_key_dtype(operation: str, impl: Any = None, dtype: Any = None) -> Any:
    """Return the dtype of keys that the arguments `impl` and `dtype` of a function ask for."""
    require(impl is None or dtype is None, operation, "give one of impl and dtype, not both.")
    wanted = impl if dtype is None else dtype
    if wanted is None:
        wanted = config.values.default_prng_impl
    if isinstance(wanted, KeyDType):
        return wanted
    if not isinstance(wanted, str):
        raise TypeError(message(
            operation, "the generator must be given by its name.", got=described(wanted),
            expected=", ".join(map(repr, _DTYPES)),
        ))  # fmt: skip
    if wanted not in _DTYPES:
        raise ValueError(message(
            operation, f"unknown generator {wanted!r}.",
            expected=", ".join(map(repr, _DTYPES)),
            hint="" if impl or dtype else "config.default_prng_impl names the generator",
        ))  # fmt: skip
    return _DTYPES[wanted]
