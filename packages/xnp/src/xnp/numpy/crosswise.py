"""Elementwise NumPy functions on large operands that lie across each other in memory.

NumPy walks over `x * x.T` row by row, and so touches a new cache line of `x.T` for each element. In
strips of columns the lines of one row are still there for the next: 70 ms become 20 for 3000 x 3000
(XLA, which transposes first, takes 40).

Neighbours: `dispatch` asks for this where it plans an operation of two operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xprim import ShapedArray

_LARGE = 1 << 18  # elements: smaller operands stay in the cache
_STRIP = 512  # columns: as many cache lines of the operand that lies across fit into 32 KiB

Function = Callable[..., Any]


def in_strips(function: Function, aval: ShapedArray) -> Function:
    """Return a function of two operands that does the same, quickly also where they lie across.

    Args:
      function: a NumPy ufunc.
      aval: the shape and dtype of its result; the function itself is returned where it is small.
    """
    if aval.size < _LARGE or aval.ndim < 2 or aval.shape[-1] <= _STRIP:
        return function

    def run(a: Any, b: Any) -> Any:
        if _direction(a) * _direction(b) != -1:
            return function(a, b)
        result = np.empty(aval.shape, aval.dtype)
        for first in range(0, aval.shape[-1], _STRIP):
            strip = np.s_[..., first : first + _STRIP]
            function(a[strip], b[strip], out=result[strip])
        return result

    return run


def _direction(x: Any) -> int:
    """Return 1 where rows of a matrix lie together in memory, -1 where columns do, else 0."""
    if type(x) is not np.ndarray or x.ndim < 2 or 1 in x.shape[-2:]:
        return 0
    between_rows, between_columns = abs(x.strides[-2]), abs(x.strides[-1])
    if not between_rows or not between_columns:  # repeated
        return 0
    return 1 if between_columns < between_rows else -1
