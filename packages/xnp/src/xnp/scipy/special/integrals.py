"""Integrals of elementary functions: expi, exp1, expn, sici, spence.

Neighbours: `xnp.primitives.special_integrals` has the formulas; `fresnel` is in `error_functions`.
"""

from __future__ import annotations

from xnp.numpy.promoting import bind, inexact
from xnp.scipy.elementwise import applied
from xprim import Array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["exp1", "expi", "expn", "sici", "spence"]

__dir__ = __all__.copy


def expi(x: ArrayLike) -> Array:
    """Return the exponential integral Ei(x) = int_-inf^x e^t / t dt.

    For positive x it is the principal value; at 0 it is -inf. Source: DLMF 6.2.5.
    """
    return applied("expi", "expi", x)


def exp1(x: ArrayLike) -> Array:
    """Return the exponential integral E_1(x) = int_x^inf e^-t / t dt; NaN for x < 0."""
    return applied("expn", "exp1", 1.0, x)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the generalized exponential integral E_n(x) = int_1^inf e^(-x t) / t^n dt.

    Args:
      n: whole numbers, 0 or more.
      x: numbers, 0 or more.

    Differentiable in: x. Source: DLMF 8.19.
    """
    return applied("expn", "expn", n, x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Return the integrals of sine and cosine.

        Si(x) = int_0^x sin(t) / t dt,    Ci(x) = -int_x^inf cos(t) / t dt

    Of negative x Ci is that of -x, its real part. Source: DLMF 6.2.9, 6.2.11.
    """
    (x,) = inexact("sici", x)
    return bind("sine_integral", x), bind("cosine_integral", x)


def spence(x: ArrayLike) -> Array:
    """Return Spence's function int_1^x log(t) / (1 - t) dt, the dilogarithm of 1 - x, for x >= 0.

    Example:
      >>> round(float(spence(0.0)), 5)  # pi^2 / 6
      1.64493
    """
    return applied("spence", "spence", x)


boundaries(globals())
