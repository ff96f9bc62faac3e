"""scatter_max: take the greater of windows of an array and updates; windows may overlap.

NaN wins. Neighbours: `scatter_extremal` has the derivative, `scatter_family` the rest.
"""

from __future__ import annotations

import numpy as np

from xnp.primitives.corresponding_dimensions import scatter_dimensions
from xnp.primitives.scatter_extremal import extremal_jvp
from xnp.primitives.scatter_family import (
    scatter_batch,
    scatter_numpy,
    scatter_shape,
    scatter_stablehlo,
    scatter_windows,
)
from xnp.primitives.table import ANY
from xprim import Primitive, undefined

__all__ = ()

scatter_max_p: Primitive = Primitive(
    "scatter_max",
    shape=scatter_shape("scatter_max", ANY),
    numpy=scatter_numpy(np.maximum),
    stablehlo=scatter_stablehlo("stablehlo.maximum"),
    jvp=extremal_jvp(lambda: scatter_max_p),
    transpose=undefined("it is not linear"),
    batch=scatter_batch(lambda: scatter_max_p),
    windows=scatter_windows,
    dimensions=scatter_dimensions,
)
