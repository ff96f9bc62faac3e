"""Sizes as integers that may be symbolic.

`operator.index` makes a plain int of every subclass, and so a number of a symbolic dimension.
"""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["SymbolicSize", "size_of", "slice_indices"]

__dir__ = __all__.copy


class SymbolicSize(int):
    """The base class of symbolic dimensions (`symbolic_dimensions`): what is kept as it is."""

    __slots__ = ()

    ndim = 0  # for `numpy.ndim`, which would make an array of what has none


def size_of(x: Any) -> int:
    """Return an integer as `operator.index` does, and a symbolic dimension as it is.

    Raises:
      TypeError: it is no integer.

    Example:
      >>> size_of(True)
      1
    """
    return x if isinstance(x, SymbolicSize) else operator.index(x)


def slice_indices(part: slice, size: int) -> tuple[int, int, int, int]:
    """Return start, stop and step of a slice of so many elements, and how many it takes.

    Example:
      >>> slice_indices(slice(None, -1, 2), 6)
      (0, 5, 2, 3)
    """
    if not any(isinstance(n, SymbolicSize) for n in (size, part.start, part.stop, part.step)):
        start, stop, step = part.indices(size)
        return start, stop, step, len(range(start, stop, step))
    step = 1 if part.step is None else part.step
    first, last = (0, size) if step > 0 else (size - 1, -1)
    start = first if part.start is None else _inside(part.start, size, step)
    stop = last if part.stop is None else _inside(part.stop, size, step)
    span = stop - start if step > 0 else start - stop
    count = (span + abs(step) - 1) // abs(step)
    return start, stop, step, max(count, 0)


def _inside(n: int, size: int, step: int) -> int:
    """Return a bound of a slice as a position between the ends."""
    n = n + size if n < 0 else n
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if n < low:
        return low
    return min(n, high)
