"""Samples of elementwise primitives: arithmetic, functions, comparisons, bits, conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import xnp.lax  # noqa: F401 - defines the primitives
from xnp.testing.samples.values import DTYPES, edge_values
from xprim import dtypes
from xprim.testing import EXACT, Sample, Tolerance

__all__ = ()

# ------------------------------------------------------------------------ operands and tolerances

Domain = Callable[[Any], Any]

FLOATS = ("float32", "float64", "float16", dtypes.bfloat16)
SMALL_FLOATS = (dtypes.float8_e4m3fn, dtypes.float8_e5m2)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", dtypes.int4,
            dtypes.uint4)  # fmt: skip
SIGNED = ("int8", "int16", "int32", "int64", dtypes.int4)
COMPLEX = ("complex64", "complex128")

_ROUNDINGS = {
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
    found = _ROUNDINGS.get(np.dtype(dtype).name, _FEW_BITS)
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


# -------------------------------------- arithmetic, functions, comparisons and operations on bits

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


def _tolerate_rounding(dtype: Any) -> Tolerance:
    """Exact but for complex products and quotients, and for denormal results."""
    return rounding(dtype) if dtypes.is_inexact(np.dtype(dtype)) else Tolerance()


def _roughly(dtype: Any) -> Tolerance:
    return rounding(dtype, 8.0)


_ARITHMETIC = {
    "neg": unary_samples(NUMBERS),
    "add": binary_samples(ANY, tolerance=_tolerate_rounding),
    "sub": binary_samples(NUMBERS, tolerance=_tolerate_rounding),
    "mul": binary_samples(ANY, tolerance=_tolerate_rounding),
    "div": binary_samples(NUMBERS, second=_away_from_zero, tolerance=_tolerate_rounding),
    "absorbing_product": binary_samples(
        INEXACT, second=_away_from_zero, tolerance=_tolerate_rounding
    ),
    "absorbing_quotient": binary_samples(
        INEXACT, second=_away_from_zero, tolerance=_tolerate_rounding
    ),
    "repeated_quotient": binary_samples(INEXACT, second=_away_from_zero, tolerance=_roughly),
    "zero_quotient": binary_samples(INEXACT, second=_away_from_zero, tolerance=_tolerate_rounding),
    "rem": binary_samples(REAL, lambda x: 3.7 * x, _away_from_zero, tolerance=_tolerate_rounding),
    "max": binary_samples((*REAL, "bool", *COMPLEX), special=_no_negative_zero),
    "min": binary_samples((*REAL, "bool", *COMPLEX), special=_no_negative_zero),
    "abs": unary_samples(
        (*ALL_FLOATS, *SIGNED, *COMPLEX), _away_from_zero, tolerance=_tolerate_rounding
    ),
    "sign": unary_samples(NUMBERS, _away_from_zero, tolerance=_tolerate_rounding),
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
    "square": unary_samples(NUMBERS, tolerance=_tolerate_rounding),
    "sqrt": unary_samples(INEXACT, _positive, tolerance=rounding),
    "rsqrt": unary_samples(INEXACT, _positive, tolerance=rounding),
    "cbrt": unary_samples(FLOATS, _away_from_zero, tolerance=rounding),
    "hypot": binary_samples(FLOATS, _away_from_zero, _away_from_zero, tolerance=rounding),
    **{
        f"{function}_derivative": [
            replace(sample, params={"orders": orders}) for orders in ((1, 0), (1, 2))
            for sample in binary_samples(
                FLOATS, _away_from_zero, _away_from_zero, tolerance=_roughly
            )
        ]
        for function in ("angle", "hypot")
    },
    "one_minus_square": unary_samples(INEXACT, tolerance=_roughly),
    "logistic_rest": unary_samples(FLOATS, tolerance=_roughly),
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
    "relu": unary_samples(FLOATS),
    **{name: unary_samples(FLOATS, tolerance=_roughly) for name in ("gelu_by_tanh", "silu")},
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


# ------------------------------------------ conversions, complex parts, selections and identities

_CONVERTED: tuple[Any, ...] = (*FLOATS, *SMALL_FLOATS, *INTEGERS, dtypes.int2, *COMPLEX, "bool")


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
    for old in _CONVERTED:
        for new in _CONVERTED:
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
    for other in [d for d in DTYPES if d not in map(np.dtype, _CONVERTED)]:
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


def _sample_reduced() -> list[Sample]:
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
    for dtype in _CONVERTED:
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


def _sample_limited() -> list[Sample]:
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
                Sample([np.array(0.0), x[:0], np.array(1.0)]),
                Sample([x, np.array(0.5), np.array(1.0)], note="repeated"),
                Sample([np.array(-0.5), np.array(0.5), x], note="repeated")]  # fmt: skip
    return samples


def _barriers() -> list[Sample]:
    x = smooth_values((2, 3), "float32", lambda v: v)
    return [Sample([x]), Sample([x, np.arange(3), np.array(2.0)]), Sample([x[:0]], note="empty")]


def _sample_branch() -> list[Sample]:
    """Return rows in which all take the branch: for them alone it is differentiated as x."""
    params = {"branch": 1, "leading": (0,)}
    plain = [Sample([np.array(1), *row.operands], params, row.tolerance, row.smooth)
             for row in unary_samples(_CONVERTED)]  # fmt: skip
    x = smooth_values((2, 3), "float32", lambda v: v)
    mapped = Sample([np.array([1, 1]), x, x[0]], {"branch": 1, "leading": (1, 0)})
    return [*plain, mapped]


TABLE |= {
    "convert_element_type": _conversions(),
    "bitcast_convert_type": _bitcasts(),
    "reduce_precision": _sample_reduced(),
    "complex": binary_samples(("float32", "float64")),
    "real": unary_samples(COMPLEX),
    "imag": unary_samples(COMPLEX),
    "conj": _conjugates(),
    "select_n": _selections(),
    "clamp": _sample_limited(),
    "copy": unary_samples(_CONVERTED),
    "stop_gradient": unary_samples(_CONVERTED, smooth=False),
    "optimization_barrier": _barriers(),
    "in_memory": [  # of kinds that types take for the device: checks combine results and operands
        Sample([smooth_values(shape, "float32", lambda v: v)], {"kind": kind})
        for kind, shape in (("unpinned_host", (2, 3)), ("device", ()), ("device", (0, 2)))
    ],
    "branch_operands": _sample_branch(),
}
