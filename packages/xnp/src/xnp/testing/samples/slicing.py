"""Samples of the primitives that read and write parts of arrays: slices, gather, scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.lax import slicing as _functions  # noqa: F401 - defines the primitives
from xnp.primitives.index_modes import (
    CLIP,
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)
from xnp.testing.samples.values import COMPLEX, EVERY, FLOATS, INTEGERS, numbers, small_numbers
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

Shape = tuple[int, ...]


def _slice(shape: Shape, start: Shape, limit: Shape, strides: Shape | None = None,
           dtype: Any = np.float64) -> Sample:  # fmt: skip
    params = {"start_indices": start, "limit_indices": limit, "strides": strides}
    return Sample([numbers(shape, dtype)], params)


def _starts(*values: int, dtype: Any = np.int32) -> list[Any]:
    return [np.array(v, dtype) for v in values]


def _dynamic(shape: Shape, sizes: Shape, *starts: int, dtype: Any = np.float64,
             index: Any = np.int32) -> Sample:  # fmt: skip
    return Sample([numbers(shape, dtype), *_starts(*starts, dtype=index)], {"slice_sizes": sizes})


def _update(shape: Shape, sizes: Shape, *starts: int, dtype: Any = np.float64) -> Sample:
    return Sample([numbers(shape, dtype), numbers(sizes, dtype, 1), *_starts(*starts)])


def gather_sample(
    shape: Shape, indices: Any, numbers_: tuple[Any, ...], sizes: Shape, *, mode: Any = CLIP,
    dtype: Any = np.float64, index: Any = np.int32, fill_value: Any = None, note: str = "",
) -> Sample:  # fmt: skip
    """Return a sample of gather on distinct numbers."""
    params = {
        "dimension_numbers": GatherDimensionNumbers(*numbers_), "slice_sizes": sizes,
        "indices_are_sorted": False, "unique_indices": False, "mode": mode,
        "fill_value": fill_value,
    }  # fmt: skip
    # where NaN is filled in nothing can be compared by differences
    smooth = mode is not FILL_OR_DROP or fill_value is not None
    return Sample([numbers(shape, dtype), np.array(indices, index)], params, smooth=smooth,
                  note=note or mode.name.lower())  # fmt: skip


ROWS = ((1,), (0,), (0,))  # x[i] for i in a vector
COLUMNS = ((0,), (1,), (1,))  # x[:, i]
POINTS = ((), (0, 1), (0, 1))  # x[i, j]
WINDOWS = ((1, 2), (), (1, 0))  # x[j:j+a, i:i+b]
ALONG = ((), (1,), (1,), (0,), (0,))  # take_along_axis(x, i, 1)

_GATHERS = [
    gather_sample((4, 3), [[0], [3], [1]], ROWS, (1, 3)),
    gather_sample((4, 3), [[2]], ROWS, (1, 3), note="one window"),
    gather_sample((4, 3), [[-1], [4], [1]], ROWS, (1, 3), note="out of bounds"),
    gather_sample((4, 3), [[-1], [4], [1]], ROWS, (1, 3), mode=FILL_OR_DROP),
    gather_sample((4, 3), [[7]], ROWS, (1, 3), mode=FILL_OR_DROP, fill_value=2.5),
    gather_sample((4, 3), [[0], [2]], ROWS, (1, 3), mode=FILL_OR_DROP, fill_value=0),
    gather_sample((3, 4), [[3], [0]], COLUMNS, (3, 1), mode=PROMISE_IN_BOUNDS),
    gather_sample((3, 4), [[0, 1], [2, 3], [5, -5]], POINTS, (1, 1)),
    gather_sample((3, 4), [[0, 1], [2, 3], [5, -5]], POINTS, (1, 1), mode=FILL_OR_DROP,
                  fill_value=-1),
    gather_sample((5, 6), [[0, 1], [5, 3], [-3, 2]], WINDOWS, (2, 3)),
    gather_sample((5, 6), [[0, 1], [5, 3], [-3, 2]], WINDOWS, (2, 3), mode=FILL_OR_DROP,
                  fill_value=9),
    gather_sample((2, 4), [[[0], [1], [3]], [[2], [2], [9]]], ALONG, (1, 1)),
    gather_sample((2, 4), [[[0], [1], [3]], [[2], [2], [9]]], ALONG, (1, 1), mode=FILL_OR_DROP,
                  fill_value=0),
    gather_sample((4, 3), np.zeros((0, 1)), ROWS, (1, 3), note="no windows"),
    gather_sample((4, 0), [[1], [0]], ROWS, (1, 0), note="empty windows"),
    *[gather_sample((4, 3), [[1], [9], [3]], ROWS, (1, 3), mode=FILL_OR_DROP, dtype=dtype)
      for dtype in EVERY],
    *[gather_sample((4, 3), [[1], [9], [3]], ROWS, (1, 3), index=dtype) for dtype in INTEGERS],
]  # fmt: skip

TABLE: dict[str, list[Sample]] = {
    "slice": [
        _slice((5,), (1,), (4,)), _slice((7,), (1,), (7,), (3,)), _slice((3,), (2,), (2,)),
        _slice((), (), ()), _slice((2, 5), (0, 1), (2, 5), (1, 2)), _slice((0, 2), (0, 0), (0, 1)),
        *[_slice((3, 4), (1, 0), (3, 4), (1, 2), dtype) for dtype in EVERY],
    ],
    "dynamic_slice": [
        _dynamic((5,), (2,), 1), _dynamic((5,), (2,), 4), _dynamic((5,), (2,), -3),
        _dynamic((3, 4), (2, 4), 1, 0), _dynamic((3, 4), (1, 2), 9, 1), _dynamic((), ()),
        _dynamic((3,), (0,), 2), _dynamic((0, 3), (0, 2), 1, 5),
        *[_dynamic((3, 4), (2, 2), 1, 1, dtype=dtype) for dtype in EVERY],
        *[_dynamic((5,), (2,), 2, index=dtype) for dtype in INTEGERS],
    ],
    "dynamic_update_slice": [
        _update((5,), (2,), 1), _update((5,), (2,), 4), _update((5,), (2,), -3),
        _update((3, 4), (2, 4), 1, 0), _update((3, 4), (1, 2), 9, 1), _update((), ()),
        _update((3,), (0,), 2),
        *[_update((3, 4), (2, 2), 1, 1, dtype=dtype) for dtype in EVERY],
    ],
    "gather": _GATHERS,
}  # fmt: skip


# --------------------------------------------------------------------------------------- scatters

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

TABLE |= {
    # of two updates to one row either may win, on a GPU
    "scatter": [*_common(), *_dtypes(EVERY, ((1,), (9,), (3,)))],
    "scatter_add": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_mul": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_min": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
    "scatter_max": [*_common(), *_dtypes((*_REAL, *COMPLEX))],
}
