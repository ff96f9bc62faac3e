"""What an index expression says: an entry for each dimension, new axes; `ds(start, size)`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import xtree
from xnp.numpy.dispatch import cast
from xnp.primitives.index_modes import check_positions, fill_of
from xnp.primitives.table import bind, broadcast_to, fill, reshape, scalar_like, select
from xprim import Array, ConcreteArray, Tracer, as_array, dtypes, errors, from_numpy, scalar_array
from xprim.avals import SymbolicSize, size_of, slice_indices
from xprim.errors import ConcretizationTypeError, IndexTypeError, ShapeError, described, message
from xprim.requirements import require_choice, static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["DynamicSlice", "ds"]

__dir__ = __all__.copy


# --------------------------------------------------------------------------------- index entries
# What an index expression says: one entry for each dimension of the operand, and new axes.
#
# `x[..., None, 2, 1:5, i, mask]` becomes a list of entries in the order of the operand's
# dimensions:
#
#     Position(3)              a static int, in bounds
#     Span(start, step, size)  a slice, with the number of elements it takes
#     NewAxis()                None
#     Positions(array)         an integer Array, concrete or traced; a concrete mask becomes as
#     many
#                              of these as it has dimensions
#
# Static ints are checked against the bounds here, whatever the trace.


class Position(NamedTuple):
    """One element of a dimension, counted from the front."""

    value: int


class Span(NamedTuple):
    """Elements of a dimension in equal steps, which may be negative."""

    start: int
    step: int
    size: int


class NewAxis(NamedTuple):
    """A dimension of size 1 that the operand does not have."""


class Positions(NamedTuple):
    """The elements of a dimension that an integer Array names."""

    array: Any


Entry: TypeAlias = Position | Span | NewAxis | Positions


def entries_of(
    index: Any, shape: tuple[int, ...], *, checks: bool = True, wraps: bool = True,
    checks_arrays: bool = False,
) -> list[Entry]:  # fmt: skip
    """Return the entries of an index expression into an operand of a shape.

    Args:
      index: what stands between the brackets.
      shape: the operand's.
      checks: whether a static int out of bounds is an IndexError; else it becomes `Positions`, for
        which the mode decides.
      wraps: whether negative positions count from the end; else they are out of bounds.
      checks_arrays: whether `config.index_checks` has positions in arrays checked, too.

    Raises:
      IndexError: too many indices, a position out of bounds, a mask of another shape.
      NonConcreteBooleanIndexError: a traced mask.
      IndexTypeError: something that is not an index.
      FlagsInIndex: there are single booleans that are more than a new axis: see there.
    """
    parts = [_plain(part) for part in (index if type(index) is tuple else (index,))]
    taken = sum([_count(part) for part in parts])
    if taken > len(shape):
        raise IndexError(message(
            "Too many indices",
            f"array is {len(shape)}-dimensional, but {taken} were indexed.",
            got=f"an index into shape {shape}",
        ))  # fmt: skip
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("index: an index can have one ellipsis ('...'), got several.")
    rest = [slice(None)] * (len(shape) - taken)
    place = ellipses[0] if ellipses else len(parts)
    parts = [*parts[:place], *rest, *parts[place + 1 :]]
    _check_flags(parts)
    entries: list[Entry] = []
    axis = 0
    for part in parts:
        entries += _entries(part, axis, shape, checks, wraps)
        if checks_arrays and checks and wraps:
            check_positions(part, axis, shape)
        axis += _count(part)
    return entries


class FlagsInIndex(Exception):  # noqa: N818 - no error: the index is to be written another way
    """Single booleans in an index beside arrays of positions, or a False.

    Each is a vector of positions of a new dimension of size 1: of its one element, or of none. It
    broadcasts with the other vectors. `as_positions` writes an index so.
    """


def _check_flags(parts: Sequence[Any]) -> None:
    flags = [p for p in parts if isinstance(p, ConcreteArray) and _is_flag(p)]
    others = len([p for p in parts if isinstance(p, Array)]) - len(flags)
    if flags and (others or len(flags) > 1 or not bool(flags[0].to_host())):
        raise FlagsInIndex


def _is_flag(part: Any) -> bool:
    return not part.aval.ndim and part.aval.dtype == dtypes.bool_


def as_positions(x: Array, index: Any) -> tuple[Array, tuple[Any, ...]]:
    """Return an array with a dimension for each single boolean of an index, and that index of it.

    Source: https://numpy.org/doc/stable/user/basics.indexing.html, on booleans of no dimension.

    Example:
      >>> x, index = as_positions(as_array(np.ones((3, 4))), (0, False))
      >>> x.shape, index[0], index[1].shape
      ((3, 1, 4), 0, (0,))
    """
    parts = index if type(index) is tuple else (index,)
    shape, inserted, found = list(x.aval.shape), 0, []
    for part, dim in zip(parts, dimensions_of(parts, x.aval.ndim), strict=True):
        plain = _plain(part)
        if isinstance(plain, ConcreteArray) and _is_flag(plain):
            shape.insert(dim + inserted, 1)
            inserted += 1
            part = np.zeros(int(plain.to_host()), np.int32)
        found.append(part)
    return reshape(x, tuple(shape)), tuple(found)


_STRATEGIES = ("auto", "gather", "static_slice", "dynamic_slice")


def check_strategy(strategy: str, index: Any) -> None:
    """Refuse a way of reading that does not serve an index."""
    require_choice("at[].get", "strategy", strategy, _STRATEGIES)
    if not strategy.endswith("_slice"):
        return
    for part in index if type(index) is tuple else (index,):
        plain = _plain(part)
        if isinstance(plain, Array) and (strategy == "static_slice" or plain.aval.ndim):
            wanted = "ints, slices, None and ..."
            scalars = "" if strategy == "static_slice" else ", and integer arrays of rank 0"
            raise TypeError(message(
                "at[].get", f"the strategy {strategy!r} does not read at {described(part)}.",
                expected=f"{wanted}{scalars}",
            ))  # fmt: skip


def _plain(part: Any) -> Any:
    """Bring a part of an index to an int, slice, None, Ellipsis or Array."""
    if part is None or part is Ellipsis or isinstance(part, slice | Array):
        return part
    if isinstance(part, bool | np.bool_):
        return from_numpy(np.asarray(bool(part)))
    if isinstance(part, int | np.integer):
        return int(part)
    if isinstance(part, list | tuple | range):
        part = _list_of_positions(part)
        if isinstance(part, Array):
            return part
    if isinstance(part, np.ndarray) and part.dtype.kind in "iu" and part.ndim == 0:
        return int(part)
    if isinstance(part, np.ndarray | np.generic):
        if part.dtype.kind not in "OSUMm":  # objects, strings, dates
            return from_numpy(part, what="index")
    elif hasattr(part, "__index__"):
        return size_of(part)
    elif hasattr(part, "__array__") or hasattr(part, "__jax_array__"):
        return as_array(part, what="index")
    raise IndexTypeError(
        "Indexer must have integer or boolean type, got indexer with type "
        f"{type(part).__name__}.\n  expected  ints, slices, None, ..., integer or boolean arrays"
    )


def _list_of_positions(part: Any) -> Any:
    if _holds_traced(part):
        return _join(part)
    try:
        found = np.asarray(
            [int(p) if isinstance(p, ConcreteArray) and not p.ndim else p for p in part]
        )
    except ValueError:  # rows of several lengths
        found = np.asarray(None)
    if found.size == 0:
        found = found.astype(np.int32)
    if found.dtype.kind not in "iub":
        raise IndexTypeError(message(
            "index", "a list can index only when it is an array of integers or booleans.",
            got=described(part),
            hint="a tuple has an index for each dimension: x[tuple(indices)]",
        ))  # fmt: skip
    return found


def dimensions_of(parts: Sequence[Any], ndim: int) -> list[int]:
    """Return the first dimension that each part of an index takes of an operand of a rank."""
    counts = [_count(_plain(part)) for part in parts]
    dims, axis = [], 0
    for part, count in zip(parts, counts, strict=True):
        dims.append(axis)
        axis += ndim - sum(counts) if part is Ellipsis else count
    return dims


def _holds_traced(part: Any) -> bool:
    if isinstance(part, list | tuple):
        return any(map(_holds_traced, part))
    return isinstance(part, Tracer)


def _join(part: Any) -> Any:
    """Return nested sequences of positions, of which some are traced, as one array."""
    if not isinstance(part, list | tuple):
        return as_array(part, what="index")
    arrays = [_join(p) for p in part]
    dtype = index_dtype(arrays)
    rows = [reshape(cast(x, dtype), (1, *x.aval.shape)) for x in arrays]
    return bind("concatenate", *rows, dimension=0)


def _count(part: Any) -> int:
    """Return how many dimensions of the operand a part takes."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, Array) and part.aval.dtype == dtypes.bool_:
        return part.aval.ndim
    return 1


