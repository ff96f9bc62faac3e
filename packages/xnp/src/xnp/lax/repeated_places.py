"""A function of elements of a vector, once for each time that a place is named.

The second time, the function gets what it gave the first time, as with NumPy's `ufunc.at`.
Neighbours: `indexed.scatter_apply` and `x.at[index].apply` name the places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp import lax
from xnp.primitives.operations import bind, reshaped, scalar_like, selected
from xprim import Array, ConcreteArray, as_array

__all__ = ()


def may_repeat(places: Any) -> bool:
    """Return whether places name, or, where they are traced, could name, one more than once."""
    if not isinstance(places, ConcreteArray):
        return True
    host = np.asarray(places).ravel()
    return len(np.unique(host)) < len(host)


def applied_in_turn(x: Any, places: Any, func: Callable[[Any], Any]) -> Array:
    """Return an array with a function applied at one place after the other.

    Args:
      x: an array.
      places: positions in the flattened array; its size where there is no element.
      func: from a scalar to a scalar.
    """
    size = x.aval.size
    if not size:
        return x  # type: ignore[no-any-return]

    def step(flat: Any, place: Any) -> tuple[Any, None]:
        at = bind("min", place, scalar_like(place, size - 1))
        old = lax.dynamic_index_in_dim(flat, at, keepdims=False)
        there = bind("lt", place, scalar_like(place, size))
        new = selected(there, as_array(func(old), old.aval.dtype), old)
        return lax.dynamic_update_index_in_dim(flat, new, at, 0), None

    flat, _ = lax.scan(step, reshaped(x, (size,)), reshaped(places, (places.aval.size,)))
    return reshaped(flat, x.aval.shape)
