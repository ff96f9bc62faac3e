"""Tuples of dimensions and sizes: insert, leave out, renumber; and the dtype that positions need.

Neighbours: `operations` binds primitives with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ()


def inserted(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """Return a tuple with one more value at a position."""
    return (*values[:position], value, *values[position:])


def without(values: Sequence[Any], position: int) -> tuple[Any, ...]:
    """Return a tuple without the value at a position."""
    return (*values[:position], *values[position + 1 :])


def bumped(dims: Sequence[int], position: int) -> tuple[int, ...]:
    """Return dimensions as they are numbered after one is inserted at a position."""
    return tuple([d + (d >= position) for d in dims])


def index_dtype_for(size: int) -> np.dtype[Any]:
    """Return the dtype that indices into `size` elements need: int32 where that is enough."""
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)
