"""`x.at[index].apply(f)`: a function of each element that an index names, once for each time.

Where no element is named twice all are read, given to `f` at once, and written. Otherwise, and
where traced positions could name one twice, a scan goes over them: the second time, `f` gets what
it gave the first time, as with NumPy's `ufunc.at`. Neighbours: `index_update`, `indexing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.lax import repeated_places
from xnp.numpy.creation import counting
from xnp.numpy.dynamic_slices import DynamicSlice
from xnp.numpy.indexing import read
from xnp.numpy.promoting import array_of, reshaped
from xprim import Array, dtypes

__all__ = ()

MODE_OF_READING = {"drop": "fill"}  # what an update leaves out is read as NaN or zero


def may_repeat(x: Any, index: Any, mode: Any, wraps: bool) -> bool:
    """Return whether an index names, or could name, an element of `x` more than once."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(_is_positions(p) for p in parts):
        return False
    return repeated_places.may_repeat(_places(x, index, mode, wraps))


def _is_positions(part: Any) -> bool:
    """Return whether a part of an index is an array of integers."""
    if isinstance(part, slice | DynamicSlice | int | np.integer | type(None) | type(Ellipsis)):
        return False
    if isinstance(part, Array):
        return not dtypes.is_bool(part.aval.dtype)
    return bool(np.asarray(part).dtype != np.bool_)


def _places(x: Any, index: Any, mode: Any, wraps: bool) -> Any:
    """Return where the elements are in the flattened array; its size where they are outside."""
    size = x.aval.size
    dtype = dtypes.int32 if size < 1 << 31 else dtypes.int64
    counts = reshaped(counting((size,), 0, dtype), x.aval.shape)
    if mode in (None, "drop"):
        return read(counts, index, mode="fill", fill_value=size, wraps=wraps)
    fill_value = size if mode == "fill" else None
    return read(counts, index, mode=mode, fill_value=fill_value, wraps=wraps)


def applied_in_turn(
    x: Any, index: Any, func: Callable[[Any], Any], mode: Any, wraps: bool
) -> Array:
    """Return `x` with `func` applied to one named element after the other."""
    places = _places(x, index, mode, wraps)
    return repeated_places.applied_in_turn(array_of(x, "at[].apply"), places, func)
