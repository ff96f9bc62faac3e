"""Samples of conversions, complex parts, selections and identities."""

from __future__ import annotations

from typing import Any

import numpy as np

import xnp.lax  # noqa: F401 - defines the primitives
from xnp.testing.samples.edges import DTYPES, edge_values
from xnp.testing.samples.elementwise_values import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    SMALL_FLOATS,
    array,
    binary_samples,
    rounding,
    smooth_values,
    unary_samples,
    values_of,
)
from xprim import dtypes
from xprim.testing import Sample

__all__ = ()

_ANY: tuple[Any, ...] = (*FLOATS, *SMALL_FLOATS, *INTEGERS, dtypes.int2, *COMPLEX, "bool")


def _conversion(x: Any, dtype: Any, **more: Any) -> Sample:
    params = {"new_dtype": np.dtype(dtype), "weak_type": False}
    return Sample([x], params, note=f"to-{np.dtype(dtype).name}", **more)


def _far_floats(dtype: Any) -> Any:
    """Floats at and beyond the ends of the integer dtypes."""
    powers = [7, 8, 15, 16, 31, 32, 63, 64]
    ends = [s * v for p in powers for v in (2.0**p, 2.0**p - 1) for s in (1, -1)]
    return array([*ends, 0.9, -0.9, 1e30, -1e30, np.inf, -np.inf, np.nan], dtype)


def _no_nan_for_formats_without(x: Any, dtype: Any) -> Any:
    """XLA and ml_dtypes differ in what formats without infinity make of it."""
    if not dtypes.is_floating(np.dtype(dtype)) or np.dtype(dtype).itemsize > 1:
        return x
    wide = x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)
    return x[np.isfinite(wide) & (np.abs(wide) <= 128)]


def _conversions() -> list[Sample]:
    samples = [_conversion(smooth_values(shape, "float64", lambda x: x), "float32",
                           tolerance=rounding("float32"), smooth=False)
               for shape in ((), (0,), (2, 3))]  # fmt: skip
    for old in _ANY:
        for new in _ANY:
            x = _no_nan_for_formats_without(values_of(old), new)
            samples.append(_conversion(x, new, smooth=False))
    samples += [_conversion(_far_floats(old), new, smooth=False)
                for old in ("float32", "float64") for new in (*INTEGERS, "bool")]  # fmt: skip
    samples += _rare_conversions()
    smooth = smooth_values((2, 3), "float64", lambda x: x)
    return [*samples, *[_conversion(smooth, new) for new in ("float64", "complex128")]]


def _rare_conversions() -> list[Sample]:
    """Return conversions of the formats that few programs have."""
    samples = []
    for other in [d for d in DTYPES if d not in map(np.dtype, _ANY)]:
        # XLA for the CPU converts the greatest float4_e2m1fn, 6, to the greatest integer
        integer = "bool" if other == dtypes.float4_e2m1fn else "int32"
        for old, new in ((other, "float32"), ("float32", other), (other, integer), ("int8", other),
                         (other, other)):  # fmt: skip
            x = _no_nan_for_formats_without(values_of(old), new)
            samples.append(_conversion(x, new, smooth=False))
    return [*samples, *[_conversion(edge_values(d), d, smooth=False) for d in DTYPES]]


def _bitcast(x: Any, dtype: Any) -> Sample:
    params = {"new_dtype": np.dtype(dtype)}
    return Sample([x], params, smooth=False, note=f"to-{np.dtype(dtype).name}")


def _bitcasts() -> list[Sample]:
    words = np.arange(16, dtype=np.uint8).reshape(2, 8) * 17
    f32 = array([[1.0, -2.5, np.inf], [0.1, -0.0, 3e-39]], "float32")
    samples = [_bitcast(f32, d) for d in ("int32", "uint32", "int8", "uint16", "float32",
                                          dtypes.bfloat16, dtypes.int4, dtypes.uint4)]  # fmt: skip
    samples += [_bitcast(words, d) for d in ("int8", "uint64", "float64", dtypes.uint4,
                                             dtypes.float8_e4m3fn)]  # fmt: skip
    samples += [_bitcast(words[:, :4], "int32"), _bitcast(np.array(1.5), "int64"),
                _bitcast(np.zeros((0,), np.float16), "int16"),
                _bitcast(array([[1, -2]], dtypes.int4), "uint8"),
                _bitcast(array([1, -2, 7], dtypes.int4), dtypes.uint4)]  # fmt: skip
    words_by_bits = {dtypes.itemsize_bits(d): d for d in dtypes.UNSIGNED}
    real = [d for d in DTYPES if not dtypes.is_bool(d) and not dtypes.is_complex(d)]
    return [*samples,
            *[_bitcast(edge_values(d), words_by_bits[dtypes.itemsize_bits(d)]) for d in real],
            *[_bitcast(np.arange(4).astype(words_by_bits[dtypes.itemsize_bits(d)]), d)
              for d in real]]  # fmt: skip


