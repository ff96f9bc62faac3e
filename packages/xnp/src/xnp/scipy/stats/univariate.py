"""The distributions on intervals and on whole numbers: a row each, with its formulas.

Sources: N. Johnson, S. Kotz, N. Balakrishnan, Continuous univariate distributions (1994); the names
and standard forms are SciPy's. Formulas take points of the support: see `distribution`.
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp.numpy.dispatch import cast, inexact
from xnp.scipy import special
from xnp.scipy.stats.distribution import (
    Formula,
    continuous,
    discrete,
    where_defined,
    with_signature,
)
from xprim import Array, dtypes

__all__ = [
    "beta", "cauchy", "chi2", "expon", "gamma", "gennorm", "gumbel_l", "gumbel_r", "laplace",
    "logistic", "norm", "pareto", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
    "bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson",
]  # fmt: skip

__dir__ = __all__.copy

_INF = math.inf
_LOG_2PI = math.log(2 * math.pi)
_REALS = (-_INF, _INF)
_TAILS = ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")


def _log_less(x: Any) -> Any:
    """Return log(1 - e^x) for x <= 0 (M. Maechler, Accurately computing log(1 - exp(-|a|)))."""
    near = x > -math.log(2)
    far = xn.log1p(-xn.exp(xn.where(near, -1, x)))
    return xn.where(near, xn.log(-xn.expm1(xn.where(near, x, -1))), far)


def _log_one_plus_square(x: Any) -> Any:
    """Return log(1 + x^2), also where the square is infinite."""
    far = abs(x) > 1e8
    return xn.where(far, 2 * xn.log(abs(xn.where(far, x, 1))), xn.log1p(xn.where(far, 0, x) ** 2))


def _cotangent(q: Any) -> Any:
    """Return tan(pi (q - 1/2)), the quantile of the Cauchy distribution."""
    upper = q > 0.5
    p = xn.where(upper, 1 - q, q)
    centre = (p > 0.25) | (p == 0)
    tangent = xn.where(centre, xn.tan(math.pi * (xn.where(centre, p, 0.5) - 0.5)),
                       -1 / xn.tan(math.pi * xn.where(centre, 0.25, p)))  # fmt: skip
    tangent = xn.where(p == 0, -_INF, tangent)
    return xn.where(upper, -tangent, tangent)


def _log_mass(a: Any, b: Any) -> Any:
    """Return log(ndtr(b) - ndtr(a)) for a <= b, by the tail in which both are."""
    upper = a > 0
    low, high = xn.where(upper, -b, a), xn.where(upper, -a, b)
    straddles = (a <= 0) & (b > 0)
    first = special.log_ndtr(xn.where(straddles, -1, high))
    alone = low == -_INF  # nothing to take away, and log_ndtr has no derivative there
    second = special.log_ndtr(xn.where(straddles | alone, -2, low))
    less = _log_less(xn.where(alone, -1, xn.minimum(second - first, 0)))
    apart = first + xn.where(alone, 0, less)
    across = xn.log1p(-special.ndtr(xn.where(straddles, a, -1)) - special.ndtr(
        -xn.where(straddles, b, 1)))  # fmt: skip
    return xn.where(straddles, across, apart)


def _share(x: Any, y: Any, a: Any, b: Any) -> Any:
    """Return the mass from x to y as a part of that from a to b."""
    none = x == y  # whose logarithm has no derivatives, while they are the density
    share = xn.exp(_log_mass(xn.where(none, a, x), xn.where(none, b, y)) - _log_mass(a, b))
    low, high = xn.where(none, x, 0), xn.where(none, y, 0)
    z = (low + high) / 2
    rectangle = (high - low) * xn.exp(-(z * z + _LOG_2PI) / 2 - _log_mass(a, b))
    return xn.where(none, rectangle, share)


def _log_t(x: Any, df: Any) -> Any:
    is_normal = df == _INF
    v = xn.where(is_normal, 1, df)
    # Gamma((v + 1) / 2) / Gamma(v / 2) as one quotient: their logarithms would cancel
    scale = xn.log(special.poch(v / 2, 0.5)) - xn.log(v * math.pi) / 2
    value = scale - (v + 1) / 2 * _log_one_plus_square(x / xn.sqrt(v))
    return xn.where(is_normal, -(x * x + _LOG_2PI) / 2, value)


def _unless_infinite(formula: Formula, limit: float, at_one: float) -> Formula:
    """Return a formula of x and a parameter that is constant where that is infinite."""

    def guarded(x: Any, p: Any) -> Any:
        is_infinite = p == _INF
        usual = formula(x, xn.where(is_infinite, 4, p))  # has derivatives everywhere
        return xn.where(is_infinite, xn.where(x == 1, at_one, limit), usual)

    return guarded


norm = continuous(
    "norm", _REALS, "exp(-x^2 / 2) / sqrt(2 pi)", shown=(*_TAILS, "isf", "ppf"),
    logpdf=lambda x: -(x * x + _LOG_2PI) / 2,
    cdf=special.ndtr, logcdf=special.log_ndtr,
    sf=lambda x: special.ndtr(-x), logsf=lambda x: special.log_ndtr(-x),
    ppf=special.ndtri, isf=lambda q: -special.ndtri(q),
)  # fmt: skip

uniform = continuous(
    "uniform", (0, 1), "1 for 0 <= x <= 1", shown=("cdf", "logpdf", "pdf", "ppf"),
    logpdf=lambda x: 0 * x, cdf=lambda x: x, ppf=lambda q: q,
)  # fmt: skip

expon = continuous(
    "expon", (0, _INF), "exp(-x) for x >= 0", shown=(*_TAILS, "ppf"),
    logpdf=lambda x: -x,
    cdf=lambda x: -xn.expm1(-x), logcdf=lambda x: _log_less(-x),
    sf=lambda x: xn.exp(-x), logsf=lambda x: -x,
    ppf=lambda q: -xn.log1p(-q),
)  # fmt: skip

laplace = continuous(
    "laplace", _REALS, "exp(-|x|) / 2", shown=("cdf", "logpdf", "pdf"),
    logpdf=lambda x: -abs(x) - math.log(2),
    cdf=lambda x: xn.where(x < 0, xn.exp(-abs(x)) / 2, 1 - xn.exp(-abs(x)) / 2),
)  # fmt: skip

logistic = continuous(
    "logistic", _REALS, "exp(-x) / (1 + exp(-x))^2",
    shown=("cdf", "isf", "logpdf", "pdf", "ppf", "sf"), arguments={"ppf": "x", "isf": "x"},
    logpdf=lambda x: -abs(x) - 2 * xn.log1p(xn.exp(-abs(x))),
    cdf=special.expit, sf=lambda x: special.expit(-x),
    ppf=special.logit, isf=lambda q: -special.logit(q),
)  # fmt: skip

cauchy = continuous(
    "cauchy", _REALS, "1 / (pi (1 + x^2))", shown=(*_TAILS, "isf", "ppf"),
    logpdf=lambda x: -math.log(math.pi) - _log_one_plus_square(x),
    cdf=lambda x: xn.arctan2(1, -x) / math.pi, sf=lambda x: xn.arctan2(1, x) / math.pi,
    ppf=_cotangent, isf=lambda q: -_cotangent(q),
)  # fmt: skip


def _exp_of_exponent(x: Any) -> Any:
    """Return e^x for e^(-e^x), which is 0 from x = 11 on in every dtype: derivatives are finite."""
    return xn.exp(xn.minimum(x, 11))


gumbel_r = continuous(
    "gumbel_r", _REALS, "exp(-(x + exp(-x)))", shown=(*_TAILS, "ppf"), arguments={"ppf": "p"},
    logpdf=lambda x: -(x + xn.exp(-x)),
    pdf=lambda x: xn.exp(-xn.maximum(x, -11) - _exp_of_exponent(-x)),
    cdf=lambda x: xn.exp(-_exp_of_exponent(-x)), logcdf=lambda x: -xn.exp(-x),
    sf=lambda x: -xn.expm1(-_exp_of_exponent(-x)),
    logsf=lambda x: _log_less(-_exp_of_exponent(-x)),
    ppf=lambda q: -xn.log(-xn.log(q)),
)  # fmt: skip

gumbel_l = continuous(
    "gumbel_l", _REALS, "exp(x - exp(x))", shown=(*_TAILS, "ppf"), arguments={"ppf": "p"},
    logpdf=lambda x: x - xn.exp(x),
    pdf=lambda x: xn.exp(xn.minimum(x, 11) - _exp_of_exponent(x)),
    cdf=lambda x: -xn.expm1(-_exp_of_exponent(x)),
    logcdf=lambda x: _log_less(-_exp_of_exponent(x)),
    sf=lambda x: xn.exp(-_exp_of_exponent(x)), logsf=lambda x: -xn.exp(x),
    ppf=lambda q: xn.log(-xn.log1p(-q)),
)  # fmt: skip

gamma = continuous(
    "gamma", (0, _INF), "x^(a-1) exp(-x) / Gamma(a) for x >= 0", shapes=("a",), shown=_TAILS,
    valid=lambda a: a > 0,
    logpdf=lambda x, a: special.xlogy(a - 1, x) - x - special.gammaln(a),
    at_zeros=(lambda x, a: (x == 0) | (a == _INF),
              _unless_infinite(lambda x, a: x ** (a - 1) * xn.exp(-x - special.gammaln(a)), 0, 0)),
    cdf=lambda x, a: special.gammainc(a, x), sf=lambda x, a: special.gammaincc(a, x),
)  # fmt: skip

chi2 = continuous(
    "chi2", (0, _INF), "x^(df/2-1) exp(-x/2) / (2^(df/2) Gamma(df/2)) for x >= 0", shapes=("df",),
    shown=_TAILS, valid=lambda df: df > 0,
    logpdf=lambda x, df: special.xlogy(df / 2 - 1, x) - x / 2 - special.gammaln(df / 2)
    - df * (math.log(2) / 2),
    at_zeros=(lambda x, df: (x == 0) | (df == _INF), _unless_infinite(
        lambda x, df: (x / 2) ** (df / 2 - 1) / 2 * xn.exp(-x / 2 - special.gammaln(df / 2)),
        0, 0)),
    cdf=lambda x, df: special.gammainc(df / 2, x / 2),
    sf=lambda x, df: special.gammaincc(df / 2, x / 2),
)  # fmt: skip

beta = continuous(
    "beta", (0, 1), "x^(a-1) (1-x)^(b-1) / B(a, b) for 0 <= x <= 1", shapes=("a", "b"),
    shown=_TAILS, valid=lambda a, b: (a > 0) & (b > 0),
    logpdf=lambda x, a, b: special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x)
    - special.betaln(a, b),
    at_zeros=(lambda x, a, b: (x == 0) | (x == 1),
              lambda x, a, b: x ** (a - 1) * (1 - x) ** (b - 1) * xn.exp(-special.betaln(a, b))),
    cdf=lambda x, a, b: special.betainc(a, b, x),
    sf=lambda x, a, b: special.betainc(b, a, 1 - x),
)  # fmt: skip

pareto = continuous(
    "pareto", (1, _INF), "b / x^(b+1) for x >= 1", shapes=("b",), shown=(*_TAILS, "ppf"),
    valid=lambda b: b > 0,
    logpdf=lambda x, b: xn.log(b) - (b + 1) * xn.log(x),
    cdf=_unless_infinite(lambda x, b: -xn.expm1(-b * xn.log(x)), 1, math.nan),
    logcdf=_unless_infinite(lambda x, b: _log_less(-b * xn.log(x)), 0, math.nan),
    sf=_unless_infinite(lambda x, b: xn.exp(-b * xn.log(x)), 0, math.nan),
    logsf=lambda x, b: -b * xn.log(x),
    ppf=lambda q, b: xn.exp(-xn.log1p(-q) / b),
)  # fmt: skip

t = continuous(
    "t", _REALS, "Gamma((df+1)/2) / (sqrt(pi df) Gamma(df/2)) (1 + x^2/df)^(-(df+1)/2)",
    shapes=("df",), shown=("logpdf", "pdf"), valid=lambda df: df > 0, logpdf=_log_t,
)  # fmt: skip

truncnorm = continuous(
    "truncnorm", lambda a, b: (a, b), "that of norm for a <= x <= b, scaled to a total of 1",
    shapes=("a", "b"), shown=_TAILS, valid=lambda a, b: a < b, ordinary=(-1.0, 2.0),
    logpdf=lambda x, a, b: -(x * x + _LOG_2PI) / 2 - _log_mass(a, b),
    logcdf=lambda x, a, b: _log_mass(a, x) - _log_mass(a, b),
    logsf=lambda x, a, b: _log_mass(x, b) - _log_mass(a, b),
    cdf=lambda x, a, b: _share(a, x, a, b), sf=lambda x, a, b: _share(x, b, a, b),
)  # fmt: skip


def _cdf_of_gennorm(x: Any, beta: Any) -> Any:
    zero = x == 0  # where |x|^beta has no derivatives, while they are the density
    tail = special.gammaincc(1 / beta, abs(xn.where(zero, 1, x)) ** beta) / 2
    density = xn.exp(xn.log(beta / 2) - special.gammaln(1 / beta))
    # the integral of 1 - |x|^beta + ..., which has no second derivative where beta is below 2
    smooth = beta >= 2
    power = xn.where(smooth, (x * x) ** (xn.where(smooth, beta, 2) / 2) / (beta + 1), 0)
    return xn.where(zero, 0.5 + x * density * (1 - power), xn.where(x < 0, tail, 1 - tail))


gennorm = continuous(
    "gennorm", _REALS, "beta / (2 Gamma(1/beta)) exp(-|x|^beta)", shapes=("beta",),
    shown=("cdf", "logpdf", "pdf"), located=False, valid=lambda beta: (beta > 0) & (beta < _INF),
    logpdf=lambda x, beta: xn.log(beta / 2) - special.gammaln(1 / beta) - abs(x) ** beta,
    at_zeros=(lambda x, beta: abs(x) ** beta > 1e4, lambda x, beta: 0 * x),
    cdf=_cdf_of_gennorm,
)  # fmt: skip

vonmises = continuous(
    "vonmises", _REALS, "exp(kappa cos(x)) / (2 pi I_0(kappa))", shapes=("kappa",),
    shown=("logpdf", "pdf"), located=False, valid=lambda kappa: kappa >= 0,
    logpdf=lambda x, kappa: -2 * kappa * xn.sin(x / 2) ** 2
    - xn.log(2 * math.pi * special.i0e(kappa)),
)  # fmt: skip

wrapcauchy = continuous(
    "wrapcauchy", (0, 2 * math.pi), "(1 - c^2) / (2 pi (1 + c^2 - 2 c cos(x))), 0 <= x <= 2 pi",
    shapes=("c",), shown=("logpdf", "pdf"), located=False, valid=lambda c: (c > 0) & (c < 1),
    logpdf=lambda x, c: xn.log1p(-c * c) - _LOG_2PI
    - xn.log((1 - c) ** 2 + 4 * c * xn.sin(x / 2) ** 2),
)  # fmt: skip


# --------------------------------------------------------------------------- discrete distributions
# The distributions on whole numbers: a row each, with its probabilities and formulas.
#
# Sources: N. Johnson, A. Kemp, S. Kotz, Univariate discrete distributions (2005); the names and
# forms are SciPy's. Formulas take numbers of the support: see `distribution`.

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
    mu, loc = [cast(x, x.dtype) for x in inexact("poisson.entropy", mu, loc)]
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
