"""Random bits as XLA makes them: `rng_bit_generator`, and `rng_uniform`, which needs no key.

Both are for programs that need these very bits; `xrandom` draws from keys that are split. The
generators are written with operations of every platform, so the bits are the same on all of them,
uncompiled, compiled and mapped over keys: those of `philox`, and of Threefry 2x32-20, where a block
is the hash of the two words of the counter, 64 bits, under a key of two words.

Sources: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, for the
hashes and their constants; XLA's operation semantics, section RngBitGenerator, and what XLA's
expansion of it on the CPU gives, for the order of the words.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from xnp import lax
from xnp.placing import place
from xnp.primitives.random_bits import philox_blocks, philox_words, rng_words_p
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.requirements import require, require_choice, static_shape
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_uniform"]
__dir__ = __all__.copy

Shape = tuple[int, ...]


class RandomAlgorithm(enum.IntEnum):
    """The generator of `rng_bit_generator`.

    Members:
      RNG_DEFAULT: Philox, on every platform.
      RNG_THREE_FRY: Threefry 2x32 with 20 rounds.
      RNG_PHILOX: Philox 4x32 with 10 rounds.
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


@boundary
def rng_bit_generator(
    key: ArrayLike, shape: ShapeLike, dtype: DTypeLike = dtypes.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT, *, out_sharding: ShardingLike = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return a new key, and the random bits that a key gives.

    Args:
      key: four words, uint32 of shape (4,), or uint64 of shape (2,): the key of the generator, and
        where its counter stands.
      shape: of the bits.
      dtype: an unsigned integer dtype of 8 to 64 bits.
      algorithm: a member of `RandomAlgorithm`, or its number.
      out_sharding: how the bits lie: None, a sharding, or a partition spec over the context mesh.

    Returns:
      A pair: the key with its counter behind all that was drawn, of the dtype of `key`; and the
      bits. They are those of JAX on a CPU.

    Raises:
      TypeError: another key or dtype.
      ValueError: unknown algorithm.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> key, bits = lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (2,))
      >>> key.tolist(), bits.tolist()
      ([1, 2, 4, 4], [512747620, 1298009047])
    """
    words = as_array(key, what="rng_bit_generator: key")
    aval = words.aval
    require(
        (aval.dtype, aval.shape) in ((dtypes.uint32, (4,)), (dtypes.uint64, (2,))),
        "rng_bit_generator", "the key must be four words.", got=aval,
        expected="uint32[4] or uint64[2]", error=TypeError,
    )  # fmt: skip
    exact = dtypes.requested_dtype(dtype, "rng_bit_generator")
    if not dtypes.is_unsigned_integer(exact) or dtypes.itemsize_bits(exact) < 8:
        raise TypeError(message(
            "rng_bit_generator", "the dtype must be an unsigned integer one.",
            got=f"{dtypes.short_name(exact)}", expected="uint8, uint16, uint32 or uint64",
        ))  # fmt: skip
    require_choice("rng_bit_generator", "algorithm", algorithm, tuple(RandomAlgorithm))
    kind = RandomAlgorithm(algorithm)
    sizes = static_shape(shape, "rng_bit_generator")
    new_key, bits = _key_and_bits(words, sizes, dtypes.itemsize_bits(exact), kind)
    result = lax.convert_element_type(bits, exact)
    return new_key, place(result, out_sharding, "rng_bit_generator")


@dtypes.with_64_bits
def _key_and_bits(words: Any, sizes: Shape, width: int, kind: RandomAlgorithm) -> tuple[Any, Any]:
    """Return the key with its counter behind what is drawn, and the bits."""
    k0, k1, counter = _parts(words)
    if kind == RandomAlgorithm.RNG_THREE_FRY:
        bits, blocks = _threefry_bits((k0, k1), counter, sizes, width == 64)
    else:
        blocks = philox_blocks(width, sizes)
        drawn = philox_words(
            lax, lax.stack([k0, k1, *_halves(counter)]), lax.iota(dtypes.uint64, blocks), width,
            math.prod(sizes),
        )  # fmt: skip
        bits = lax.reshape(drawn, sizes)
    moved = lax.add(counter, blocks)
    if words.dtype == dtypes.uint64:
        new_key = lax.concatenate([lax.slice_in_dim(words, 0, 1), lax.reshape(moved, (1,))], 0)
    else:
        new_key = lax.concatenate(
            [lax.slice_in_dim(words, 0, 2), *[lax.reshape(w, (1,)) for w in _halves(moved)]], 0
        )
    return new_key, bits


def _parts(words: Any) -> tuple[Any, Any, Any]:
    """Return both words of the key, and the counter."""
    first, *rest = [lax.index_in_dim(words, i, 0, keepdims=False) for i in range(words.shape[0])]
    if words.dtype == dtypes.uint64:
        return (*_halves(first), rest[0])
    return first, rest[0], _join(rest[1], rest[2])


def _halves(x: Any) -> tuple[Any, Any]:
    """Return the low and the high words of 64-bit numbers."""
    high = lax.shift_right_logical(x, 32)
    low, high = [lax.convert_element_type(w, dtypes.uint32) for w in (x, high)]
    return low, high


def _join(low: Any, high: Any) -> Any:
    low, high = [lax.convert_element_type(w, dtypes.uint64) for w in (low, high)]
    return lax.bitwise_or(low, lax.shift_left(high, 32))


# --- Threefry ----------------------------------------------------------------------------------

_PARITY = 0x1BD11BDA
_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def _threefry_bits(key: Any, counter: Any, shape: Shape, wide: bool) -> tuple[Any, int]:
    """Return 32 or 64-bit numbers and how many blocks they took.

    A number of 64 bits is a block. Those of 32 bits are pairs that lie side by side along the first
    dimension of even size, or else the longest.
    """
    if wide or not shape:
        size = math.prod(shape)
        y = _threefry(lax.add(lax.iota(dtypes.uint64, size), counter), key)
        return lax.reshape(_join(*y) if wide else y[0], shape), size
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    d = even[0] if even else shape.index(max(shape))
    pairs = (*shape[:d], -(-shape[d] // 2), 1, *shape[d + 1 :])
    size = math.prod(pairs)
    y = _threefry(lax.add(lax.iota(dtypes.uint64, size), counter), key)
    both = lax.concatenate([lax.reshape(w, pairs) for w in y], d + 1)
    spread = lax.reshape(both, (*shape[:d], 2 * pairs[d], *shape[d + 1 :]))
    return lax.slice_in_dim(spread, 0, shape[d], axis=d), size


def _threefry(counters: Any, key: Any) -> tuple[Any, Any]:
    keys = (*key, lax.bitwise_xor(lax.bitwise_xor(*key), _PARITY))
    x0, x1 = [lax.add(x, k) for x, k in zip(_halves(counters), key, strict=True)]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = lax.add(x0, x1)
            turned = lax.bitwise_or(lax.shift_left(x1, r), lax.shift_right_logical(x1, 32 - r))
            x1 = lax.bitwise_xor(turned, x0)
        x0 = lax.add(x0, keys[(i + 1) % 3])
        x1 = lax.add(lax.add(x1, keys[(i + 2) % 3]), i + 1)
    return x0, x1


# --- without a key -----------------------------------------------------------------------------


@boundary
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: ShapeLike) -> Array:
    """Draw numbers of a range from the random numbers of the process: others in each call.

    `xrandom.uniform(key, shape)` gives the same ones again. Compiled programs and uncompiled code
    draw from two streams, which start alike in each process. Under `vmap` all examples share the
    draw, each in its own range; it is never computed twice, as `checkpoint` would.

    Args:
      a: a number, the least of the range.
      b: a number of the dtype of `a`, above all of the range.
      shape: of the result.

    Returns:
      An array of the dtype of `a`: numbers from `a` up to `b`, without it. Where `b` is not above
      `a`, it is full of `a`.

    Raises:
      ValueError: no single numbers, of two dtypes, or neither real floats nor integers.

    Example:
      >>> from xnp import lax
      >>> x = lax.rng_uniform(2, 5, (3,))
      >>> bool((x >= 2).all() and (x < 5).all())
      True

    Differentiable in: a, b.
    """
    low, high = as_array(a, what="rng_uniform: a"), as_array(b, what="rng_uniform: b")
    dtype = low.aval.dtype
    real = dtypes.is_integer(dtype) or dtypes.is_floating(dtype)
    require(
        not low.ndim and not high.ndim and dtype == high.aval.dtype and real, "rng_uniform",
        "takes two single real numbers of one dtype.", got={"a": low, "b": high},
    )  # fmt: skip
    sizes = static_shape(shape, "rng_uniform")
    low, high = [lax.broadcast(x, sizes) for x in (low, high)]
    draw = _integers if dtypes.is_integer(dtype) else _floats
    x = dtypes.with_64_bits(draw)(low, high)
    inside = lax.bitwise_and(lax.ge(x, low), lax.lt(x, high))
    return lax.select(inside, x, low)


def _words(shape: Shape) -> Any:
    return rng_words_p.bind(shape=shape)[0]


def _floats(low: Any, high: Any) -> Any:
    """Scale numbers of [0, 1) that are multiples of the least spacing of the dtype there."""
    dtype = low.aval.dtype
    bits = dtypes.finfo(dtype).nmant + 1
    words = _join(_words(low.shape), _words(low.shape)) if bits > 32 else _words(low.shape)
    kept = lax.shift_right_logical(words, dtypes.itemsize_bits(words.dtype) - bits)
    unit = lax.mul(lax.convert_element_type(kept, dtype), 2.0**-bits)
    return lax.add(low, lax.mul(unit, lax.sub(high, low)))


def _integers(low: Any, high: Any) -> Any:
    """Add remainders of 64-bit words by the width of the range."""
    dtype = low.aval.dtype
    width = lax.sub(*[lax.convert_element_type(x, dtypes.uint64) for x in (high, low)])
    words = _join(_words(low.shape), _words(low.shape))
    steps = lax.rem(words, lax.max(width, lax.full_like(width, 1)))
    return lax.add(low, lax.convert_element_type(steps, dtype))
