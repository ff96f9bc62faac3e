"""Operands for samples: numbers of any dtype, the dtypes to try, rows with edge values."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from xprim import ELEMENTWISE, dtypes, get_primitive, shaped_array
from xprim.testing import EXACT, Sample, Tolerance

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


# ------------------------------------------------------------------- rows that every primitive gets
# Rows that every primitive gets: each dtype that it takes, with the values at its edges.
#
# A family's table says what is special about its primitives. What all of them must bear is added to
# it from here: for each dtype that the shape rule accepts, NaN, the infinities, -0.0, the largest
# and the denormal numbers, or the ends of the integers, where the family's own rows lack them. The
# first row of the primitive lends its shapes and params. What a primitive does not get is in
# `LEFT_OUT`, with the reason; `tests/test_rule_matrix.py` holds the tables to that.

# XLA has no types for these: nothing that holds them can be compiled.
NOT_COMPILED = ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")
DTYPES = tuple([d for d in dtypes.ALL if d.name not in NOT_COMPILED])

ONE_BIT = Tolerance(1.0, 0.5, "one step of a format with one bit of mantissa")
FEW_BITS = Tolerance(0.3, 0.1, "one step of a format with 2 to 4 bits of mantissa")


def edge_values(dtype: Any, without: Container[str] = ()) -> Ndarray:
    """Return the values at the edges of a dtype, but for some, with a few ordinary ones."""
    dtype = np.dtype(dtype)
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_integer(dtype):
        low, high = int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max)
        ends = [v for v, name in ((low, "min"), (high, "max")) if name not in without]
        return np.array([*ends, 0, 1], np.uint64 if low == 0 else np.int64).astype(dtype)
    real = _edges_of_floats(dtypes.finfo(dtype).dtype, without)
    if not dtypes.is_complex(dtype):
        return real
    values = np.empty(real.size, dtype)
    values.real, values.imag = real, np.roll(real, 3)
    return values


def _edges_of_floats(dtype: Any, without: Container[str]) -> Ndarray:
    info = dtypes.finfo(dtype)
    # float8_e8m0fnu has powers of two only; the least of them is a denormal number of float32
    tiny = 2.0**-126 if dtype == dtypes.float8_e8m0fnu else float(info.smallest_subnormal)
    value_by_name = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "-0.0": -0.0,
                     "denormal": tiny, "max": float(info.max)}  # fmt: skip
    values = np.array([v for name, v in value_by_name.items() if name not in without])
    with np.errstate(all="ignore"):
        values = np.array([*values, 1.0, 0.5, 2.0])
        cast = values.astype(dtype)
        wide = cast.astype(np.float64)
    kept: Ndarray = cast[(wide == values) | (np.isnan(wide) & np.isnan(values))]
    return kept


def edges_in(x: Ndarray) -> set[str]:
    """Return which edges of its dtype an operand holds, by name."""
    dtype = x.dtype
    if not x.size or dtypes.is_bool(dtype):
        return set()
    if dtypes.is_integer(dtype):
        info, held = dtypes.iinfo(dtype), {int(v) for v in x.reshape(-1)}
        return {name for name in ("min", "max") if int(getattr(info, name)) in held}
    if dtypes.is_complex(dtype):
        return edges_in(x.real) | edges_in(x.imag)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
    small = float(dtypes.finfo(dtype).smallest_normal)
    found = {
        "nan": np.isnan(wide), "inf": wide == np.inf, "-inf": wide == -np.inf,
        "-0.0": (wide == 0) & np.signbit(wide), "denormal": (wide != 0) & (np.abs(wide) < small),
        "max": wide == float(dtypes.finfo(dtype).max),
    }  # fmt: skip
    return {name for name, where in found.items() if where.any()}


def edges_of(dtype: Any) -> set[str]:
    """Return the names of the edges that a dtype has: not every format has an infinity or -0.0."""
    return edges_in(edge_values(dtype))


# ------------------------------------------------------------------------------------------- rows

# Which operand says the dtype, where it is not the first.
MAIN_OPERAND = {"select_n": 1, "branch_operands": 1}

# {primitive: {dtype, edge, or "complex edges": reason}}: what a primitive takes, but no row shows.
_FORMULAS = {"complex edges": "the formulas of XLA and NumPy differ at infinities and NaN"}
_TWO_BITS = "XLA for the CPU refuses a reduction of two operands that are packed differently"
_FLUSHED = "compiled programs take denormal operands for zero"
_DENORMAL = "XLA's approximation loses denormal operands"
_SELECTION = {
    "nan": "NaN is neither selected nor passed over by a rule",
    **dict.fromkeys(["complex64", "complex128"], "complex numbers have no order to select by"),
}
_SPREAD = dict.fromkeys(["nan", "inf", "-inf", "max"], "a block of reflectors spreads what is not "
                        "finite further than one after the other does")  # fmt: skip
_ZEROS = {"-0.0": "the greater of 0.0 and -0.0 may be either"}
_NO_NAN = {"float4_e2m1fn": "the format has no NaN, which the result is outside of [-1, 1]"}

# Programs that take long to compile, and would be the same ones again.
_IN_FLOAT32 = dict.fromkeys(
    [d.name for d in dtypes.SMALL_FLOATS if d != dtypes.float8_e4m3fn],
    "they are computed in float32, as those of float8_e4m3fn are",
)

LEFT_OUT: dict[str, dict[str, str]] = {
    **dict.fromkeys("acosh asinh atan atanh cos cosh div exp exp2 expm1 integer_pow log log1p log2 "
                    "logaddexp logaddexp2 logistic one_minus_square polynomial rsqrt sign sin sinh "
                    "sqrt tan tanh triangular_solve".split(), _FORMULAS),
    "acos": {**_FORMULAS, **_NO_NAN},
    "argmax": {"int2": _TWO_BITS, "uint2": _TWO_BITS},
    "argmin": {"int2": _TWO_BITS, "uint2": _TWO_BITS},
    "asin": {**_FORMULAS, **_NO_NAN},
    "atan2": {"denormal": "XLA's angle of two denormal numbers is NaN, as it takes them for zero"},
    "cbrt": {"denormal": _DENORMAL},
    "cumprod": {"complex edges": "products of infinities are NaN, in another order elsewhere"},
    "cumsum": dict.fromkeys(
        ["complex edges", "-0.0"], "the sign of a zero depends on the order of the sum"
    ),
    "betainc_grad_x": _IN_FLOAT32,
    "block_values": {"float8_e8m0fnu": "the format has no zero beside the diagonal"},
    "digamma": {"float4_e2m1fn": "the compiler's conversion drops the sign of -0.0"},
    "igamma": {**_IN_FLOAT32, "denormal": _FLUSHED},
    "igammac": {**_IN_FLOAT32, "denormal": _FLUSHED},
    "igamma_grad_a": {**_IN_FLOAT32, "denormal": _FLUSHED},
    "igamma_grad_x": _IN_FLOAT32,
    "householder_product": {**_FORMULAS, **_SPREAD},
    "le_to": {"float8_e8m0fnu": "the format has no sign bit, which the total order goes by"},
    "lt_to": {"float8_e8m0fnu": "the format has no sign bit, which the total order goes by"},
    "lu": dict.fromkeys(["nan", "inf", "-inf"], "pivots are not comparable beside NaN"),
    "lu_pivots_to_permutation": dict.fromkeys(["min", "max"], "pivots are rows of the matrix"),
    "max": _ZEROS,
    "min": _ZEROS,
    "reduce_scatter": {"bool": "booleans have no sum, which raises when it runs"},
    "polygamma": _IN_FLOAT32,
    "ormqr": {**_FORMULAS, **_SPREAD},
    "pow": {**_FORMULAS, "denormal": _DENORMAL},
    "random_gamma_grad": {**_IN_FLOAT32, "denormal": _FLUSHED},
    "regularized_incomplete_beta": _IN_FLOAT32,
    "round": {"float8_e8m0fnu": "the format has no zero to round to"},
    "select_and_gather_add": _SELECTION,
    "select_and_scatter_add": _SELECTION,
    "tridiagonal": {**_FORMULAS, **_SPREAD},
    "eigh_tridiagonal": {**_FORMULAS, **_SPREAD},
    "zeta": _IN_FLOAT32,
}  # fmt: skip
# Their params hold programs or dtypes that go with the operands: each dtype has a row of its own.
OWN_ROWS_ONLY = ("conj", "reduce", "convert_element_type", "bitcast_convert_type")


_ROOM = 9  # how many values `edge_values` gives


def edge_rows(
    name: str, rows: Sequence[Sample], accepts: Callable[..., bool] | None = None
) -> list[Sample]:
    """Return the rows that a primitive's own rows lack: the edges of each dtype that it takes.

    Args:
      name: the primitive.
      rows: its own rows; the first with room lends its shapes and params.
      accepts: whether the shape rule takes operands and params; for rules that need a scope.
    """
    if name in OWN_ROWS_ONLY:
        return []
    sizes = [_size_of_main(name, row) for row in rows]
    if not any(sizes):
        return []
    # the first row with room for all values
    template = rows[next((i for i, n in enumerate(sizes) if n >= _ROOM), int(np.argmax(sizes)))]
    accepts = accepts or shape_rule_accepts
    made = []
    for dtype in DTYPES:
        if lacking_edges(name, rows, dtype) is None:
            continue
        row = _edge_row(name, rows, template, dtype)
        if accepts(name, row.operands, row.params):
            made.append(row)
    return made


def lacking_edges(name: str, rows: Sequence[Sample], dtype: Any) -> set[str] | None:
    """Return the edges of a dtype that no row of a primitive has; None where nothing is lacking."""
    if dtype.name in LEFT_OUT.get(name, {}):
        return None
    if dtype == dtypes.float8_e8m0fnu and any(row.tolerance != EXACT for row in rows):
        return None  # it holds scales, not numbers to compute with: no zero, no sign, one bit
    held: set[str] = set()
    shown = False
    for row in rows:
        group = _group(name, row)
        if group and row.operands[group[0]].dtype == dtype:
            shown = True
            held |= set().union(*[edges_in(np.asarray(row.operands[i])) for i in group])
    lacking = edges_of(dtype) - held - _edges_left_out(name, dtype)
    return lacking if lacking or not shown else None


def _edges_left_out(name: str, dtype: Any) -> set[str]:
    reasons = LEFT_OUT.get(name, {})
    if dtypes.is_complex(dtype) and "complex edges" in reasons:
        return edges_of(dtype)
    return set(reasons)


def shape_rule_accepts(name: str, operands: Sequence[Ndarray], params: Any) -> bool:
    """Say whether the shape rule of a primitive takes such operands and params."""
    avals = tuple([shaped_array(np.shape(x), x.dtype) for x in operands])
    try:
        get_primitive(name).infer(avals, dict(params))
    except (TypeError, ValueError):
        return False
    return True


def _group(name: str, row: Sample) -> list[int]:
    """Return the operands that have the dtype of the main one."""
    main = MAIN_OPERAND.get(name, 0)
    if len(row.operands) <= main:
        return []
    dtype = row.operands[main].dtype
    found = [i for i, x in enumerate(row.operands) if x.dtype == dtype]
    return sorted(found, key=lambda i: i != main)


def _size_of_main(name: str, row: Sample) -> int:
    group = _group(name, row)
    return row.operands[group[0]].size if group else 0


def _edge_row(name: str, rows: Sequence[Sample], template: Sample, dtype: Any) -> Sample:
    group = _group(name, template)
    old = template.operands[group[0]].dtype
    operands = list(template.operands)
    values = edge_values(dtype, _edges_left_out(name, dtype))
    is_elementwise = get_primitive(name).rules["batch"] is ELEMENTWISE
    if is_elementwise and len(group) == len(operands) == 2:
        operands = [np.repeat(values, values.size), np.tile(values, values.size)]
    elif is_elementwise and len(group) == len(operands):
        operands = [np.roll(values, k) for k in range(len(group))]
    else:
        start = 0
        for i in group:
            operands[i] = np.resize(np.roll(values, -start), operands[i].shape)
            start += operands[i].size
    params = dict(template.params)
    if not shape_rule_accepts(name, operands, params):
        params = {k: dtype if isinstance(v, np.dtype) and v == old else v
                  for k, v in params.items()}  # fmt: skip
    return Sample(operands, params, _tolerance(name, rows, dtype), smooth=False, note="edges")


def _tolerance(name: str, rows: Sequence[Sample], dtype: Any) -> Tolerance:
    """Return the widest tolerance of the primitive's rows of a dtype, or one for its format."""
    own = [row.tolerance for row in rows
           if (group := _group(name, row)) and row.operands[group[0]].dtype == dtype]  # fmt: skip
    if own:
        return max(own, key=lambda t: t.rtol)
    if not dtypes.is_inexact(dtype) or all(row.tolerance == EXACT for row in rows):
        return EXACT
    return ONE_BIT if dtype == dtypes.float4_e2m1fn else FEW_BITS
