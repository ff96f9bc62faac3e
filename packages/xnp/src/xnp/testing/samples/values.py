"""Operands for samples: reproducible numbers of any dtype, and the lists of dtypes to try."""

from __future__ import annotations

from typing import Any

import numpy as np

from xprim import dtypes

__all__ = ()

Ndarray = np.ndarray[Any, Any]

FLOATS: tuple[Any, ...] = (np.float64, np.float32, np.float16, dtypes.bfloat16)
INTEGERS: tuple[Any, ...] = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
                             np.uint64)  # fmt: skip
COMPLEX: tuple[Any, ...] = (np.complex64, np.complex128)
SMALL: tuple[Any, ...] = (dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.int4, dtypes.uint4)
EVERY: tuple[Any, ...] = (*FLOATS, *INTEGERS, *COMPLEX, np.bool_, *SMALL)

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e300, -1.0])


def numbers(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Ndarray:
    """Return distinct numbers in random order: a permutation, so nothing ties by chance."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    order = rng.permutation(size).reshape(shape)
    if dtypes.is_bool(dtype):
        return np.asarray(order % 2 == 0)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        span = int(info.max) - int(info.min)
        values = [int(info.min) + span * int(k) // max(size - 1, 1) for k in order.reshape(-1)]
        return np.array(values, object).reshape(shape).astype(
            np.uint64 if dtype == np.uint64 else np.int64
        ).astype(dtype)  # fmt: skip
    real: Ndarray = (order - size / 3) / max(size, 1) * 3.7
    if dtypes.is_complex(dtype):
        return np.asarray(real + 1j * real[..., ::-1]).astype(dtype)
    return np.asarray(real).astype(dtype)


def small_numbers(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Ndarray:
    """Return numbers whose sums and products are exact: -1, 0, 1, 2 (or 0 and 1)."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    low = 0 if dtypes.is_bool(dtype) or dtypes.is_unsigned_integer(dtype) else -1
    return rng.integers(low, 2, shape).astype(dtype)
