"""The derivative of cummax and cummin: the tangent of the element that holds the record.

Of equal elements the first holds it; the first NaN holds it to the end. Neighbours: `cumulative`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.primitives.along import shifted, take_along
from xnp.primitives.positions import index_dtype_for
from xnp.primitives.shorthand import bind, filled, selected
from xprim import Primitive, Zero, get_primitive


def extremal_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the jvp rule of cummax or cummin."""

    def jvp_rule(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = primitive().bind(x, axis=axis, reverse=reverse)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        y = outs[0]
        if reverse:
            y, x_dot = (bind("rev", v, dimensions=(axis,)) for v in (y, x_dot))
        dot = take_along(x_dot, _holders(y, axis), axis)
        if reverse:
            dot = bind("rev", dot, dimensions=(axis,))
        return outs, (dot,)

    return jvp_rule


def _holders(y: Any, axis: int) -> Any:
    """Return for each place the index of the element that holds the record there."""
    shape = y.aval.shape
    dtype = index_dtype_for(shape[axis])
    before = shifted(y, axis, 0)
    # a new record differs from the one before, which is not NaN; place 0 counts in any case
    broken = bind("and", bind("ne", y, before), bind("eq", before, before))
    places = bind("iota", dtype=dtype, shape=shape, dimension=axis)
    marks = selected(broken, places, filled(shape, 0, dtype))
    return get_primitive("cummax").bind(marks, axis=axis, reverse=False)[0]
