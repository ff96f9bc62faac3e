"""Random bits: Philox 4x32-10, and words from the random numbers of the process."""

from __future__ import annotations

import functools
import math
import threading
from typing import Any, Final

import numpy as np

from xprim import ZERO, Effect, Primitive, ShapedArray, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ["philox_blocks", "philox_words"]

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- philox
# Random bits of Philox 4x32-10, for NumPy arrays and for Arrays, by the same lines.
#
# A block of four words is the hash of a counter: the words of the counter, and behind them the
# key, under the key of two words. So a key that says where its counter stands is four words.
#
# Sources: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, for
# the hash and its constants; what XLA's expansion of RngBitGenerator on the CPU gives, for the
# order of the words.

_FACTORS: Final = 0xD2511F53, 0xCD9E8D57
_WEYL: Final = 0x9E3779B9, 0xBB67AE85
_PHILOX_HALF: Final = np.uint64(32)


def philox_blocks(bit_width: int, shape: tuple[int, ...]) -> int:
    """Return how many blocks of four words an array of random bits takes.

    Args:
      bit_width: of an element: 64, or 32 and fewer, which take a whole word.
      shape: of the array.
    """
    return -(-math.prod(shape) * (2 if bit_width == 64 else 1) // 4)


def philox_words(namespace: Any, key: Any, places: Any, bit_width: int, count: int) -> Any:
    """Return random bits for each key.

    Args:
      namespace: `numpy` or `xnp.lax`, for the operands are.
      key: uint32 of shape (..., 4): the key, and where its counter stands, low words first.
      places: uint64, the numbers of the blocks to take: 0, 1, ... `philox_blocks`.
      bit_width: 64, or anything less for 32.
      count: how many elements are wanted of the blocks.

    Returns:
      uint32 or uint64 of shape (..., count).

    Example:
      >>> key = np.uint32([1, 2, 3, 4])
      >>> philox_words(np, key, np.arange(1, dtype=np.uint64), 32, 2).tolist()
      [512747620, 1298009047]
    """
    k0, k1, low, high = [key[..., i : i + 1] for i in range(4)]
    start = _join(low, high)
    lower = start + places
    upper = _join(k0, k1) + (lower < start).astype(np.uint64)
    words = _hash((*_halves(lower), *_halves(upper)), (k0, k1))
    if bit_width == 64:
        words = [_join(*words[:2]), _join(*words[2:])]
    stacked = namespace.stack(words, -1)
    return stacked.reshape(*stacked.shape[:-2], -1)[..., :count]


def _hash(x: Any, key: Any) -> list[Any]:
    for step in range(10):
        keys = [k + np.uint32(step * w & 0xFFFFFFFF) for k, w in zip(key, _WEYL, strict=True)]
        products = [
            v.astype(np.uint64) * np.uint64(m) for v, m in zip(x[::2], _FACTORS, strict=True)
        ]
        (low0, high0), (low1, high1) = [_halves(p) for p in products]
        x = high1 ^ x[1] ^ keys[0], low1, high0 ^ x[3] ^ keys[1], low0
    return list(x)


def _halves(x: Any) -> tuple[Any, Any]:
    """Return the low and the high words of 64-bit numbers."""
    return x.astype(np.uint32), (x >> _PHILOX_HALF).astype(np.uint32)


def _join(low: Any, high: Any) -> Any:
    return low.astype(np.uint64) | high.astype(np.uint64) << _PHILOX_HALF


# ------------------------------------------------------------------------------------- rng words
# rng_words: words from the random numbers of the process, others each time it is evaluated.
#
#     rng_words[shape]    -> uint32[shape]
#
# NumPy's rule draws from a stream that starts alike in every process, XLA from one of its own.
# The effect keeps transformations from computing a draw again and taking another for it.

DRAW = Effect("random numbers without a key", ordered=False)

_RNG_WORDS_HALF = 1 << 16
_one_draw = threading.Lock()  # two first draws at once would begin two streams that are alike


@functools.cache
def _stream() -> np.random.Generator:
    """Return the stream of the process; NumPy's module of random numbers is 8 ms of an import."""
    return np.random.Generator(np.random.Philox(0))


def _shape(*, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    return (shaped_array(shape, dtypes.uint32),)


def _numpy(*, shape: tuple[int, ...]) -> Any:
    with _one_draw:
        return (_stream().integers(0, 1 << 32, shape, np.uint32),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               shape: tuple[int, ...]) -> Any:  # fmt: skip
    """Draw the halves: the upper bound of `rng` is not drawn, and there is no bound of 2**32."""
    (out,) = avals_out
    bound = shaped_array((), dtypes.uint32)
    sizes = shaped_array((len(shape),), dtypes.int64)
    halves = [
        b.op(
            "stablehlo.rng",
            [b.scalar(0, dtypes.uint32), b.scalar(_RNG_WORDS_HALF, dtypes.uint32),
             b.constant(np.array(shape, np.int64), sizes)],
            [bound, bound, sizes],
            avals_out,
            "rng_distribution = #stablehlo<rng_distribution UNIFORM>",
        )[0]
        for _ in range(2)
    ]  # fmt: skip
    high = b.same_type_op("stablehlo.shift_left", [halves[0], b.constant(np.uint32(16), out)], out)
    return [b.same_type_op("stablehlo.or", [high, halves[1]], out)]


def _effects(*, shape: tuple[int, ...]) -> frozenset[Any]:
    return frozenset([DRAW])


rng_words_p = Primitive(
    "rng_words",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=ZERO,
    transpose=undefined("it has no operands"),
    batch=undefined("it has no operands"),
    effects=_effects,
)
