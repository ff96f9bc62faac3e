"""Rows of the net of samplers: parameters from the least to the largest, and the distributions.

A row has a sampler, arguments as they are passed behind the key (parameters are rounded to the
dtype of the cell first), and what SciPy calls the distribution, from the rounded parameters. Where
SciPy has no form that keeps its digits at the extremes, the distribution function stands here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.nets.value_operands import numpy_dtype

special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

FLOATS = ("float16", "bfloat16", "float32", "float64")
Distribution = Callable[..., Callable[[Any], Any]]


@dataclass(frozen=True)
class Cell:
    """A sampler at parameters, in a dtype.

    Attributes:
      name: of the sampler.
      dtype: of the sample; of the parameters where the sample has another.
      args: the parameters, rounded to the dtype.
      function: of the distribution, P(X <= x).
      options: keywords of the call.
      is_discrete: whether samples are whole numbers.
    """

    name: str
    dtype: str
    args: tuple[Any, ...]
    function: Callable[[Any], Any] = field(repr=False, compare=False)
    options: tuple[tuple[str, Any], ...] = ()
    is_discrete: bool = False

    def __str__(self) -> str:
        given = [f"{a:g}" for a in self.args] + [f"{k}={v}" for k, v in self.options]
        return f"{self.name}({', '.join(given)})-{self.dtype}"


def rounded(x: float, dtype: str) -> float:
    """Return a number in a dtype, NaN where it is out of range."""
    info = _info(dtype)
    with np.errstate(all="ignore"):
        y = float(np.asarray(x, np.float64).astype(numpy_dtype(dtype)))
    if math.isinf(y) != math.isinf(x) or (y == 0) != (x == 0) or 0 < abs(y) < float(info.tiny):
        return math.nan
    return y


def _info(dtype: str) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(numpy_dtype(dtype))


def _cut_normal(low: float, high: float) -> Callable[[Any], Any]:
    """Return the distribution function between bounds, counted from the nearer one in a tail."""
    if high < 0:
        mirrored = _cut_normal(-high, -low)
        return lambda x: 1 - mirrored(-x)
    if low <= 0:
        below = special.ndtr(low)
        return lambda x: np.clip((special.ndtr(x) - below) / (special.ndtr(high) - below), 0, 1)
    root = math.sqrt(0.5)

    def hazard(x: Any) -> Any:
        with np.errstate(all="ignore"):
            d = np.clip(x, low, high) - low
            start = special.erfcx(low * root) or math.inf
            bent = np.log(special.erfcx((low + d) * root) / start) if low < 1e7 else 0.0
            return d * (low + d / 2) - bent

    whole = -np.expm1(-hazard(high))
    return lambda x: -np.expm1(-hazard(x)) / whole


def _uniform(low: float, high: float) -> Callable[[Any], Any]:
    return lambda x: np.clip((x / 4 - low / 4) / (high / 4 - low / 4), 0, 1)


def _triangular(a: float, c: float, b: float) -> Callable[[Any], Any]:
    top = max(abs(a), abs(b))
    a, b, c = a / top, b / top, c / top

    def function(x: Any) -> Any:
        x = np.clip(x / top, a, b)
        with np.errstate(all="ignore"):
            rising = (x - a) / (b - a) * ((x - a) / (c - a)) if c > a else np.zeros_like(x)
            falling = 1 - (b - x) / (b - a) * ((b - x) / (b - c)) if b > c else np.ones_like(x)
        return np.where(x < c, rising, falling)

    return function


def _wald(mean: float) -> Callable[[Any], Any]:
    """Return the distribution function of a mean and scale 1."""

    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            x = np.maximum(x, 0)
            root = 1 / np.sqrt(x)
            near, far = root * (x / mean - 1), root * (x / mean + 1)
            # exp(2 / mean) Q(far), of which far^2 = near^2 + 4 / mean
            second = np.exp(-(near**2) / 2) * special.erfcx(far * math.sqrt(0.5)) / 2
        return np.where(x > 0, special.ndtr(near) + second, 0)

    return function


def _log_gamma(a: float) -> Callable[[Any], Any]:
    """Return the distribution function of the logarithm: by the first term where e^y is tiny."""

    def function(y: Any) -> Any:
        with np.errstate(all="ignore"):
            low = np.exp(a * y - special.gammaln(a + 1))
            return np.where(y < -30, low, special.gammainc(a, np.exp(np.minimum(y, 700))))

    return function


def _generalized_normal(p: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            power = np.abs(x) ** p
            near = np.abs(x) / math.gamma(1 + 1 / p)  # the first term of the series
            half = np.where(power < 1e-9, near, special.gammainc(1 / p, power)) / 2
        return 0.5 + np.sign(x) * half

    return function


def _of(make: Any, *args: Any, **options: Any) -> Callable[[Any], Any]:
    return make(*args, **options).cdf  # type: ignore[no-any-return]


def _lognormal(sigma: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(x > 0, special.ndtr(np.log(np.maximum(x, 0)) / sigma), 0)

    return function


def _pareto(b: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(x >= 1, -np.expm1(-b * np.log(np.maximum(x, 1))), 0)

    return function


def _weibull(scale: float, k: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(x > 0, -np.expm1(-((np.maximum(x, 0) / scale) ** k)), 0)

    return function


def _gumbel(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.exp(-np.exp(-x))


TINY, HUGE = 1e-30, 1e30
_SCALES = (1e-300, TINY, 1e-4, 1.0, 3e4, HUGE, 1e300)
_TAILS = [
    (-2.0, 2.0), (-math.inf, math.inf), (0.5, 0.5625), (0.0, 1e-3), (-1e-3, 1e-3), (2.0, 3.0),
    (3.0, math.inf), (3.5, 3.75), (5.25, 1e6), (5.42, 6.62), (8.0, math.inf), (12.0, 12.5),
    (37.0, 38.0), (100.0, 100.5), (1e4, math.inf), (1e30, math.inf), (-8.0, 8.0), (-0.5, 9.0),
]  # fmt: skip
CONTINUOUS: dict[str, tuple[list[tuple[float, ...]], Distribution]] = {
    "uniform": (
        [(0.0, 1.0), (-1.0, 1.0), (0.0, 1e-30), (0.0, 1e-4), (1.0, 1.0625), (-1e30, 1e30),
         (-1e38, 3e38), (-6e4, 6e4), (-1e308, 1.5e308), (1e4, 2e4)], _uniform),
    "normal": ([()], lambda: special.ndtr),
    "lognormal": ([(s,) for s in (1e-30, 1e-3, 0.1, 1.0, 5.0, 20.0)], _lognormal),
    "truncated_normal": (_TAILS + [(-b, -a) for a, b in _TAILS[5:16]], _cut_normal),
    "exponential": ([()], lambda: _of(stats.expon)),
    "laplace": ([()], lambda: _of(stats.laplace)),
    "logistic": ([()], lambda: special.expit),
    "cauchy": ([()], lambda: _of(stats.cauchy)),
    "gumbel": ([()], lambda: _gumbel),
    "maxwell": ([()], lambda: _of(stats.maxwell)),
    "pareto": ([(b,) for b in (0.01, 0.1, 1.0, 30.0, 1e4)], _pareto),
    "rayleigh": ([(s,) for s in _SCALES], lambda s: _weibull(s * math.sqrt(2), 2.0)),
    "weibull_min": (
        [(s, k) for s in (1e-30, 1.0, 1e30) for k in (0.01, 0.1, 1.0, 50.0, 1e4)], _weibull),
    "triangular": (
        [(0.0, 0.5, 1.0), (0.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.0, 1e-30, 3e-30), (-1.0, 1e-4, 1e4),
         (-1e30, 0.0, 1e30), (-2e38, 1e38, 3e38), (0.0, 1e-4, 1e-3), (-6e4, 6e4, 6.2e4)],
        _triangular),
    "wald": ([(m,) for m in (1e-30, 1e-4, 0.1, 1.0, 8.0, 300.0, 1e4, 1e6, 1e20, 1e30)], _wald),
    "double_sided_maxwell": (
        [(0.0, s) for s in _SCALES] + [(100.0, 1.0)],
        lambda loc, s: lambda x: 0.5 + np.sign(x - loc) * stats.maxwell.cdf(
            np.abs(x - loc) / s) / 2),
    "gamma": (
        [(a,) for a in (1e-4, 0.01, 0.5, 1.0, 2.5, 100.0, 1e4, 6e4, 1e6, 1e10, 1e30)],
        lambda a: _gamma(a)),
    "loggamma": (
        [(a,) for a in (1e-30, 1e-4, 0.01, 0.5, 1.0, 100.0, 1e4, 6e4, 1e6, 1e30)], _log_gamma),
    "beta": (
        [(a, b) for a in (1e-4, 0.5, 1.0, 1e4) for b in (1e-4, 0.5, 30.0, 1e4)]
        + [(1e-30, 1e-30), (1e6, 1e6), (1e10, 1e10), (1e-4, 1e6), (6e4, 6e4)],
        lambda a, b: _beta(a, b)),
    "chisquare": (
        [(d,) for d in (1e-3, 0.1, 1.0, 3.0, 1e3, 6e4, 1e6, 1e10)], lambda d: _halved_gamma(d)),
    "f": (
        [(a, b) for a in (0.01, 1.0, 100.0, 6e4) for b in (0.01, 1.0, 100.0, 6e4)]
        + [(1e8, 1e8)], lambda a, b: _f(a, b)),
    "t": ([(d,) for d in (0.01, 0.1, 1.0, 3.0, 1e3, 6e4, 1e10, 1e30, math.inf)],
          lambda d: _t(d)),
    # of vectors, one number of each
    "dirichlet": (
        [(a, b, c) for a in (1e-4, 0.5, 1e4) for b in (0.5, 100.0) for c in (1e-4, 1.0)]
        + [(6e4, 6e4, 6e4), (1e6, 1e6, 1e6), (1e-30, 1e-30, 1e-30)],
        lambda a, b, c: _beta(a, b + c)),
    "ball": (
        [(p,) for p in (0.5, 1.0, 2.0, 8.0, 100.0, 1e4)],
        lambda p: lambda r: np.clip(r, 0, 1) ** 3),
    "generalized_normal": (
        [(p,) for p in (0.1, 0.5, 1.0, 2.0, 8.0, 100.0, 6e4, math.inf)],
        _generalized_normal),
}  # fmt: skip


def _gamma(a: float) -> Callable[[Any], Any]:
    if a > 1e12:  # normal, to more digits than a sample has
        return lambda x: special.ndtr((x - a) / math.sqrt(a))
    return lambda x: special.gammainc(a, np.maximum(x, 0))


def _halved_gamma(df: float) -> Callable[[Any], Any]:
    return lambda x: _gamma(df / 2)(x / 2)


def _beta(a: float, b: float) -> Callable[[Any], Any]:
    if a < 1e-20:  # two points
        return lambda x: np.where(x >= 1, 1.0, b / (a + b))
    return lambda x: special.betainc(a, b, np.clip(x, 0, 1))


def _f(a: float, b: float) -> Callable[[Any], Any]:
    first = math.log(b / 2) + special.betaln(a / 2, b / 2)

    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            log = np.log(np.maximum(x, 0)) + math.log(a / b)
            ratio = np.exp(np.minimum(log, 600))
            small = special.betainc(a / 2, b / 2, ratio / (1 + ratio))
            # from the other end, where the share is 1 to all digits; far out by its first term
            large = 1 - special.betainc(b / 2, a / 2, 1 / (1 + ratio))
            far = 1 - np.exp(-b / 2 * log - first)
        return np.where(log > 30, far, np.where(log > 0, large, small))

    return function


def _t(df: float) -> Callable[[Any], Any]:
    if df > 1e9:
        return special.ndtr  # type: ignore[no-any-return]
    first = math.log(df / 2) + special.betaln(df / 2, 0.5)

    def function(x: Any) -> Any:
        with np.errstate(all="ignore"):
            log = math.log(df) - 2 * np.log(np.abs(x))
            square = np.minimum(np.abs(x), 1e150) ** 2
            tail = special.betainc(df / 2, 0.5, df / (df + square)) / 2
            tail = np.where(log < -30, np.exp(df / 2 * log - first) / 2, tail)
        return np.where(x < 0, tail, 1 - tail)

    return function


def _binomial(n: float, p: float) -> Callable[[Any], Any]:
    return lambda k: stats.binom.cdf(k, n, p)


def _poisson(lam: float) -> Callable[[Any], Any]:
    return lambda k: special.gammaincc(np.floor(np.maximum(k, 0)) + 1, lam) if lam else (
        np.ones_like(k))  # fmt: skip


def _geometric(p: float) -> Callable[[Any], Any]:
    with np.errstate(all="ignore"):
        log_tail = np.log1p(-p)
    return lambda k: -np.expm1(np.floor(np.maximum(k, 0)) * log_tail)


def _bernoulli(p: float) -> Callable[[Any], Any]:
    return lambda k: np.where(k >= 1, 1.0, 1 - p)


DISCRETE: dict[str, tuple[list[tuple[float, ...]], Distribution]] = {
    "poisson": (
        [(m,) for m in (0.0, 1e-30, 1e-4, 0.5, 9.99, 10.0, 100.0, 1e4, 1e6, 3e7, 1e8, 1e9)],
        _poisson),
    "binomial": (
        [(n, p) for n in (0.0, 1.0, 10.0, 1000.0, 6e4, 1e6, 1e8)
         for p in (0.0, 1e-4, 0.5, 0.75, 0.9995, 1.0)]
        + [(1e8, 1e-7), (1e6, 1e-6), (1e30, 1e-30), (1e10, 1e-9), (1e6, 2e-5)], _binomial),
    "geometric": ([(p,) for p in (1e-8, 1e-4, 0.01, 0.5, 0.9990234375, 1.0)], _geometric),
    "multinomial": (
        [(n, p) for n in (0.0, 1.0, 1000.0, 6e4, 1e6) for p in (0.0, 1e-4, 0.5, 0.75, 1.0)],
        _binomial),
    "categorical": (
        [(x,) for x in (-1e4, -10.0, -2.0, 0.0, 2.0, 100.0, math.inf, -math.inf)],
        lambda x: _bernoulli(special.expit(x))),
    "choice": ([(p,) for p in (0.0, 1e-4, 0.25, 0.5, 0.9990234375, 1.0)], _bernoulli),
    "bernoulli": ([(p,) for p in (0.0, 1e-4, 0.25, 0.5, 0.9990234375, 1.0)], _bernoulli),
}  # fmt: skip


def _odd_binomial(n: float, p: float) -> float:
    power = math.exp(n * math.log1p(-2 * p)) if p < 0.25 else (1 - 2 * p) ** n
    return (1 - power) / 2


# The probability of an odd count. It shows whether every integer is drawn.
ODD: dict[str, Callable[..., float]] = {
    "poisson": lambda m: -math.expm1(-2 * m) / 2, "binomial": _odd_binomial,
    "multinomial": _odd_binomial, "geometric": lambda p: 1 / (2 - p),
}  # fmt: skip


LOOPS = (
    "poisson", "binomial", "gamma", "loggamma", "beta", "chisquare", "f", "t", "generalized_normal"
)  # fmt: skip
# A round of rejection accepts 0.7 of the samples at least, and one of waiting times counts one of
# 10 and their tail: 2,000 samples take 28 rounds at most.
ROUNDS = 40


def cells() -> list[Cell]:
    """Return the cells of the net: those whose parameters a dtype has."""
    found = []
    for table, is_discrete in ((CONTINUOUS, False), (DISCRETE, True)):
        for name, (rows, function) in table.items():
            for dtype in FLOATS:
                for row in dict.fromkeys(rows):
                    args = tuple([rounded(x, dtype) for x in row])
                    if any(map(math.isnan, args)) or (name == "uniform" and args[0] >= args[1]):
                        continue
                    found.append(Cell(name, dtype, args, function(*args), (), is_discrete))
    return found
