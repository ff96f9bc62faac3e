"""cumlogsumexp: log(cumsum(exp(x))) along an axis, computed without overflow.

With y[i] = log(exp(y[i-1]) + exp(x[i])),
dy[i] = exp(y[i-1] - y[i]) dy[i-1] + exp(x[i] - y[i]) dx[i]: a linear recurrence whose coefficients
are at most 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.along_axis import linear_recurrence, shifted
from xnp.primitives.cumulative import cumulative_batch, cumulative_shape, cumulative_stablehlo
from xnp.primitives.inner_programs import traced
from xnp.primitives.operations import (
    bind,
    broadcasted,
    converted,
    filled,
    moved,
    reshaped,
    selected,
    sliced,
)
from xnp.primitives.reductions import total_dtype
from xnp.primitives.sort import compare_text
from xnp.primitives.table import FLOATING
from xprim import (
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    get_primitive,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder

__all__ = ()

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
    flag = shaped_array((), np.dtype(bool))

    def logaddexp(inner: Builder, names: Any) -> Any:
        # max + log1p(exp(-|x - y|)); where x == y, infinities included, the difference is zero
        x, y = names
        top = inner.same_type_op("stablehlo.maximum", [x, y], scalar)
        apart = inner.same_type_op("stablehlo.subtract", [x, y], scalar)
        apart = inner.same_type_op("stablehlo.abs", [apart], scalar)
        same = compare_text(inner, "EQ", x, y, scalar, "FLOAT")
        zero = inner.scalar(0, scalar.dtype)
        (apart,) = inner.op("stablehlo.select", [same, zero, apart], [flag, scalar, scalar],
                            [scalar])  # fmt: skip
        for name in ("negate", "exponential", "log_plus_one"):
            apart = inner.same_type_op(f"stablehlo.{name}", [apart], scalar)
        return [inner.same_type_op("stablehlo.add", [top, apart], scalar)]

    return b.region([scalar, scalar], logaddexp, [scalar])


def _jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    (x,), (x_dot,) = primals, tangents
    outs = cumlogsumexp_p.bind(x, axis=axis, reverse=reverse)
    if type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    y = outs[0]
    if reverse:
        x, x_dot, y = (bind("rev", v, dimensions=(axis,)) for v in (x, x_dot, y))
    own, keep = _weights(x, y, axis)
    dot = linear_recurrence(keep, bind("mul", own, x_dot), axis)
    if reverse:
        dot = bind("rev", dot, dimensions=(axis,))
    return outs, (dot,)


def _weights(x: Any, y: Any, axis: int) -> tuple[Any, Any]:
    """Return the derivatives of y_i = log(e^x_i + e^y_(i-1)) by x_i and by y_(i-1).

    They are exp(x_i - y_i) and exp(y_(i-1) - y_i); of equal infinities they are halves.
    """
    shape, dtype = y.aval.shape, y.aval.dtype
    zero, half, one = [filled(shape, v, dtype) for v in (0, 0.5, 1)]
    places = bind("iota", dtype=dtypes.int32, shape=shape, dimension=axis)
    later = bind("gt", places, filled(shape, 0, dtypes.int32))
    before = shifted(y, axis, -np.inf)
    infinite = bind("and", bind("not", bind("is_finite", y)), bind("eq", y, y))
    own_ties = bind("and", infinite, bind("eq", x, y))
    ties = bind("and", bind("and", infinite, later), bind("eq", before, y))
    factor = selected(bind("and", own_ties, ties), half, one)
    own, keep = [
        bind("mul", factor, bind("exp", selected(tied, zero, bind("sub", part, y))))
        for part, tied in ((x, own_ties), (before, bind("or", ties, bind("not", later))))
    ]
    return own, selected(later, keep, zero)


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
    front = moved(converted(x, total_dtype(dtype)), axis, 0)
    front = bind("rev", front, dimensions=(0,)) if reverse else front
    sums = _sums(front)
    sums = bind("rev", sums, dimensions=(0,)) if reverse else sums
    return converted(moved(sums, 0, axis), dtype)


def _sums(x: Any) -> Any:
    """Sum along axis 0 inside of blocks, all at once; add to each the sum of those before it."""
    size, *rest = x.aval.shape
    if size <= _BLOCK:
        return _looped(x)
    count = -(-size // _BLOCK)
    config = [(0, count * _BLOCK - size, 0), *[(0, 0, 0)] * len(rest)]
    padded = bind("pad", x, filled((), -np.inf, x.aval.dtype), padding_config=tuple(config))
    blocks = moved(reshaped(padded, (count, _BLOCK, *rest)), 1, 0)
    inside = _looped(blocks)
    totals = reshaped(sliced(inside, 0, _BLOCK - 1, _BLOCK), (count, *rest))
    before = broadcasted(
        shifted(_sums(totals), 0, -np.inf), inside.aval.shape, range(1, inside.aval.ndim)
    )
    whole = reshaped(moved(_logaddexp(before, inside), 0, 1), padded.aval.shape)
    return sliced(whole, 0, 0, size)


def _looped(x: Any) -> Any:
    """Sum along axis 0, one element after the other."""
    size, *rest = x.aval.shape
    element = shaped_array(tuple(rest), x.aval.dtype)

    def step(total: Any, row: Any) -> list[Any]:
        return [_logaddexp(total, row)] * 2

    return get_primitive("scan").bind(
        filled(rest, -np.inf, x.aval.dtype), x, jaxpr=traced(step, [element] * 2, "logaddexp"),
        length=size, reverse=False, num_consts=0, num_carry=1, unroll=1,
    )[1]  # fmt: skip


def _logaddexp(x: Any, y: Any) -> Any:
    """Return max + log1p(exp(-|x - y|)), as the windows do."""
    apart = bind("abs", bind("sub", x, y))
    same = bind("eq", x, y)
    apart = selected(same, filled(apart.aval.shape, 0, apart.aval.dtype), apart)
    return bind("add", bind("max", x, y), bind("log1p", bind("exp", bind("neg", apart))))


cumlogsumexp_p: Primitive = Primitive(
    "cumlogsumexp",
    shape=cumulative_shape("cumlogsumexp", FLOATING),
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=cumulative_batch(lambda: cumlogsumexp_p),
    cost=costs.special,
    dimensions=dimension_names.whole_along("axis"),
)
