"""Order: sort, argsort, partition, searchsorted, lexsort, top_k, digitize.

NaN comes last; complex numbers are ordered by real, then imaginary parts. All sorts are stable.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xnp.docstrings import complete
from xnp.docstrings.array_making import SORTING
from xnp.numpy.creation import asarray, counting
from xnp.numpy.dispatch import dispatched
from xnp.numpy.indexing import read, take_along_axis
from xnp.numpy.promoting import (
    array_of,
    axis_of,
    bind,
    broadcasted,
    cast,
    promoted,
    reshaped,
    selected,
)
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers
from xprim import Array, dtypes, get_primitive, scalar_array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Arrays, DTypeLike

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
    "sort_complex", "top_k",
]  # fmt: skip

__dir__ = __all__.copy


def _check_kind(operation: str, kind: Any, order: Any) -> None:
    if kind not in (None, "stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{operation}: there is no kind {kind!r}; all sorts are stable.")
    if order is not None:
        raise ValueError(f"{operation}: order= is for arrays with fields.")


@dispatched(1)
def _sort(a: Any, axis: Any, descending: bool) -> Array:
    a = array_of(a, "sort")
    if axis is None:
        a, axis = reshaped(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "sort")
    if not descending:
        return bind("sort", a, dimension=axis, is_stable=True, num_keys=1)
    return bind("rev", bind("sort", a, dimension=axis, is_stable=True, num_keys=1),
                dimensions=(axis,))  # fmt: skip


def sort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
    stable: bool = True, descending: bool = False,
) -> Array:  # fmt: skip
    """Return elements in order along an axis.

    Returns:
      An array of the shape and dtype of `a`; NaN come last.

    Example:
      >>> import xnp
      >>> xnp.sort(xnp.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
    """
    del stable
    _check_kind("sort", kind, order)
    return _sort(a, axis, bool(descending))


@dispatched(1)
def _argsort(a: Any, axis: Any, descending: bool) -> Array:
    a = array_of(a, "argsort")
    if axis is None:
        a, axis = reshaped(a, (a.aval.size,)), 0
    axis = axis_of(axis, a.aval.ndim, "argsort")
    places = counting(a.aval.shape, axis, dtypes.python_scalar_dtype(int))
    if descending:  # equal elements stay in order when the array is sorted backwards
        a = bind("rev", a, dimensions=(axis,))
        places = bind("rev", places, dimensions=(axis,))
    order = get_second(a, places, axis)
    return bind("rev", order, dimensions=(axis,)) if descending else order


def get_second(keys: Any, values: Any, axis: int) -> Any:
    """Return values in the order of keys."""
    return _sort_primitive().bind(keys, values, dimension=axis, is_stable=True, num_keys=1)[1]


def _sort_primitive() -> Any:
    return get_primitive("sort")


def argsort(
    a: ArrayLike, axis: int | None = -1, *, kind: None = None, order: None = None,
    stable: bool = True, descending: bool = False, dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return the positions of elements in order along an axis.

    Returns:
      Integers in the shape of `a`.

    Example:
      >>> import xnp
      >>> xnp.argsort(xnp.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
    """
    del stable
    _check_kind("argsort", kind, order)
    places = _argsort(a, axis, bool(descending))
    return places if dtype is None else cast(places, _index_dtype("argsort", dtype))


def _index_dtype(operation: str, dtype: Any) -> Any:
    exact = dtypes.requested_dtype(dtype, operation)
    if not dtypes.is_integer(exact):
        raise ValueError(f"{operation}: positions need an integer dtype, got {exact.name}.")
    return exact


def sort_complex(a: ArrayLike) -> Array:
    """Return elements in order as complex numbers.

    Args:
      a: an array of one dimension or more; the last one is sorted.

    Returns:
      A complex array, by real parts and, where these are equal, imaginary ones.

    Example:
      >>> import xnp
      >>> xnp.sort_complex(xnp.array([2 + 1j, 1 - 1j, 1 - 2j]))
      Array([1.-2.j, 1.-1.j, 2.+1.j], dtype=complex64)
    """
    a = array_of(a, "sort_complex")
    return sort(cast(a, dtypes.to_complex_dtype(a.aval.dtype)), 0 if a.aval.ndim == 1 else -1)


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return elements with the `kth` along an axis where sorting puts it (all are sorted)."""
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return positions such that the `kth` is where sorting puts it (all are in order)."""
    _check_kth("argpartition", a, kth, axis)
    return argsort(a, axis)


def _check_kth(operation: str, a: Any, kth: int, axis: int) -> None:
    a = array_of(a, operation)
    size = a.aval.shape[axis_of(axis, a.aval.ndim, operation)]
    if not -size <= operator.index(kth) < size:
        raise ValueError(f"{operation}: kth={kth} is out of bounds for an axis of size {size}.")


def lexsort(keys: Arrays, axis: int = -1, *, batch_size: int | None = 16) -> Array:
    """Return the positions of elements in order of several keys, the last key first.

    Args:
      keys: a sequence of arrays of one shape, or an array whose first dimension runs over them.
      axis: the axis to sort along.
      batch_size: how many keys may be compared in one sort, a positive number or None for all;
        sorting by the last ones first and keeping that order for the others gives the same.

    Returns:
      Integers in the shape of a key.

    Example:
      >>> import xnp
      >>> xnp.lexsort([xnp.array([1, 2, 3]), xnp.array([1, 0, 0])])
      Array([1, 2, 0], dtype=int32)
    """
    arrays = [array_of(k, "lexsort") for k in keys]
    if batch_size is not None and operator.index(batch_size) < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {batch_size}.")
    if not arrays:
        raise TypeError("lexsort: needs one key at least.")
    shapes = {a.aval.shape for a in arrays}
    if len(shapes) > 1:
        raise ValueError(f"lexsort: all keys must have one shape, got {sorted(shapes)}.")
    if not arrays[0].aval.ndim:
        return scalar_array(0, dtypes.python_scalar_dtype(int))
    axis = axis_of(axis, arrays[0].aval.ndim, "lexsort")
    return _sorted_places(arrays, axis, batch_size)


def _sorted_places(arrays: list[Array], axis: int, batch_size: int | None) -> Array:
    places: Array = counting(arrays[0].aval.shape, axis, dtypes.python_scalar_dtype(int))
    step = len(arrays) if batch_size is None else batch_size
    for first in range(0, len(arrays), step):
        keys = [k if not first else take_along_axis(k, places, axis)
                for k in arrays[first : first + step]]  # fmt: skip
        *_, places = _sort_primitive().bind(*keys[::-1], places, dimension=axis, is_stable=True,
                                            num_keys=len(keys))  # fmt: skip
    return places


def top_k(
    a: ArrayLike,
    k: int,
    /,
    *,
    axis: int = -1,
    mode: str = "largest",
    sorted: bool = True,  # noqa: A002
) -> tuple[Array, Array]:
    """Return the `k` largest or smallest elements along an axis, and their positions.

    Args:
      a: an array.
      k: how many, at most the size of the axis.
      axis: the axis.
      mode: "largest" or "smallest".
      sorted: whether the most extreme element must come first; here it always does.

    Returns:
      Elements and positions; of equal elements the one with the lower position comes first.

    Example:
      >>> import xnp
      >>> xnp.top_k(xnp.array([3, 1, 2]), 2, mode="smallest")[0]
      Array([1, 2], dtype=int32)
    """
    del sorted
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}.")
    x, k = array_of(a, "top_k"), operator.index(k)
    axis = axis_of(axis, x.aval.ndim, "top_k")
    if mode == "largest":
        values, places = get_primitive("top_k").bind(x, k=k, axis=axis)
        return values, places
    if not 0 <= k <= x.aval.shape[axis]:
        raise ValueError(f"top_k: k must be from 0 to {x.aval.shape[axis]}, got {k}.")
    first = (*[slice(None)] * axis, slice(k))
    places = read(_argsort(x, axis, False), first)
    return take_along_axis(x, places, axis), cast(places, dtypes.int32)


