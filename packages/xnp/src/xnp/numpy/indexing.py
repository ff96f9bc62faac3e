"""Reading elements: `x[...]`, `take`, `take_along_axis`, `ds`; index expressions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from xnp.numpy.creation import counting
from xnp.numpy.dispatch import (
    array_of,
    axis_of,
    check_fill,
    common_shape,
    host_aval,
    no_out as no_out,
)
from xnp.numpy.index_entries import (
    Entry,
    FlagsInIndex,
    NewAxis,
    Position,
    Positions,
    Span,
    as_positions,
    count_positions,
    entries_of,
    from_front,
    has_slices,
    index_arrays,
    index_dtype,
    index_vectors,
    place_of_batch,
    read_in_window,
    with_new_axes,
)
from xnp.primitives.index_modes import GatherDimensionNumbers, GatherScatterMode, check_if_asked
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like, select
from xprim import (
    EAGER,
    Array,
    ConcreteArray,
    config,
    dtypes,
    from_stored,
    scalar_array,
    shaped_array,
    state,
)
from xprim.eager_costs import READ_AT_ONCE
from xprim.errors import message
from xprim.kernels import numpy_operand
from xprim.tracebacks import boundaries, boundary, shorten
from xprim.typing import ArrayLike

__all__ = ["take", "take_along_axis"]

__dir__ = __all__.copy


# -------------------------------------------------------------------------------- index elements
# Indexing of arrays of extended dtypes by numbers and slices, as views of what is kept of them.
#
# `keys[i]`, and so `for k in keys` and `k1, k2 = split(key)`, are as quick as for arrays of
# numbers. Anything else goes the way of all primitives (see `xprim.extended`).

_PARTS = frozenset([int, slice])


def elements_at(x: Array, index: Any) -> Array | None:
    """Return `x[index]`, or None where it takes more than a view of host memory.

    Numbers and slices name leading dimensions: those of the array are the leading ones of the
    numbers that its elements are made of, too.
    """
    if type(x) is not ConcreteArray or state.__dict__["trace"] is not EAGER:
        return None
    parts = index if type(index) is tuple else (index,)
    aval = x.aval
    if (
        len(parts) > aval.ndim
        or aval.size > READ_AT_ONCE
        or not _PARTS.issuperset(map(type, parts))
    ):
        return None
    if not EAGER.backend.on_host(x):
        return None
    try:
        result = x.to_stored()[(*parts, ...)]
    except (IndexError, TypeError, ValueError):  # said by the way of all primitives
        return None
    ndim = result.ndim - (aval.stored.ndim - aval.ndim)
    return from_stored(result, host_aval(result.shape[:ndim], aval.dtype))


# -------------------------------------------------------------------------------------- indexing
# Reading elements: `x[...]`, `take`, `take_along_axis`, and index arithmetic.
#
# A basic index (ints, slices, new axes) becomes `slice`, `rev` and `squeeze`; one traced int for
# each dimension a `dynamic_slice`; anything else one `gather`, after the static slices. Under
# evaluation, NumPy's own indexing reads the host array, and only what it refuses goes the written
# way.
#
# Out of bounds: static ints are an IndexError, numbers in arrays where `index_checks` says so;
# else they are moved inside, or read a fill value, as in `x.at[i].get(mode=...)`.

_BASIC = frozenset([int, slice, NoneType, EllipsisType, bool])
_BOUNDS = frozenset([int, NoneType])
_FILL = GatherScatterMode.FILL_OR_DROP
_PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


def getitem(x: Any, index: Any) -> Array:
    """Return `x[index]`."""
    try:
        if type(x) is ConcreteArray and state.__dict__["trace"] is EAGER:
            host = x.host
            if host is None or x.buffer is not None:
                host = numpy_operand(x)
            if host is not None:
                kind, plain = type(index), index
                if kind is int:
                    plain = (index, ...)  # an array of rank 0; without, a scalar to be wrapped
                elif kind not in _BASIC:
                    plain = host_index(index)
                if plain is not _NOT_PLAIN:
                    try:
                        result = host[plain]
                    except (IndexError, TypeError, ValueError, MemoryError):
                        return _read_or_refused(x, index, checks=True)
                    aval = x.aval
                    result = (
                        result if type(result) is np.ndarray else np.asarray(result, aval.dtype)
                    )
                    return ConcreteArray(
                        result, host_aval(result.shape, aval.dtype, aval.weak_type)
                    )
        return _by_primitives(x, index)
    except Exception as error:
        shorten(error)
        raise


def _by_primitives(x: Any, index: Any) -> Array:
    found = elements_at(x, index) if x.aval.physical is not None else None
    return read(x, index, checks=True) if found is None else found


_NOT_PLAIN = object()


def host_index(index: Any) -> Any:
    """Return an index as NumPy takes it, or `_NOT_PLAIN` when it is for the written way."""
    if type(index) is not tuple:
        return _host_part(index)
    parts = []
    for part in index:
        if type(part) not in _BASIC:
            part = _host_part(part)
            if part is _NOT_PLAIN:
                return _NOT_PLAIN
        parts.append(part)
    return tuple(parts)


def _host_part(index: Any) -> Any:
    kind = type(index)
    if kind is ConcreteArray:
        host = numpy_operand(index)
        return _NOT_PLAIN if host is None or host.dtype.kind not in "iub" else host
    if kind is np.ndarray and index.dtype.kind in "iub":
        return index
    return index if kind in _BASIC else _NOT_PLAIN


def is_not_plain(index: Any) -> bool:
    """Whether `host_index` gave up."""
    return index is _NOT_PLAIN


def read(
    x: Any, index: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
    mode: Any = None, fill_value: Any = None, wraps: bool = True, checks: bool = False,
) -> Array:  # fmt: skip
    """Return `x[index]` by primitives, under any trace.

    The options are those of a gather, whether negatives count from the end, and arrays are checked.
    """
    x = array_of(x, "index")
    if mode is None and fill_value is not None:
        mode = "fill"
    if mode is None and not wraps:
        mode = "clip"
    free = mode is None and config.values.index_checks != "allow"
    if free:
        parts = _plain_parts(index)
        if parts is not None:
            return _apply(x, _operations_of_parts(x.aval.shape, parts))
    if has_slices(index):
        fills = mode is not None and GatherScatterMode.from_any(mode) is _FILL
        value = _fill_scalar(fill_value, x.aval.dtype)
        return read_in_window(x, index, wraps, value, fills, functools.partial(
            read, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
            fill_value=fill_value, wraps=wraps, checks=checks,
        ))  # fmt: skip
    try:
        entries = entries_of(index, x.aval.shape, checks=free, wraps=wraps, checks_arrays=checks)
    except FlagsInIndex:
        return read(
            *as_positions(x, index), indices_are_sorted=indices_are_sorted, mode=mode,
            unique_indices=unique_indices, fill_value=fill_value, wraps=wraps, checks=checks,
        )  # fmt: skip
    arrays = [e.array for e in entries if type(e) is Positions]
    if not arrays:
        return _apply(x, _operations(x.aval.shape, entries))
    if mode is None and all(not a.aval.ndim for a in arrays):
        return _windows_of_one(x, entries)
    x, entries = _take_spans(x, entries)
    return _gather(x, entries, indices_are_sorted, unique_indices, mode, fill_value)


_read_or_refused = boundary(read)  # where NumPy has refused already, so that its words do not show


# --- basic indices --------------------------------------------------------------------------------

Operation = tuple[str, dict[str, Any]]  # the name of a primitive of one operand, and its params


def _apply(x: Array, operations: Sequence[Operation]) -> Array:
    for name, params in operations:
        x = bind(name, x, **params)
    return x


def _plain_parts(index: Any) -> tuple[Any, ...] | None:
    """Return an index of ints, slices, None and ... as something hashable, others as None."""
    parts: list[Any] = []
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            if not _BOUNDS.issuperset(map(type, bounds)):
                return None
            parts.append(bounds)
        elif type(part) is int or part is None or part is Ellipsis:
            parts.append(part)
        else:
            return None
    return tuple(parts)


@functools.lru_cache(maxsize=4096)
def _operations_of_parts(shape: tuple[int, ...], parts: tuple[Any, ...]) -> list[Operation]:
    """Return what reads an index of plain parts, slices as triples."""
    index = tuple([slice(*part) if type(part) is tuple else part for part in parts])
    return _operations(shape, entries_of(index, shape))


def _operations(shape: tuple[int, ...], entries: list[Entry]) -> list[Operation]:
    """Return what reads ints, slices and new axes from an operand of a shape."""
    operations, entries = _span_operations(shape, entries, with_positions=True)
    ones = tuple([
        d for d, e in enumerate(_of_dimensions(entries))
        if type(e) is Position
    ])  # fmt: skip
    if ones:
        operations.append(("squeeze", {"dimensions": ones}))
    if any(type(e) is NewAxis for e in entries):
        kept = [e for e in entries if type(e) is not Position]
        sizes = tuple([e.size if type(e) is Span else 1 for e in kept])
        operations.append(("reshape", {"new_sizes": sizes, "dimensions": None}))
    return operations


def _take_spans(x: Any, entries: list[Entry]) -> Any:
    """Apply the slices: whole dimensions stay."""
    operations, entries = _span_operations(x.aval.shape, entries)
    return _apply(x, operations), entries


def _span_operations(
    shape: tuple[int, ...], entries: list[Entry], *, with_positions: bool = False
) -> tuple[list[Operation], list[Entry]]:
    """Return what takes the slices (and static ints, as slices of one element), and what stays."""
    operations: list[Operation] = []
    own = _of_dimensions(entries)
    bounds = [_bounds(e, n, with_positions) for e, n in zip(own, shape, strict=True)]
    starts, limits, steps = [tuple([b[i] for b in bounds]) for i in range(3)]
    if any(starts) or limits != shape or not set(steps) <= {1}:
        strides = None if set(steps) <= {1} else steps
        operations.append(
            ("slice", {"start_indices": starts, "limit_indices": limits, "strides": strides})
        )
    backwards = tuple([d for d, e in enumerate(own) if _is_backwards(e)])
    if backwards:
        operations.append(("rev", {"dimensions": backwards}))
    return operations, [Span(0, 1, e.size) if type(e) is Span else e for e in entries]


def _of_dimensions(entries: list[Entry]) -> list[Entry]:
    """Return one entry for each dimension of the operand."""
    return [e for e in entries if type(e) is not NewAxis]


def _is_backwards(entry: Entry) -> bool:
    return type(entry) is Span and entry.step < 0 and entry.size > 1


def _bounds(entry: Entry, size: int, with_positions: bool) -> tuple[int, int, int]:
    """Return the start, limit and step of the elements that an entry names, in ascending order."""
    if type(entry) is Position and with_positions:
        return entry.value, entry.value + 1, 1
    if type(entry) is not Span:
        return 0, size, 1
    if type(entry.size) is int and entry.size < 2:
        return (entry.start, entry.start + 1, 1) if entry.size else (0, 0, 1)
    last = entry.start + (entry.size - 1) * entry.step
    low, high = (entry.start, last) if entry.step > 0 else (last, entry.start)
    return low, high + 1, abs(entry.step)


def _windows_of_one(x: Any, entries: list[Entry]) -> Array:
    """Read at one traced position in some dimensions."""
    x, entries = _take_spans(x, entries)
    x = with_new_axes(x, entries)
    shape = x.aval.shape
    dtype = index_dtype([e.array for e in entries if type(e) is Positions])
    starts, sizes, dropped = [], [], []
    for d, e in enumerate(entries):
        start, size = scalar_array(0, dtype), shape[d]
        if type(e) is Positions:
            start, size = from_front(e.array, shape[d], dtype), 1
        elif type(e) is Position:
            start, size = scalar_array(e.value, dtype), 1
        if size == 1 and type(e) in (Position, Positions):
            dropped.append(d)
        starts.append(start)
        sizes.append(size)
    _check_not_empty(shape, dropped)
    x = bind("dynamic_slice", x, *starts, slice_sizes=tuple(sizes))
    return bind("squeeze", x, dimensions=tuple(dropped))


def _check_not_empty(shape: Any, dims: Any, batch: tuple[int, ...] = ()) -> None:
    for d in dims:
        if not shape[d] and 0 not in batch:
            raise IndexError(message(
                "index", f"index is out of bounds for axis {d} with size 0.",
                got=f"an index into shape {shape}",
            ))  # fmt: skip


def _gather(
    x: Any, entries: list[Entry], are_sorted: bool, unique: bool, mode: Any, fill_value: Any
) -> Array:
    """Read the elements that index arrays name; the slices are taken already."""
    x = with_new_axes(x, entries)
    shape = x.aval.shape
    named = index_arrays(entries)
    dims, arrays = list(named), list(named.values())
    batch = common_shape("index", [a.aval for a in arrays])
    sizes = [n for d, n in enumerate(shape) if d not in named]
    front = place_of_batch(dims)
    if 0 in [shape[d] for d in dims]:
        _check_not_empty(shape, dims, batch)
        return broadcast_to(scalar_like(x, 0), (*sizes[:front], *batch, *sizes[front:]))
    offset = (*range(front), *range(front + len(batch), len(batch) + len(sizes)))
    dtype = index_dtype(arrays)
    arrays = [from_front(a, shape[d], dtype) for a, d in zip(arrays, dims, strict=True)]
    return bind(
        "gather", x, index_vectors(arrays, batch),
        dimension_numbers=GatherDimensionNumbers(offset, tuple(dims), tuple(dims)),
        slice_sizes=tuple([1 if d in named else n for d, n in enumerate(shape)]),
        indices_are_sorted=are_sorted, unique_indices=unique,
        mode=_PROMISE if mode is None else GatherScatterMode.from_any(mode),
        fill_value=_fill_scalar(fill_value, x.aval.dtype),
    )  # fmt: skip


def _fill_scalar(value: Any, dtype: Any) -> Any:
    """Return what is read out of bounds as a number of Python; None for the default, or NaN."""
    if value is None:
        return None
    scalar = np.asarray(value.to_host() if isinstance(value, ConcreteArray) else value).item()
    if isinstance(scalar, float) and scalar != scalar:
        return None
    check_fill("take", scalar, dtype)
    return scalar


# --- functions ------------------------------------------------------------------------------------


def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
    mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return the elements of `a` along an axis at integer positions.

    Positions out of bounds read what `mode` says, where NumPy raises an error.

    Args:
      a: an array.
      indices: integers; negative ones count from the end.
      axis: the dimension to take from; None takes from the flattened array.
      out: not supported, must be None.
      mode: for positions out of bounds: "fill" (the default) reads `fill_value`, "clip" moves them
        inside, "wrap" counts them modulo the size, "promise_in_bounds" says there are none.
      unique_indices: a promise that no position occurs twice.
      indices_are_sorted: a promise that positions ascend.
      fill_value: a scalar; None for NaN, the least signed, the greatest unsigned integer, True.

    Returns:
      An array of the shape of `a` with the dimension `axis` replaced by the shape of `indices`.

    Raises:
        TypeError: `a` is not an array; `out` is given.
        ValueError: `axis` is out of bounds; unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.take(xnp.array([10, 20, 30]), xnp.array([2, 0]))
      Array([30, 10], dtype=int32)
    """
    no_out("take", out)
    x, positions = array_of(a, "take"), array_of(indices, "take: indices")
    if not dtypes.is_integer(positions.aval.dtype):
        raise TypeError(f"take: the indices must be integers, got {positions.aval.str_long()}.")
    if axis is None:
        x, axis = reshape(x, (x.aval.size,)), 0
    axis = axis_of(axis, x.aval.ndim, "take")
    if mode is None is fill_value:
        check_if_asked(positions, axis, x.aval.shape)
    if mode == "wrap":
        positions = _wrap_positions(positions, x.aval.shape[axis])
    elif mode == "raise":
        raise ValueError(message(
            "take", "mode 'raise' cannot be, for errors do not depend on values.",
            expected="'fill', 'clip', 'wrap' or 'promise_in_bounds'",
        ))  # fmt: skip
    chosen = {"wrap": "promise_in_bounds", None: "fill"}.get(mode, mode)
    if chosen == "clip":
        positions = _limit(positions, x.aval.shape[axis])
    index = (*[slice(None)] * axis, positions)
    return read(
        x, index, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
        mode=chosen, fill_value=fill_value,
    )  # fmt: skip


