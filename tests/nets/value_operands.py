"""The operands of the net of values: for each dtype, the same names in several layouts.

    x, y, z    arrays of one shape          v, w    vectors         s    a square matrix
    m          a mask like x                i       positions       q    numbers from 0 to 1
                                           a    ascending numbers

`special` pairs each special value of the dtype with each; `plain` holds ordinary numbers.
Subnormal numbers are not among them: `test_values_of_subnormals` says what becomes of those.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Operands = dict[str, Any]

DTYPES = (
    "bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "complex64",
)  # fmt: skip
WIDE_DTYPES = ("int64", "uint64", "float64", "complex128")  # with the flag enable_x64


def is_floating(dtype: str) -> bool:
    return "float" in dtype


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def special_values(dtype: str) -> np.ndarray[Any, Any]:
    """Return the values of a dtype at which functions tend to be wrong."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("complex"):
        return np.array([0, 1, -1, 1j, -2.5 + 0.5j, 0.5 - 3j, 1e3 + 1e3j, 1e-3], dtype)
    if is_floating(dtype):
        info = ml_dtypes.finfo(numpy_dtype(dtype))
        values = [0.0, -0.0, 1, -1, 0.5, -2.5, 3, np.nan, np.inf, -np.inf]
        return np.array([*values, info.max, info.min, info.smallest_normal], numpy_dtype(dtype))
    limits = np.iinfo(dtype)
    small = [0, 1, 2, 5] if dtype.startswith("u") else [0, 1, 2, 5, -1, -7]
    return np.array([*small, limits.min, limits.max, limits.max // 2], dtype)


def _plain(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if is_floating(dtype):
        return rng.standard_normal(shape).astype(numpy_dtype(dtype))
    return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)


def _operands(dtype: str, shape: tuple[int, ...], length: int) -> Operands:
    x, y, z = [_plain(dtype, shape, seed) for seed in range(3)]
    v, w = [_plain(dtype, (length,), seed) for seed in (3, 4)]
    return _with_helpers(x, y, z, v, w, _plain(dtype, (3, 3), 5))


def _with_helpers(x: Any, y: Any, z: Any, v: Any, w: Any, s: Any) -> Operands:
    mask = np.arange(x.size).reshape(x.shape) % 3 == 0
    positions = np.array([2, 0, 1, 2], np.int32)
    q = np.array([0.0, 0.25, 1.0], np.float32)
    ascending = np.array([-3, 0, 1, 4]) if s.dtype.kind not in "bu" else np.array([0, 1, 2, 4])
    return {
        "x": x, "y": y, "z": z, "v": v, "w": w, "s": s, "m": mask, "i": positions, "q": q,
        "a": ascending.astype(np.float32),
    }  # fmt: skip


def _special(dtype: str) -> Operands:
    values = special_values(dtype)
    x, y = [part.ravel() for part in np.meshgrid(values, values, indexing="ij")]
    return _with_helpers(x, y, np.roll(x, 5), values, np.roll(values, 3), _plain(dtype, (3, 3), 5))


def _python_scalars(dtype: str) -> Operands:
    """Return arrays as `x`, `v` and `s`, and Python numbers, which are weakly typed, beside."""
    operands = _operands(dtype, (2, 3), 6)
    number = {"b": True, "c": 2.5 + 1j, "f": 2.5, "V": 2.5}.get(numpy_dtype(dtype).kind, 2)
    return {**operands, "y": number, "z": number}


def _weak_scalars(dtype: str) -> Operands:
    """Return Python numbers alone."""
    operands = _python_scalars(dtype)
    return {**operands, "x": operands["y"]}


def layouts(dtype: str) -> dict[str, Operands]:
    """Return the operands of a dtype by the name of the layout."""
    broadcast = _operands(dtype, (3, 4), 5)
    broadcast["x"], broadcast["y"] = broadcast["x"][:, :1], broadcast["y"][0]
    return {
        "plain": _operands(dtype, (3, 4), 6),
        "special": _special(dtype),
        "broadcast": broadcast,
        "empty": _operands(dtype, (0, 3), 0),
        "scalar": _operands(dtype, (), 1),
        "one": _operands(dtype, (1, 1), 1),
        "with Python": _python_scalars(dtype),
        "Python": _weak_scalars(dtype),
    }
