"""Logarithms, entropies and their inverses: xlogy, entr, kl_div, logit, boxcox, logsumexp, softmax.

Neighbours: `xnp.primitives.special_logarithms` has the derivatives at 0; `xnp.softmax` the sums of
exponentials.
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp import nn, softmax as _sums
from xnp.numpy.dispatch import dispatched
from xnp.numpy.promoting import bind, broadcast_checked, inexact
from xnp.scipy.elementwise import applied
from xnp.softmax import logsumexp as logsumexp
from xprim import Array
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "logsumexp",
    "rel_entr", "softmax", "xlog1py", "xlogy",
]  # fmt: skip

__dir__ = __all__.copy


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(y), 0 where x = 0 (and y is not NaN).

    Differentiable in: x, with log(y) everywhere; y, with x / y, 0 where x = 0.
    """
    return applied("xlogy", "xlogy", x, y)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x log(1 + y), 0 where x = 0 (and y is not NaN). Derivatives as of `xlogy`."""
    return applied("xlog1py", "xlog1py", x, y)


def entr(x: ArrayLike) -> Array:
    """Return the entropy -x log(x) for x >= 0, where its slope at 0 is inf; -inf for x < 0."""
    return _entr(x)


@dispatched(1)
def _entr(x: Any) -> Array:
    (x,) = inexact("entr", x)
    below = x < 0
    inside = xn.where(below, 1, x)  # the slope of the logarithm of what is below is NaN
    result: Array = xn.where(below, -math.inf, -bind("xlogy", inside, inside))
    return result


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the relative entropy p log(p / q) for p > 0, q > 0; 0 for p = 0, q >= 0; else inf."""
    return _rel_entr(p, q)


@dispatched(2)
def _rel_entr(p: Any, q: Any) -> Array:
    p, q = broadcast_checked("rel_entr", *inexact("rel_entr", p, q))
    # where the quotient would be 0 or infinite, the operands are put out of its way first
    both = (p > 0) & (q > 0)
    zero = (p == 0) & (q >= 0)
    ratio = xn.where(both, p, 1) / xn.where(both, q, 1)
    ratio = xn.where(zero, xn.where(zero, p, 0) / xn.where(zero & (q > 0), q, 1), ratio)
    value = bind("xlogy", xn.where(both | zero, p, 1), ratio)
    value = xn.where(both | zero, value, math.inf)
    result: Array = xn.where(xn.isnan(p) | xn.isnan(q), math.nan, value)
    return result


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Return the Kullback-Leibler term p log(p / q) - p + q; inf where p or q is negative."""
    p, q = inexact("kl_div", p, q)
    inside = (p >= 0) & (q >= 0)
    endless = inside & ((p == math.inf) != (q == math.inf))
    p, q = xn.where(endless, 1, p), xn.where(endless, 1, q)  # whose slopes are numbers
    value = rel_entr(p, q) + xn.where(inside, q - p, 0)
    result: Array = xn.where(endless, math.inf, value)
    return result


def expit(x: ArrayLike) -> Array:
    """Return the logistic function 1 / (1 + e^-x)."""
    return nn.sigmoid(x)


def logit(x: ArrayLike) -> Array:
    """Return log(x / (1 - x)), the inverse of `expit`; infinite at 0 and 1, NaN outside."""
    return applied("logit", "logit", x)


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return (x^lmbda - 1) / lmbda, which is log(x) at lmbda = 0.

    Source: G. Box and D. Cox, An analysis of transformations (1964).
    """
    return _boxcox(x, lmbda, "log", "boxcox")


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Return ((1 + x)^lmbda - 1) / lmbda, which is log(1 + x) at lmbda = 0."""
    return _boxcox(x, lmbda, "log1p", "boxcox1p")


@dispatched(2)
def _boxcox(x: Any, lmbda: Any, log: str, operation: str) -> Array:
    """Return (e^u - 1) / lmbda with u = lmbda log(x), for small u by its series."""
    x, power = broadcast_checked(operation, *inexact(operation, x, lmbda))
    logarithm = bind(log, x)
    near = (abs(power * logarithm) < 0.02) | (power == 0)
    # at power 0 an infinite logarithm is the result
    u = xn.where(near, power * xn.where(near & xn.isfinite(logarithm), logarithm, 0), 0)
    series = 1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7)))))
    far = xn.expm1(xn.where(near, 1, power * logarithm)) / xn.where(near, 1, power)
    result: Array = xn.where(near, logarithm * series, far)
    return result


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return e^x divided by its sum over the axes, None for all of them."""
    return _sums.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the logarithm of `softmax`."""
    return _sums.log_softmax(x, axis=axis)


boundaries(globals())
