"""The error function, the normal distribution and kin, real and complex.

Neighbours: `xnp.primitives.special_error`, `special_normal`, `special_integrals` have the formulas.
"""

from __future__ import annotations

import math

import numpy as np

import xnp.numpy as xn
from xnp.numpy.promoting import bind, inexact
from xnp.scipy.elementwise import applied
from xprim import Array, dtypes
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "dawsn", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "fresnel", "log_ndtr", "ndtr", "ndtri",
    "owens_t", "wofz",
]  # fmt: skip

__dir__ = __all__.copy


def erf(x: ArrayLike) -> Array:
    """Return the error function, 2/sqrt(pi) int_0^x exp(-t^2) dt."""
    return applied("erf", "erf", x)


def erfc(x: ArrayLike) -> Array:
    """Return 1 - erf(x), accurate for large x."""
    return applied("erfc", "erfc", x)


def erfinv(x: ArrayLike) -> Array:
    """Return y with erf(y) = x; infinite at -1 and 1, NaN outside."""
    return applied("erf_inv", "erfinv", x)


def erfcinv(y: ArrayLike) -> Array:
    """Return x with erfc(x) = y; infinite at 0 and 2, NaN outside."""
    (y,) = inexact("erfcinv", y)
    return bind("ndtri", y * 0.5) * -math.sqrt(0.5)


def erfcx(x: ArrayLike) -> Array:
    """Return exp(x^2) erfc(x), which falls as 1 / (x sqrt(pi)); of complex x it is w(ix).

    Source: DLMF 7.2.3.
    """
    (x,) = inexact("erfcx", x)
    if dtypes.is_complex(x.aval.dtype):
        return wofz(bind("complex", -x.imag, x.real))
    return applied("erfcx", "erfcx", x)


def ndtr(x: ArrayLike) -> Array:
    """Return the distribution function of the standard normal distribution, erfc(-x/sqrt(2)) / 2.

    Example:
      >>> float(ndtr(0.0))
      0.5
    """
    return applied("ndtr", "ndtr", x)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Return the logarithm of `ndtr`, right in both tails.

    Args:
      x: an array.
      series_order: how many terms an asymptotic series would have, at least 0. It is checked, but
        no such series is used: results have all digits for each order.
    """
    if static_int(series_order, "log_ndtr", "series_order") < 0:
        raise ValueError(message(
            "log_ndtr", "series_order is negative.", got=f"{series_order}", expected="0 or more",
        ))  # fmt: skip
    return applied("log_ndtr", "log_ndtr", x)


def ndtri(p: ArrayLike) -> Array:
    """Return x with ndtr(x) = p, the quantile; infinite at 0 and 1, NaN outside."""
    return applied("ndtri", "ndtri", p)


def dawsn(x: ArrayLike) -> Array:
    """Return Dawson's integral exp(-x^2) int_0^x exp(t^2) dt. Source: DLMF 7.2.5."""
    return applied("dawsn", "dawsn", x)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Return Owen's T function, 1/(2 pi) int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx.

    Source: D. Owen, Tables for computing bivariate normal probabilities (1956).
    """
    return applied("owens_t", "owens_t", h, a)


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Return Fresnel's integrals (S, C) of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0 to x."""
    (x,) = inexact("fresnel", x)
    return bind("fresnel_sine", x), bind("fresnel_cosine", x)


# --- Faddeeva's function --------------------------------------------------------------------------


def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """Return L and the coefficients of Weideman's expansion of w in powers of (L + iz)/(L - iz).

    Source: J. Weideman, Computation of the complex error function (1994), the program `cef`.
    """
    half = 2 * count
    k = np.arange(-half + 1, half)
    scale = math.sqrt(count / math.sqrt(2))
    t = scale * np.tan(k * (math.pi / half) / 2)
    values = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    series = np.real(np.fft.fft(np.fft.fftshift(values))) / (2 * half)
    return scale, tuple(series[count:0:-1].tolist())


_SCALE, _COEFFICIENTS = _weideman(44)
_FAR = 6.0  # from where on the continued fraction is right to rounding with its 30 levels


def _upper_w(z: Array) -> Array:
    """Return w(z) for Im z >= 0."""
    far = abs(z) > _FAR
    outer = xn.where(far, z, 10j)
    fraction = outer
    for k in range(30, 0, -1):  # Laplace's: z - (1/2)/(z - 1/(z - (3/2)/(z - ...))), DLMF 7.9.3
        fraction = outer - (0.5 * k) / fraction
    distant = (1j / math.sqrt(math.pi)) / fraction
    inner = xn.where(far, 0, z)
    bottom = _SCALE - 1j * inner
    ratio = (_SCALE + 1j * inner) / bottom
    series = _COEFFICIENTS[0] + 0 * ratio
    for c in _COEFFICIENTS[1:]:
        series = series * ratio + c
    near = 2 * series / (bottom * bottom) + (1 / math.sqrt(math.pi)) / bottom
    result: Array = xn.where(far, distant, near)
    return result


def wofz(z: ArrayLike) -> Array:
    """Return Faddeeva's function w(z) = exp(-z^2) erfc(-iz), complex also for real z.

    Accuracy: about 1e-13 in complex128 and 1e-6 in complex64, relative to |w|, but near zeros of
    w, which are below the real axis. Source: DLMF 7.2.3.
    """
    (z,) = inexact("wofz", z)
    if not dtypes.is_complex(z.aval.dtype):
        size = xn.abs(z)
        gauss = xn.exp(-(xn.minimum(size, 1e3) ** 2))
        return bind("complex", gauss, bind("dawsn", z) * (2 / math.sqrt(math.pi)))
    lower = z.imag < 0
    upper = _upper_w(xn.where(lower, -z, z))
    below = xn.where(lower, z, 0)
    result: Array = xn.where(lower, 2 * xn.exp(-below * below) - upper, upper)
    return result


boundaries(globals())
