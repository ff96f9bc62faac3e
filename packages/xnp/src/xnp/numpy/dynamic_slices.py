"""`ds(start, size)`: a slice of a fixed size at a start that may be traced, in an index.

`x[ds(i, 2), 0]` first takes a window of the operand by `dynamic_slice`, then what the rest of the
index names of it; `x.at[ds(i, 2), 0].set(y)` writes into that window and puts it back. A start that
is a Python number makes an ordinary slice. Neighbours: `indexing` and `index_update` ask for the
window of an index before they look at its other parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import xtree
from xnp.numpy.index_entries import counted_positions, dimensions_of, from_front, index_dtype
from xnp.numpy.promoting import bind, filled, scalar_like, selected
from xnp.primitives.index_modes import fill_of
from xprim import Array, dtypes, scalar_array
from xprim.errors import ShapeError, message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["DynamicSlice", "ds"]

__dir__ = __all__.copy


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


def _flattened(part: DynamicSlice) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if isinstance(part.start, Array):
        return (part.start,), (None, part.size, part.stride)
    return (), (part.start, part.size, part.stride)


def _unflattened(metadata: tuple[Any, ...], children: Sequence[Any]) -> DynamicSlice:
    start, size, stride = metadata
    return DynamicSlice(children[0] if children else start, size, stride)


xtree.register_pytree_node(DynamicSlice, _flattened, _unflattened)


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
      TypeError: for a start that is no integer.

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

    def written(self, x: Array, window: Array) -> Array:
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
    return selected(window.fits(), found, filled(found.aval.shape, value, found.aval.dtype))


def written_in_window(
    x: Array, index: Any, wraps: bool, moved: bool, write: Callable[[Array, Any], Array]
) -> Array:
    """Return `x` with what `write` makes of the window of an index.

    A window that does not fit is moved inside, or left as it was.
    """
    window = _window_of(index, x.aval.shape, wraps)
    before = window.read(x)
    after = write(before, window.rest)
    if window.rooms and not moved:
        after = selected(window.fits(), after, before)
    return window.written(x, after)


def _window_of(index: Any, shape: tuple[int, ...], wraps: bool) -> Window:
    """Return the window of an index with dynamic slices into an operand of a shape."""
    parts, moving = _parts_of(index, len(shape))
    if not moving:
        return Window(parts, None, shape, {})
    dtype = index_dtype([part.start for part in moving.values()])
    rooms = {d: _room(part, d, shape) for d, part in moving.items()}
    starts = [scalar_array(0, dtype)] * len(shape)
    for d, part in moving.items():
        starts[d] = from_front(counted_positions(part.start, shape[d], wraps), shape[d], dtype)
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
