"""Functions of mpmath that are those of the net, and their derivatives as limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

mp = pytest.importorskip("mpmath")

_SIGMOID = lambda x: 1 / (1 + mp.exp(-x))  # noqa: E731
_SOFTPLUS = lambda x: mp.log1p(mp.exp(x))  # noqa: E731

LIMITS: dict[str, Callable[[Any], Any]] = {
    "np.sin": mp.sin, "np.cos": mp.cos, "np.tan": mp.tan, "np.arcsin": mp.asin,
    "np.arccos": mp.acos, "np.arctan": mp.atan, "np.sinh": mp.sinh, "np.cosh": mp.cosh,
    "np.tanh": mp.tanh, "np.arcsinh": mp.asinh, "np.arccosh": mp.acosh, "np.arctanh": mp.atanh,
    "np.exp": mp.exp, "np.exp2": lambda x: mp.power(2, x), "np.expm1": mp.expm1, "np.log": mp.log,
    "np.log2": lambda x: mp.log(x, 2), "np.log10": mp.log10, "np.log1p": mp.log1p,
    "np.sqrt": mp.sqrt, "np.square": lambda x: x * x, "np.reciprocal": lambda x: 1 / x,
    "np.i0": lambda x: mp.besseli(0, x), "np.sinc": lambda x: mp.sinc(mp.pi * x),
    "lax.erf": mp.erf, "lax.erfc": mp.erfc, "lax.lgamma": mp.loggamma,
    "lax.digamma": lambda x: mp.psi(0, x), "lax.logistic": _SIGMOID,
    "lax.rsqrt": lambda x: 1 / mp.sqrt(x), "lax.cbrt": mp.cbrt,
    "lax.bessel_i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
    "lax.one_minus_square": lambda x: 1 - x * x,
    "nn.softplus": _SOFTPLUS, "nn.log_sigmoid": lambda x: -_SOFTPLUS(-x), "nn.sigmoid": _SIGMOID,
    "nn.silu": lambda x: x * _SIGMOID(x), "nn.mish": lambda x: x * mp.tanh(_SOFTPLUS(x)),
    "nn.squareplus": lambda x: (x + mp.sqrt(x * x + 4)) / 2,
}  # fmt: skip


def limit(name: str, x: float, order: int) -> float:
    """Return a derivative at a point of the real line where it is real, else NaN."""
    with mp.workdps(60):
        try:
            if mp.im(LIMITS[name](mp.mpf(float(x)))):
                return float("nan")
            found = mp.diff(LIMITS[name], mp.mpf(float(x)), order, h=mp.mpf(10) ** -12)
        except (ValueError, ArithmeticError):
            return float("nan")
        is_real = mp.isfinite(found) and abs(mp.im(found)) < 1e-20 * (1 + abs(found))
        return float(mp.re(found)) if is_real else float("nan")


def smooth_at(x: np.ndarray) -> np.ndarray:
    """Return where limits of both sides can be taken: finite, and no step from a singularity."""
    size = np.abs(x)
    return np.isfinite(x) & (size <= 90) & ((size >= 1e-4) | (size == 0)) & (size != 1)
