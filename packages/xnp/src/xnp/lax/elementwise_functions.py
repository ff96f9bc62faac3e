"""`xnp.lax`: exponentials, logarithms, circular and hyperbolic functions.

Floats and complex, unless said otherwise. `accuracy` (an `AccuracyMode` or a `Tolerance`) is what
the compiled function must reach; None leaves the choice to XLA, which errs by a few ulp.
"""

from __future__ import annotations

from xnp.docstrings import complete
from xnp.docstrings.operations import FUNCTIONS
from xnp.lax.elementwise_arithmetic import apply
from xnp.lax.operands import pair
from xnp.primitives.accuracy import Accuracy, AccuracyMode, Tolerance
from xnp.primitives.exponential import exp2_p, exp_p, expm1_p, log1p_p, log2_p, log_p, logistic_p
from xnp.primitives.trigonometric import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from xprim import Array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return e^x."""
    return apply(exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 2^x."""
    return apply(exp2_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return e^x - 1, accurate near 0."""
    return apply(expm1_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the natural logarithm, -inf at 0, NaN for negative floats."""
    return apply(log_p, x, accuracy)


def log2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the logarithm to base 2."""
    return apply(log2_p, x, accuracy)


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return log(1 + x), accurate near 0."""
    return apply(log1p_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return 1 / (1 + e^-x)."""
    return apply(logistic_p, x, accuracy)


def sin(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the sine of x in radians."""
    return apply(sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the cosine of x in radians."""
    return apply(cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the tangent of x in radians."""
    return apply(tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """Return the arc sine, in [-pi/2, pi/2]."""
    return apply(asin_p, x)


def acos(x: ArrayLike) -> Array:
    """Return the arc cosine, in [0, pi]."""
    return apply(acos_p, x)


def atan(x: ArrayLike) -> Array:
    """Return the arc tangent, in [-pi/2, pi/2]."""
    return apply(atan_p, x)


def sinh(x: ArrayLike) -> Array:
    """Return the hyperbolic sine."""
    return apply(sinh_p, x)


def cosh(x: ArrayLike) -> Array:
    """Return the hyperbolic cosine."""
    return apply(cosh_p, x)


def tanh(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Return the hyperbolic tangent."""
    return apply(tanh_p, x, accuracy)


def asinh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic sine."""
    return apply(asinh_p, x)


def acosh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic cosine, NaN below 1."""
    return apply(acosh_p, x)


def atanh(x: ArrayLike) -> Array:
    """Return the inverse hyperbolic tangent, NaN outside [-1, 1]."""
    return apply(atanh_p, x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the angle of the point (y, x), in [-pi, pi]: atan(x / y) in its quadrant. Floats."""
    return atan2_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


__all__ = [
    "AccuracyMode", "Tolerance", "acos", "acos_p", "acosh", "acosh_p", "asin", "asin_p",
    "asinh", "asinh_p", "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "cos",
    "cos_p", "cosh", "cosh_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "log",
    "log1p", "log1p_p", "log2", "log2_p", "log_p", "logistic", "logistic_p", "sin", "sin_p",
    "sinh", "sinh_p", "tan", "tan_p", "tanh", "tanh_p",
]  # fmt: skip

__dir__ = __all__.copy

complete(globals(), FUNCTIONS)


boundaries(globals(), written=True)
