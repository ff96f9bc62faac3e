"""Uniform numbers of a random key, for what draws samples here.

The primitive is looked up by its name: whoever has a key has loaded its owner.
"""

from __future__ import annotations

from typing import Any

import xnp.numpy as xn
from xprim import Array, dtypes, get_primitive
from xprim.extended import unwrap

__all__ = ()


def uniform(key: Any, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Return the middles of 2^32 equal parts of [0, 1]: neither 0 nor 1, of which no quantile is.

    Args:
      key: a random key, of either form.
      shape: of the result.
      dtype: a floating dtype; None for the default one.
    """
    dtype = dtypes.canonicalize_dtype(float) if dtype is None else dtype
    words = unwrap(key) if dtypes.is_extended(key.dtype) else key
    (bits,) = get_primitive("random_bits").bind(
        words, bit_width=32, shape=shape, partitionable=True
    )
    limit = 1 - float(dtypes.finfo(dtype).eps)
    return xn.minimum((bits.astype(dtype) + 0.5) * 2.0**-32, limit)