def _entries(part: Any, axis: int, shape: Any, checks: bool, wraps: bool) -> list[Entry]:
    if part is None:
        return [NewAxis()]
    if type(part) is int:
        size = shape[axis]
        if (-size if wraps else 0) <= part < size:
            return [Position(part % size)]
        if checks and wraps:
            raise IndexError(message(
                "index", f"{part} is out of bounds for axis {axis} with size {size}.",
                got=f"an index into shape {shape}", expected=f"an int from {-size} to {size - 1}",
            ))  # fmt: skip
        return [Positions(count_positions(scalar_array(part, dtypes.int32), size, wraps))]
    if isinstance(part, slice):
        return [_span(part, shape[axis])]
    if part.aval.dtype == dtypes.bool_:
        return _mask_entries(part, axis, shape)
    if not dtypes.is_integer(part.aval.dtype):
        raise IndexTypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{part.aval.str_long()}."
        )
    return [Positions(count_positions(part, shape[axis], wraps))]


def count_positions(array: Any, size: int, wraps: bool) -> Any:
    """Return positions whose negative ones are out of bounds unless they wrap.

    `from_front` adds the size to negative positions, so it is taken from them here.
    """
    if wraps or dtypes.is_unsigned_integer(array.aval.dtype):
        return array
    array = cast(array, index_dtype([array]))
    below = bind("lt", array, scalar_like(array, 0))
    return select(below, bind("sub", array, scalar_like(array, size)), array)


