"""cummin: the smallest element so far along an axis; NaN stays to the end."""

from __future__ import annotations

import numpy as np

from xnp.primitives import costs
from xnp.primitives.cum_extremal import extremal_jvp
from xnp.primitives.cumulative import (
    cumulative_batch,
    cumulative_numpy,
    cumulative_shape,
    cumulative_stablehlo,
)
from xnp.primitives.reductions import greatest, reducer
from xnp.primitives.table import ANY
from xprim import Primitive, dimension_names, undefined

__all__ = ()

cummin_p: Primitive = Primitive(
    "cummin",
    shape=cumulative_shape("cummin", ANY),
    numpy=cumulative_numpy(np.minimum),
    stablehlo=cumulative_stablehlo(
        lambda b, scalar: reducer(b, "stablehlo.minimum", scalar.dtype), greatest
    ),
    jvp=extremal_jvp(lambda: cummin_p),
    transpose=undefined("it is not linear"),
    batch=cumulative_batch(lambda: cummin_p),
    cost=costs.nothing,
    dimensions=dimension_names.whole_along("axis"),
)
