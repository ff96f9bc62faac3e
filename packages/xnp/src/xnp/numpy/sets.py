"""Sets of elements; insertion and deletion: unique, union1d, isin, insert, delete, ..."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from xnp.numpy.creation import asarray, counting
from xnp.numpy.dispatch import (
    array_of,
    as_array_like,
    axis_of,
    cast,
    elements_now,
    fill_array,
    promote,
)
from xnp.numpy.indexing import read
from xnp.numpy.reductions import any as any_, cumsum
from xnp.numpy.selection import argsort, lexsort, nonzero, searchsorted, sort, where
from xnp.numpy.shaping import concatenate, moveaxis
from xnp.primitives import table
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like, select
from xprim import Array, ConcreteArray, ShapedArray, dtypes, errors, shaped_array
from xprim.avals import size_of
from xprim.errors import ConcretizationTypeError, brief, described, message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike

__all__ = [
    "delete", "insert", "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- insertion
# Elements put in and taken out along an axis: insert, delete.
#
# Where each element of the result comes from is worked out by NumPy when the positions are known,
# and by array operations when they are traced; one read does the rest.

Positions = Any  # an integer, a slice, or integers or booleans as an array takes them


def _is_traced(obj: Any) -> bool:
    return isinstance(obj, Array) and not isinstance(obj, ConcreteArray)


def _static_positions(obj: Any, operation: str) -> Any:
    if _is_traced(obj):
        raise ConcretizationTypeError(obj, operation, "the positions are traced values.")
    if isinstance(obj, slice):
        return obj
    places = np.asarray(obj)
    if not places.size and isinstance(obj, list | tuple):
        places = places.astype(np.int32)  # NumPy makes floats of an empty list
    if places.dtype.kind not in "biu" or (operation == "insert" and places.ndim > 1):
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
        arr, axis = reshape(arr, (arr.aval.size,)), 0
    axis = axis_of(axis, arr.aval.ndim, "delete")
    size = arr.aval.shape[axis]
    if type(obj) is int and -size <= obj < size:
        place = obj % size
        return _join(arr, axis, (slice(0, place), slice(place + 1, size)))
    if _is_traced(obj) and dtypes.is_integer(obj.aval.dtype) and (
        obj.aval.ndim == 0 or assume_unique_indices
    ):  # fmt: skip
        kept = _trace_rest(obj, size)
    else:
        try:
            kept = np.delete(np.arange(size), _static_positions(obj, "delete")).astype(np.int32)
        except IndexError as error:
            raise _outside("delete", obj, axis, size) from error
    return read(arr, (*[slice(None)] * axis, kept))


def _join(arr: Array, axis: int, parts: Sequence[slice | Array]) -> Array:
    """Join slices of an array along an axis, and arrays between them."""
    lead = [slice(None)] * axis
    found = [read(arr, (*lead, p)) if isinstance(p, slice) else p for p in parts]
    kept = [p for p in found if p.aval.shape[axis]]
    if len(kept) < 2:
        return kept[0] if kept else found[0]
    return bind("concatenate", *kept, dimension=axis)


def _trace_rest(places: Array, size: int) -> Any:
    """Return the positions that are not among traced ones, which are distinct."""
    flags = table.fill((size,), 0, dtypes.int32).at[places].set(1)
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

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.insert(xnp.array([1, 2, 3]), 1, 9)
      Array([1, 9, 2, 3], dtype=int32)
    """
    arr = array_of(arr, "insert")
    values = as_array_like(values, arr, "insert") if type(values) is float else asarray(values)
    if axis is None:
        arr, axis = reshape(arr, (arr.aval.size,)), 0
    axis = axis_of(axis, arr.aval.ndim, "insert")
    size = arr.aval.shape[axis]
    places = _check_traced(obj) if _is_traced(obj) else _static_positions(obj, "insert")
    count = _number_of_new(places, values, arr.aval, axis)
    if not count:
        return arr
    values = broadcast_to(cast(values, arr.aval.dtype), _with_size(arr.aval.shape, axis, count))
    if type(obj) is int and -size <= obj <= size:
        place = obj if obj >= 0 else obj + size
        return _join(arr, axis, (slice(0, place), values, slice(place, size)))
    source = _trace_source(places, size, count) if _is_traced(places) else _source_of_insert(
        places, axis, size, count)  # fmt: skip
    lead = [slice(None)] * axis
    fresh = read(values, (*lead, (-1 - source).clip(0)))
    if not size:
        return fresh
    old = read(arr, (*lead, source.clip(0)))
    line = _with_size((1,) * arr.aval.ndim, axis, size + count)
    is_new = reshape(asarray(source < 0), line)
    return select(broadcast_to(is_new, old.aval.shape), fresh, old)


