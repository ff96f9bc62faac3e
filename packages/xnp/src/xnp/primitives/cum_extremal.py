"""The derivative of cummax and cummin: the tangents of the elements that hold the record.

Equal elements hold it together and share alike, as they do in `reduce_max`; the first NaN holds it
alone to the end. Neighbours: `cumulative`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.primitives.along_axis import linear_recurrence, shifted
from xnp.primitives.operations import bind, div, filled, mul, selected
from xprim import Primitive, Zero, dtypes

__all__ = ()


def extremal_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the jvp rule of cummax or cummin."""

    def jvp_rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = primitive().bind(x, axis=axis, reverse=reverse)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        y = outs[0]
        if reverse:
            x, y, x_dot = (bind("rev", v, dimensions=(axis,)) for v in (x, y, x_dot))
        dot = _shared(x, y, x_dot, axis)
        if reverse:
            dot = bind("rev", dot, dimensions=(axis,))
        return outs, (dot,)

    return jvp_rule


def _shared(x: Any, y: Any, x_dot: Any, axis: int) -> Any:
    """Return for each place the mean tangent of the elements up to there that hold the record y."""
    shape, dtype = y.aval.shape, x_dot.aval.dtype
    before = shifted(y, axis, 0)
    first = bind("eq", bind("iota", dtype=dtypes.int32, shape=shape, dimension=axis),
                 filled(shape, 0, dtypes.int32))  # fmt: skip
    # a new record differs from the one before, which is not NaN; place 0 counts in any case
    broken = bind("or", first, bind("and", bind("ne", y, before), bind("eq", before, before)))
    holds = bind("or", broken, bind("eq", x, y))
    one, zero = filled(shape, 1, dtype), filled(shape, 0, dtype)
    goes_on, weight = selected(broken, zero, one), selected(holds, one, zero)
    total = linear_recurrence(goes_on, mul(x_dot, weight), axis)
    return div(total, linear_recurrence(goes_on, weight, axis))
