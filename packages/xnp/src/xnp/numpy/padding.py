"""`pad`: more elements around an array, by NumPy's modes; and `trim_zeros`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtree
from xnp.numpy import dispatch
from xnp.numpy.dispatch import array_of, as_array_like, axes_of, axis_of, cast, copy_if_aliased
from xnp.numpy.elementary import round as round_
from xnp.numpy.indexing import read
from xnp.numpy.ranges import linspace
from xnp.numpy.reductions import max as max_, mean, min as min_
from xnp.numpy.statistics import median
from xnp.primitives.table import bind, broadcast_to, reshape, scalar_like
from xprim import Array, ConcreteArray, dtypes
from xprim.avals import SymbolicSize, size_of
from xprim.errors import ConcretizationTypeError
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, Axis

__all__ = ["pad", "trim_zeros"]

__dir__ = __all__.copy


@boundary
def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any] | dict[int, Any],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """Return an array with elements added at both ends of each axis.

    Args:
      array: an array.
      pad_width: how many: an int, a pair (before, after) for all axes, or a pair for each axis.
      mode: "constant" (of `constant_values`), "edge", "linear_ramp" (to `end_values`), "maximum",
        "mean", "median", "minimum" (over the `stat_length` elements next to the end), "reflect",
        "symmetric" (with `reflect_type` "even" or "odd"), "wrap", "empty", or a function as of
        `numpy.pad`.
      **kwargs: the options of the mode.

    Returns:
      An array of the dtype of `array`.

    Raises:
        ValueError: unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.pad(xnp.array([1, 2]), 1, mode="edge")
      Array([1, 1, 2, 2], dtype=int32)
    """
    x = array_of(array, "pad")
    widths = _pairs(pad_width, x.aval.ndim, "pad_width", x.aval.shape)
    require(
        all(n >= 0 for pair in widths for n in pair), "pad",
        "pad_width must not be negative, got {}.", pad_width,
    )  # fmt: skip
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)  # type: ignore[no-any-return]
    _check_options(mode, kwargs)
    if mode in ("constant", "empty"):
        filled = _constant(x, widths, kwargs.get("constant_values", 0))
        return copy_if_aliased(filled, x)  # type: ignore[no-any-return]
    hosts = dispatch.elements_now(x) if mode in _COPYING and x.aval.size >= _LARGE else None
    if hosts is not None and kwargs.get("reflect_type", "even") == "even":
        padded = np.pad(hosts[0], widths, mode)  # type: ignore[call-overload]
        return ConcreteArray(padded, x.aval.update(shape=padded.shape))
    result = x
    for d in range(x.aval.ndim):
        if widths[d] != (0, 0):
            result = _MODES[mode](result, d, *widths[d], **kwargs)
    return copy_if_aliased(result, x)  # type: ignore[no-any-return]


_COPYING = frozenset(["edge", "reflect", "symmetric", "wrap"])
_LARGE = 1 << 14  # elements: where NumPy's own loop over all axes at once pays


def _check_options(mode: str, given: dict[str, Any]) -> None:
    require_choice("pad", "mode", mode, _OPTIONS)
    unknown = [name for name in given if name not in _OPTIONS[mode]]
    require(
        not unknown, "pad", "unsupported keyword arguments for mode '{}': {}.", mode,
        ", ".join(map(repr, unknown)),
    )  # fmt: skip


_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",), "empty": (), "edge": (), "wrap": (),
    "linear_ramp": ("end_values",), "maximum": ("stat_length",), "mean": ("stat_length",),
    "median": ("stat_length",), "minimum": ("stat_length",), "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
}  # fmt: skip


def _pairs(value: Any, ndim: int, name: str, shape: Any) -> list[tuple[Any, Any]]:
    """Return a pair for each axis from a number, one pair, or a pair for each."""
    if isinstance(value, dict):
        given = {axis_of(d, ndim, "pad"): v for d, v in value.items()}
        return [_pair(given.get(d, 0)) for d in range(ndim)]
    if name != "pad_width" and not _is_static(value):
        return _trace_pairs(value, ndim)
    if isinstance(value, Array) and not isinstance(value, ConcreteArray):
        raise ConcretizationTypeError(value, "pad", f"{name} is traced, but shapes are static.")
    host = _widths_on_host(value) if name == "pad_width" else np.asarray(value)
    try:
        return [tuple(p) for p in np.broadcast_to(host, (ndim, 2)).tolist()]
    except ValueError:
        raise ValueError(
            f"pad: {name} must be a number, a pair, or a pair for each of {ndim} axes, got {value}."
        ) from None


def _widths_on_host(value: Any) -> np.ndarray[Any, Any]:
    """Return widths, of ints, as an array of NumPy."""
    if any(isinstance(n, SymbolicSize) for n in xtree.leaves(value)):
        return np.asarray(value, object)  # NumPy would ask for its number
    host = np.asarray(value)
    require(
        host.dtype.kind in "iu", "pad", "pad_width must be of ints, got {!r}.", value,
        error=TypeError,
    )  # fmt: skip
    return host


def _trace_pairs(value: Any, ndim: int) -> list[tuple[Any, Any]]:
    if isinstance(value, list | tuple):
        return [_pair(v) for v in value] if len(value) == ndim else [_pair(value)] * ndim
    if not value.ndim:
        return [(value, value)] * ndim
    rows = [value] * ndim if value.ndim == 1 else [value[d] for d in range(ndim)]
    return [(row[..., 0], row[..., 1]) for row in rows]


def _is_static(value: Any) -> bool:
    """Whether numbers are known: a concrete array's are, but not those of arrays in a list."""
    if isinstance(value, list | tuple):
        return not any(isinstance(v, Array) or not _is_static(v) for v in value)
    return not isinstance(value, Array) or isinstance(value, ConcreteArray)


