"""Samples of sorting, argmin and argmax, top_k and the cumulative operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.lax import ordering as _functions  # noqa: F401 - defines the primitives
from xnp.testing.samples.values import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    numbers,
    small_numbers,
)
from xprim import dtypes
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

ROUNDED = Tolerance(1e-14, 1e-14, "float64 numbers combined in another order")
WITHIN_16_BITS = Tolerance(1e-2, 1e-2, "results have 8 to 11 bits")
TRANSCENDENTAL = Tolerance(1e-13, 1e-13, "exp and log1p of XLA and NumPy differ by a few ulp")
SINGLE = Tolerance(1e-5, 1e-5, "float32; exp and log1p differ by a few ulp")

_REAL = (*FLOATS, *INTEGERS, np.bool_)
_NAN = np.array([[1.0, np.nan, -0.0, 0.0, np.inf, -np.inf, np.nan, 2.0],
                 [-np.inf, -np.inf, -1.0, 5.0, -0.0, 5.0, 0.0, -1.0]])  # fmt: skip


def _sort(*operands: Any, dimension: int = 0, num_keys: int = 1, stable: bool = True,
          smooth: bool = True, note: str = "") -> Sample:  # fmt: skip
    params = {"dimension": dimension, "is_stable": stable, "num_keys": num_keys}
    return Sample(list(operands), params, smooth=smooth, note=note)


def _arg(x: Any, axis: int, dtype: Any = np.int32, note: str = "") -> Sample:
    return Sample([x], {"axes": (axis,), "index_dtype": np.dtype(dtype)}, note=note)


_ARGS = [
    _arg(numbers((5,)), 0), _arg(numbers((3, 4)), 1, np.int64), _arg(numbers((3, 4)), 0),
    _arg(small_numbers((3, 9)), 1, note="equals"),
    _arg(_NAN, 1, note="NaN"), _arg(_NAN, 0, note="NaN"),
    _arg(np.full((2, 3), np.nan), 1, note="only NaN"),
    _arg(np.full((2, 3), np.inf), 1, note="inf"), _arg(np.full((2, 3), -np.inf), 1, note="-inf"),
    _arg(numbers((0, 3)), 1),
    *[_arg(numbers((2, 6), dtype), 1) for dtype in (*_REAL, dtypes.float8_e4m3fn, dtypes.int4)],
    *[_arg(numbers((4,)), 0, dtype) for dtype in INTEGERS],
]  # fmt: skip


def _top(x: Any, k: int, axis: int, *, smooth: bool = True, note: str = "") -> Sample:
    return Sample([x], {"k": k, "axis": axis}, smooth=smooth, note=note)


def _partitions() -> list[Sample]:
    rows = [
        (numbers((6,)), 2, 0, ""), (numbers((3, 5)), 0, 1, ""), (numbers((5, 3)), 4, 0, ""),
        (numbers((0, 3)), 1, 1, ""), (small_numbers((2, 9), np.int32), 4, 1, "equals"),
        (_NAN, 3, 1, "NaN"), *[(numbers((2, 6), dtype), 3, 1, "") for dtype in EVERY],
    ]  # fmt: skip
    return [
        Sample([x], {"kth": kth, "axis": axis, "places": places}, smooth=not note, note=note)
        for x, kth, axis, note in rows for places in (False, True)
    ]  # fmt: skip


def _run(shape: tuple[int, ...], axis: int, *, reverse: bool = False, dtype: Any = np.float64,
         tolerance: Tolerance = ROUNDED) -> Sample:  # fmt: skip
    return Sample([numbers(shape, dtype)], {"axis": axis, "reverse": reverse}, tolerance)


def _cumulative(tolerance: Tolerance = ROUNDED) -> list[Sample]:
    return [
        _run(shape, axis, reverse=reverse, tolerance=tolerance)
        for shape, axis in (((6,), 0), ((3, 5), 0), ((3, 5), 1), ((1,), 0), ((0,), 0), ((2, 0), 0),
                            ((9,), 0))
        for reverse in (False, True)
    ]  # fmt: skip


def _exact(kinds: Any) -> list[Sample]:
    return [Sample([small_numbers((2, 5), dtype)], {"axis": 1, "reverse": False}, smooth=False)
            for dtype in kinds]  # fmt: skip


def _nan(tolerance: Tolerance = EXACT) -> Sample:
    return Sample([_NAN + 1.0], {"axis": 1, "reverse": False}, tolerance, smooth=False, note="NaN")


TABLE: dict[str, list[Sample]] = {
    "sort": [
        _sort(numbers((5,))), _sort(numbers((3, 4)), dimension=1), _sort(numbers((3, 4))),
        _sort(numbers((0, 2))), _sort(numbers((6,)), stable=False),
        _sort(_NAN, dimension=1, smooth=False, note="NaN"),
        _sort(small_numbers((2, 7)), numbers((2, 7)), dimension=1, smooth=False, note="stable"),
        _sort(small_numbers((7,)), numbers((7,), np.int32), numbers((7,)), num_keys=2,
              smooth=False),
        _sort(numbers((6,)), numbers((6,), np.float64, 1), numbers((6,), np.int32)),
        _sort(small_numbers((8,), np.complex64), numbers((8,)), smooth=False),
        *[_sort(numbers((2, 6), dtype), dimension=1) for dtype in EVERY],
    ],
    "argmin": _ARGS,
    "argmax": list(_ARGS),
    "partition": _partitions(),
    "top_k": [
        _top(numbers((6,)), 2, 0), _top(numbers((3, 5)), 3, 1), _top(numbers((5, 3)), 2, 0),
        _top(numbers((4,)), 0, 0), _top(numbers((2, 4)), 4, 1),
        _top(numbers((0, 3)), 2, 1),
        _top(small_numbers((2, 9), np.int32), 5, 1, note="equals"),
        _top(_NAN, 4, 1, smooth=False, note="NaN"),
        *[_top(numbers((2, 6), dtype), 3, 1) for dtype in (*FLOATS, *INTEGERS)],
    ],
    "cumsum": [*_cumulative(), *_exact((*FLOATS, *INTEGERS, *COMPLEX)), _nan()],
    "cumprod": [*_cumulative(), *_exact((*FLOATS, *INTEGERS, *COMPLEX))],
    "cummax": [*_cumulative(), *_exact((*_REAL, *COMPLEX)), _nan()],
    "cummin": [*_cumulative(), *_exact((*_REAL, *COMPLEX)), _nan()],
    "cumlogsumexp": [
        *_cumulative(TRANSCENDENTAL), _nan(TRANSCENDENTAL),
        _run((6,), 0, dtype=np.float32, tolerance=SINGLE),
        # more than one of the blocks that compiled programs go through
        _run((70,), 0, tolerance=TRANSCENDENTAL),
        _run((2, 40), 1, reverse=True, tolerance=TRANSCENDENTAL),
        *[_run((6,), 0, dtype=dtype, tolerance=WITHIN_16_BITS)
          for dtype in (np.float16, dtypes.bfloat16)],
    ],
}  # fmt: skip