def _span(part: slice, size: int) -> Span:
    bounds = [_static_bound(b) for b in (part.start, part.stop, part.step)]
    if bounds[2] == 0:
        raise ValueError("index: the step of a slice must not be 0.")
    start, _, step, count = slice_indices(slice(*bounds), size)
    return Span(start, step, count)


class TracedSliceError(ConcretizationTypeError, IndexError):
    """A bound of a slice is traced; caught as an error of indexing, too, as of JAX."""


def _static_bound(bound: Any) -> int | None:
    if bound is None or type(bound) is int:
        return bound
    if isinstance(bound, Tracer) and bound.concrete() is None:
        raise TracedSliceError(
            bound,
            "index",
            "a bound of a slice is a traced value, but the shape of the result depends on it.",
            "lax.dynamic_slice(x, (start,), (size,)) takes a slice of fixed size at a traced\n"
            "start; if the bound is an option, make that argument static:\n"
            "jit(f, static_argnums=...)",
        )
    return static_int(bound, "index", "a bound of a slice")


def _mask_entries(mask: Any, axis: int, shape: Any) -> list[Entry]:
    if not isinstance(mask, ConcreteArray):
        raise errors.NonConcreteBooleanIndexError(mask)
    expected = shape[axis : axis + mask.ndim]
    if mask.shape != expected:
        raise IndexError(
            f"index: the boolean index did not match shape {expected} of what it indexes: its own "
            f"is {mask.shape}."
        )
    if not mask.ndim:  # a single True: `FlagsInIndex` has the others
        return [NewAxis()]
    return [Positions(from_numpy(p.astype(np.int32))) for p in np.nonzero(mask.to_host())]


