"""Small pieces that the rules of shape and indexing primitives are built from.

Constants of one value, one-line binds of primitives that other modules define, and bookkeeping of
dimensions under batching. Everything here goes through `bind`, so it works under every trace.
Neighbours: one module for each primitive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xprim import get_primitive, scalar_array


def filled(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array of one repeated value."""
    scalar = scalar_array(value, dtype)
    if not shape:
        return scalar
    return get_primitive("broadcast_in_dim").bind(scalar, shape=shape, broadcast_dimensions=())[0]


def call(name: str, *operands: Any, **params: Any) -> Any:
    """Bind a primitive of one result by its name and return that result."""
    return get_primitive(name).bind(*operands, **params)[0]


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """Return `x` with another shape."""
    if x.aval.shape == shape:
        return x
    return call("reshape", x, new_sizes=shape, dimensions=None)


def spread(x: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Repeat `x` to a shape; its dimension i becomes dimension `dims[i]`."""
    if x.aval.shape == shape:
        return x
    return call("broadcast_in_dim", x, shape=shape, broadcast_dimensions=dims)


def select(which: Any, on_true: Any, on_false: Any) -> Any:
    """Return `on_true` where `which` holds, `on_false` elsewhere."""
    return call("select_n", which, on_false, on_true)


def counting(size: int, dtype: Any) -> Any:
    """Return 0, 1, ..., size - 1."""
    return call("iota", dtype=np.dtype(dtype), shape=(size,), dimension=0)


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


def product(sizes: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(sizes)
