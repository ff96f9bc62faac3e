"""Windows of spectra, made on the host: by a name, a name with a number, or given as an array.

Sources: F. Harris, On the use of windows for harmonic analysis (1978); A. Nuttall, Some windows
with very good sidelobe behavior (1981). They are periodic, as spectra need them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.numpy.promoting import array_of
from xprim.errors import message

__all__ = ()

# the coefficients of cos(2 pi k n / N), signs in turn
_COSINES = {
    "boxcar": (1.0,),
    "rectangular": (1.0,),
    "ones": (1.0,),
    "hann": (0.5, 0.5),
    "hanning": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}


def _tukey(t: Any, n: int, alpha: float) -> Any:
    if alpha <= 0:
        return np.ones(n)
    edge = np.minimum(t, 1 - t) * 2 / min(alpha, 1.0)
    return np.where(edge < 1, 0.5 - 0.5 * np.cos(np.pi * edge), 1.0)


# of t = 0 ... 1 (excluded), the number of elements and a number
_OTHERS: dict[str, Callable[..., Any]] = {
    "bartlett": lambda t, n: 1 - np.abs(2 * t - 1),
    "cosine": lambda t, n: np.sin(np.pi * (t * n + 0.5) / (n + 1)),
    "gaussian": lambda t, n, std: np.exp(-0.5 * ((t - 0.5) * n / std) ** 2),
    "kaiser": lambda t, n, beta: (
        np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)
    ),
    "tukey": _tukey,
}


def window_of(window: Any, n: int, operation: str) -> Any:
    """Return a window of n elements, float64 on the host or an array that was given."""
    if isinstance(window, str | tuple):
        name, *numbers = (window,) if isinstance(window, str) else window
        if n == 1:  # there is nothing to weigh
            return np.ones(1)
        t = np.arange(n) / n
        if name in _COSINES and not numbers:
            terms = [c * (-1) ** k * np.cos(2 * math.pi * k * t)
                     for k, c in enumerate(_COSINES[name])]  # fmt: skip
            return np.sum(terms, axis=0)
        if name in _OTHERS and len(numbers) == _OTHERS[name].__code__.co_argcount - 2:
            return _OTHERS[name](t, n, *numbers)
        raise ValueError(message(
            operation, "there is no such window.", got=f"{window!r}",
            expected=f"one of {', '.join([*_COSINES, *list(_OTHERS)[:2]])}; ('gaussian', std), "
            "('kaiser', beta), ('tukey', alpha); or an array",
        ))  # fmt: skip
    given = array_of(window, operation)
    if given.ndim != 1 or given.size != n:
        raise ValueError(message(
            operation, "the window does not fit the segments.", got=given.aval.str_long(),
            expected=f"shape ({n},)",
        ))  # fmt: skip
    return given
