"""Conversions and choices: dtypes, bit patterns, precision, clamp, select_n, identities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, table
from xnp.primitives.lowering_text import BYTES, compare, same_dtype
from xnp.primitives.table import ANY, COMPLEX, FLOATING, add, bind, scalar_like, unary
from xprim import LINEAR, STRUCTURAL, Primitive, ShapedArray, Zero, dtypes, shaped_array, state
from xprim.avals import PINNED_HOST, MemorySpace
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require
from xprim.sharded_types import in_memory_kind

__all__ = ()


# -------------------------------------------------------------------------------------- identity
# Operations that return their operand: copy, stop_gradient, optimization_barrier, in_memory.
#
# `stop_gradient` has the derivative zero. `optimization_barrier` keeps the compiler from moving
# or merging operations across it (StableHLO specification, section optimization_barrier).


def _same_names(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return list(operands)


copy_p: Primitive = unary(
    "copy", ANY | {dtypes.float0}, numpy=np.copy, stablehlo=_same_names,
    jvp=lambda x_dot, y, x: copy_p.bind(x_dot)[0], linear=lambda ct: copy_p.bind(ct)[0],
    physical=STRUCTURAL, keys="clone", cost=costs.nothing,
)  # fmt: skip
copy_p.define("uses_all", True)

stop_gradient_p = unary(
    "stop_gradient", ANY, numpy=lambda x: x, stablehlo=_same_names, jvp=xprim.ZERO,
    physical=STRUCTURAL,
    cost=costs.view, linearity=LINEAR,
)  # fmt: skip


def _barrier_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.op("stablehlo.optimization_barrier", operands, avals_in, avals_out)


def _barrier_jvp(primals: Any, tangents: Any) -> Any:
    outs = state.trace.process(optimization_barrier_p, tuple(primals), {})
    kept = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    dots = list(tangents)
    for i, dot in zip(kept, optimization_barrier_p.bind(*[tangents[i] for i in kept]), strict=True):
        dots[i] = dot
    return outs, tuple(dots)


def _barrier_transpose(cts: Any, *operands: Any) -> Any:
    return tuple([ct if type(x) is xprim.Linear else Zero(x.aval)
                  for ct, x in zip(cts, operands, strict=True)])  # fmt: skip


optimization_barrier_p: Primitive = Primitive(
    "optimization_barrier",
    shape=lambda *avals: avals,
    numpy=lambda *xs: xs,
    stablehlo=_barrier_stablehlo,
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, operands, dims: (optimization_barrier_p.bind(*operands), tuple(dims)),
    physical=lambda _, *operands: optimization_barrier_p.bind(*operands),
    sharding=xprim.Sharding(xprim.dimension_names.AS_SAID, varying=lambda *axes: axes),
)


# `in_memory` says in which kind of memory a program keeps a value; its cotangent is kept where the
# operand is. XLA for GPUs and TPUs knows host memory by a custom call; a CPU has one memory, and so
# has NumPy.


def _memory_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, kind: str
) -> Any:
    if b.platform == "cpu":
        return operands
    return b.op(
        "stablehlo.custom_call", operands, avals_in, avals_out,
        'call_target_name = "annotate_device_placement", backend_config = "", '
        "has_side_effect = true, "
        f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}',
    )  # fmt: skip


def _memory_transpose(cts: Any, x: Any, *, kind: str) -> Any:
    is_of_host = x.aval.memory_space is MemorySpace.Host
    return in_memory_p.bind(cts[0], kind=PINNED_HOST if is_of_host else "device")


def _always_compiled(avals_in: Any, avals_out: Any, *, kind: str) -> float:
    """Cost so much by NumPy, which knows no kinds of memory, that the back end is called."""
    return 1e18  # nanoseconds


in_memory_p: Primitive = Primitive(
    "in_memory",
    shape=lambda aval, kind: (in_memory_kind(aval, kind),),
    numpy=lambda x, kind: (x,),
    stablehlo=_memory_stablehlo,
    jvp=LINEAR,
    transpose=_memory_transpose,
    batch=lambda axis, operands, dims, kind: (in_memory_p.bind(*operands, kind=kind), tuple(dims)),
    physical=STRUCTURAL,
    sharding=xprim.dimension_names.AS_SAID,
    eager=_always_compiled,
)


# ----------------------------------------------------------------------------------------- clamp
# clamp: limit each element to the interval between two bounds, which may be scalars.
#
# `clamp low x high` is min(max(low, x), high); NaN stays NaN. Semantics: StableHLO specification,
# section clamp.


def _clamp_shape(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> tuple[ShapedArray, ...]:
    dtype = table.common_dtype("clamp", (low, x, high))
    require(
        dtype in table.REAL or dtype == dtypes.bool_, "clamp",
        "does not accept dtype {}.",
        dtype.name, expected="a real number dtype", error=TypeError,
    )  # fmt: skip
    shape = x.shape or low.shape or high.shape  # a scalar is repeated, as one that is not mapped
    _check_bounds(low, x, high, shape)
    return (shaped_array(shape, dtype, all(a.weak_type for a in (low, x, high))),)


def agreeing(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> np.dtype[Any]:
    """Return the dtype that all have; the bounds must be scalars or of the shape of x."""
    _check_bounds(low, x, high, x.shape)
    return table.common_dtype("clamp", (low, x, high))


def _check_bounds(
    low: ShapedArray, x: ShapedArray, high: ShapedArray, shape: tuple[Any, ...]
) -> None:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), shape):
            raise TypeError(message(
                "clamp", f"{name} must be a scalar or have the shape of x.",
                got=f"{name}: {bound.str_long()}, x: {x.str_long()}",
            ))  # fmt: skip


def _clamp_numpy(low: Any, x: Any, high: Any) -> Any:
    return (_limit(x, low, high),)


@same_dtype
def _limit(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(low, x), high)


def _clamp_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (low, x, high), (low_aval, x_aval, high_aval), (out,) = operands, avals_in, avals_out
    return b.op("stablehlo.clamp", [low, b.broadcast(x, x_aval, out.shape), high],
                [low_aval, out, high_aval], avals_out)  # fmt: skip


def _clamp_jvp(primals: Any, tangents: Any) -> Any:
    """The tangent of the operand that is the result; none where x equals a bound.

    Of bounds that cross, low above high, the result is high wherever x is.
    """
    low, x, high = primals
    (y,) = state.trace.process(clamp_p, (low, x, high), {})
    total = None
    for i, dot in enumerate(tangents):
        if type(dot) is Zero:
            continue
        term = table.repeat_scalar(
            table.select(_is_result(i, low, x, high), dot, scalar_like(y, 0)), y.aval.shape
        )
        total = term if total is None else add(total, term)
    return (y,), (Zero(y.aval) if total is None else total,)


def _is_result(i: int, low: Any, x: Any, high: Any) -> Any:
    if i == 0:
        return bind("and", bind("gt", low, x), bind("lt", low, high))
    if i == 1:
        return bind("and", bind("gt", x, low), bind("lt", x, high))
    return bind("lt", high, bind("max", low, x))


clamp_p = Primitive(
    "clamp",
    shape=_clamp_shape,
    numpy=_clamp_numpy,
    stablehlo=_clamp_stablehlo,
    jvp=_clamp_jvp,
    transpose=xprim.undefined("it is not linear"),
    batch=xprim.ELEMENTWISE,
)


# -------------------------------------------------------------------------------------- select n
# select_n: take each element from one of several cases, by a boolean or an int32 index.
#
# `select_n which case0 case1 ...`: `which` is false or 0 for the first case. Semantics: StableHLO
# specification, section select; an index out of range is clamped, as nested selects have it.


def _select_n_shape(which: ShapedArray, *cases: ShapedArray) -> tuple[ShapedArray, ...]:
    require(cases, "select_n", "needs at least one case.")
    require(
        which.dtype == dtypes.bool_ or which.dtype == dtypes.int32, "select_n",
        "which must be a bool or int32 array.", got=which, error=TypeError,
    )  # fmt: skip
    require(
        which.dtype != dtypes.bool_ or len(cases) <= 2, "select_n",
        "a boolean chooses among two cases, got {}.", len(cases), hint="convert which to int32",
        error=TypeError,
    )  # fmt: skip
    dtype = table.common_dtype("select_n", cases)
    shape = table.equal_shape("select_n", cases)
    if which.shape not in ((), shape):
        if shape:
            raise TypeError(message(
                "select_n", "which must be a scalar or have the shape of the cases.",
                got=f"which: {which.str_long()}, cases: {', '.join(c.str_long() for c in cases)}",
            ))  # fmt: skip
        shape = which.shape
    return (shaped_array(shape, dtype, all(c.weak_type for c in cases)),)


def _select_n_numpy(which: Any, *cases: Any) -> Any:
    if len(cases) == 1:
        return (np.broadcast_to(cases[0], np.broadcast_shapes(which.shape, cases[0].shape)),)
    if which.dtype.kind == "b":
        return (np.where(which, cases[1], cases[0]),)
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        result = np.where(which <= i, cases[i], result)
    return (result,)


def _ufunc(avals_in: Any, avals_out: Any) -> xprim.NumpyCall | None:
    which, *cases = avals_in
    if len(cases) != 2 or which.dtype != dtypes.bool_:
        return None
    return xprim.NumpyCall(np.where, (xprim.Operand(0), xprim.Operand(2), xprim.Operand(1)))


def _select_n_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    (out,) = avals_out
    which, *cases = operands
    mask, *case_avals = avals_in
    cases = [b.broadcast(x, a, out.shape) for x, a in zip(cases, case_avals, strict=True)]
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        predicate, pair = which, [result, cases[i]]
        predicate_aval = shaped_array(mask.shape, dtypes.bool_)
        if mask.dtype != dtypes.bool_:
            predicate = compare(b, "LE", which, b.constant(i, mask), mask)
            pair = [cases[i], result]
        (result,) = b.op("stablehlo.select", [predicate, *pair], [predicate_aval, out, out], [out])
    return [result]


def _select_n_jvp(primals: Any, tangents: Any) -> Any:
    which, *cases = primals
    dots = tangents[1:]
    outs = state.trace.process(select_n_p, tuple(primals), {})
    if all(type(d) is Zero for d in dots):
        return outs, (Zero(outs[0].aval),)
    dots = [scalar_like(c, 0) if type(d) is Zero else d for c, d in zip(cases, dots, strict=True)]
    return outs, (table.repeat_scalar(bind("select_n", which, *dots), outs[0].aval.shape),)


def _select_n_transpose(cts: Any, which: Any, *cases: Any) -> Any:
    (ct,) = cts
    zero = xprim.scalar_array(0, ct.aval.dtype)
    results: list[Any] = [Zero(which.aval)]
    for i, case in enumerate(cases):
        if type(case) is not xprim.Linear:
            results.append(Zero(case.aval))
            continue
        parts = [ct if j == i else zero for j in range(len(cases))]
        part = table.repeat_scalar(bind("select_n", which, *parts), ct.aval.shape)
        results.append(part if case.aval.shape == ct.aval.shape else table.sum_over_all(part))
    return tuple(results)


select_n_p = Primitive(
    "select_n",
    shape=_select_n_shape,
    numpy=_select_n_numpy,
    stablehlo=_select_n_stablehlo,
    jvp=_select_n_jvp,
    transpose=_select_n_transpose,
    batch=xprim.ELEMENTWISE,
    physical=STRUCTURAL,
    eager=xprim.Eager(costs.choice, ufunc=_ufunc),
    sharding=xprim.Sharding(linearity=lambda avals, params: xprim.linear_in(*range(1, len(avals)))),
)


# -------------------------------------------------------------------------- convert element type
# convert_element_type: the same numbers in another dtype.
#
# Semantics: StableHLO specification, section convert, and XLA where that leaves it open: a float
# outside the range of an integer dtype becomes the nearest end of it and NaN becomes 0; a complex
# number loses its imaginary part, but for bool, which says whether a number is not zero; integers
# wrap around.

_THROUGH: dict[Any, np.dtype[Any]] = BYTES | dict.fromkeys(dtypes.SMALL_FLOATS, dtypes.float32)


def _convert_element_type_shape(
    x: ShapedArray, *, new_dtype: Any, weak_type: bool
) -> tuple[ShapedArray, ...]:
    if dtypes.is_extended(new_dtype):
        raise TypeError(message(
            "convert_element_type", f"numbers do not become {new_dtype.elements}.",
            got=f"{x.str_long()}, to be of dtype {new_dtype.name}",
        ))  # fmt: skip
    require(
        dtypes.is_supported(new_dtype), "convert_element_type", "there are no arrays of dtype {}.",
        new_dtype, error=TypeError,
    )  # fmt: skip
    return (shaped_array(x.shape, new_dtype, weak_type),)


def _convert_element_type_numpy(x: Any, *, new_dtype: Any, weak_type: bool = False) -> Any:
    if x.dtype in COMPLEX and new_dtype not in COMPLEX and new_dtype != dtypes.bool_:
        x = x.real
    if x.dtype in FLOATING and new_dtype in table.INTEGER:
        return (_saturate(x, new_dtype),)
    if x.dtype in _THROUGH:  # these have no casts to every dtype; nothing is rounded on the way
        x = x.astype(_THROUGH[x.dtype])
    return (x.astype(new_dtype),)


def _saturate(x: Any, dtype: np.dtype[Any]) -> Any:
    """Round towards zero to the range of an integer dtype; NaN becomes 0."""
    limits = dtypes.iinfo(dtype)
    lowest, highest = int(limits.min), int(limits.max)
    if x.dtype.kind == "f" and x.size and x.min() >= lowest and x.max() < highest:
        return x.astype(dtype)  # NaN fails both comparisons, which costs a tenth of what follows
    wide = x.astype(np.float64)
    # float(2**63 - 1) is 2**63, which is out of range: those are set apart and written as such
    above, below = wide >= float(highest), wide <= float(lowest)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide)
    storage = np.uint64 if lowest == 0 else np.int64
    result = np.where(above, storage(highest), inside.astype(storage))
    return np.where(below, storage(lowest), result).astype(dtype)


def _convert_element_type_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, new_dtype: Any, weak_type: bool
) -> list[str]:
    (x,), (aval,) = operands, avals_in
    if new_dtype == dtypes.bool_ and aval.dtype != dtypes.bool_:
        return [compare(b, "NE", x, b.constant(0, aval), aval)]
    if aval.dtype in COMPLEX and new_dtype not in COMPLEX:
        half = dtypes.float32 if aval.dtype.itemsize == 8 else dtypes.float64
        part = shaped_array(aval.shape, half)
        (x,), aval = b.op("stablehlo.real", [x], [aval], [part]), part
    return [b.convert(x, aval, new_dtype)]


def _convert_element_type_jvp(
    primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool
) -> Any:
    (x,), (x_dot,) = primals, tangents
    params = {"new_dtype": new_dtype, "weak_type": weak_type}
    (y,) = state.trace.process(convert_element_type_p, (x,), params)
    if new_dtype not in table.INEXACT:
        return (y,), (Zero(shaped_array(y.aval.shape, dtypes.float0)),)
    if type(x_dot) is Zero:
        return (y,), (Zero(y.aval.strong()),)
    return (y,), convert_element_type_p.bind(x_dot, new_dtype=new_dtype, weak_type=False)


def _convert_element_type_transpose(cts: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    return convert_element_type_p.bind(cts[0], new_dtype=x.aval.dtype, weak_type=False)


def _linearity(avals: Any, params: Any) -> Any:
    """What is rounded to an integer, or to a truth, is not linear."""
    before, after = avals[0].dtype, params["new_dtype"]
    if dtypes.bool_ in (before, after):
        return None
    return LINEAR if dtypes.is_inexact(after) or not dtypes.is_inexact(before) else None


convert_element_type_p = Primitive(
    "convert_element_type",
    shape=_convert_element_type_shape,
    numpy=_convert_element_type_numpy,
    stablehlo=_convert_element_type_stablehlo,
    jvp=_convert_element_type_jvp,
    transpose=_convert_element_type_transpose,
    batch=xprim.ELEMENTWISE,
    sharding=xprim.Sharding(linearity=_linearity),
)


# -------------------------------------------------------------------------- bitcast convert type
# bitcast_convert_type: the same bits read as another dtype.
#
# A narrower dtype adds a last dimension that holds the parts of each element, least significant
# first; a wider one takes that dimension away. Semantics: StableHLO specification, section
# bitcast_convert.


def _bitcast_convert_type_shape(x: ShapedArray, *, new_dtype: Any) -> tuple[ShapedArray, ...]:
    require(
        dtypes.is_supported(new_dtype), "bitcast_convert_type", "there are no arrays of dtype {}.",
        new_dtype, error=TypeError,
    )  # fmt: skip
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    shape = x.shape
    if dtypes.is_complex(x.dtype) != dtypes.is_complex(new_dtype) or (
        dtypes.is_bool(x.dtype) != dtypes.is_bool(new_dtype)
    ):
        raise TypeError(message(
            "bitcast_convert_type", "complex numbers and booleans are cast to their own kind only.",
            got=f"{x.str_long()} to {new_dtype.name}",
        ))  # fmt: skip
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        if not shape or shape[-1] != new // old:
            raise ValueError(message(
                "bitcast_convert_type", f"the last dimension must have size {new // old}.",
                got=f"{x.str_long()} to {new_dtype.name}",
            ))  # fmt: skip
        shape = shape[:-1]
    return (shaped_array(shape, new_dtype),)


def _bitcast_convert_type_numpy(x: Any, *, new_dtype: Any) -> Any:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old == new and x.dtype == new_dtype:
        return (x,)
    if min(old, new) >= 8:
        x = np.ascontiguousarray(x).reshape(x.shape)
        if new > old:
            return (x.view(new_dtype).reshape(x.shape[:-1]),)
        return (x.reshape(*x.shape, 1).view(new_dtype) if new < old else x.view(new_dtype),)
    pieces = _pieces(x, min(old, new))
    if new > old:
        return (_join(pieces[..., 0], new_dtype),)
    out = _elements(pieces, new, new_dtype)
    return (out if new < old else out[..., 0],)


def _pieces(x: Any, width: int) -> Any:
    """Return each element's bits in pieces of `width` < 8, along a new last dimension."""
    per_byte = max(1, min(dtypes.itemsize_bits(x.dtype), 8) // width)
    raw = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(width)
    pieces = (raw[..., None] >> shifts) & np.uint8((1 << width) - 1)
    return pieces.reshape(*x.shape, raw.shape[-1] * per_byte)


def _join(pieces: Any, dtype: Any) -> Any:
    """Make one element of the pieces along the last dimension."""
    bits = dtypes.itemsize_bits(dtype)
    shape, width = pieces.shape[:-1], bits // pieces.shape[-1]
    per_byte = min(bits, 8) // width
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(width)
    grouped = pieces.reshape(*shape, pieces.shape[-1] // per_byte, per_byte) << shifts
    raw = np.bitwise_or.reduce(grouped, axis=-1).astype(np.uint8)
    if bits < 8:
        return _elements(raw, bits, dtype)[..., 0]
    return np.ascontiguousarray(raw).view(dtype).reshape(shape)


def _elements(pieces: Any, bits: int, dtype: Any) -> Any:
    """Return pieces as elements of a dtype; integers below 8 bits are stored by their value."""
    if not dtypes.is_integer(dtype):
        return pieces.view(dtype)
    if dtypes.is_unsigned_integer(dtype):
        return pieces.astype(dtype)
    return ((pieces.astype(np.int8) << (8 - bits)) >> (8 - bits)).astype(dtype)


def _bitcast_convert_type_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, new_dtype: Any
) -> Any:
    x = axis.to_front(operands[0], dims[0])  # the last dimension may come or go
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), (0,)


