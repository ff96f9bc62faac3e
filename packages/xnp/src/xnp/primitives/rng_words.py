"""rng_words: words from the random numbers of the process, others each time it is evaluated.

    rng_words[shape]    -> uint32[shape]

NumPy's rule draws from a stream that starts alike in every process, XLA from one of its own. The
effect keeps transformations from computing a draw again and taking another for it.

Neighbours: `xnp.lax.random_bits` makes numbers of a range of them; `xrandom` draws from keys.
Source: StableHLO specification, section rng.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import ZERO, Effect, Primitive, ShapedArray, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ()

DRAW = Effect("random numbers without a key", ordered=False)

_HALF = 1 << 16
_stream = np.random.Generator(np.random.Philox(0))  # its methods take a lock of their own


def _shape(*, shape: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    return (shaped_array(shape, dtypes.uint32),)


def _numpy(*, shape: tuple[int, ...]) -> Any:
    return (_stream.integers(0, 1 << 32, shape, np.uint32),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               shape: tuple[int, ...]) -> Any:  # fmt: skip
    """Draw the halves: the upper bound of `rng` is not drawn, and there is no bound of 2**32."""
    (out,) = avals_out
    bound = shaped_array((), dtypes.uint32)
    sizes = shaped_array((len(shape),), dtypes.int64)
    halves = [
        b.op(
            "stablehlo.rng",
            [b.scalar(0, dtypes.uint32), b.scalar(_HALF, dtypes.uint32),
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
