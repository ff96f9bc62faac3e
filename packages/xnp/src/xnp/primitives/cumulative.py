"""The cumulative primitives: cumsum, cumprod, cummax, cummin, cumlogsumexp; and logaddexp.

All are lowered to reductions over growing windows in logarithmically many steps; they differ in
the combination and in the derivative.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, table
from xnp.primitives.control_flow import trace_fun
from xnp.primitives.elementwise import log1p_numpy
from xnp.primitives.lowering_text import Text, apart_from_uses, in_wider, where
from xnp.primitives.reductions import greatest, least, reducer, total_dtype
from xnp.primitives.shapes import without
from xnp.primitives.sort import linear_recurrence, shift
from xnp.primitives.table import bind, move_dim, mul, reshape, scalar_like, select, sub
from xnp.primitives.windows import window_attributes
from xprim import NumpyCall, Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array
from xprim.contracts import Builder
from xprim.requirements import require_axis, require_dtype

__all__ = ()


# ---------------------------------------------------------------------------------------- logaddexp
# Logarithms of sums of powers, finite where a power is not: logaddexp, logaddexp2.
#
#     log_b(b^x + b^y) = max(x, y) + log_b(1 + b^-|x - y|)
#
# The derivatives are the shares of the two powers in their sum, 1 / (1 + b^(y - x)) and
# 1 / (1 + b^(x - y)): halves for equal operands, infinities among them. Of complex operands the one
# with the greater real part stands for the maximum, and the angle of the sum is in (-pi, pi].


def log_of_sum(b: Builder, operands: Sequence[str], aval: ShapedArray, factor: float = 1) -> str:
    """Write log(e^(factor x) + e^(factor y)) / factor of two real values of one type."""
    x, y = [Text(b, name, aval) for name in operands]
    gap = x - y
    power = (gap.op("abs") * -factor).op("exponential")
    rest = power.op("log_plus_one") / factor
    if factor != 1:  # of equal operands it is 1 itself: log 2 / log 2 in a fused sum is not
        rest = where(gap.compare("EQ", 0.0), rest.like(1), rest)
    total = x.op("maximum", y) + rest
    return where(gap.compare("EQ", gap), total, x + y).name  # equal infinities have no difference


def _scale(x: Any, factor: float) -> Any:
    """Return x times a real factor: infinity times the imaginary 0 of a complex one is NaN."""
    if not dtypes.is_complex(x.aval.dtype):
        return x if factor == 1 else mul(x, scalar_like(x, factor))
    return bind("complex", *[_scale(bind(part, x), factor) for part in ("real", "imag")])


_NOTHING = complex(-0.0, -0.0)


def _of_complex(x: Any, y: Any, factor: float) -> Any:
    is_first = bind("ge", bind("real", x), bind("real", y))
    gap = sub(select(is_first, y, x), select(is_first, x, y))
    equal = bind("eq", x, y)
    gap = select(equal, scalar_like(x, 0), gap)
    # e^(-inf + i t) is 0 whatever t is; the sum with -0 has the sign of the other zero
    low = bind("real", gap)
    is_nothing = bind("eq", low, scalar_like(low, -math.inf))
    rest = _scale(bind("log1p", bind("exp", _scale(gap, factor))), 1 / factor)
    rest = select(is_nothing, scalar_like(rest, _NOTHING), rest)
    if factor != 1:  # as of real operands
        rest = select(equal, scalar_like(rest, 1), rest)
    total = table.add(select(is_first, x, y), rest)
    angle = _scale(bind("imag", total), factor)
    angle = _scale(bind("atan2", bind("sin", angle), bind("cos", angle)), 1 / factor)
    return bind("complex", bind("real", total), angle)


# Elements from which several vectorised passes of NumPy's take less time than its `logaddexp`,
# which calls two functions for each element: 4 and 5 us at 1,024, 9 and 35 at 4,096.
_SHORT = 512


def _real_numpy(x: Any, y: Any, factor: float) -> Any:
    gap = x - y
    power = np.exp(np.abs(gap) * np.asarray(-factor, x.dtype))
    total = np.maximum(x, y) + np.log1p(power) * np.asarray(1 / factor, x.dtype)
    return np.where(gap == gap, total, x + y)


def _complex_numpy(x: Any, y: Any, factor: float) -> Any:
    is_first = x.real >= y.real
    high, low = np.where(is_first, x, y), np.where(is_first, y, x)
    gap = np.where(x == y, np.zeros((), x.dtype), low - high)
    gap.real, gap.imag = gap.real * factor, gap.imag * factor
    rest = np.where(gap.real == -math.inf, _NOTHING, log1p_numpy(np.exp(gap)))
    angle = high.imag * factor + rest.imag
    high.real += rest.real / factor
    high.imag = np.arctan2(np.sin(angle), np.cos(angle)) / factor
    return high


@xprim.primitive_maker
def _logarithm_of_sum(name: str, ufunc: np.ufunc, base: float) -> Primitive:
    """Define the logarithm to a base of the sum of its powers."""
    factor = math.log(base)

    def numpy(x: Any, y: Any) -> Any:
        if dtypes.is_complex(x.dtype):
            return _complex_numpy(x, y, factor)
        is_short = max(x.size, y.size) < _SHORT
        return ufunc(x, y) if is_short else _real_numpy(x, y, factor)

    def call_of_short(avals_in: Any, avals_out: Any) -> NumpyCall | None:
        (out,) = avals_out
        is_native = out.dtype in table.FLOATING & table.NATIVE
        return NumpyCall(ufunc) if is_native and out.size < _SHORT else None

    def stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
        (out,) = avals_out
        if not dtypes.is_complex(out.dtype):
            return of_real(b, operands, avals_in, avals_out)
        names = [b.broadcast(v, a, out.shape) for v, a in zip(operands, avals_in, strict=True)]
        return b.traced(lambda x, y: [_of_complex(x, y, factor)], names, [out, out], key=name)

    of_real = apart_from_uses(functools.partial(log_of_sum, factor=factor), name)

    def share(x: Any, y: Any) -> Any:
        """Return the share of b^x in b^x + b^y; equal infinities have no difference."""
        real = bind("real", x) if dtypes.is_complex(x.aval.dtype) else x
        infinite = bind("and", bind("eq", x, y), bind("not", bind("is_finite", real)))
        gap = select(infinite, scalar_like(x, 0), sub(x, y))
        return bind("logistic", _scale(gap, factor))

    return table.binary(
        name, table.INEXACT, numpy=in_wider(numpy), stablehlo=stablehlo,
        jvp=(lambda x_dot, z, x, y: mul(x_dot, share(x, y)),
             lambda y_dot, z, x, y: mul(y_dot, share(y, x))),
        ufunc=call_of_short, cost=costs.choice,
    )  # fmt: skip


logaddexp_p = _logarithm_of_sum("logaddexp", np.logaddexp, math.e)
logaddexp2_p = _logarithm_of_sum("logaddexp2", np.logaddexp2, 2)


# ------------------------------------------------------------------------------------ cumulative
# What the cumulative operations share: shape, evaluation, lowering and batching.
#
# Element i of the result combines elements 0 to i along `axis`, with `reverse` those from i to
# the end. In StableHLO it is a window reduction whose windows reach to the edge, which XLA turns
# into a scan of logarithmic depth.

_BLOCK_OF_SUMS = 512
_LEAST_ON_HOST, _LEAST_ALONG_AXIS = 1 << 14, 64


def cumulative_shape(name: str, kinds: table.Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a cumulative operation."""

    def shape_rule(aval: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
        require_dtype(name, aval, kinds)
        require_axis(name, axis, aval)
        return (aval,)

    return shape_rule


def cumulative_numpy(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the NumPy rule of a cumulative operation by a ufunc."""

    def numpy_rule(x: Any, *, axis: int, reverse: bool) -> Any:
        wide = total_dtype(x.dtype)  # small types are kept in a wider one and rounded once
        given = np.flip(x, axis) if reverse else x
        given = given.astype(wide, copy=False)
        found = np.empty(x.shape, wide)
        _accumulate(ufunc, given, axis, found)
        return ((np.flip(found, axis) if reverse else found).astype(x.dtype, copy=False),)

    return numpy_rule


def _accumulate(ufunc: np.ufunc, x: Any, axis: int, out: Any) -> None:
    """Accumulate along an axis; sums of inexact numbers in blocks where these are contiguous.

    Errors of the sums are those of a block, since the sums of blocks are joined in twice as many
    bits. Products are not cut: of 0 and an infinite product of a block comes NaN.
    """
    size, dtype = x.shape[axis], x.dtype
    if not _is_summed_in_blocks(ufunc, x, axis):
        ufunc.accumulate(x, axis=axis, dtype=dtype, out=out)
        return
    wide = np.result_type(dtype, np.float64)
    whole = size // _BLOCK_OF_SUMS * _BLOCK_OF_SUMS
    for index in np.ndindex(x.shape[:-1]):
        row, result = x[index], out[index]
        blocks, rest = result[:whole].reshape(-1, _BLOCK_OF_SUMS), result[whole:]
        np.add.accumulate(row[:whole].reshape(blocks.shape), axis=1, out=blocks)
        before = np.add.accumulate(blocks[:, -1], dtype=wide).astype(dtype)
        blocks[1:] += before[:-1, None]
        np.add.accumulate(row[whole:], out=rest)
        rest += before[-1]


def _is_summed_in_blocks(ufunc: np.ufunc, x: Any, axis: int) -> bool:
    is_long = axis == len(x.shape) - 1 and x.shape[axis] >= 4 * _BLOCK_OF_SUMS
    return ufunc is np.add and is_long and dtypes.is_inexact(x.dtype)


def _cumulative_fill(ufunc: np.ufunc) -> Callable[..., None]:
    """Return the rule that fills the result of a cumulative operation in place."""

    def fill(operands: Any, results: Any, *, axis: int, reverse: bool) -> None:
        (x,), (out,) = operands, results
        if total_dtype(x.dtype) != x.dtype:
            np.copyto(out, cumulative_numpy(ufunc)(x, axis=axis, reverse=reverse)[0])
            return
        if reverse:
            _accumulate(ufunc, np.flip(x, axis), axis, np.flip(out, axis))
            return
        _accumulate(ufunc, x, axis, out)

    return fill


def _cumulative_host(ufunc: np.ufunc) -> Callable[..., Any]:
    """Have NumPy accumulate long arrays: a million int32 take it 0.25 ms and XLA 4.2.

    Sums of inexact numbers only where they lose as few bits as those of XLA.
    """

    def host(avals_in: Any, avals_out: Any, *, axis: int, reverse: bool) -> Any:
        (x,) = avals_in
        if x.size < _LEAST_ON_HOST or x.shape[axis] < _LEAST_ALONG_AXIS:
            return None
        is_inexact_sum = ufunc is np.add and dtypes.is_inexact(x.dtype)
        if is_inexact_sum and not _is_summed_in_blocks(ufunc, x, axis):
            return None
        return without(tuple(range(x.ndim)), axis)

    return host


def cumulative_stablehlo(
    reducer: Callable[[Any, ShapedArray], str], neutral: Callable[[np.dtype[Any]], Any]
) -> Callable[..., Any]:
    """Return the lowering: `reducer(builder, scalar aval)` writes the region."""

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis: int,
                       reverse: bool) -> Any:  # fmt: skip
        (aval,) = avals_in
        size = aval.shape[axis]
        if not aval.size:
            return [operands[0]]
        wide = shaped_array(aval.shape, total_dtype(aval.dtype))
        scalar = shaped_array((), wide.dtype)
        x = b.convert(operands[0], aval, wide.dtype)
        ones = (1,) * aval.ndim
        window, padding = list(ones), [(0, 0)] * aval.ndim
        window[axis] = size
        padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
        start = b.scalar(neutral(wide.dtype), wide.dtype)
        (found,) = b.op(
            "stablehlo.reduce_window", [x, start], [wide, scalar], [wide],
            window_attributes(tuple(window), ones, padding, ones, ones), reducer(b, scalar),
        )  # fmt: skip
        return [b.convert(found, wide, aval.dtype)]

    return stablehlo_rule


def cumulative_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a cumulative operation."""

    def batch_rule(batch: Any, operands: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (d,) = dims
        outs = primitive().bind(operands[0], axis=axis + (d <= axis), reverse=reverse)
        return outs, (d,)

    return batch_rule


def _jvp_along(
    primitive: Callable[[], Primitive], tangent: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the jvp rule of a cumulative operation y of x.

    Args:
      primitive: returns it.
      tangent: `tangent(x, y, x_dot, axis)` returns the tangent of y, from the first element on.
    """

    def jvp_rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = primitive().bind(x, axis=axis, reverse=reverse)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        y = outs[0]
        if reverse:
            x, y, x_dot = (bind("rev", v, dimensions=(axis,)) for v in (x, y, x_dot))
        dot = tangent(x, y, x_dot, axis)
        if reverse:
            dot = bind("rev", dot, dimensions=(axis,))
        return outs, (dot,)

    return jvp_rule


# ---------------------------------------------------------------------------------- cum extremal
# The derivative of cummax and cummin: the tangents of the elements that hold the record.
#
# Equal elements hold it together and share alike, as they do in `reduce_max`; the first NaN holds
# it alone to the end.


def _share(x: Any, y: Any, x_dot: Any, axis: int) -> Any:
    """Return for each place the mean tangent of the elements up to there that hold the record y."""
    shape, dtype = y.aval.shape, x_dot.aval.dtype
    before = shift(y, axis, 0)
    first = bind("eq", bind("iota", dtype=dtypes.int32, shape=shape, dimension=axis),
                 table.fill(shape, 0, dtypes.int32))  # fmt: skip
    # a new record differs from the one before, which is not NaN; place 0 counts in any case
    broken = bind("or", first, bind("and", bind("ne", y, before), bind("eq", before, before)))
    holds = bind("or", broken, bind("eq", x, y))
    one, zero = table.fill(shape, 1, dtype), table.fill(shape, 0, dtype)
    goes_on, weight = select(broken, zero, one), select(holds, one, zero)
    total = linear_recurrence(goes_on, select(holds, x_dot, zero), axis)
    return table.div(total, linear_recurrence(goes_on, weight, axis))


# -------------------------------------------------------------------------------------- the rows


_NOT_LINEAR = xprim.undefined("it is not linear")


@xprim.primitive_maker
def _cumulative(
    name: str, kinds: Any, ufunc: Any, operation: str, init: Callable[[Any], Any], jvp: Any,
    transpose: Any = _NOT_LINEAR,
) -> Primitive:  # fmt: skip
    """Define a cumulative reduction, by the ufunc and the operation of two elements."""
    primitive = Primitive(
        name,
        shape=cumulative_shape(name, kinds),
        numpy=cumulative_numpy(ufunc),
        stablehlo=cumulative_stablehlo(lambda b, a: reducer(b, operation, a.dtype), init),
        jvp=jvp,
        transpose=transpose,
        batch=cumulative_batch(lambda: primitive),
        eager=xprim.Eager(
            costs.nothing, host=_cumulative_host(ufunc), fill=_cumulative_fill(ufunc)
        ),
        sharding=dimension_names.whole_along("axis"),
    )
    return primitive


# ---------------------------------------------------------------------------------------- cumsum
# cumsum: cumulative sums along an axis. Linear; its transpose sums from the other end.


def _transpose(cts: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    return cumsum_p.bind(cts[0], axis=axis, reverse=not reverse)


cumsum_p: Primitive = _cumulative(
    "cumsum", table.NUMBER, np.add, "stablehlo.add", lambda dtype: 0, xprim.LINEAR, _transpose
)
cumsum_p.define("uses_all", True)


# --------------------------------------------------------------------------------------- cumprod
# cumprod: cumulative products along an axis.
#
# With y[i] = x[i] y[i-1], dy[i] = x[i] dy[i-1] + y[i-1] dx[i]: a linear recurrence, so nothing is
# divided and zeros among the elements do no harm.


def _tangent_of_products(x: Any, y: Any, x_dot: Any, axis: int) -> Any:
    return linear_recurrence(x, bind("mul", shift(y, axis, 1), x_dot), axis)


cumprod_p: Primitive = _cumulative(
    "cumprod", table.NUMBER, np.multiply, "stablehlo.multiply", lambda dtype: 1,
    _jvp_along(lambda: cumprod_p, _tangent_of_products),
)  # fmt: skip


# -------------------------------------------------------------------------------- cummax, cummin
# cummax, cummin: the greatest or the least element so far along an axis; NaN stays to the end.

cummax_p: Primitive = _cumulative(
    "cummax", table.ANY, np.maximum, "stablehlo.maximum", least,
    _jvp_along(lambda: cummax_p, _share),
)  # fmt: skip

cummin_p: Primitive = _cumulative(
    "cummin", table.ANY, np.minimum, "stablehlo.minimum", greatest,
    _jvp_along(lambda: cummin_p, _share),
)  # fmt: skip


# ---------------------------------------------------------------------------------- cumlogsumexp
# cumlogsumexp: log(cumsum(exp(x))) along an axis, computed without overflow.
#
# With y[i] = log(exp(y[i-1]) + exp(x[i])), dy[i] = exp(y[i-1] - y[i]) dy[i-1] + exp(x[i] - y[i])
# dx[i]: a linear recurrence whose coefficients are at most 1.

# Elements that one loop goes through: few, since errors add up along it, but enough that the loops
# over the sums of blocks are short. Measured for 512 and 1,000,000 elements.
_BLOCK = 32


def _numpy(x: Any, *, axis: int, reverse: bool) -> Any:
    native = x.dtype in (dtypes.float32, dtypes.float64)
    wide = x if native else x.astype(np.float32)
    wide = np.flip(wide, axis) if reverse else wide
    sums = np.logaddexp.accumulate(wide, axis=axis)
    return ((np.flip(sums, axis) if reverse else sums).astype(x.dtype),)


def _reducer(b: Builder, scalar: ShapedArray) -> str:
    return b.region(
        [scalar, scalar], lambda inner, names: [log_of_sum(inner, names, scalar)], [scalar]
    )


def _tangent_of_logs(x: Any, y: Any, x_dot: Any, axis: int) -> Any:
    own, keep = _weights(x, y, axis)
    return linear_recurrence(keep, bind("mul", own, x_dot), axis)


def _weights(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Return the derivatives of y_i = log(e^x_i + e^y_(i-1)) by x_i and by y_(i-1).

    They are exp(x_i - y_i) and exp(y_(i-1) - y_i); of equal infinities they are halves.
    """
    shape, dtype = y.aval.shape, y.aval.dtype
    zero, half, one = [table.fill(shape, v, dtype) for v in (0, 0.5, 1)]
    places = bind("iota", dtype=dtypes.int32, shape=shape, dimension=axis)
    later = bind("gt", places, table.fill(shape, 0, dtypes.int32))
    before = shift(y, axis, -np.inf)
    infinite = bind("and", bind("not", bind("is_finite", y)), bind("eq", y, y))
    own_ties = bind("and", infinite, bind("eq", x, y))
    ties = bind("and", bind("and", infinite, later), bind("eq", before, y))
    factor = select(bind("and", own_ties, ties), half, one)
    own, keep = [
        bind("mul", factor, bind("exp", select(tied, zero, bind("sub", part, y))))
        for part, tied in ((x, own_ties), (before, bind("or", ties, bind("not", later))))
    ]
    return own, select(later, keep, zero)


# --- on a CPU ----------------------------------------------------------------------------------

_by_windows = cumulative_stablehlo(_reducer, lambda dtype: -np.inf)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis: int,
               reverse: bool) -> Any:  # fmt: skip
    """Loop over blocks on a CPU, where XLA takes windows element by element."""
    if b.platform != "cpu" or not avals_in[0].size:
        return _by_windows(b, operands, avals_in, avals_out, axis=axis, reverse=reverse)
    return b.traced(
        lambda x: (_in_blocks(x, axis, reverse),), operands, avals_in,
        ("cumlogsumexp", axis, reverse),
    )  # fmt: skip


def _in_blocks(x: Any, axis: int, reverse: bool) -> Any:
    dtype = x.aval.dtype
    front = move_dim(table.convert(x, total_dtype(dtype)), axis, 0)
    front = bind("rev", front, dimensions=(0,)) if reverse else front
    sums = _sums(front)
    sums = bind("rev", sums, dimensions=(0,)) if reverse else sums
    return table.convert(move_dim(sums, 0, axis), dtype)


def _sums(x: Any) -> Any:
    """Sum along axis 0 inside of blocks, all at once; add to each the sum of those before it."""
    size, *rest = x.aval.shape
    if size <= _BLOCK:
        return _loop(x)
    count = -(-size // _BLOCK)
    config = [(0, count * _BLOCK - size, 0), *[(0, 0, 0)] * len(rest)]
    padded = bind("pad", x, table.fill((), -np.inf, x.aval.dtype), padding_config=tuple(config))
    blocks = move_dim(reshape(padded, (count, _BLOCK, *rest)), 1, 0)
    inside = _loop(blocks)
    totals = reshape(table.slice_dim(inside, 0, _BLOCK - 1, _BLOCK), (count, *rest))
    before = table.broadcast_to(
        shift(_sums(totals), 0, -np.inf), inside.aval.shape, range(1, inside.aval.ndim)
    )
    whole = reshape(move_dim(bind("logaddexp", before, inside), 0, 1), padded.aval.shape)
    return table.slice_dim(whole, 0, 0, size)


def _loop(x: Any) -> Any:
    """Sum along axis 0, one element after the other."""
    size, *rest = x.aval.shape
    element = shaped_array(tuple(rest), x.aval.dtype)

    def step(total: Any, row: Any) -> list[Any]:
        return [bind("logaddexp", total, row)] * 2

    return xprim.get_primitive("scan").bind(
        table.fill(rest, -np.inf, x.aval.dtype), x,
        jaxpr=trace_fun(step, [element] * 2, "logaddexp"), length=size,
        reverse=False, num_consts=0, num_carry=1, unroll=1,
    )[1]  # fmt: skip


cumlogsumexp_p: Primitive = Primitive(
    "cumlogsumexp",
    shape=cumulative_shape("cumlogsumexp", table.FLOATING),
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp_along(lambda: cumlogsumexp_p, _tangent_of_logs),
    transpose=xprim.undefined("it is not linear"),
    batch=cumulative_batch(lambda: cumlogsumexp_p),
    eager=costs.special,
    sharding=dimension_names.whole_along("axis"),
)
