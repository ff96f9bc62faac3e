"""cumlogsumexp: log(cumsum(exp(x))) along an axis, computed without overflow.

With y[i] = log(exp(y[i-1]) + exp(x[i])),
dy[i] = exp(y[i-1] - y[i]) dy[i-1] + exp(x[i] - y[i]) dx[i]: a linear recurrence whose coefficients
are at most 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.along import linear_recurrence, shifted
from xnp.primitives.cumulative import cumulative_batch, cumulative_shape, cumulative_stablehlo
from xnp.primitives.shorthand import bind, filled, selected
from xnp.primitives.sort import compare_text
from xnp.primitives.table import FLOATING
from xprim import Primitive, ShapedArray, Zero, dtypes, shaped_array, undefined


def _numpy(x: Any, *, axis: int, reverse: bool) -> Any:
    native = x.dtype in (dtypes.float32, dtypes.float64)
    wide = x if native else x.astype(np.float32)
    wide = np.flip(wide, axis) if reverse else wide
    sums = np.logaddexp.accumulate(wide, axis=axis)
    return ((np.flip(sums, axis) if reverse else sums).astype(x.dtype),)


def _reducer(b: Any, scalar: ShapedArray) -> str:
    flag = shaped_array((), np.dtype(bool))

    def logaddexp(inner: Any, names: Any) -> Any:
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

    return b.region([scalar, scalar], logaddexp, [scalar])  # type: ignore[no-any-return]


def _jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    (x,), (x_dot,) = primals, tangents
    outs = cumlogsumexp_p.bind(x, axis=axis, reverse=reverse)
    if type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    y = outs[0]
    if reverse:
        x, x_dot, y = (bind("rev", v, dimensions=(axis,)) for v in (x, x_dot, y))
    keep = _weight(shifted(y, axis, -np.inf), y)
    dot = linear_recurrence(keep, bind("mul", _weight(x, y), x_dot), axis)
    if reverse:
        dot = bind("rev", dot, dimensions=(axis,))
    return outs, (dot,)


def _weight(part: Any, whole: Any) -> Any:
    """Return exp(part - whole), 0 where part is -inf."""
    shape, dtype = part.aval.shape, part.aval.dtype
    none = bind("eq", part, filled(shape, -np.inf, dtype))
    ratio = bind("exp", bind("sub", part, whole))
    return selected(none, filled(shape, 0, dtype), ratio)


cumlogsumexp_p: Primitive = Primitive(
    "cumlogsumexp",
    shape=cumulative_shape("cumlogsumexp", FLOATING),
    numpy=_numpy,
    stablehlo=cumulative_stablehlo(_reducer, lambda dtype: -np.inf),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=cumulative_batch(lambda: cumlogsumexp_p),
)
