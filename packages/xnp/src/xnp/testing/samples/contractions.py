"""Samples of matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import dot_general as _rules  # noqa: F401 - defines the primitive
from xprim import dtypes
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

FLOAT32 = Tolerance(1e-5, 1e-5, "sums of a few float32 products, in another order")
FLOAT64 = Tolerance(1e-13, 1e-13, "sums of a few float64 products, in another order")
SMALL = Tolerance(0.02, 0.02, "the sum is rounded once to 8 to 11 bits, from sums in float32")
TINY = Tolerance(0.3, 0.3, "the sum is rounded to 2 or 3 bits")

_MATRIX = (((1,), (0,)), ((), ()))
_NUMBERS: tuple[tuple[str, Any, tuple[int, ...], tuple[int, ...]], ...] = (
    ("matrix", _MATRIX, (2, 3), (3, 4)),
    ("vector", (((0,), (0,)), ((), ())), (5,), (5,)),
    ("matrix-vector", _MATRIX, (2, 3), (3,)),
    ("vector-matrix", (((0,), (0,)), ((), ())), (3,), (3, 2)),
    ("first-with-first", (((0,), (0,)), ((), ())), (3, 2), (3, 4)),
    ("last-with-last", (((1,), (1,)), ((), ())), (2, 3), (4, 3)),
    ("first-with-last", (((0,), (1,)), ((), ())), (3, 2), (4, 3)),
    ("outer", (((), ()), ((), ())), (2, 3), (4,)),
    ("batched", (((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 2)),
    ("batch-last", (((0,), (1,)), ((2,), (2,))), (3, 2, 2), (2, 3, 2)),
    ("two-batches", (((1,), (3,)), ((0, 2), (1, 0))), (2, 3, 4), (4, 2, 2, 3)),
    ("two-contracted", (((0, 2), (2, 1)), ((), ())), (2, 3, 4), (3, 4, 2)),
    ("all-batch", (((), ()), ((0,), (0,))), (3,), (3,)),
    ("no-terms", _MATRIX, (2, 0), (0, 3)),
    ("empty", _MATRIX, (0, 3), (3, 2)),
    ("scalars", (((), ()), ((), ())), (), ()),
)


def _values(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtypes.is_bool(dtype):
        return rng.integers(0, 2, shape).astype(bool)
    if dtypes.is_integer(dtype):
        low, high = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
        if np.dtype(dtype) == np.uint64:
            return rng.integers(0, high, shape, dtype=np.uint64)
        return rng.integers(low, high, shape, endpoint=True, dtype=np.int64).astype(dtype)
    if dtypes.is_complex(dtype):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def _tolerance(dtype: Any) -> Tolerance:
    if not dtypes.is_inexact(dtype):
        return EXACT
    name = np.dtype(dtype).name
    if name in ("float64", "complex128"):
        return FLOAT64
    if name in ("float32", "complex64"):
        return FLOAT32
    return SMALL if name in ("float16", "bfloat16") else TINY


def _dot(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dtype: Any, numbers: Any, note: str = "", *,
    preferred: Any = None, rhs_dtype: Any = None,
) -> Sample:  # fmt: skip
    dtype = np.dtype(dtype)
    preferred = None if preferred is None else np.dtype(preferred)
    operands = [_values(lhs, dtype, 1), _values(rhs, np.dtype(rhs_dtype or dtype), 2)]
    params = {"dimension_numbers": numbers, "precision": None, "preferred_element_type": preferred}
    return Sample(operands, params, _tolerance(preferred or dtype), note=note)


_DTYPES = (
    "float32", "float16", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool", dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2,
    dtypes.int4, dtypes.uint4,
)  # fmt: skip

TABLE: dict[str, list[Sample]] = {
    "dot_general": [
        *[_dot(lhs, rhs, "float64", numbers, note) for note, numbers, lhs, rhs in _NUMBERS],
        *[_dot((2, 3), (3, 4), dtype, _MATRIX) for dtype in _DTYPES],
        *[_dot((2, 3, 4), (2, 4, 2), dtype, (((2,), (1,)), ((0,), (0,))), "batched")
          for dtype in ("float32", "int32", "bool", dtypes.bfloat16)],
        _dot((2, 3), (3, 4), dtypes.bfloat16, _MATRIX, "wide-result", preferred="float32"),
        _dot((2, 3), (3, 4), "float16", _MATRIX, "wide-result", preferred="float32"),
        _dot((2, 3), (3, 4), "int8", _MATRIX, "wide-result", preferred="int32"),
        _dot((2, 3), (3, 4), "float32", _MATRIX, "narrow-result", preferred=dtypes.bfloat16),
        _dot((2, 3), (3, 4), "float32", _MATRIX, "mixed", rhs_dtype=dtypes.bfloat16),
        Sample([np.array([[np.nan, 1.0], [np.inf, 0.0]]), np.array([[1.0], [0.0]])],
               {"dimension_numbers": _MATRIX, "precision": None, "preferred_element_type": None},
               FLOAT64, smooth=False, note="nan-inf"),
    ],
}  # fmt: skip