def _pair(value: Any) -> tuple[Any, Any]:
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


def _constant(x: Any, widths: Any, values: Any) -> Any:
    pairs = _pairs(values, x.aval.ndim, "constant_values", x.aval.shape)
    if pairs and not isinstance(values, dict | list | tuple) and not np.ndim(values):
        fill = cast(as_array_like(pairs[0][0], x, "pad"), x.aval.dtype, x.aval.weak_type)
        return bind("pad", x, fill, padding_config=tuple([(*ends, 0) for ends in widths]))
    for d, ((low, high), (first, last)) in enumerate(zip(widths, pairs, strict=True)):
        for ends, value in (((low, 0, 0), first), ((0, high, 0), last)):
            if ends != (0, 0, 0):
                config = tuple([ends if i == d else (0, 0, 0) for i in range(x.aval.ndim)])
                fill = cast(as_array_like(value, x, "pad"), x.aval.dtype, x.aval.weak_type)
                x = bind("pad", x, reshape(fill, ()), padding_config=config)
    return x


def _by_positions(positions: Callable[[int, int, int], Any]) -> Callable[..., Any]:
    """Return a mode that copies elements: from a size and widths to positions."""

    def pad(x: Any, d: int, low: int, high: int, reflect_type: str = "even") -> Any:
        size = x.aval.shape[d]
        _check_not_empty(size, d)
        places = np.asarray(positions(size, low, high), np.int32)
        if reflect_type == "even":
            return _copy(x, d, places, low)
        require(
            reflect_type == "odd", "pad", "reflect_type must be 'even' or 'odd', got {!r}.",
            reflect_type,
        )  # fmt: skip
        return _odd(x, d, low, high, positions)

    return pad


def _check_not_empty(size: int, d: int) -> None:
    """Refuse to continue an axis that has nothing to be continued, as NumPy does."""
    require(size, "pad", "axis {} has no elements to copy from; use mode 'constant'.", d)