def _limit(positions: Any, size: int) -> Any:
    """Move positions inside; NumPy's clip mode counts nothing from the end."""
    low, high = scalar_like(positions, 0), scalar_like(positions, max(size - 1, 0))
    return bind("min", bind("max", positions, low), high)


def _wrap_positions(positions: Any, size: int) -> Any:
    count = scalar_like(positions, max(size, 1))
    rest = bind("rem", positions, count)
    if dtypes.is_unsigned_integer(rest.aval.dtype):
        return rest
    return select(bind("lt", rest, scalar_like(rest, 0)), bind("add", rest, count), rest)


def take_along_axis(
    arr: ArrayLike, indices: ArrayLike, axis: int | None = -1, mode: str | None = None,
    fill_value: ArrayLike | None = None, *, wrap_negative_indices: bool = True,
) -> Array:  # fmt: skip
    """Return elements of `arr` at positions that are given for each line along an axis.

    Args:
      arr: an array.
      indices: integers, of the rank of `arr`; broadcast against it but for the axis.
      axis: the dimension that positions count in; None takes from the flattened array.
      mode: as for `take`; the default is "fill". "one_hot" is "fill" with 0, as of a product.
      fill_value: as for `take`.
      wrap_negative_indices: whether negative positions count from the end; else they are out of
        bounds.

    Returns:
      An array of the shape of `indices` (broadcast), of the dtype of `arr`. Positions out of bounds
      give NaN or the least integer, where NumPy raises an error.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `axis` is out of bounds; unknown `mode`.

    Example:
      >>> import xnp
      >>> x = xnp.array([[3, 1, 2]])
      >>> xnp.take_along_axis(x, xnp.argsort(x, axis=1), axis=1)
      Array([[1, 2, 3]], dtype=int32)
    """
    x, positions = array_of(arr, "take_along_axis"), array_of(indices, "take_along_axis: indices")
    if not dtypes.is_integer(positions.aval.dtype):
        raise TypeError(
            "take_along_axis: take_along_axis indices must be of integer type, got "
            f"{positions.aval.dtype.name}."
        )
    if axis is None:
        x, axis = reshape(x, (x.aval.size,)), 0
    if x.aval.ndim != positions.aval.ndim:
        raise ValueError(
            "take_along_axis: indices must have the rank of the array, "
            f"{x.aval.ndim}, got {positions.aval.ndim}."
        )
    axis = axis_of(axis, x.aval.ndim, "take_along_axis")
    if mode is None is fill_value:
        check_if_asked(positions, axis, x.aval.shape, wraps=wrap_negative_indices)
    if mode == "one_hot":  # 0 out of bounds, what the product with rows of one 1 gives
        mode, fill_value = "fill", 0 if fill_value is None else fill_value
    mode = "fill" if mode is None else mode
    positions = count_positions(positions, x.aval.shape[axis], wrap_negative_indices)
    if _lines(x, axis) is _lines(positions, axis) and x.aval.size:
        return _gather_along(x, positions, axis, mode, fill_value)
    return read(x, _index_along(x, positions, axis), mode=mode, fill_value=fill_value)


