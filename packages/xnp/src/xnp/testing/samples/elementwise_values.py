"""Operands and tolerances for the samples of elementwise primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xprim import dtypes
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

Domain = Callable[[Any], Any]

FLOATS = ("float32", "float64", "float16", dtypes.bfloat16)
SMALL_FLOATS = (dtypes.float8_e4m3fn, dtypes.float8_e5m2)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", dtypes.int4,
            dtypes.uint4)  # fmt: skip
SIGNED = ("int8", "int16", "int32", "int64", dtypes.int4)
COMPLEX = ("complex64", "complex128")

_ROUNDING = {
    "float64": Tolerance(1e-13, 1e-300, "float64 functions of NumPy and XLA differ by some ulp"),
    "complex128": Tolerance(1e-12, 1e-12, "several float64 steps, in another order"),
    "float32": Tolerance(4e-6, 1e-37, "float32 functions of NumPy and XLA differ by some ulp"),
    "complex64": Tolerance(2e-5, 2e-5, "several float32 steps, in another order"),
    "float16": Tolerance(4e-3, 1e-4, "4 ulp of float16"),
    "bfloat16": Tolerance(0.03, 1e-37, "4 ulp of bfloat16"),
}  # fmt: skip
_FEW_BITS = Tolerance(0.3, 0.1, "one step of a format with 2 or 3 bits of mantissa")


def rounding(dtype: Any, factor: float = 1.0) -> Tolerance:
    """Return the tolerance of functions that are right to a few ulp."""
    found = _ROUNDING.get(np.dtype(dtype).name, _FEW_BITS)
    return Tolerance(found.rtol * factor, found.atol, found.reason)


def exact(dtype: Any) -> Tolerance:
    """Return the tolerance of operations that are exact, or rounded once."""
    return EXACT


def array(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return values in a dtype, through float64 or int64."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def smooth_values(shape: tuple[int, ...], dtype: Any, domain: Domain, seed: int = 0) -> Any:
    """Return random values mapped into a domain; complex ones have both parts."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    values = np.asarray(domain(rng.normal(size=shape)))
    if dtypes.is_complex(dtype):
        values = values + 0.5j * np.asarray(domain(rng.normal(size=shape)))
    return array(values, dtype)


def integers(dtype: Any) -> np.ndarray[Any, Any]:
    """Return integers of a dtype, its ends among them."""
    limits = dtypes.iinfo(np.dtype(dtype))
    low, high = int(limits.min), int(limits.max)
    values = [low, low + 1, high - 1, high, 0, 1, 2, 3, 5, 7]
    kind = np.uint64 if low == 0 else np.int64
    return np.array(values, kind).astype(dtype)


def floats(dtype: Any) -> np.ndarray[Any, Any]:
    """Return ordinary and special floats: zeros, infinities, NaN, large and small ones."""
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, 7.0, -12.0, np.inf, -np.inf,
              np.nan]  # fmt: skip
    return array(values, dtype)


def bools() -> np.ndarray[Any, Any]:
    """Return both booleans, twice."""
    return np.array([False, True, True, False])


def complexes(dtype: Any) -> np.ndarray[Any, Any]:
    """Return complex numbers off the branch cuts."""
    return array([1 + 2j, -1.5 + 0.25j, 0.5 - 0.75j, -0.25 - 2j, 0.125j + 0.5], dtype)


def values_of(dtype: Any) -> np.ndarray[Any, Any]:
    """Return a sample of values of a dtype of any kind."""
    dtype = np.dtype(dtype)
    if dtypes.is_bool(dtype):
        return bools()
    if dtypes.is_integer(dtype):
        return integers(dtype)
    return complexes(dtype) if dtypes.is_complex(dtype) else floats(dtype)


def unary_samples(
    kinds: Sequence[Any],
    domain: Domain = lambda x: x,
    *,
    tolerance: Callable[[Any], Tolerance] = exact,
    smooth: bool = True,
    special: Callable[[Any], Any] | None = values_of,
    **params: Any,
) -> list[Sample]:
    """Return samples of a primitive of one operand.

    Args:
      kinds: the dtypes.
      domain: from normal random numbers to points where the function is smooth.
      tolerance: from a dtype.
      smooth: whether derivatives can be checked by differences.
      special: from a dtype to its special values, or None for none.
      params: of the primitive.
    """
    main = kinds[0]
    is_inexact = dtypes.is_inexact(np.dtype(main))
    samples = [
        Sample([smooth_values(shape, main, domain)], params, tolerance(main),
               smooth=smooth and is_inexact)
        for shape in ((), (0,), (2, 3), (3, 1, 2))
    ] if is_inexact else [Sample([values_of(main)[:n].reshape(shape)], params, smooth=False)
                          for n, shape in ((1, ()), (0, (0,)), (4, (2, 2)))]  # fmt: skip
    for dtype in kinds:
        if dtypes.is_inexact(np.dtype(dtype)):
            samples.append(Sample([smooth_values((4,), dtype, domain, 1)], params,
                                  tolerance(dtype), smooth=smooth and np.dtype(dtype).itemsize > 3,
                                  note="smooth"))  # fmt: skip
        if special is not None:
            samples.append(Sample([special(np.dtype(dtype))], params, tolerance(dtype),
                                  smooth=False, note="special"))  # fmt: skip
    return samples


def binary_samples(
    kinds: Sequence[Any],
    first: Domain = lambda x: x,
    second: Domain = lambda x: x,
    *,
    tolerance: Callable[[Any], Tolerance] = exact,
    smooth: bool = True,
    special: Callable[[Any], Any] | None = values_of,
    tangents: tuple[int, ...] | None = None,
) -> list[Sample]:
    """Return samples of a primitive of two operands: all pairs of special values among them."""
    main = kinds[0]
    is_inexact = dtypes.is_inexact(np.dtype(main))

    def sample(shapes: Sequence[tuple[int, ...]], dtype: Any, note: str = "") -> Sample:
        if dtypes.is_inexact(np.dtype(dtype)):
            operands = [smooth_values(shape, dtype, domain, seed) for seed, (shape, domain)
                        in enumerate(zip(shapes, (first, second), strict=True))]  # fmt: skip
        else:
            operands = [np.resize(values_of(dtype)[seed:], shape)
                        for seed, shape in enumerate(shapes)]  # fmt: skip
        differentiable = smooth and is_inexact and np.dtype(dtype).itemsize > 3
        return Sample(operands, {}, tolerance(dtype), smooth=differentiable,
                      unit_tangents=tangents, note=note)  # fmt: skip

    shapes = (((2, 3), (2, 3)), ((), ()), ((3,), ()), ((), (2, 2)), ((0,), (0,)))
    samples = [sample(pair, main) for pair in shapes]
    for dtype in kinds:
        if dtypes.is_inexact(np.dtype(dtype)):
            samples.append(sample(((4,), (4,)), dtype, "smooth"))
        if special is not None:
            values = special(np.dtype(dtype))
            x, y = np.repeat(values, len(values)), np.tile(values, len(values))
            samples.append(Sample([x, y], {}, tolerance(dtype), smooth=False, note="special"))
    return samples
