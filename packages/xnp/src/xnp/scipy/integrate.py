"""Integrals of samples: `xnp.scipy.integrate`."""

from __future__ import annotations

import xnp.numpy as xn
from xprim import Array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["trapezoid"]

__dir__ = __all__.copy


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return the integral of samples by the trapezoidal rule.

    Args:
      y: the samples.
      x: where they are taken; None for places `dx` apart.
      dx: the distance of places.
      axis: along which they lie.

    Example:
      >>> import numpy as np
      >>> float(trapezoid(np.float32([0, 1, 4]), dx=0.5))
      1.5
    """
    return xn.trapezoid(y, x, dx, axis)


boundaries(globals())
