"""Elements put in and taken out along an axis: insert, delete.

Where each element of the result comes from is worked out by NumPy when the positions are known, and
by array operations when they are traced; one read does the rest.
Neighbours: `indexing` reads, `sets` for what is found by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.numpy.creation import asarray
from xnp.numpy.indexing import read
from xnp.numpy.promoting import (
    array_of,
    axis_of,
    beside,
    bind,
    broadcasted,
    cast,
    filled,
    reshaped,
    selected,
)
from xnp.numpy.running_totals import cumsum
from xnp.numpy.selection import nonzero, where
from xnp.numpy.sorting import argsort
from xprim import Array, ConcreteArray, ShapedArray, dtypes
from xprim.descriptions import brief, described
from xprim.errors import ConcretizationTypeError, NonConcreteBooleanIndexError, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["delete", "insert"]

__dir__ = __all__.copy

Positions = Any  # an integer, a slice, or integers or booleans as an array takes them


def _is_traced(obj: Any) -> bool:
    return isinstance(obj, Array) and not isinstance(obj, ConcreteArray)


def _static_positions(obj: Any, operation: str) -> Any:
    if _is_traced(obj):
        raise ConcretizationTypeError(obj, operation, "the positions are traced values.")
    if isinstance(obj, slice):
        return obj
    places = np.asarray(obj)
    if places.size and places.dtype.kind not in "biu":
        raise TypeError(
            f"{operation}: obj must be positions, a slice or a mask, got {described(obj)}."
        )
    return places


def _outside(operation: str, obj: Any, axis: int, size: int) -> IndexError:
    return IndexError(message(
        operation, f"a position is out of bounds for axis {axis} with size {size}.", got=brief(obj),
    ))  # fmt: skip


@boundary
def delete(
    arr: ArrayLike,
    obj: Positions,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Return `arr` without the elements at an int, a slice, positions or a mask along an axis.

    Args:
      arr: an array.
      obj: an int, a slice, several positions, or a mask. One position may be traced.
      axis: along which; None flattens `arr` first.
      assume_unique_indices: that no position is named twice, and each is in the array: then
        several may be traced, for the shape of the result is known.

    Returns:
      An array that is smaller along the axis.

    Raises:
      ConcretizationTypeError: for traced positions that may be equal, and for a traced mask.
      IndexError: for a position that the array does not have.

    Example:
      >>> import xnp
      >>> xnp.delete(xnp.array([4, 5, 6, 7]), [0, 2])
      Array([5, 7], dtype=int32)
    """
    arr = array_of(arr, "delete")
    if axis is None:
        arr, axis = reshaped(arr, (arr.aval.size,)), 0
    axis = axis_of(axis, arr.aval.ndim, "delete")
    size = arr.aval.shape[axis]
    if type(obj) is int and -size <= obj < size:
        place = obj % size
        return _joined(arr, axis, (slice(0, place), slice(place + 1, size)))
    if _is_traced(obj) and dtypes.is_integer(obj.aval.dtype) and (
        obj.aval.ndim == 0 or assume_unique_indices
    ):  # fmt: skip
        kept = _traced_rest(obj, size)
    else:
        try:
            kept = np.delete(np.arange(size), _static_positions(obj, "delete")).astype(np.int32)
        except IndexError as error:
            raise _outside("delete", obj, axis, size) from error
    return read(arr, (*[slice(None)] * axis, kept))


def _joined(arr: Array, axis: int, parts: Sequence[slice | Array]) -> Array:
    """Join slices of an array along an axis, and arrays between them."""
    lead = [slice(None)] * axis
    found = [read(arr, (*lead, p)) if isinstance(p, slice) else p for p in parts]
    kept = [p for p in found if p.aval.shape[axis]]
    if len(kept) < 2:
        return kept[0] if kept else found[0]
    return bind("concatenate", *kept, dimension=axis)


def _traced_rest(places: Array, size: int) -> Any:
    """Return the positions that are not among traced ones, which are distinct."""
    flags = filled((size,), 0, dtypes.int32).at[places].set(1)
    return nonzero(flags == 0, size=max(size - places.aval.size, 0))[0]