# --- integer arrays as index vectors --------------------------------------------------------------


def index_dtype(arrays: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype of index vectors: int32 but where an index array is wider."""
    wide = (dtypes.int64, dtypes.uint64, dtypes.uint32)
    return dtypes.int64 if any(a.aval.dtype in wide for a in arrays) else dtypes.int32


def from_front(array: Any, size: int, dtype: Any) -> Any:
    """Return an index Array with negative numbers counted from the end."""
    if type(array) is ConcreteArray and array.aval.type_sharding is None:
        host = array.to_host()
        is_signed = host.dtype.kind != "u"
        host = host.astype(dtype)  # first: the size need not fit the dtype of the indices
        if is_signed:
            if isinstance(size, SymbolicSize) and (host < 0).any():
                return _from_symbolic_front(host, size)
            if host.size and host.min() < 0 and not isinstance(size, SymbolicSize):
                host = np.where(host < 0, host + size, host)
        if not host.ndim:
            return scalar_array(host.item(), host.dtype)  # a position is a literal in programs
        return from_numpy(host, copy=False, canonical=False)
    if dtypes.is_unsigned_integer(array.aval.dtype):
        return cast(array, dtype)
    array = cast(array, dtype)
    below = bind("lt", array, scalar_like(array, 0))
    return select(below, bind("add", array, scalar_like(array, size)), array)


def _from_symbolic_front(host: Any, size: int) -> Any:
    below = from_numpy(host < 0, copy=False)
    array = from_numpy(host, copy=False, canonical=False)
    return select(below, bind("add", array, scalar_like(array, size)), array)


def index_vectors(arrays: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return index vectors: the arrays broadcast to a shape, side by side in a last dimension."""
    columns = []
    for array in arrays:
        column = broadcast_to(array, shape) if array.aval.ndim else array
        target = (*shape, 1)
        columns.append(
            bind("broadcast_in_dim", column, shape=target,
                 broadcast_dimensions=tuple(range(column.aval.ndim)))
            if column.aval.shape != target else column
        )  # fmt: skip
    if len(columns) == 1:
        return columns[0]
    return bind("concatenate", *columns, dimension=len(shape))


def index_arrays(entries: Sequence[Entry]) -> dict[int, Any]:
    """Return the index arrays of the dimensions that have one; static ints are such of rank 0."""
    return {
        d: e.array if isinstance(e, Positions) else scalar_array(e.value, dtypes.int32)
        for d, e in enumerate(entries)
        if isinstance(e, Position | Positions)
    }


def place_of_batch(dims: Sequence[int]) -> int:
    """Return how many other dimensions come before those of the index arrays of `dims`.

    NumPy's rule: they are where the first array stood if all stand side by side, else in front.
    """
    return dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0


def with_new_axes(x: Any, entries: Sequence[Entry]) -> Any:
    """Return `x` with a dimension of size 1 for each new axis among the entries."""
    sizes = iter(x.aval.shape)
    return reshape(x, tuple([1 if type(e) is NewAxis else next(sizes) for e in entries]))


# -------------------------------------------------------------------------------- dynamic slices
# `ds(start, size)`: a slice of a fixed size at a start that may be traced, in an index.
#
# `x[ds(i, 2), 0]` first takes a window of the operand by `dynamic_slice`, then what the rest of
# the index names of it; `x.at[ds(i, 2), 0].set(y)` writes into that window and puts it back. A
# start that is a Python number makes an ordinary slice.


class DynamicSlice:
    """What `ds` makes: a number of elements from a start on, in steps.

    It is a pytree, whose leaf is the start if that is an array.

    Attributes:
      start: where it begins: an int, or an integer Array of rank 0.
      size: how many elements it takes.
      stride: the step from one to the next, at least 1.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: int, stride: int = 1) -> None:
        self.start = start
        self.size = size
        self.stride = stride

    def __repr__(self) -> str:
        return f"ds({self.start!r}, {self.size}, {self.stride})"

    @property
    def extent(self) -> int:
        """How many elements lie from the first to the last."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


def _flatten(part: DynamicSlice) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if isinstance(part.start, Array):
        return (part.start,), (None, part.size, part.stride)
    return (), (part.start, part.size, part.stride)


def _unflatten(metadata: tuple[Any, ...], children: Sequence[Any]) -> DynamicSlice:
    start, size, stride = metadata
    return DynamicSlice(children[0] if children else start, size, stride)


xtree.register_pytree_node(DynamicSlice, _flatten, _unflatten)


@boundary
def ds(
    start: ArrayLike | None, size: int | None = None, stride: int | None = None
) -> DynamicSlice | slice:
    """Make a slice of a fixed size, whose start may be traced, to index arrays and references.

    `ds(i, n)` is `i : i + n` and `ds(i, n, s)` takes `n` elements in steps of `s`. A slice with a
    traced start that does not fit is moved inside where it is read, as by `lax.dynamic_slice`; an
    update there is left out as a whole, unless its `mode` is "clip".

    Args:
      start: an integer, or an integer array of rank 0; None for 0.
      size: how many elements, known while tracing; without it, `ds(n)` is `:n` and `ds(None)` `:`.
      stride: the step, at least 1; None for 1.

    Returns:
      Something to index with.

    Raises:
      ValueError: for a negative size, and a step below 1.
      TypeError: for a start that is not an integer.

    Example:
      >>> import xnp
      >>> x = xnp.arange(10)
      >>> x[ds(4, 2)]
      Array([4, 5], dtype=int32)
      >>> x.at[ds(xnp.asarray(7), 2)].set(0)
      Array([0, 1, 2, 3, 4, 5, 6, 0, 0, 9], dtype=int32)
    """
    if start is None and size is None:
        return slice(None, None, stride)
    start, taken = (0, start) if size is None else (start, size)
    size = static_int(taken, "ds", "the size")
    stride = 1 if stride is None else static_int(stride, "ds", "the stride")
    if size < 0 or stride < 1:
        raise ValueError(message(
            "ds", "the size must not be negative, and the stride at least 1.",
            got=f"size {size}, stride {stride}",
        ))  # fmt: skip
    return DynamicSlice(_start_of(start), size, stride)


def _start_of(start: Any) -> Any:
    if start is None:
        return 0
    if not isinstance(start, Array):
        return static_int(start, "ds", "the start")
    if start.ndim or not dtypes.is_integer(start.aval.dtype):
        raise TypeError(f"ds: the start must be an integer, got {start.aval.str_long()}.")
    return start


def has_slices(index: Any) -> bool:
    """Whether a part of an index is made by `ds`."""
    if type(index) is tuple:
        return any(type(part) is DynamicSlice for part in index)
    return type(index) is DynamicSlice


class Window(NamedTuple):
    """A part of an operand that an index with dynamic slices reads or writes.

    Attributes:
      rest: the index into the window of what the whole index names of the operand.
      starts: where it begins, one Array for each dimension; None when it is the whole operand.
      sizes: its shape.
      rooms: for each dimension with a dynamic slice the last start at which it fits.
    """

    rest: tuple[Any, ...]
    starts: tuple[Any, ...] | None
    sizes: tuple[int, ...]
    rooms: dict[int, int]

    def fits(self) -> Array:
        """Return whether all of it lies in the operand, as a boolean Array."""
        starts: Any = self.starts
        bounds = [(starts[d], room) for d, room in self.rooms.items()]
        inside = [
            bind("and", bind("ge", start, scalar_like(start, 0)),
                 bind("le", start, scalar_like(start, room)))
            for start, room in bounds
        ]  # fmt: skip
        return functools.reduce(functools.partial(bind, "and"), inside)

    def read(self, x: Array) -> Array:
        """Return the window; one that does not fit is moved inside."""
        if self.starts is None:
            return x
        return bind("dynamic_slice", x, *self.starts, slice_sizes=self.sizes)

    def write(self, x: Array, window: Array) -> Array:
        """Return `x` with the window in its place."""
        if self.starts is None:
            return window
        return bind("dynamic_update_slice", x, window, *self.starts)


def read_in_window(
    x: Array, index: Any, wraps: bool, fill_value: Any, fills: bool,
    read: Callable[[Array, Any], Array],
) -> Array:  # fmt: skip
    """Return what `read` finds in the window of an index, or a fill value if it does not fit."""
    window = _window_of(index, x.aval.shape, wraps)
    found = read(window.read(x), window.rest)
    if not window.rooms or not fills:
        return found
    value = fill_of(found.aval.dtype, fill_value)
    return select(window.fits(), found, fill(found.aval.shape, value, found.aval.dtype))


def update_window(
    x: Array, index: Any, wraps: bool, moved: bool, write: Callable[[Array, Any], Array]
) -> Array:
    """Return `x` with what `write` makes of the window of an index.

    A window that does not fit is moved inside, or left as it was.
    """
    window = _window_of(index, x.aval.shape, wraps)
    before = window.read(x)
    after = write(before, window.rest)
    if window.rooms and not moved:
        after = select(window.fits(), after, before)
    return window.write(x, after)


def _window_of(index: Any, shape: tuple[int, ...], wraps: bool) -> Window:
    """Return the window of an index with dynamic slices into an operand of a shape."""
    parts, moving = _parts_of(index, len(shape))
    if not moving:
        return Window(parts, None, shape, {})
    dtype = index_dtype([part.start for part in moving.values()])
    rooms = {d: _room(part, d, shape) for d, part in moving.items()}
    starts = [scalar_array(0, dtype)] * len(shape)
    for d, part in moving.items():
        starts[d] = from_front(count_positions(part.start, shape[d], wraps), shape[d], dtype)
    sizes = tuple([moving[d].extent if d in moving else n for d, n in enumerate(shape)])
    return Window(parts, tuple(starts), sizes, rooms)


def _parts_of(index: Any, ndim: int) -> tuple[tuple[Any, ...], dict[int, DynamicSlice]]:
    """Return an index of plain slices, and those that move by the dimension that they take."""
    parts = list(index if type(index) is tuple else (index,))
    dims = dimensions_of([slice(None) if _is_slice(p) else p for p in parts], ndim)
    moving: dict[int, DynamicSlice] = {}
    for place, part in enumerate(parts):
        if _is_slice(part) and isinstance(part.start, Array):
            moving[dims[place]] = part
            parts[place] = slice(None, None, part.stride)
        elif _is_slice(part):
            parts[place] = slice(part.start, part.start + part.extent, part.stride)
    return tuple(parts), moving


def _is_slice(part: Any) -> bool:
    return type(part) is DynamicSlice


def _room(part: DynamicSlice, axis: int, shape: tuple[int, ...]) -> int:
    """Return the last start at which a slice fits; an error if there is none."""
    room = shape[axis] - part.extent
    if room < 0:
        raise ShapeError(message(
            "index", f"ds takes {part.extent} elements of dimension {axis}, which has "
            f"{shape[axis]}.", got=f"an index into shape {shape}",
        ))  # fmt: skip
    return room