def _reduced() -> list[Sample]:
    samples = []
    values = [1.2345, -1.9999, 65519.0, 65520.0, 6.2e-5, -1e-6, 1e20, 1.0, 2.5, 3.5, -0.0,
              np.inf, -np.inf, np.nan]  # fmt: skip
    for dtype in FLOATS:
        for exponent_bits, mantissa_bits in ((5, 10), (8, 7), (4, 3), (5, 2), (11, 52)):
            params = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
            x = array(values, dtype)
            samples.append(Sample([x], params, smooth=False))
    params = {"exponent_bits": 8, "mantissa_bits": 7}
    return [*samples, Sample([array(1.3, "float32")], params, smooth=False),
            Sample([np.zeros((0, 2), np.float32)], params, smooth=False)]  # fmt: skip


def _conjugates() -> list[Sample]:
    samples = []
    for dtype in (*COMPLEX, "float32", "float64"):
        samples += unary_samples((dtype,), input_dtype=np.dtype(dtype))
        samples.append(Sample([edge_values(dtype)], {"input_dtype": np.dtype(dtype)}, smooth=False,
                              note="edges"))  # fmt: skip
    return samples


def _selections() -> list[Sample]:
    samples = []
    for dtype in _ANY:
        x = values_of(dtype)[:4]
        which = np.array([True, False, False, True])
        smooth = np.dtype(dtype).itemsize > 3 and dtypes.is_inexact(np.dtype(dtype))
        samples.append(Sample([which, x, x[::-1]], {}, smooth=smooth))
        samples.append(Sample([np.array(True), x, x[::-1]], {}, smooth=smooth, note="scalar"))
    x, y, z = [smooth_values((2, 3), "float32", lambda v: v, seed) for seed in range(3)]
    index = np.array([[0, 1, 2], [-1, 5, 1]], np.int32)
    samples += [
        Sample([index, x, y, z], note="index"),
        Sample([array(1, "int32"), x, y, z], note="scalar-index"),
        Sample([index, x], note="one-case"),
        Sample([np.array(False), array(1, "float32"), array(2, "float32")], note="scalars"),
        Sample([np.zeros((0,), bool), x[:0, 0], x[:0, 0]], note="empty"),
    ]  # fmt: skip
    return samples


def _limited() -> list[Sample]:
    samples = []
    for dtype in (*FLOATS, *SMALL_FLOATS, *INTEGERS):
        x = values_of(dtype)
        low, high = array(1, dtype), array(3, dtype)
        samples += [Sample([low, x, high], smooth=False, note="scalar-bounds"),
                    Sample([np.full_like(x, low), x, np.full_like(x, high)], smooth=False),
                    Sample([high, x, low], smooth=False, note="crossed")]  # fmt: skip
    x = np.array([-2.0, -0.5, 0.25, 1.75])
    samples += [Sample([np.array(-1.0), x, np.array(1.0)]), Sample([x - 1, x, np.array(1.0)]),
                Sample([np.array(0.0), np.array(0.5), np.array(1.0)]),
                Sample([np.array(0.0), x[:0], np.array(1.0)])]  # fmt: skip
    return samples


def _barriers() -> list[Sample]:
    x = smooth_values((2, 3), "float32", lambda v: v)
    return [Sample([x]), Sample([x, np.arange(3), np.array(2.0)]), Sample([x[:0]], note="empty")]


def _seen_by_a_branch() -> list[Sample]:
    """Return rows in which all take the branch: for them alone it is differentiated as x."""
    params = {"branch": 1, "leading": (0,)}
    plain = [Sample([np.array(1), *row.operands], params, row.tolerance, row.smooth)
             for row in unary_samples(_ANY)]  # fmt: skip
    x = smooth_values((2, 3), "float32", lambda v: v)
    mapped = Sample([np.array([1, 1]), x, x[0]], {"branch": 1, "leading": (1, 0)})
    return [*plain, mapped]


TABLE: dict[str, list[Sample]] = {
    "convert_element_type": _conversions(),
    "bitcast_convert_type": _bitcasts(),
    "reduce_precision": _reduced(),
    "complex": binary_samples(("float32", "float64")),
    "real": unary_samples(COMPLEX),
    "imag": unary_samples(COMPLEX),
    "conj": _conjugates(),
    "select_n": _selections(),
    "clamp": _limited(),
    "copy": unary_samples(_ANY),
    "stop_gradient": unary_samples(_ANY, smooth=False),
    "optimization_barrier": _barriers(),
    "in_memory": [  # of kinds that types take for the device: checks combine results and operands
        Sample([smooth_values(shape, "float32", lambda v: v)], {"kind": kind})
        for kind, shape in (("unpinned_host", (2, 3)), ("device", ()), ("device", (0, 2)))
    ],
    "branch_operands": _seen_by_a_branch(),
}
