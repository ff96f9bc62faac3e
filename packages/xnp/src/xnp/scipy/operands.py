"""Operands of the functions of `xnp.scipy`: promotion to floats, broadcasting, uniform samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xnp.numpy as xn
from xnp.numpy.dispatch import broadcast, dispatched, inexact
from xnp.primitives.table import bind
from xprim import Array, dtypes, get_primitive
from xprim.extended import unwrap

__all__ = ()


# ----------------------------------------------------------------------------------- elementwise
# Applying a primitive of real floats to operands as NumPy does: promoted and broadcast.


@dispatched(1)
def _of_one(x: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *inexact(operation, x))


@dispatched(2)
def _of_two(x: Any, y: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y)))


@dispatched(3)
def _of_three(x: Any, y: Any, z: Any, primitive: str, operation: str) -> Array:
    return bind(primitive, *broadcast(operation, *inexact(operation, x, y, z)))


_BY_COUNT: dict[int, Callable[..., Array]] = {1: _of_one, 2: _of_two, 3: _of_three}


def applied(primitive: str, operation: str, *operands: Any) -> Array:
    """Return a primitive's result on one to three operands; errors name the operation."""
    return _BY_COUNT[len(operands)](*operands, primitive, operation)


# --------------------------------------------------------------------------------------- uniform
# Uniform numbers of a random key, for what draws samples here.
#
# The primitive is looked up by its name: whoever has a key has loaded its owner.


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
