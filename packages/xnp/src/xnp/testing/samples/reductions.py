"""Samples of reductions over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.elementwise import add_p, mul_p
from xprim import ClosedJaxpr, dtypes, shaped_array, trace_to_jaxpr
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

FLOAT32 = Tolerance(1e-5, 1e-5, "sums and products of a few float32 numbers, in another order")
FLOAT64 = Tolerance(1e-13, 1e-13, "sums and products of a few float64 numbers, in another order")
SMALL = Tolerance(0.01, 0.01, "computed in float32, rounded once to 8 to 11 bits")
DENORMAL = Tolerance(0.0, 1e-300, "XLA for the CPU takes denormal numbers for zero")
TINY = Tolerance(0.3, 0.3, "computed in float32, rounded once to 2 or 3 bits")

_FLOATS: tuple[Any, ...] = ("float32", "float64", "float16", dtypes.bfloat16, dtypes.float8_e4m3fn,
                            dtypes.float8_e5m2)  # fmt: skip
_INTEGERS: tuple[Any, ...] = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                              "uint64", dtypes.int4, dtypes.uint4)  # fmt: skip
_COMPLEX = ("complex64", "complex128")
_AXES = (((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)), ((2, 3), (0, 1)), ((3,), ()), ((), ()),
         ((0, 3), (0,)), ((3, 0), (0,)), ((1, 3), (0,)))  # fmt: skip


def _values(shape: tuple[int, ...], dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(3)
    if dtypes.is_bool(dtype):
        return rng.integers(0, 2, shape).astype(bool)
    if dtypes.is_integer(dtype):
        low, high = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
        return np.asarray(rng.integers(low // 2, high // 2, shape, dtype=np.int64)).astype(dtype)
    values = np.asarray(rng.normal(size=shape))
    if dtypes.is_complex(dtype):
        values = values + 1j * np.asarray(rng.normal(size=shape))
    return values.astype(dtype)


def _tolerance(name: str, dtype: Any) -> Tolerance:
    is_rounded = name in ("center", "reduce_sum", "reduce_prod")
    if not is_rounded or not dtypes.is_inexact(np.dtype(dtype)):
        return EXACT
    kind = np.dtype(dtype).name
    if kind in ("float64", "complex128"):
        return FLOAT64
    if kind in ("float32", "complex64"):
        return FLOAT32
    return SMALL if kind in ("float16", "bfloat16") else TINY


def _reductions(name: str, kinds: tuple[Any, ...], main: Any) -> list[Sample]:
    tolerance = _tolerance(name, main)
    samples = [Sample([_values(shape, main)], {"axes": axes}, tolerance, smooth=0 not in shape)
               for shape, axes in _AXES]  # fmt: skip
    for dtype in kinds:
        x = _values((2, 5), dtype)
        samples.append(Sample([x], {"axes": (1,)}, _tolerance(name, dtype)))
        samples.append(Sample([x[:, :0]], {"axes": (1,)}, EXACT, smooth=False, note="no-elements"))
    return samples


def _special(*rows: Any, dtype: Any = "float64", note: str,
             tolerance: Tolerance = EXACT) -> Sample:  # fmt: skip
    return Sample([np.array(rows, dtype)], {"axes": (1,)}, tolerance, smooth=False, note=note)


def _nan_rows(dtype: Any) -> list[Sample]:
    inf, nan = np.inf, np.nan
    return [
        _special([1, nan, 2], [nan, nan, nan], [-inf, inf, 0], dtype=dtype, note="nan-inf"),
        _special(
            [-inf, -inf], [inf, inf], [5e-324, 0], dtype=dtype, note="extremes", tolerance=DENORMAL
        ),
    ]


def _program(fun: Any, dtype: Any, count: int) -> ClosedJaxpr:
    scalars = [shaped_array((), np.dtype(dtype))] * (2 * count)
    return ClosedJaxpr(*trace_to_jaxpr(fun, scalars, name="computation"))


def _general() -> list[Sample]:
    add, mul = add_p.bind, mul_p.bind

    def join(a: Any, b: Any) -> Any:  # 1 + result is the product of all 1 + x
        return add(add(a, b)[0], mul(a, b)[0])

    def compose(s: Any, t: Any, u: Any, v: Any) -> Any:  # x -> s x + t composed with x -> u x + v
        return [mul(s, u)[0], add(mul(t, u)[0], v)[0]]

    def one(
        shape: Any, axes: Any, dtype: Any = "float64", tolerance: Tolerance = FLOAT64
    ) -> Sample:
        x = _values(shape, dtype)
        params = {"jaxpr": _program(join, dtype, 1), "dimensions": axes}
        return Sample([x, np.zeros((), dtype)], params, tolerance)

    pair = [
        _values((2, 5), "float64"),
        0.5 * _values((2, 5), "float64"),
        np.float64(1),
        np.float64(0),
    ]
    return [
        one((2, 3, 4), (1,)), one((5,), (0,)), one((0, 2), (0,)), one((3,), ()),
        one((2, 4), (0, 1), "float32", FLOAT32), one((3, 3), (1,), "int32", EXACT),
        *[one((2, 3), (1,), dtype, EXACT) for dtype in ("int8", "uint8", "int64", "uint32")],
        one((2, 3), (1,), "complex64", FLOAT32), one((2, 3), (1,), "float16", SMALL),
        one((2, 3), (1,), dtypes.bfloat16, SMALL),
        Sample(pair, {"jaxpr": _program(compose, "float64", 2), "dimensions": (1,)}, FLOAT64,
               note="two-operands"),
    ]  # fmt: skip


_NUMBERS = (*_FLOATS, *_INTEGERS, *_COMPLEX)
_BITS = (*_INTEGERS, "bool")

TABLE: dict[str, list[Sample]] = {
    "center": [*_reductions("center", (*_FLOATS, *_COMPLEX), "float64"), *_nan_rows("float64")],
    "reduce_sum": [*_reductions("reduce_sum", _NUMBERS, "float64"), *_nan_rows("float64")],
    "reduce_prod": [
        *_reductions("reduce_prod", _NUMBERS, "float64"),
        Sample([np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 2.0]])], {"axes": (1,)}, FLOAT64,
               note="zeros"),
    ],
    "reduce_max": [*_reductions("reduce_max", (*_NUMBERS, "bool"), "float64"),
                   *_nan_rows("float64"), *_nan_rows("float32"), *_nan_rows(dtypes.bfloat16)],
    "reduce_min": [*_reductions("reduce_min", (*_NUMBERS, "bool"), "float64"),
                   *_nan_rows("float64"), *_nan_rows("float32"), *_nan_rows(dtypes.bfloat16)],
    "reduce_and": _reductions("reduce_and", _BITS, "int32"),
    "reduce_or": _reductions("reduce_or", _BITS, "int32"),
    "reduce_xor": _reductions("reduce_xor", _BITS, "int32"),
    "reduce": _general(),
}  # fmt: skip
