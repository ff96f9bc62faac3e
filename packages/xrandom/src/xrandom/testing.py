"""Samples of the primitives of this package, from which every check of their rules is made."""

from __future__ import annotations

import numpy as np

from xprim import dtypes
from xprim.testing import Sample, Tolerance
from xrandom.hashing import MAX_LANES

__all__ = ["TABLE"]

__dir__ = __all__.copy

_KEY = np.array([0x12345678, 0xFFFFFFFF], np.uint32)
_KEYS = np.arange(12, dtype=np.uint32).reshape(2, 3, 2) * np.uint32(0x9E3779B9)
_WIDE_KEY = np.array([7, 0x12345678, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)  # its counter overflows
_WIDE_KEYS = np.arange(24, dtype=np.uint32).reshape(2, 3, 4) * np.uint32(0x9E3779B9)
_SHAPES = [(), (5,), (2, 3), (0, 4), (MAX_LANES + 1,)]
_ROUNDED = Tolerance(2e-6, 2e-7, "the compiler contracts multiply-add, and so rounds once")
_HALF = Tolerance(2e-2, 1e-3, "8 or 11 bits of mantissa")


def _words(*shape: int) -> np.ndarray:
    size = int(np.prod(shape, dtype=int))
    return (np.arange(size, dtype=np.uint32) * np.uint32(0x85EBCA6B)).reshape(shape)


def _draws(**params: object) -> list[Sample]:
    return [
        Sample([key], {**params, "shape": shape, "partitionable": layout})
        for key in (_KEY, _KEYS, _WIDE_KEY, _WIDE_KEYS)
        for shape in _SHAPES
        for layout in (True, False)
    ]


def _floats(tolerance: Tolerance | None) -> list[Sample]:
    samples = []
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
        for sample in _draws(dtype=dtype):
            exact = Tolerance() if tolerance is None else (
                _HALF if dtype.itemsize == 2 else tolerance)  # fmt: skip
            samples.append(Sample(sample.operands, sample.params, exact))
    return samples


TABLE: dict[str, list[Sample]] = {
    "threefry2x32": [
        Sample([_words(), _words(), _words(5), _words(5)]),
        Sample([_words(2, 3), _words(2, 3), _words(2, 3), _words(2, 3)]),
        Sample([_words(), _words(), _words(), _words()]),
        Sample([_words(), _words(), _words(0), _words(0)]),
        Sample([_words(300), _words(), _words(300), _words()]),
    ],
    "random_bits": [s for width in (8, 16, 32, 64) for s in _draws(bit_width=width)],
    "random_split": _draws(),
    "random_fold_in": [
        Sample([_KEY, np.array(7, np.uint32)]),
        Sample([_KEYS, _words(2, 3)]),
        Sample([_WIDE_KEY, np.array(7, np.uint32)]),
        Sample([_WIDE_KEYS, _words(2, 3)]),
    ],
    "discrete_parameter": [
        Sample([np.linspace(0, 1, 6).reshape(2, 3).astype(dtype)], {"operation": "f", "name": "p"})
        for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
    ],
    "random_uniform": _floats(None),
    "random_normal": _floats(_ROUNDED),
}
