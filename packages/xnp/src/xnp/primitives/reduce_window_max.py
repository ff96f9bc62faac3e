"""reduce_window_max: the greatest element of each window of an array; NaN wins."""

from __future__ import annotations

import numpy as np

from xnp.primitives.reductions import least
from xnp.primitives.window_extremal import window_extremal

__all__ = ()

reduce_window_max_p = window_extremal(
    "reduce_window_max", np.maximum, "stablehlo.maximum", least, "ge"
)