def _check_traced(places: Array) -> Array:
    """Return traced positions, of a mask, too; raise for others."""
    dtype = places.aval.dtype
    require(
        places.aval.ndim <= 1 and (dtypes.is_integer(dtype) or dtypes.is_bool(dtype)), "insert",
        "traced positions must be integers, one or a vector of them.", got=places, error=TypeError,
    )  # fmt: skip
    return places


def _source_of_insert(places: Any, axis: int, size: int, count: int) -> Any:
    """Say where each element of the result comes from: new ones are numbered -1, -2, ..."""
    try:
        source = np.insert(np.arange(size), places, -1 - np.arange(count))
    except IndexError as error:
        raise _outside("insert", places, axis, size) from error
    return source.astype(np.int32)


def _trace_source(places: Array, size: int, count: int) -> Array:
    """Do what `_source_of_insert` does, for positions that are not known while tracing."""
    if dtypes.is_bool(places.aval.dtype):
        raise errors.NonConcreteBooleanIndexError(
            places,
            "insert",
            "a mask of positions is a traced value, but the shape of the result depends on it.",
            "positions as integers will do: xnp.nonzero(mask, size=n)",
        )
    places = cast(where(places < 0, places + size, places), dtypes.int32).clip(0, size)
    places = broadcast_to(places, (count,))
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


# ------------------------------------------------------------------------------------------ sets
# Sets of elements: unique, union1d, intersect1d, setdiff1d, setxor1d, isin; insert and delete.
#
# How many elements are distinct depends on values: results of a fixed size need `size=`, which
# works under every trace; without it the arrays must be concrete.

_FEW = 8  # elements that `isin` compares one by one; more are sorted and searched


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _array(x: Any, operation: str) -> Array:
    """Return an operand as an Array; sets may be lists."""
    return asarray(x) if isinstance(x, list | tuple) else array_of(x, operation)


def _flat(x: Any, operation: str) -> Array:
    x = _array(x, operation)
    return reshape(x, (x.aval.size,))


@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> Array: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[True] = ..., return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[True] = ...,
    return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[False] = ...,
    return_counts: Literal[True] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[True] = ..., return_inverse: Literal[True] = ...,
    return_counts: Literal[False] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[True] = ..., return_inverse: Literal[False] = ...,
    return_counts: Literal[True] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[False] = ..., return_inverse: Literal[True] = ...,
    return_counts: Literal[True] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: Literal[True] = ..., return_inverse: Literal[True] = ...,
    return_counts: Literal[True] = ..., axis: int | None = ..., *, equal_nan: bool = ...,
    size: int | None = ..., fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> tuple[Array, Array, Array, Array]: ...  # fmt: skip
