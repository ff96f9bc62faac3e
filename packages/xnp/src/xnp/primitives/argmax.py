"""argmax: where along an axis the greatest element stands.

The first NaN wins, then the first of equals. Neighbours: `arg_extremal` has the rules.
"""

from __future__ import annotations

import numpy as np

from xnp.primitives import costs
from xnp.primitives.arg_extremal import arg_batch, arg_numpy, arg_shape, arg_stablehlo
from xnp.primitives.reductions import least
from xprim import ZERO, Primitive, dimension_names, undefined

__all__ = ()

argmax_p: Primitive = Primitive(
    "argmax",
    shape=arg_shape("argmax"),
    numpy=arg_numpy(np.argmax),
    stablehlo=arg_stablehlo("GT", least, "reduce_max"),
    jvp=ZERO,
    transpose=undefined("it is piecewise constant"),
    batch=arg_batch(lambda: argmax_p),
    cost=costs.reduction,
    dimensions=dimension_names.without("axes"),
)