def _lines(x: Array, axis: int) -> Any:
    """Return the type that stands for the dimensions but the axis."""
    shape = x.aval.shape
    return shaped_array((*shape[:axis], 1, *shape[axis + 1 :]), dtypes.int32)


def _gather_along(x: Array, positions: Array, axis: int, mode: Any, fill_value: Any) -> Array:
    """Read along an axis where nothing is broadcast: the other dimensions walk together."""
    shape = positions.aval.shape
    places = from_front(positions, x.aval.shape[axis], index_dtype([positions]))
    others = tuple([d for d in range(len(shape)) if d != axis])
    return bind(
        "gather", x, reshape(places, (*shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * len(shape), indices_are_sorted=False, unique_indices=False,
        mode=GatherScatterMode.from_any(mode), fill_value=_fill_scalar(fill_value, x.aval.dtype),
    )  # fmt: skip


def _index_along(x: Array, positions: Array, axis: int) -> tuple[Array, ...]:
    """Return index arrays: the positions along the axis, elsewhere each element's own place."""
    outer = common_shape("take_along_axis", [_lines(x, axis), _lines(positions, axis)])
    shape = (*outer[:axis], positions.aval.shape[axis], *outer[axis + 1 :])
    return tuple([
        broadcast_to(positions, shape) if d == axis
        else _own_places(d, n, len(shape), x.aval.shape[d]) for d, n in enumerate(shape)
    ])  # fmt: skip


def _own_places(d: int, count: int, rank: int, size: int) -> Array:
    if size == 1:
        return scalar_array(0, dtypes.int32)
    shape = tuple([count if i == d else 1 for i in range(rank)])
    return reshape(counting((count,), 0, dtypes.int32), shape)


boundaries(globals())
