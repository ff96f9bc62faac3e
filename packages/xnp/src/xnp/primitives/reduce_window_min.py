"""reduce_window_min: the least element of each window of an array; NaN wins."""

from __future__ import annotations

import numpy as np

from xnp.primitives.reductions import greatest
from xnp.primitives.window_extremal import window_extremal

__all__ = ()

reduce_window_min_p = window_extremal(
    "reduce_window_min", np.minimum, "stablehlo.minimum", greatest, "le"
)