def _copy(x: Any, d: int, places: np.ndarray[Any, Any], low: int) -> Any:
    """Copy the elements at positions along an axis: a few runs of neighbours as slices.

    From position `low` on stands the whole array, which is copied as it is.
    """
    size = x.aval.shape[d]
    runs = [*_runs(places[:low]), (0, size, 1), *_runs(places[low + size :])]
    if len(runs) > _MAX_RUNS:
        return read(x, (*(slice(None),) * d, places))
    parts = []
    for first, count, step in runs:
        starts, stops = [0] * x.aval.ndim, list(x.aval.shape)
        starts[d] = first - count + 1 if step < 0 else first
        stops[d] = starts[d] + count if step else first + 1
        part = bind("slice", x, start_indices=tuple(starts), limit_indices=tuple(stops),
                    strides=None)  # fmt: skip
        if step < 0:
            part = bind("rev", part, dimensions=(d,))
        if not step:
            part = broadcast_to(part, (*part.aval.shape[:d], count, *part.aval.shape[d + 1 :]))
        parts.append(part)
    return bind("concatenate", *parts, dimension=d) if len(parts) > 1 else parts[0]


_MAX_RUNS = 8


def _runs(places: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Cut positions into runs `(first, count, step)` whose neighbours are 1, -1 or 0 apart."""
    runs: list[tuple[int, int, int]] = []
    start, steps = 0, np.diff(places)
    while start < places.size and len(runs) <= _MAX_RUNS:
        step = int(steps[start]) if start < steps.size else 1
        changes = np.flatnonzero(steps[start:] != step)
        count = 1 if abs(step) > 1 else 1 + int(changes[0] if changes.size else steps.size - start)
        runs.append((int(places[start]), count, step if count > 1 else 1))
        start += count
    return runs


def _odd(x: Any, d: int, low: int, high: int, positions: Any) -> Any:
    """Reflect with 2 edge - x, in steps of at most what is there."""
    lead = (slice(None),) * d
    shift = 0 if positions is _symmetric else 1
    while low or high:
        size = x.aval.shape[d]
        step = max(size - shift, 1)
        a, b = min(low, step), min(high, step)
        parts = []
        if a:
            edge = read(x, (*lead, slice(0, 1)))
            mirrored = read(x, (*lead, np.arange(a - 1 + shift, shift - 1, -1) % size))
            parts.append(bind("sub", bind("mul", broadcast_to(edge, mirrored.aval.shape),
                                          scalar_like(x, 2)), mirrored))  # fmt: skip
        parts.append(x)
        if b:
            edge = read(x, (*lead, slice(size - 1, size)))
            places = (size - 1 - shift - np.arange(b)) % size
            mirrored = read(x, (*lead, places))
            parts.append(bind("sub", bind("mul", broadcast_to(edge, mirrored.aval.shape),
                                          scalar_like(x, 2)), mirrored))  # fmt: skip
        x = bind("concatenate", *parts, dimension=d) if len(parts) > 1 else x
        low, high = low - a, high - b
    return x


def _edge(size: int, low: int, high: int) -> Any:
    return np.clip(np.arange(-low, size + high), 0, size - 1)


def _wrap(size: int, low: int, high: int) -> Any:
    return np.arange(-low, size + high) % size


def _reflect(size: int, low: int, high: int) -> Any:
    period = max(2 * (size - 1), 1)
    places = np.arange(-low, size + high) % period
    return np.where(places < size, places, period - places) if size > 1 else places * 0


def _symmetric(size: int, low: int, high: int) -> Any:
    places = np.arange(-low, size + high) % (2 * size)
    return np.where(places < size, places, 2 * size - 1 - places)


def _ramp(x: Any, d: int, low: int, high: int, end_values: Any = 0) -> Any:
    first, last = _pairs(end_values, x.aval.ndim, "end_values", x.aval.shape)[d]
    size, dtype = x.aval.shape[d], x.aval.dtype
    _check_not_empty(size, d)
    lead = (slice(None),) * d
    parts = [x]
    if low:
        edge = read(x, (*lead, 0))
        ramp = linspace(first, edge, low, endpoint=False, dtype=dtype, axis=d)
        parts.insert(0, _as(ramp, x))
    if high:
        edge = read(x, (*lead, size - 1))
        ramp = linspace(last, edge, high, endpoint=False, dtype=dtype, axis=d)
        parts.append(bind("rev", _as(ramp, x), dimensions=(d,)))
    return bind("concatenate", *parts, dimension=d)


def _as(values: Any, x: Any) -> Any:
    return cast(array_of(values, "pad"), x.aval.dtype, x.aval.weak_type)


def _statistic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mode that repeats a statistic of the elements next to an end."""

    def repeat(x: Any, d: int, count: int, part: slice) -> list[Any]:
        if not count:
            return []
        value = function(read(x, (*(slice(None),) * d, part)), axis=d, keepdims=True)
        if dtypes.is_integer(x.aval.dtype):
            value = round_(value)
        shape = (*value.aval.shape[:d], count, *value.aval.shape[d + 1 :])
        return [broadcast_to(_as(value, x), shape)]

    def pad(x: Any, d: int, low: int, high: int, stat_length: Any = None) -> Any:
        size = x.aval.shape[d]
        _check_not_empty(size, d)
        lengths = (size, size) if stat_length is None else (
            _pairs(stat_length, x.aval.ndim, "stat_length", x.aval.shape)[d])  # fmt: skip
        first, last = [min(size_of(n), size) for n in lengths]
        require(min(first, last) >= 1, "pad", "stat_length must be 1 at least.")
        before = repeat(x, d, low, slice(0, first))
        after = repeat(x, d, high, slice(size - last, size))
        return bind("concatenate", *before, x, *after, dimension=d) if before or after else x

    return pad


_MODES: dict[str, Callable[..., Any]] = {
    "edge": _by_positions(_edge), "wrap": _by_positions(_wrap), "reflect": _by_positions(_reflect),
    "symmetric": _by_positions(_symmetric), "linear_ramp": _ramp, "maximum": _statistic(max_),
    "minimum": _statistic(min_), "mean": _statistic(mean), "median": _statistic(median),
}  # fmt: skip


def _by_function(x: Any, widths: Any, function: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy's form on each line of each axis; it returns the new line."""
    padded = _constant(x, widths, 0)
    for d in range(padded.aval.ndim):
        moved = padded.swapaxes(d, -1)
        shape = moved.shape
        flat = reshape(moved, (math.prod(shape[:-1]), shape[-1]))
        lines = [function(line, widths[d], d, kwargs) for line in flat]
        stacked = bind("concatenate", *[reshape(v, (1, shape[-1])) for v in lines], dimension=0)
        padded = reshape(stacked, shape).swapaxes(d, -1)
    return padded


@boundary
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """Return an array without the slices of zeros at its borders; its values must be concrete.

    Args:
      filt: an array of any number of dimensions; one of rank 0 has nothing to trim.
      trim: "f" for the front, "b" for the back, "fb" for both, in either case.
      axis: the axes to trim; None for all.

    Returns:
      An array of as many dimensions.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import xnp
      >>> xnp.trim_zeros(xnp.array([[0, 0, 0], [0, 7, 0]])).tolist()
      [[7]]
    """
    x = array_of(filt, "trim_zeros")
    sides = str(trim).lower()
    require(
        isinstance(trim, str) and sides in ("f", "b", "fb", "bf"), "trim_zeros",
        "these sides do not exist.", got=trim, expected="'f', 'b' or 'fb'",
    )  # fmt: skip
    if not x.aval.ndim:
        return x
    mask = x != 0  # concrete where `x` is differentiated outside of `jit`
    if not isinstance(mask, ConcreteArray):
        raise ConcretizationTypeError(x, "trim_zeros", "the result's shape depends on the values.")
    places = np.nonzero(np.asarray(mask))
    index = [slice(None)] * x.aval.ndim
    for d in axes_of(axis, x.aval.ndim, "trim_zeros"):
        if not places[d].size:
            index[d] = slice(0, 0)
            continue
        start = int(places[d].min()) if "f" in sides else None
        index[d] = slice(start, int(places[d].max()) + 1 if "b" in sides else None)
    return x[tuple(index)]