# --- searching ------------------------------------------------------------------------------------


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
    method: str = "scan",
) -> Array:  # fmt: skip
    """Return where elements of `v` belong in the sorted array `a`, so that it stays sorted.

    Args:
      a: sorted elements in one dimension.
      v: an array.
      side: "left" before equal elements, "right" behind them.
      sorter: positions that bring `a` in order, if it is not.
      method: "scan", "scan_unrolled", "sort" or "compare_all"; all give the same.

    Returns:
      Integers from 0 to the size of `a`, in the shape of `v`. NaN belongs at the end.

    Example:
      >>> import xnp
      >>> xnp.searchsorted(xnp.array([1, 3, 5]), xnp.array([3, 4]))
      Array([1, 2], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ValueError(f"searchsorted: there is no method {method!r}.")
    a, v = promoted("searchsorted", asarray(a), v)
    if a.aval.ndim != 1:
        raise ValueError(f"searchsorted: a must have one dimension, got {a.aval.str_long()}.")
    if sorter is not None:
        a = a[asarray(sorter)]
    return _searchsorted(a, v, side == "right")


@dispatched(2)
def _searchsorted(a: Any, v: Any, right: bool) -> Array:
    """Find the count of elements before `v` bit by bit, from the highest: one read for each."""
    size = a.aval.shape[0]
    dtype = position_dtype(size)
    shape = v.aval.shape
    count = broadcasted(scalar_array(0, dtype), shape)
    for bit in range(size.bit_length() - 1, -1, -1):
        more = bind("add", count, scalar_array(1 << bit, dtype))
        last = bind("sub", more, scalar_array(1, dtype))
        beyond = _comes_before(_element_at(a, last), v, right)  # of the last where there is none
        there = bind("lt", last, scalar_array(size, dtype))
        count = selected(bind("and", there, beyond), more, count)
    return count


def position_dtype(size: int) -> Any:
    """Return the dtype of positions in so many sorted elements: int32 where that suffices."""
    return dtypes.int32 if size < 2**31 else dtypes.int64


def _element_at(a: Any, places: Any) -> Array:
    """Return elements of a vector, places behind the end taken for the last one."""
    shape = places.aval.shape
    numbers = GatherDimensionNumbers((), (0,), (0,))
    return bind(
        "gather", a, reshaped(places, (*shape, 1)), dimension_numbers=numbers, slice_sizes=(1,),
        indices_are_sorted=False, unique_indices=False, mode=CLIP, fill_value=None,
    )  # fmt: skip


def _comes_before(element: Any, v: Any, right: bool) -> Any:
    """Whether `v` belongs behind an element; NaN is the largest number."""
    before = _ordered("le" if right else "lt", element, v)
    if not dtypes.is_inexact(v.aval.dtype):
        return before
    v_nan, element_nan = bind("ne", v, v), bind("ne", element, element)
    if right:
        return bind("or", before, v_nan)
    return bind("or", before, bind("and", v_nan, bind("not", element_nan)))


def _ordered(primitive: str, x: Any, y: Any) -> Any:
    if not dtypes.is_complex(x.aval.dtype):
        return bind(primitive, x, y)
    (re_x, re_y), (im_x, im_y) = [[bind(p, v) for v in (x, y)] for p in ("real", "imag")]
    of_im, of_re = bind(primitive, im_x, im_y), bind(primitive, re_x, re_y)
    return selected(bind("eq", re_x, re_y), of_im, of_re)


def digitize(
    x: ArrayLike,
    bins: ArrayLike | Sequence[float] | str,
    right: bool = False,
    *,
    method: str | None = None,
) -> Array:
    """Return the number of the bin of each element: how many bin bounds are below it.

    Args:
      x: an array.
      bins: bounds that ascend or descend.
      right: whether a bin holds its right bound instead of its left one, as in NumPy.
      method: as of `searchsorted`.

    Returns:
      Integers in the shape of `x`, from 0 to the number of bounds.

    Example:
      >>> import xnp
      >>> xnp.digitize(xnp.array([0.5, 2.5]), xnp.array([1., 2., 3.]))
      Array([0, 2], dtype=int32)
    """
    x, bins = array_of(x, "digitize"), asarray(bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must have one dimension, got {bins.ndim}.")
    method = "scan" if method is None else method
    if not bins.size:
        return broadcasted(scalar_array(0, position_dtype(0)), x.aval.shape)
    side = "left" if right else "right"
    up = searchsorted(bins, x, side, method=method)
    down = bins.size - searchsorted(bins[::-1], x, side, method=method)
    return selected(array_of(bins[-1] >= bins[0], "digitize"), up, down)


complete(globals(), SORTING)

boundaries(globals())
