"""Samples of elementwise arithmetic, functions, comparisons and operations on bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import xnp.lax  # noqa: F401 - defines the primitives
from xnp.testing.samples.elementwise_values import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    SIGNED,
    SMALL_FLOATS,
    array,
    binary_samples,
    rounding,
    smooth_values,
    unary_samples,
    values_of,
)
from xprim import dtypes
from xprim.testing import Sample, Tolerance

__all__ = ()

ALL_FLOATS = (*FLOATS, *SMALL_FLOATS)
REAL = (*ALL_FLOATS, *INTEGERS)
NUMBERS = (*REAL, *COMPLEX)
ANY = (*NUMBERS, "bool")
INEXACT = (*FLOATS, *COMPLEX)
BITS = (*INTEGERS, "bool")


def _away_from_zero(x: Any) -> Any:
    return np.sign(x) * (np.abs(x) + 0.5)


def _positive(x: Any) -> Any:
    return np.abs(x) + 0.5


def _within_one(x: Any) -> Any:
    return 0.8 * np.tanh(x)


def _above_one(x: Any) -> Any:
    return np.abs(x) + 1.25


def _no_negative_zero(dtype: Any) -> Any:
    """Max and min of 0.0 and -0.0 may be either."""
    values = values_of(dtype)
    return values + np.zeros((), values.dtype) if dtypes.is_floating(values.dtype) else values


def _rounded(dtype: Any) -> Tolerance:
    """Exact but for complex products and quotients, and for denormal results."""
    return rounding(dtype) if dtypes.is_inexact(np.dtype(dtype)) else Tolerance()


def _roughly(dtype: Any) -> Tolerance:
    return rounding(dtype, 8.0)


_ARITHMETIC = {
    "neg": unary_samples(NUMBERS),
    "add": binary_samples(ANY, tolerance=_rounded),
    "sub": binary_samples(NUMBERS, tolerance=_rounded),
    "mul": binary_samples(ANY, tolerance=_rounded),
    "div": binary_samples(NUMBERS, second=_away_from_zero, tolerance=_rounded),
    "absorbing_product": binary_samples(INEXACT, second=_away_from_zero, tolerance=_rounded),
    "absorbing_quotient": binary_samples(INEXACT, second=_away_from_zero, tolerance=_rounded),
    "zero_quotient": binary_samples(INEXACT, second=_away_from_zero, tolerance=_rounded),
    "rem": binary_samples(REAL, lambda x: 3.7 * x, _away_from_zero, tolerance=_rounded),
    "max": binary_samples((*REAL, "bool", *COMPLEX), special=_no_negative_zero),
    "min": binary_samples((*REAL, "bool", *COMPLEX), special=_no_negative_zero),
    "abs": unary_samples((*ALL_FLOATS, *SIGNED, *COMPLEX), _away_from_zero, tolerance=_rounded),
    "sign": unary_samples(NUMBERS, _away_from_zero, tolerance=_rounded),
}


def _integer_powers() -> list[Sample]:
    samples = []
    for y in (0, 1, 2, 3, 7, -1, -3):
        samples += unary_samples(INEXACT, _away_from_zero, tolerance=_roughly, y=y)
        if y >= 0:
            samples += unary_samples(("int32", "int8", "uint64", dtypes.int4), y=y)
    return samples


def _powers_with_integers() -> list[Sample]:
    return [
        Sample([array([2.0, -3.0, 0.5, 1.0], dtype), array([3, 2, -2, 5], exponent)], {},
               rounding(dtype, 4.0), smooth=np.dtype(dtype).itemsize > 3, unit_tangents=(0,),
               note="integer-exponent")
        for dtype in INEXACT for exponent in ("int32", "int8", "uint8")
    ]  # fmt: skip


def _positive_floats(dtype: Any) -> Any:
    values = values_of(dtype)
    return np.abs(values) if dtypes.is_floating(values.dtype) else values


_POWERS = {
    "pow": [*binary_samples(INEXACT, _positive, tolerance=_roughly, special=None),
            *binary_samples(FLOATS, _positive, tolerance=_roughly, special=_positive_floats),
            *_powers_with_integers()],
    "integer_pow": _integer_powers(),
    "square": unary_samples(NUMBERS, tolerance=_rounded),
    "sqrt": unary_samples(INEXACT, _positive, tolerance=rounding),
    "rsqrt": unary_samples(INEXACT, _positive, tolerance=rounding),
    "cbrt": unary_samples(FLOATS, _away_from_zero, tolerance=rounding),
    "hypot": binary_samples(FLOATS, _away_from_zero, _away_from_zero, tolerance=rounding),
    "one_minus_square": unary_samples(INEXACT, tolerance=_roughly),
    "polynomial": [
        Sample([smooth_values((2, 3), dtype, lambda x: x), array(1.5, dtype), array(-2.0, dtype),
                smooth_values((2, 3), dtype, lambda x: x, 5)], {}, rounding(dtype, 20.0),
               smooth=np.dtype(dtype).itemsize > 3)
        for dtype in INEXACT
    ] + [Sample([np.zeros(0, np.float32)] * 4, note="empty")],
}  # fmt: skip

_EXPONENTIAL = {
    name: unary_samples(INEXACT, domain, tolerance=_roughly)
    for name, domain in (
        ("exp", lambda x: x), ("exp2", lambda x: x), ("expm1", lambda x: x), ("log", _positive),
        ("log2", _positive), ("log1p", _positive), ("logistic", lambda x: x),
    )
}  # fmt: skip

_ACTIVATIONS = {
    name: unary_samples(FLOATS, tolerance=_roughly) for name in ("gelu_by_tanh", "silu")
}

_TRIGONOMETRIC = {
    name: unary_samples(INEXACT, domain, tolerance=_roughly)
    for name, domain in (
        ("sin", lambda x: x), ("cos", lambda x: x), ("tan", _within_one), ("asin", _within_one),
        ("acos", _within_one), ("atan", lambda x: x), ("sinh", lambda x: x), ("cosh", lambda x: x),
        ("tanh", lambda x: x), ("asinh", lambda x: x), ("acosh", _above_one),
        ("atanh", _within_one),
    )
}  # fmt: skip
_ANGLE = binary_samples(FLOATS, _away_from_zero, _away_from_zero, tolerance=rounding)

_LOGADDEXP = {
    name: binary_samples(INEXACT, tolerance=_roughly) for name in ("logaddexp", "logaddexp2")
}

_ROUNDING = {
    "floor": unary_samples(ALL_FLOATS, lambda x: np.floor(x) + 0.3),
    "ceil": unary_samples(ALL_FLOATS, lambda x: np.floor(x) + 0.3),
    "round": [*unary_samples(ALL_FLOATS, lambda x: np.floor(x) + 0.3, rounding_method=0),
              *unary_samples(ALL_FLOATS, lambda x: np.floor(x) + 0.3, rounding_method=1)],
    "is_finite": unary_samples(ALL_FLOATS, smooth=False),
    "nextafter": binary_samples(FLOATS, smooth=False, tolerance=rounding),
}  # fmt: skip

_COMPARISON = {
    **{name: binary_samples(ANY, smooth=False) for name in ("eq", "ne")},
    **{name: binary_samples((*REAL, "bool"), smooth=False) for name in ("lt", "le", "gt", "ge")},
    **{name: binary_samples(FLOATS, smooth=False) for name in ("eq_to", "lt_to", "le_to")},
}

_BITWISE = {
    **{name: binary_samples(BITS) for name in ("and", "or", "xor")},
    "not": unary_samples(BITS),
    **{name: binary_samples(INTEGERS) for name in (
        "shift_left", "shift_right_arithmetic", "shift_right_logical")},
    "population_count": unary_samples(INTEGERS),
    "clz": unary_samples(INTEGERS),
    "mulhi": binary_samples(INTEGERS),
}  # fmt: skip

TABLE: dict[str, list[Sample]] = {
    **_ARITHMETIC, **_POWERS, **_EXPONENTIAL, **_ACTIVATIONS, **_LOGADDEXP, **_TRIGONOMETRIC,
    "atan2": _ANGLE, **_ROUNDING, **_COMPARISON, **_BITWISE,
}  # fmt: skip
