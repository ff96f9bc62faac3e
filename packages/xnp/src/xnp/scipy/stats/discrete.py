"""The distributions on whole numbers: a row each, with its probabilities and formulas.

Sources: N. Johnson, A. Kemp, S. Kotz, Univariate discrete distributions (2005); the names and forms
are SciPy's. Formulas take numbers of the support: see `distribution`.
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp.numpy.dispatch import inexact
from xnp.scipy import special
from xnp.scipy.stats.distribution import discrete, where_defined, with_signature
from xprim import Array, dtypes

__all__ = ["bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"]

__dir__ = __all__.copy

_INF = math.inf
_MASSES = ("logpmf", "pmf")


def _log_binomial(n: Any, k: Any) -> Any:
    return -xn.log1p(n) - special.betaln(n - k + 1, k + 1)


def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _at_an_end(*arguments: Any) -> Any:
    """Return where the probability, the last parameter, is 0 or 1."""
    return (arguments[-1] == 0) | (arguments[-1] == 1)


def _is_count(n: Any) -> Any:
    return (n >= 0) & (xn.floor(n) == n)


bernoulli = discrete(
    "bernoulli", (0, 1), "p for k = 1, 1 - p for k = 0", shapes=("p",), shown=_MASSES,
    without_location=("cdf", "ppf"), valid=_is_probability,
    pmf=lambda k, p: xn.where(k == 1, p, 1 - p),
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: xn.where(k < 1, 1 - p, 1),
    ppf=lambda q, p: xn.where(q == 0, -1, xn.where(q <= 1 - p, 0, 1)),
)  # fmt: skip

binom = discrete(
    "binom", lambda n, p: (0, n), "n! / (k! (n-k)!) p^k (1-p)^(n-k) for 0 <= k <= n",
    shapes=("n", "p"), shown=_MASSES, valid=lambda n, p: _is_count(n) & _is_probability(p),
    ordinary=(1.0, 0.5),
    at_zeros=(_at_an_end,
              lambda k, n, p: xn.exp(_log_binomial(n, k)) * p**k * (1 - p) ** (n - k)),
    logpmf=lambda k, n, p: _log_binomial(n, k) + special.xlogy(k, p)
    + special.xlog1py(n - k, -p),
)  # fmt: skip

betabinom = discrete(
    "betabinom", lambda n, a, b: (0, n), "n! / (k! (n-k)!) B(k+a, n-k+b) / B(a, b)",
    shapes=("n", "a", "b"), shown=_MASSES, ordinary=(1.0, 0.5, 0.5),
    valid=lambda n, a, b: _is_count(n) & (a > 0) & (b > 0),
    logpmf=lambda k, n, a, b: _log_binomial(n, k) + special.betaln(k + a, n - k + b)
    - special.betaln(a, b),
)  # fmt: skip

geom = discrete(
    "geom", (1, _INF), "(1-p)^(k-1) p for k >= 1", shapes=("p",), shown=_MASSES,
    valid=lambda p: (p > 0) & (p <= 1),
    at_zeros=(_at_an_end, lambda k, p: (1 - p) ** (k - 1) * p),
    logpmf=lambda k, p: special.xlog1py(k - 1, -p) + xn.log(p),
)  # fmt: skip

nbinom = discrete(
    "nbinom", (0, _INF), "Gamma(k+n) / (k! Gamma(n)) p^n (1-p)^k for k >= 0", shapes=("n", "p"),
    shown=_MASSES, valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    at_zeros=(_at_an_end,
              lambda k, n, p: p**n * (1 - p) ** k * xn.exp(-special.betaln(n, k + 1)) / (k + n)),
    logpmf=lambda k, n, p: -xn.log(k + n) - special.betaln(n, k + 1) + n * xn.log(p)
    + special.xlog1py(k, -p),
)  # fmt: skip

poisson = discrete(
    "poisson", (0, _INF), "mu^k exp(-mu) / k! for k >= 0", shapes=("mu",),
    shown=(*_MASSES, "cdf"), valid=lambda mu: mu >= 0,
    at_zeros=(lambda k, mu: mu == 0,
              lambda k, mu: mu**k * xn.exp(-mu - special.gammaln(k + 1))),
    logpmf=lambda k, mu: special.xlogy(k, mu) - mu - special.gammaln(k + 1),
    cdf=lambda k, mu: special.gammaincc(k + 1, mu),
)  # fmt: skip

# from where on the series in 1 / mu is right to 1e-11, or to 1e-7 in single precision, where the
# logarithms of the sum lose digits the sooner
_FAR, _FAR_SINGLE = 60.0, 20.0


def _entropy(mu: Any, loc: Any) -> Array:
    """Return -sum p log(p), far out by its series in 1 / mu."""
    mu, loc = inexact("poisson.entropy", mu, loc)
    is_defined = mu >= 0
    bound = _FAR if mu.dtype == dtypes.float64 else _FAR_SINGLE
    near = xn.expand_dims(xn.where(mu > 0, xn.minimum(mu, bound), 1), -1)
    k = xn.arange(170).astype(mu.dtype)  # beyond, probabilities are below 1e-25
    log_p = special.xlogy(k, near) - near - special.gammaln(k + 1)
    total = -(xn.exp(log_p) * xn.where(log_p > -_INF, log_p, 0)).sum(-1)
    u = 1 / xn.maximum(mu, bound)
    series = u * (1 / 12 + u * (1 / 24 + u * (19 / 360 + u * (9 / 80 + u * (863 / 2520)))))
    far = (1 + math.log(2 * math.pi) - xn.log(u)) / 2 - series
    value = xn.where(mu > bound, far, xn.where(mu > 0, total, special.entr(mu))) + 0 * loc
    return where_defined(value, is_defined, [mu, loc])


poisson.entropy = with_signature(("mu", "loc"), {"loc": 0}, _entropy)  # type: ignore[attr-defined]
poisson.entropy.__name__, poisson.entropy.__qualname__ = "entropy", "poisson.entropy"
poisson.entropy.__module__ = poisson.logpmf.__module__
poisson.entropy.__doc__ = "Return the entropy of the poisson distribution, in nats, for mu >= 0."
