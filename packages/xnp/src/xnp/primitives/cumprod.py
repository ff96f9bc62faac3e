"""cumprod: cumulative products along an axis.

With y[i] = x[i] y[i-1], dy[i] = x[i] dy[i-1] + y[i-1] dx[i]: a linear recurrence, so nothing is
divided and zeros among the elements do no harm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.along_axis import linear_recurrence, shifted
from xnp.primitives.cumulative import (
    cumulative_batch,
    cumulative_numpy,
    cumulative_shape,
    cumulative_stablehlo,
)
from xnp.primitives.operations import bind
from xnp.primitives.table import NUMBER
from xprim import Primitive, Zero, dimension_names, undefined

__all__ = ()


def _jvp(primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
    (x,), (x_dot,) = primals, tangents
    outs = cumprod_p.bind(x, axis=axis, reverse=reverse)
    if type(x_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    y = outs[0]
    if reverse:
        x, x_dot, y = (bind("rev", v, dimensions=(axis,)) for v in (x, x_dot, y))
    dot = linear_recurrence(x, bind("mul", shifted(y, axis, 1), x_dot), axis)
    if reverse:
        dot = bind("rev", dot, dimensions=(axis,))
    return outs, (dot,)


cumprod_p: Primitive = Primitive(
    "cumprod",
    shape=cumulative_shape("cumprod", NUMBER),
    numpy=cumulative_numpy(np.multiply),
    stablehlo=cumulative_stablehlo(
        lambda b, scalar: b.reducer("stablehlo.multiply", scalar.dtype), lambda dtype: 1
    ),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=cumulative_batch(lambda: cumprod_p),
    cost=costs.nothing,
    dimensions=dimension_names.whole_along("axis"),
)
