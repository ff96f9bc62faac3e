"""Samples of the scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.lax import slicing as _functions  # noqa: F401 - defines the primitives
from xnp.primitives.index_modes import (
    CLIP,
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    ScatterDimensionNumbers,
)
from xnp.testing.samples.slicing import ALONG, COLUMNS, POINTS, ROWS, WINDOWS
from xnp.testing.samples.values import COMPLEX, EVERY, FLOATS, INTEGERS, numbers, small_numbers
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

Shape = tuple[int, ...]
REORDERED = Tolerance(1e-14, 1e-14, "a few float64 numbers combined in another order")


def _scatter(
    shape: Shape, indices: Any, updates: Shape, numbers_: tuple[Any, ...], *,
    mode: Any = FILL_OR_DROP, unique: bool = False, dtype: Any = np.float64, index: Any = np.int32,
    note: str = "", exact: bool = False, smooth: bool = True,
) -> Sample:  # fmt: skip
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*numbers_), "indices_are_sorted": False,
        "unique_indices": unique, "mode": mode,
    }  # fmt: skip
    made = small_numbers if exact else numbers
    operands = [made(shape, dtype), np.array(indices, index), made(updates, dtype, 1)]
    return Sample(operands, params, EXACT if exact else REORDERED, smooth=smooth,
                  note=note or mode.name.lower())  # fmt: skip


def _common() -> list[Sample]:
    return [
        _scatter((4, 3), [[0], [3], [1]], (3, 3), ROWS),
        _scatter((4, 3), [[0], [3], [1]], (3, 3), ROWS, unique=True, note="unique"),
        _scatter((4, 3), [[2]], (1, 3), ROWS, note="one window"),
        _scatter((4, 3), [[-7]], (1, 3), ROWS, note="one window out of bounds"),
        _scatter((4, 3), [[-7]], (1, 3), ROWS, mode=CLIP),
        _scatter((4, 3), [[-1], [4], [1]], (3, 3), ROWS, note="out of bounds"),
        _scatter((4, 3), [[-1], [5], [1]], (3, 3), ROWS, mode=CLIP),
        _scatter((4, 3), [[1], [1], [2]], (3, 3), ROWS, note="repeated"),
        _scatter((3, 4), [[3], [0]], (3, 2), COLUMNS, mode=PROMISE_IN_BOUNDS),
        _scatter((3, 4), [[0, 1], [2, 3], [5, -5], [2, 3]], (4,), POINTS),
        _scatter((5, 6), [[0, 1], [5, 3], [-3, 2], [1, 1]], (4, 2, 3), WINDOWS),
        _scatter((5, 6), [[0, 1], [5, 3], [-3, 2]], (3, 2, 3), WINDOWS, mode=CLIP),
        _scatter((2, 4), [[[0], [1], [3]], [[2], [2], [9]]], (2, 3), ALONG),
        _scatter((4, 3), np.zeros((0, 1)), (0, 3), ROWS, note="no windows"),
        *[_scatter((4, 3), [[1], [9], [3]], (3, 3), ROWS, index=dtype) for dtype in INTEGERS],
    ]


def _dtypes(kinds: Any, positions: Any = ((1,), (9,), (1,))) -> list[Sample]:
    return [_scatter((4, 3), positions, (3, 3), ROWS, dtype=dtype, exact=True, smooth=False)
            for dtype in kinds]  # fmt: skip


_REAL = (*FLOATS, *INTEGERS, np.bool_)

TABLE: dict[str, list[Sample]] = {
    # of two updates to one row either may win, on a GPU
    "scatter": [*_common(), *_dtypes(EVERY, ((1,), (9,), (3,)))],
    "scatter_add": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_mul": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_min": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_max": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
}
