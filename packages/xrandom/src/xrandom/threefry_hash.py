"""`threefry_2x32`: the Threefry hash of an array of counters under one key.

Neighbours: `threefry` has the primitive, which hashes pairs; `bit_generator` the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from xnp import lax
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xrandom.threefry import threefry2x32_p

__all__ = ["threefry2x32_p", "threefry_2x32"]

__dir__ = __all__.copy


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
