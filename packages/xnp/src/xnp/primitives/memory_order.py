"""Elementwise NumPy functions of two large operands, whatever their order in memory.

What makes NumPy wait for memory or for its own loops:

- One operand lies across the other, `x * x.T`: a walk row by row touches a new cache line of `x.T`
  for each element. In strips of columns the lines of one row are still there for the next: 70 ms
  become 20 for 3000 x 3000 (XLA, which transposes first, takes 40).
- A number stands for one operand of `maximum` or `minimum`, whose vector loops take two arrays: it
  becomes a row of 4096, 0.33 to 0.13 ns for each element.
- A short row is repeated, `x - x.mean(0)` of 10000 x 10: the inner loop has 10 elements. Many rows
  of the one operand are one long row, from which the other, repeated as often, is subtracted.

And the memory of results: glibc returns what was freed to the kernel, and the next result of that
size has its pages made again, 358 faults and 0.5 ms of 0.8 in that example. It goes on to keep up
to twice the largest block that it saw freed, at most 2 x 32 MiB; so one is freed, untouched, when
the first kernel for large arrays is made (M_MMAP_THRESHOLD in the manual of mallopt). The option
`keep_freed_memory` says whether.

Neighbours: `table` gives this to kernels of elementwise primitives, and `dispatch` to operators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xprim import ShapedArray, config

__all__ = ()

_LARGE = 1 << 18  # elements: smaller operands that lie across stay in the cache
_STRIP = 512  # columns: as many cache lines of the operand that lies across fit into 32 KiB
_LARGE_TO_REPEAT = 1 << 14  # elements
_SHORT = 64  # elements of a row whose loop costs more than its work
_LONG = 4096
_SLOW_WITH_A_NUMBER = (np.maximum, np.minimum)  # as with a stride of 0: four times as long

Function = Callable[..., Any]

_KEPT_BY_GLIBC = (1 << 25) - (1 << 13)  # DEFAULT_MMAP_THRESHOLD_MAX, less its own head

keep_freed_memory = config.define(
    config.Option(
        "keep_freed_memory", True,
        "Whether the C library keeps up to 64 MiB that large arrays gave back, for the next ones.",
        kind=bool,
    )
)  # fmt: skip


@functools.cache
def keep_memory_of_results() -> None:
    """Let the C library keep freed memory, unless the option says no when this is first called."""
    if keep_freed_memory.value:
        np.empty(_KEPT_BY_GLIBC, np.uint8)


def for_memory_order(function: Function, x: Any, y: Any, aval: ShapedArray) -> Function:
    """Return a function of two operands that does the same, quickly in any order of memory.

    Args:
      function: a NumPy ufunc.
      x: the first operand, an Array of the shape that the function is for, or a number.
      y: the second.
      aval: the shape and dtype of the result; where it is small, the function itself is returned.
    """
    shape = aval.shape
    if aval.size < _LARGE_TO_REPEAT or not shape:
        return function
    shapes: list[tuple[int, ...]] = [getattr(v, "shape", ()) for v in (x, y)]
    if function in _SLOW_WITH_A_NUMBER and sorted(shapes) == [(), shape]:
        return _with_a_row(function, number_first=not shapes[0])
    if len(shape) < 2:
        return function
    if 1 < shape[-1] <= _SHORT and shape in shapes:
        (row,) = [s for s in shapes if s != shape] or [shape]
        if math.prod(row) == shape[-1] == row[-1]:
            return _with_long_rows(function, shape, row_first=shapes[0] == row)
    if aval.size >= _LARGE and shape[-1] > _STRIP and shapes[0] == shapes[1]:
        return _in_strips(function, aval)
    return function


def _with_a_row(function: Function, number_first: bool) -> Function:
    """Return the function for a whole operand and a number, which becomes a row of that number."""

    def run(a: Any, b: Any) -> Any:
        number, whole = (a, b) if number_first else (b, a)
        if not whole.flags.c_contiguous:
            return function(a, b)
        row, flat = np.full(_LONG, number, whole.dtype), whole.reshape(-1)
        out, end = np.empty_like(flat), flat.size - flat.size % _LONG
        rows, rows_out = [v[:end].reshape(-1, _LONG) for v in (flat, out)]
        for part, other, into in ((rows, row, rows_out), (flat[end:], number, out[end:])):
            function(*((other, part) if number_first else (part, other)), out=into)
        return out.reshape(whole.shape)

    return run


def _with_long_rows(function: Function, shape: tuple[int, ...], row_first: bool) -> Function:
    """Return the function for a whole operand and a row of as many elements as its last dimension.

    Args:
      function: a NumPy ufunc.
      shape: of the whole operand, and of the result.
      row_first: whether the row is the first operand.
    """
    count, length = math.prod(shape[:-1]), shape[-1]
    repeats = max(n for n in range(1, _LONG // length + 1) if count % n == 0)
    if repeats < 8:
        return function

    def run(a: Any, b: Any) -> Any:
        row, whole = (a, b) if row_first else (b, a)
        if not whole.flags.c_contiguous:
            return function(a, b)
        long_row = np.empty((repeats, length), row.dtype)
        long_row[...] = row.reshape(length)
        long_row, rows = long_row.reshape(-1), whole.reshape(-1, repeats * length)
        result = function(long_row, rows) if row_first else function(rows, long_row)
        return result.reshape(shape)

    return run


def _in_strips(function: Function, aval: ShapedArray) -> Function:
    """Return the function for two operands of one shape, either of which may lie across."""

    def run(a: Any, b: Any) -> Any:
        if _direction(a) * _direction(b) != -1:
            return function(a, b)
        result = np.empty(aval.shape, aval.dtype)
        for first in range(0, aval.shape[-1], _STRIP):
            strip = np.s_[..., first : first + _STRIP]
            function(a[strip], b[strip], out=result[strip])
        return result

    return run


def _direction(x: np.ndarray[Any, Any]) -> int:
    """Return 1 where rows of a matrix lie together in memory, -1 where columns do, else 0."""
    if 1 in x.shape[-2:]:
        return 0
    between_rows, between_columns = abs(x.strides[-2]), abs(x.strides[-1])
    if not between_rows or not between_columns:  # repeated
        return 0
    return 1 if between_columns < between_rows else -1