def _bitcast_convert_type_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, new_dtype: Any
) -> Any:
    return b.op("stablehlo.bitcast_convert", operands, avals_in, avals_out)


bitcast_convert_type_p = Primitive(
    "bitcast_convert_type",
    shape=_bitcast_convert_type_shape,
    numpy=_bitcast_convert_type_numpy,
    stablehlo=_bitcast_convert_type_stablehlo,
    jvp=xprim.ZERO,
    transpose=xprim.undefined("its derivative is zero"),
    batch=_bitcast_convert_type_batch,
    sharding=xprim.dimension_names.alike,
)


# ------------------------------------------------------------------------------ reduce precision
# reduce_precision: round floats to a format of fewer exponent and mantissa bits.
#
# The result keeps its dtype. Semantics: StableHLO specification, section reduce_precision: halves
# round to even; what overflows the new exponent range becomes infinite, what falls below its
# normal numbers becomes zero of the same sign.

_float_shape = table.elementwise_shape("reduce_precision", FLOATING)


def _reduce_precision_shape(
    x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
) -> tuple[ShapedArray, ...]:
    require(
        exponent_bits >= 1 and mantissa_bits >= 0, "reduce_precision",
        "needs exponent_bits >= 1 and mantissa_bits >= 0.",
        got={"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits},
    )  # fmt: skip
    return _float_shape(x)


def _reduce_precision_numpy(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    dtype = x.dtype
    if dtype.itemsize == 1:  # exact in float32, whose rounding below is then the only one
        return _reduce(x.astype(np.float32), exponent_bits, mantissa_bits).astype(dtype)
    return _reduce(x, exponent_bits, mantissa_bits)


def _reduce(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    info = dtypes.finfo(x.dtype)
    full_mantissa = int(info.nmant)
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits = np.ascontiguousarray(x).reshape(x.shape).view(word)
    dropped = full_mantissa - mantissa_bits
    if dropped > 0:
        lowest_kept = (bits >> word(dropped)) & word(1)
        half = word((1 << (dropped - 1)) - 1)
        bits = (bits + (half + lowest_kept)) & ~word((1 << dropped) - 1)
    rounded = bits.view(x.dtype)
    if exponent_bits < int(info.nexp):
        bias = (1 << (exponent_bits - 1)) - 1  # also the exponent of the largest finite numbers
        size = np.abs(rounded.astype(np.float64))
        infinite, tiny = size >= math.ldexp(1.0, bias + 1), size < math.ldexp(1.0, 1 - bias)
        rounded = np.where(infinite, np.copysign(np.asarray(np.inf, x.dtype), x), rounded)
        rounded = np.where(tiny, np.copysign(np.zeros((), x.dtype), x), rounded)
    return np.where(np.isnan(x), x, rounded)


def _reduce_precision_stablehlo(
    b: Builder,
    operands: Any,
    avals_in: Any,
    avals_out: Any,
    *,
    exponent_bits: int,
    mantissa_bits: int,
) -> Any:
    return b.op(
        "stablehlo.reduce_precision", operands, avals_in, avals_out,
        f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32",
    )  # fmt: skip


def _round_tangent(x_dot: Any, y: Any = None, x: Any = None, **params: Any) -> Any:
    return reduce_precision_p.bind(x_dot, **params)[0]


# Tangents and cotangents are rounded as values are, as mixed-precision training wants it.
reduce_precision_p = unary(
    "reduce_precision",
    FLOATING,
    shape=_reduce_precision_shape,
    numpy=_reduce_precision_numpy,
    stablehlo=_reduce_precision_stablehlo,
    jvp=_round_tangent,
    linear=_round_tangent,
    has_params=True,
)
