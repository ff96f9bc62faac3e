"""Samples of the primitives that change shapes and the order of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.lax import shape as _functions  # noqa: F401 - defines the primitives
from xnp.testing.samples.values import DTYPES, EVERY, SPECIAL, numbers
from xprim import dtypes
from xprim.testing import Sample

__all__ = ()

Shape = tuple[int, ...]


def _moves(shapes: list[tuple[Shape, dict[str, Any]]]) -> list[Sample]:
    """Return samples of a data movement: some shapes in float64, the first in every dtype."""
    shape, params = shapes[0]
    cases = [Sample([numbers(s)], p) for s, p in shapes]
    return cases + [Sample([numbers(shape, dtype)], params) for dtype in EVERY]


def _special(shape: Shape, **params: Any) -> Sample:
    return Sample([SPECIAL.reshape(shape)], params, smooth=False, note="special values")


def _pad(shape: Shape, *config: tuple[int, int, int], dtype: Any = np.float64) -> Sample:
    value = np.asarray(numbers((2,), dtype, 1)[0])
    return Sample([numbers(shape, dtype), value], {"padding_config": config})


_PADS = [
    _pad((3,), (1, 2, 0)), _pad((3,), (0, 0, 2)), _pad((5,), (-1, -2, 0)), _pad((3,), (-1, 2, 1)),
    _pad((4,), (-3, -3, 2)), _pad((3,), (-5, 5, 0)), _pad((0,), (1, 1, 3)), _pad(()),
    _pad((2, 3), (1, 0, 0), (0, 1, 1)), _pad((2, 0), (1, 0, 0), (1, 1, 1)),
    *[_pad((2, 3), (1, -1, 1), (0, 2, 0), dtype=dtype) for dtype in EVERY],
]  # fmt: skip


def _sample_joined(axis: int, *shapes: Shape, dtype: Any = np.float64) -> Sample:
    return Sample([numbers(s, dtype, k) for k, s in enumerate(shapes)], {"dimension": axis})


def _iota(shape: Shape, dimension: int, dtype: Any) -> Sample:
    params = {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension}
    return Sample([], params)


# Numbers that are counted up; formats without a zero cannot start.
_COUNTED = [d for d in DTYPES if d.name not in ("bool", "float8_e8m0fnu")]

TABLE: dict[str, list[Sample]] = {
    "broadcast_in_dim": [
        *_moves([((3,), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
                 ((), {"shape": (2, 2), "broadcast_dimensions": ()}),
                 ((1, 3), {"shape": (2, 4, 3), "broadcast_dimensions": (1, 2)}),
                 ((2, 1), {"shape": (2, 1, 5), "broadcast_dimensions": (0, 2)}),
                 ((2,), {"shape": (2,), "broadcast_dimensions": (0,)}),
                 ((1,), {"shape": (0,), "broadcast_dimensions": (0,)}),
                 ((0,), {"shape": (2, 0), "broadcast_dimensions": (1,)}),
                 ((3, 3), {"shape": (3, 2, 3), "broadcast_dimensions": (0, 2)})]),
    ],
    "reshape": [
        *_moves([((2, 6), {"new_sizes": (3, 4), "dimensions": None}),
                 ((), {"new_sizes": (1, 1), "dimensions": None}),
                 ((1,), {"new_sizes": (), "dimensions": None}),
                 ((0, 3), {"new_sizes": (5, 0), "dimensions": None}),
                 ((4,), {"new_sizes": (4,), "dimensions": None})]),
        _special((8,), new_sizes=(2, 4), dimensions=None),
    ],
    "transpose": [
        *_moves([((2, 3, 4), {"permutation": (2, 0, 1)}), ((2, 3), {"permutation": (1, 0)}),
                 ((), {"permutation": ()}), ((0, 3), {"permutation": (1, 0)}),
                 ((2, 3), {"permutation": (0, 1)})]),
        _special((2, 4), permutation=(1, 0)),
    ],
    "squeeze": [
        *_moves([((1, 3, 1), {"dimensions": (0, 2)}), ((1, 2), {"dimensions": (0,)}),
                 ((2, 1), {"dimensions": ()}), ((1,), {"dimensions": (0,)}),
                 ((0, 1), {"dimensions": (1,)}), ((), {"dimensions": ()}),
                 ((3, 1, 3), {"dimensions": (1,)})]),
    ],
    "rev": [
        *_moves([((2, 3), {"dimensions": (0, 1)}), ((4,), {"dimensions": (0,)}),
                 ((2, 3), {"dimensions": ()}), ((0,), {"dimensions": (0,)}),
                 ((), {"dimensions": ()})]),
        _special((8,), dimensions=(0,)),
    ],
    "concatenate": [
        _sample_joined(0, (2,), (3,)), _sample_joined(1, (2, 1), (2, 0), (2, 3)),
        _sample_joined(0, (3, 2)),
        *[_sample_joined(1, (2, 1), (2, 2), dtype=dtype) for dtype in EVERY],
    ],
    "pad": _PADS,
    "split": _moves([((2, 5), {"sizes": (1, 0, 4), "axis": 1}),
                     ((3,), {"sizes": (3,), "axis": 0}),
                     ((4, 2), {"sizes": (1, 1, 2), "axis": 0}),
                     ((0, 3), {"sizes": (1, 2), "axis": 1})]),
    "iota": [
        _iota((3,), 0, np.float32), _iota((2, 3), 0, np.int32), _iota((2, 3), 1, np.float64),
        _iota((0,), 0, np.int32), _iota((300,), 0, np.int8), _iota((20,), 0, dtypes.bfloat16),
        *[_iota((3, 2), 1, dtype) for dtype in _COUNTED],
    ],
}  # fmt: skip
