"""argmin: where along an axis the least element stands.

The first NaN wins, then the first of equals. Neighbours: `arg_extremal` has the rules.
"""

from __future__ import annotations

import numpy as np

from xnp.primitives import costs
from xnp.primitives.arg_extremal import arg_batch, arg_numpy, arg_shape, arg_stablehlo
from xnp.primitives.reductions import greatest
from xprim import ZERO, Primitive, dimension_names, undefined

__all__ = ()

argmin_p: Primitive = Primitive(
    "argmin",
    shape=arg_shape("argmin"),
    numpy=arg_numpy(np.argmin),
    stablehlo=arg_stablehlo("LT", greatest, "reduce_min"),
    jvp=ZERO,
    transpose=undefined("it is piecewise constant"),
    batch=arg_batch(lambda: argmin_p),
    cost=costs.reduction,
    dimensions=dimension_names.without("axes"),
)