@boundary
def insert(
    arr: ArrayLike,
    obj: Positions,
    values: ArrayLike,
    axis: int | None = None,
) -> Array:
    """Return `arr` with values put in before positions along an axis.

    Args:
      arr: an array.
      obj: an int, a slice, or several positions; those that are traced are clipped to the array.
      values: what to put in, broadcast to its place and cast to the dtype of `arr`.
      axis: along which; None flattens `arr` first.

    Returns:
      An array of the dtype of `arr`, larger along the axis.

    Example:
      >>> import xnp
      >>> xnp.insert(xnp.array([1, 2, 3]), 1, 9)
      Array([1, 9, 2, 3], dtype=int32)
    """
    arr = array_of(arr, "insert")
    values = beside(values, arr, "insert") if type(values) is float else asarray(values)
    if axis is None:
        arr, axis = reshaped(arr, (arr.aval.size,)), 0
    axis = axis_of(axis, arr.aval.ndim, "insert")
    size = arr.aval.shape[axis]
    places = obj if _is_traced(obj) else _static_positions(obj, "insert")
    count = _number_of_new(places, values, arr.aval, axis)
    if not count:
        return arr
    values = broadcasted(cast(values, arr.aval.dtype), _with_size(arr.aval.shape, axis, count))
    if type(obj) is int and -size <= obj <= size:
        place = obj if obj >= 0 else obj + size
        return _joined(arr, axis, (slice(0, place), values, slice(place, size)))
    source = _traced_source(places, size, count) if _is_traced(places) else _source_of_insert(
        places, axis, size, count)  # fmt: skip
    lead = [slice(None)] * axis
    fresh = read(values, (*lead, (-1 - source).clip(0)))
    if not size:
        return fresh
    old = read(arr, (*lead, source.clip(0)))
    line = _with_size((1,) * arr.aval.ndim, axis, size + count)
    is_new = reshaped(asarray(source < 0), line)
    return selected(broadcasted(is_new, old.aval.shape), fresh, old)


def _source_of_insert(places: Any, axis: int, size: int, count: int) -> Any:
    """Say where each element of the result comes from: new ones are numbered -1, -2, ..."""
    try:
        source = np.insert(np.arange(size), places, -1 - np.arange(count))
    except IndexError as error:
        raise _outside("insert", places, axis, size) from error
    return source.astype(np.int32)


def _traced_source(places: Array, size: int, count: int) -> Array:
    """Do what `_source_of_insert` does, for positions that are not known while tracing."""
    if dtypes.is_bool(places.aval.dtype):
        raise NonConcreteBooleanIndexError(
            places,
            "insert",
            "a mask of positions is a traced value, but the shape of the result depends on it.",
            "positions as integers will do: xnp.nonzero(mask, size=n)",
        )
    if places.aval.ndim > 1 or not dtypes.is_integer(places.aval.dtype):
        raise TypeError(message(
            "insert", "traced positions must be integers, one or a vector of them.",
            got=places.aval.str_long(),
        ))  # fmt: skip
    places = cast(where(places < 0, places + size, places), dtypes.int32).clip(0, size)
    places = broadcasted(places, (count,))
    order = argsort(places, stable=True)
    new = asarray(np.arange(count, dtype=np.int32))
    at = places[order] + new
    number = asarray(np.zeros(size + count, np.int32)).at[at].set(order.astype(dtypes.int32) + 1)
    before = cumsum(number == 0) - 1  # how many old elements stand before each place
    source: Array = where(number > 0, -number, before.astype(dtypes.int32))
    return source


def _number_of_new(places: Any, values: Array, aval: ShapedArray, axis: int) -> int:
    """Return how many elements `insert` puts in: one for each place, but all at a single one."""
    if isinstance(places, slice):
        return len(range(*places.indices(aval.shape[axis])))
    if places.ndim:
        return int(places.size)
    if not values.ndim or values.ndim != aval.ndim:
        return 1
    return values.shape[axis]


def _with_size(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


complete(globals())
