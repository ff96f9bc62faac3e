"""Windows of samples: bartlett, blackman, hamming, hanning, kaiser.

Neighbours: `ranges` has other vectors of a number of points, `xnp.scipy.signal` what uses windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_making import RANGES
from xnp.numpy.creation import array
from xnp.numpy.elementary import i0
from xnp.numpy.promoting import bind, broadcasted, cast
from xnp.numpy.ranges import host_array
from xprim import Array, Tracer, dtypes
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]

__dir__ = __all__.copy


def _window(function: Any, M: int, *args: Any) -> Any:
    return host_array(function(size_of(M), *args), dtypes.python_scalar_dtype(float))


def bartlett(M: int) -> Array:
    """Return the triangular window of `M` points."""
    return _window(np.bartlett, M)  # type: ignore[no-any-return]


def blackman(M: int) -> Array:
    """Return the Blackman window of `M` points."""
    return _window(np.blackman, M)  # type: ignore[no-any-return]


def hamming(M: int) -> Array:
    """Return the Hamming window of `M` points."""
    return _window(np.hamming, M)  # type: ignore[no-any-return]


def hanning(M: int) -> Array:
    """Return the Hann window of `M` points."""
    return _window(np.hanning, M)  # type: ignore[no-any-return]


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return the Kaiser window of `M` points.

    Args:
      M: the number of points, a Python int; there are none for 0 and below.
      beta: the shape parameter, a number: 0 for a rectangle, greater for narrower windows.

    Returns:
      A vector of the default floating dtype.

    Differentiable in: beta.

    Example:
      >>> import xnp
      >>> xnp.kaiser(3, 2.0).round(3)
      Array([0.439, 1.   , 0.439], dtype=float32)
    """
    if not isinstance(beta, Tracer):
        return _window(np.kaiser, M, float(beta))  # type: ignore[no-any-return, arg-type]
    half = (size_of(M) - 1) / 2
    distance = (np.arange(size_of(M)) - half) / (half or 1.0)
    width = array(np.sqrt(np.maximum(1 - distance * distance, 0.0)))
    b = broadcasted(cast(beta, width.aval.dtype), width.aval.shape)
    return bind("div", i0(bind("mul", b, width)), i0(b))


complete(globals(), RANGES)

boundaries(globals())
