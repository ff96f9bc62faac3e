"""The primitive `threefry2x32`: the Threefry 2x32 hash of pairs of words, element by element.

    y0, y1 = threefry2x32(k0, k1, x0, x1)        all uint32; operands of rank 0 are repeated

Keys and counters are operands alike, so it maps over either. Integers have no derivative.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Neighbours: `hashing` computes it on the host, `bit_generator` builds the draws from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import ELEMENTWISE, ZERO, Primitive, ShapedArray, dtypes, shaped_array, undefined
from xprim.contracts import Builder
from xprim.errors import message
from xrandom.hashing import PARITY, ROTATIONS, hash_words

__all__ = ()


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
    out = shaped_array(shape, dtypes.uint32)
    return out, out


def _numpy(k0: Any, k1: Any, x0: Any, x1: Any) -> Any:
    return hash_words(k0, k1, x0, x1)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if not hasattr(b, "outline"):  # xjit before 0.2.1
        return _rounds(b, operands, avals_in, avals_out)

    def body(inner: Builder, names: Any) -> Any:
        return _rounds(inner, names, avals_in, avals_out)

    return b.outline(body, operands, avals_in, avals_out, "threefry2x32", "threefry2x32")


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
    cost=_cost,
)