@overload
def unique(
    ar: ArrayLike, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ...,
    axis: int | None = ..., *, equal_nan: bool = ..., size: int | None = ...,
    fill_value: ArrayLike | None = ..., sorted: bool = ...,
) -> Array | tuple[Array, ...]: ...  # fmt: skip
def unique(
    ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
    size: int | None = None, fill_value: ArrayLike | None = None, sorted: bool = True,  # noqa: A002
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Return the distinct elements in order.

    Args:
      ar: an array.
      return_index: whether to return where each occurs first.
      return_inverse: whether to return the number of the distinct element at each place.
      return_counts: whether to return how often each occurs.
      axis: the axis whose slices are compared; None compares the flattened elements.
      equal_nan: whether all NaN are one element.
      size: how many elements to return, which a traced `ar` needs: surplus ones are left out,
        missing ones are `fill_value`.
      fill_value: what stands for missing elements; None for the least one.
      sorted: has no effect: elements are always in order.

    Returns:
      An array, or a tuple of it and what else is requested, in the order of the arguments.

    Raises:
      ConcretizationTypeError: for a traced `ar` without `size`.

    Example:
      >>> import xnp
      >>> xnp.unique(xnp.array([3, 1, 3]), return_counts=True)
      (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    del sorted
    ar = _array(ar, "unique")
    if size is None and not isinstance(ar, ConcreteArray):
        raise ConcretizationTypeError(
            ar,
            "unique",
            "the size of the result depends on traced values.",
            "give size=, the number of elements to return",
        )
    lines, rows = _lines_and_rows(ar, axis)
    found = _Distinct(lines, rows, equal_nan, needs_order=return_index or return_inverse)
    values = found.values_now() if size is None else None
    if values is not None:
        number = values.aval.shape[0]
    else:
        number = int(found.total()) if size is None else size_of(size)
        values = _values(found, lines, number, fill_value, size)
    results = [values if axis is None else moveaxis(values, 0, axis)]
    if return_index:
        results.append(found.first_places(number))
    if return_inverse:
        inverse = found.inverse()
        results.append(inverse if axis is not None else reshape(inverse, ar.aval.shape))
    if return_counts:
        results.append(found.counts(number))
    return results[0] if len(results) == 1 else tuple(results)


def _lines_and_rows(x: Array, axis: int | None) -> tuple[Array, Array]:
    """Return what is compared, along the first dimension, and the same as a matrix."""
    if axis is None:
        return reshape(x, (x.aval.size,)), reshape(x, (x.aval.size, 1))
    lines = moveaxis(x, axis_of(axis, x.aval.ndim, "unique"), 0)
    count = lines.aval.shape[0]
    return lines, reshape(lines, (count, lines.aval.size // count if count else 0))


def _with_one_nan(x: Array) -> Array:
    """Return complex numbers with all NaN alike: a number may stand in order between others."""
    if not dtypes.is_complex(x.aval.dtype):
        return x
    alike: Array = select(bind("ne", x, x), table.fill(x.aval.shape, math.nan, x.aval.dtype), x)
    return alike


class _Distinct:
    """Rows in order, and where each new one starts.

    Without indices and the inverse, elements are sorted alone, in a fifth of the time.
    """

    def __init__(self, lines: Any, rows: Any, equal_nan: bool, *, needs_order: bool) -> None:
        self.size, width = rows.aval.shape
        self.dtype = dtypes.python_scalar_dtype(int)
        self.lines, self.order = lines, None
        if lines.aval.ndim == 1 and not (needs_order or dtypes.is_complex(rows.aval.dtype)):
            self.lines = sort(lines)
            ordered = reshape(self.lines, (self.size, 1))
            self.starts = self._starts(ordered, width, equal_nan)
            return
        keys = _with_one_nan(rows) if equal_nan else rows
        if width == 1:
            self.order = argsort(reshape(keys, (self.size,)))
        elif width:
            self.order = lexsort([keys[:, d] for d in range(width - 1, -1, -1)])
        else:
            self.order = counting((self.size,), 0, self.dtype)
        self.starts = self._starts(read(rows, self.order), width, equal_nan)

    def _starts(self, ordered: Any, width: int, equal_nan: bool) -> Any:
        if not self.size:
            return table.fill((0,), False, dtypes.bool_)
        before, after = read(ordered, slice(None, -1)), read(ordered, slice(1, None))
        differ = bind("ne", before, after)
        if equal_nan and dtypes.is_inexact(ordered.aval.dtype):
            both = bind("and", bind("ne", before, before), bind("ne", after, after))
            differ = bind("and", differ, bind("not", both))
        count, boolean = self.size - 1, dtypes.bool_
        rows_differ = any_(differ, 1) if width else table.fill((count,), False, boolean)
        return concatenate([table.fill((1,), True, dtypes.bool_), rows_differ])

    def total(self) -> Any:
        return self.starts.sum()

    def starts_of(self, number: int) -> Any:
        """Return where runs of equal rows start; the size of all behind the last."""
        return nonzero(self.starts, size=number, fill_value=self.size)[0]

    def first_places(self, number: int) -> Any:
        positions = self.starts_of(number)
        if not self.size:
            return positions
        present = array_of(positions < self.size, "unique")
        return read(self.order, select(present, positions, scalar_like(positions, 0)))

    def values(self, positions: Any) -> Any:
        """Return the lines at places in order."""
        return read(self.lines, positions if self.order is None else read(self.order, positions))

    def values_now(self) -> Array | None:
        """Return the first line of each run where NumPy may pick them at once, else None."""
        hosts = elements_now(self.lines, self.starts) if self.order is None else None
        if hosts is None or not self.size:
            return None
        values = np.compress(hosts[1], hosts[0], axis=0)
        aval = self.lines.aval
        return ConcreteArray(values, shaped_array(values.shape, aval.dtype, aval.weak_type))

    def counts(self, number: int) -> Any:
        positions = self.starts_of(number + 1)  # the next one ends the last that is returned
        return positions[1:] - positions[:-1]

    def inverse(self) -> Any:
        numbers = cast(self.starts, self.dtype).cumsum() - 1
        zeros = table.fill((self.size,), 0, self.dtype)
        return zeros.at[self.order].set(numbers, unique_indices=True)


def _values(found: _Distinct, lines: Array, number: int, fill_value: Any, size: Any) -> Array:
    if not found.size:
        if number:
            require(
                fill_value is not None, "unique",
                "an empty array has no element to fill a result of size {} with.", number,
                hint="give fill_value=",
            )  # fmt: skip
            fill = fill_array("unique", fill_value, lines.aval.dtype)
            return broadcast_to(fill, (number, *lines.aval.shape[1:]))
        return lines
    positions = found.starts_of(number)
    present = array_of(positions < found.size, "unique")
    safe = select(present, positions, scalar_like(positions, 0))
    values: Array = found.values(safe)
    if size is None or fill_value is None:
        return values
    fill = fill_array("unique", fill_value, values.aval.dtype)
    mask = reshape(present, (number, *(1,) * (values.aval.ndim - 1)))
    return select(
        broadcast_to(mask, values.aval.shape), values, broadcast_to(fill, values.aval.shape)
    )


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """Return distinct elements, where each occurs first, numbers of all, and counts.

    Args:
        x: an array; it is flattened.
        size: how many elements to return, which a traced `x` needs: surplus ones
            are left out, missing ones are `fill_value`.
        fill_value: what stands for missing elements; None for the least one.

    Returns:
        A named tuple of arrays (of `unique_values` an array): elements in ascending
        order, where the array API standard leaves the order open, and integers.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.unique_all(xnp.array([3, 1, 3])).counts
        Array([1, 2], dtype=int32)
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))  # fmt: skip


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Return distinct elements, and how often each occurs.

    Args:
        x: an array; it is flattened.
        size: how many elements to return, which a traced `x` needs: surplus ones
            are left out, missing ones are `fill_value`.
        fill_value: what stands for missing elements; None for the least one.

    Returns:
        A named tuple of arrays (of `unique_values` an array): elements in ascending
        order, where the array API standard leaves the order open, and integers.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.unique_counts(xnp.array([3, 1, 3])).counts
        Array([1, 2], dtype=int32)
    """
    return UniqueCountsResult(*unique(x, False, False, True, equal_nan=False, size=size,
                                      fill_value=fill_value))  # fmt: skip


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Return distinct elements, and the number of the one at each place.

    Args:
        x: an array; it is flattened.
        size: how many elements to return, which a traced `x` needs: surplus ones
            are left out, missing ones are `fill_value`.
        fill_value: what stands for missing elements; None for the least one.

    Returns:
        A named tuple of arrays (of `unique_values` an array): elements in ascending
        order, where the array API standard leaves the order open, and integers.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.unique_inverse(xnp.array([3, 1, 3])).inverse_indices
        Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverseResult(*unique(x, False, True, False, equal_nan=False, size=size,
                                       fill_value=fill_value))  # fmt: skip


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return distinct elements.

    Args:
        x: an array; it is flattened.
        size: how many elements to return, which a traced `x` needs: surplus ones
            are left out, missing ones are `fill_value`.
        fill_value: what stands for missing elements; None for the least one.

    Returns:
        A named tuple of arrays (of `unique_values` an array): elements in ascending
        order, where the array API standard leaves the order open, and integers.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.unique_values(xnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    values: Array = unique(x, equal_nan=False, size=size, fill_value=fill_value)
    return values


# --- sets -----------------------------------------------------------------------------------------


def isin(
    element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False,
    *, method: str = "auto",
) -> Array:  # fmt: skip
    """Return for each element whether it is among `test_elements`.

    NumPy's takes `kind` as well.

    Args:
      element: an array.
      test_elements: an array.
      assume_unique: has no effect.
      invert: whether to return whether it is not among them.
      method: "auto", "compare_all", "binary_search" or "sort"; all give the same.

    Returns:
      A boolean array of the shape of `element`.

    Raises:
        ValueError: unknown `method`.

    Example:
      >>> import xnp
      >>> xnp.isin(xnp.array([1, 2, 3]), xnp.array([3, 1]))
      Array([ True, False,  True], dtype=bool)
    """
    del assume_unique
    require_choice("isin", "method", method, ("auto", "compare_all", "binary_search", "sort"))
    element, tests = promote("isin", *[_array(x, "isin") for x in (element, test_elements)])
    tests = reshape(tests, (tests.aval.size,))
    count = tests.aval.size
    if not count:
        return table.fill(element.aval.shape, bool(invert), dtypes.bool_)
    if count <= _FEW:
        found = functools.reduce(
            functools.partial(bind, "or"),
            [
                bind("eq", element, broadcast_to(read(tests, i), element.aval.shape))
                for i in range(count)
            ],
        )
        return bind("not", found) if invert else found
    ordered = array_of(sort(tests), "isin")
    place = searchsorted(ordered, element).clip(0, count - 1)
    found = bind("eq", broadcast_to(read(ordered, place), element.aval.shape), element)
    return bind("not", found) if invert else found


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the distinct elements of both arrays in order; `size` as of `unique`.

    Args:
      ar1: an array; it is flattened.
      ar2: an array; it is flattened.
      size: how many elements to return, which traced arrays need.
      fill_value: what stands for missing elements; None for the least one.

    Returns:
      A vector in ascending order.

    Raises:
        ValueError: `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.union1d(xnp.array([3, 1]), xnp.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    joined = concatenate([_flat(ar1, "union1d"), _flat(ar2, "union1d")])
    return unique(joined, size=size, fill_value=fill_value)


def _filter(operation: str, values: Array, keep: Any, size: int | None, fill_value: Any) -> Array:
    """Return the values to keep; missing ones are `fill_value`, None for the first (or 0)."""
    if size is None:
        return read(values, keep)
    count = values.shape[0]
    given = None if fill_value is None else fill_array(operation, fill_value, values.dtype)
    if not count:
        given = scalar_like(values, 0) if given is None else given
        return broadcast_to(given, (size,))
    (places,) = nonzero(keep, size=size, fill_value=count)
    found = read(values, places, mode="fill", fill_value=0)
    if not size:
        return found
    return select(array_of(places < count, "size"), found, found[0] if given is None else given)


def setdiff1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the distinct elements of the first array that are not in the second.

    With `size`, missing elements are `fill_value`, by default 0.

    Args:
        ar1: an array; it is flattened.
        ar2: an array; it is flattened.
        assume_unique: whether each array is known to have no element twice.
        size: how many elements to return, which traced arrays need.
        fill_value: what stands for missing elements.

    Returns:
        A vector in ascending order.

    Raises:
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.setdiff1d(xnp.array([3, 1, 2]), xnp.array([2, 9]))
        Array([1, 3], dtype=int32)
    """
    if size is not None and fill_value is None:
        fill_value = 0
    first = _flat(ar1, "setdiff1d")
    if not assume_unique and size is None:
        first = unique(first)
    elif not assume_unique:
        first, _, counts = unique(first, False, True, True, size=first.aval.size)
        keep = isin(first, ar2, invert=True) & (counts > 0)
        return _filter("setdiff1d", first, keep, size, fill_value)
    return _filter("setdiff1d", first, isin(first, ar2, invert=True), size, fill_value)


@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: Literal[False] = ...,
    *, size: int | None = ..., fill_value: ArrayLike | None = ...,
) -> Array: ...  # fmt: skip
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: Literal[True] = ...,
    *, size: int | None = ..., fill_value: ArrayLike | None = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = ..., return_indices: bool = ..., *,
    size: int | None = ..., fill_value: ArrayLike | None = ...,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:  # fmt: skip
    """Return the distinct elements that both arrays have, and if requested where they occur first.

    With `size`, missing elements are `fill_value`, by default the least element, and their places
    are the sizes of the arrays.

    Args:
      ar1: an array; it is flattened.
      ar2: an array; it is flattened.
      assume_unique: whether each array is known to have no element twice.
      return_indices: whether to return where the elements occur first in both arrays, too.
      size: how many elements to return, which traced arrays need.
      fill_value: what stands for missing elements.

    Returns:
      A vector in ascending order, or a tuple of it and two vectors of positions.

    Raises:
        ValueError: `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.intersect1d(xnp.array([3, 1, 2]), xnp.array([2, 3, 9]))
      Array([2, 3], dtype=int32)
    """
    del assume_unique
    first, second = promote("intersect1d", _flat(ar1, "intersect1d"), _flat(ar2, "intersect1d"))
    limit = None if size is None else first.aval.size
    values, places, counts = unique(first, True, False, True, size=limit)
    keep = isin(values, second) & (counts > 0)
    common = _filter("intersect1d", values, keep, size, fill_value)
    if not return_indices:
        return common
    where_first = _filter("intersect1d", places, keep, size, first.aval.size)
    if not second.aval.size:
        return common, where_first, table.fill(common.shape, 0, where_first.dtype)
    order = argsort(second)
    places = order[searchsorted(second[order], common).clip(0, second.aval.size - 1)]
    missing = array_of(where_first == first.aval.size, "intersect1d")
    return common, where_first, select(missing, scalar_like(places, second.aval.size), places)


def setxor1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the distinct elements that one of the arrays has and the other has not, in order.

    NaN is equal to nothing: each array that has one gives one. With `size`, missing elements are
    `fill_value`, by default the least element.

    Args:
        ar1: an array; it is flattened.
        ar2: an array; it is flattened.
        assume_unique: whether each array is known to have no element twice.
        size: how many elements to return, which traced arrays need.
        fill_value: what stands for missing elements.

    Returns:
        A vector in ascending order.

    Raises:
        ValueError: `size` is negative.

    Example:
        >>> import xnp
        >>> xnp.setxor1d(xnp.array([3, 1, 2]), xnp.array([2, 9]))
        Array([1, 3, 9], dtype=int32)
    """
    del assume_unique
    first, second = promote("setxor1d", _flat(ar1, "setxor1d"), _flat(ar2, "setxor1d"))
    halves = [_only_in(a, b, size) for a, b in ((first, second), (second, first))]
    values, keep = [concatenate(list(parts)) for parts in zip(*halves, strict=True)]
    order = argsort(values)
    return _filter("setxor1d", read(values, order), read(keep, order), size, fill_value)


def _only_in(own: Array, other: Array, size: int | None) -> tuple[Array, Array]:
    """Return distinct elements, and for each whether it is not in the other array."""
    limit = own.aval.size if size is not None else None
    values, counts = unique(own, False, False, True, size=limit)
    return values, isin(values, other, invert=True) & (counts > 0)


boundaries(
    globals(),
    names=[
        "intersect1d",
        "isin",
        "setdiff1d",
        "setxor1d",
        "union1d",
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    ],
)
