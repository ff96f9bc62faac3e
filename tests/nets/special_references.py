"""References of special functions, in many digits by mpmath, and with SciPy's limits.

Incomplete functions are integrals of exp(f(s)) from 0 to where f falls below -100, with f the
logarithm of the density by that at the operand; mpmath does them in as many digits as cancel.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mp
from scipy import special

Number = Any


def _reach(f: Callable[[Number], Number], sign: int) -> Number:
    """Return where a concave function that falls on this side is -100."""
    inner, outer = mp.mpf(0), mp.mpf(sign)
    while f(outer) > -100:
        inner, outer = outer, 4 * outer
    while f(outer) < -130:
        middle = (inner + outer) / 2
        inner, outer = (middle, outer) if f(middle) > -100 else (inner, middle)
    return outer


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _integral(f: Callable[[Number], Number], sign: int, factor: Any = None) -> Number:
    """Return the integral of exp(f(s)), times a factor of one sign, from 0 outwards.

    Stretches are halved until the halves have the sum of the whole.
    """

    def part(start: Number, stop: Number) -> Number:
        middle, half, total = (start + stop) / 2, (stop - start) / 2, mp.mpf(0)
        for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
            s = middle + half * node
            total += weight * mp.exp(f(s)) * (factor(s) if factor else 1)
        return total * abs(half)

    end, total = _reach(f, sign), mp.mpf(0)
    edges = [end]  # densities bend within 1 of 0, where a long stretch has no point
    while abs(edges[0]) > 1:
        edges.insert(0, edges[0] / 4)
    waiting = [(a, b, part(a, b)) for a, b in itertools.pairwise([mp.mpf(0), *edges])]
    while waiting:
        start, stop, whole = waiting.pop()
        middle = (start + stop) / 2
        halves = [(start, middle, part(start, middle)), (middle, stop, part(middle, stop))]
        sum_of_halves = halves[0][2] + halves[1][2]
        if abs(sum_of_halves - whole) <= 1e-15 * abs(total + sum_of_halves):
            total += sum_of_halves
        else:
            waiting += reversed(halves)
    return total


class Gamma:
    """P, Q, their slopes and the density of the gamma distribution, for positive operands."""

    def __init__(self, a: float, x: float) -> None:
        self.a, self.x = mp.mpf(a), mp.mpf(x)
        # on the side where log t - digamma(a) has one sign
        self.upper = mp.log(self.x) > mp.digamma(self.a)
        self.sign = 1 if self.upper else -1

    def _f(self, s: Number) -> Number:
        return self.a * s - self.x * mp.expm1(s)

    def density(self) -> Number:
        """Return dP/dx."""
        return mp.exp(self.a * mp.log(self.x) - self.x - mp.loggamma(self.a)) / self.x

    def _part(self) -> Number:
        return _integral(self._f, self.sign) * self.density() * self.x

    def p(self) -> Number:
        """Return P(a, x)."""
        return 1 - self._part() if self.upper else self._part()

    def q(self) -> Number:
        """Return Q(a, x)."""
        return self._part() if self.upper else 1 - self._part()

    def quantile_slope(self) -> Number:
        """Return dx/da where P is held."""
        log = mp.log(self.x) - mp.digamma(self.a)
        return self.x * _integral(self._f, self.sign, lambda s: log + s) * self.sign

    def mixed(self) -> Number:
        """Return d2P/(da dx)."""
        return self.density() * (mp.log(self.x) - mp.digamma(self.a))

    def slope(self) -> Number:
        """Return dP/da."""
        return -self.quantile_slope() * self.density()


def betainc(a: float, b: float, x: float) -> Number:
    """Return I_x(a, b) for positive a and b, 0 < x < 1."""
    a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(x)
    y = 1 - x
    sign = 1 if x * (a + b) > a else -1

    def f(s: Number) -> Number:  # of the logit of x, plus s
        odds = mp.exp(s) * x + y
        return a * (s - mp.log(odds)) - b * mp.log(odds)

    density = mp.exp(a * mp.log(x) + b * mp.log(y) - _log_beta(a, b))
    part = _integral(f, sign) * density
    if part > 0.5:  # its complement is an integral too
        sign, part = -sign, _integral(f, -sign) * density
    return 1 - part if sign > 0 else part


def _log_beta(a: Number, b: Number) -> Number:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def beta_density(a: float, b: float, x: float) -> Number:
    """Return dI/dx."""
    a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(x)
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log(1 - x) - _log_beta(a, b))


def _zeta_in_digits(s: float, q: float) -> Number:
    """Return zeta(s, q), which mpmath gives to so many digits behind the point, not in all."""
    with mp.workdps(40 + int(s * max(math.log10(q), 0.0))):
        return mp.zeta(s, q)


IN_DIGITS: dict[str, Callable[..., Number]] = {
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "digamma": mp.digamma,
    "polygamma": lambda n, x: mp.polygamma(int(n), x),
    "zeta": lambda s, q: _zeta_in_digits(s, q),
    "igamma": lambda a, x: Gamma(a, x).p(),
    "igammac": lambda a, x: Gamma(a, x).q(),
    "igamma_grad_a": lambda a, x: Gamma(a, x).slope(),
    "random_gamma_grad": lambda a, x: Gamma(a, x).quantile_slope(),
    "betainc": betainc,
}


def in_digits(name: str, *columns: np.ndarray) -> np.ndarray:
    """Return a function of float64 columns, right to the last digit."""
    with mp.workdps(40):
        rows = zip(*[c.tolist() for c in columns], strict=True)
        return np.array([float(IN_DIGITS[name](*row)) for row in rows])


# --- at special values --------------------------------------------------------------------------


def _zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return SciPy's function, but NaN for NaN, and what infinite s gives."""
    value = special.zeta(s, q)
    far = np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf))
    value = np.where((s > 1e30) & (q > 0), far, value)
    value = np.where((s == np.inf) & (q < 0) & (q != np.floor(q)), np.nan, value)
    return np.where(np.isnan(s) | np.isnan(q), np.nan, value)


def _polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return SciPy's function, but NaN for an order that is not a whole number from 0 on."""
    whole = (n >= 0) & (n == np.floor(n)) & (n < np.inf)
    sign = np.where(n == 2 * np.floor(n / 2), -1.0, 1.0)
    order = np.where(whole & (n < 100), n, 1.0)
    value = sign * special.gamma(order + 1) * _zeta(order + 1, x)
    # n! zeta(n + 1, x) is n! x^-(n + 1) for large n
    exponent = special.gammaln(n + 1) - (n + 1) * np.log(np.abs(x))
    value = np.where((n >= 100) & ~np.isnan(x), sign * np.where(exponent > 0, np.inf, 0.0), value)
    return np.where(whole, np.where(n == 0, special.digamma(x), value), np.nan)


def _gamma_limit(of_quantile: bool) -> Callable[[float, float], float]:
    """Return dP/da, or dx/da, with the limits at the ends of the domain."""

    @functools.cache
    def limit(a: float, x: float) -> float:
        if not (a >= 0 and x >= 0) or (a == 0 and x == 0) or (a == x == math.inf):
            return math.nan
        if x == 0 or a == math.inf:
            return 0.0
        if x == math.inf:
            return math.inf if of_quantile else 0.0
        if a == 0:
            return math.inf if of_quantile else -float(mpmath.e1(x))
        with mp.workdps(90):
            gamma = Gamma(a, x)
            return float(gamma.quantile_slope() if of_quantile else gamma.slope())

    return limit


def _each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    return lambda *columns: np.array(
        [function(*row) for row in zip(*[c.tolist() for c in columns], strict=True)]
    )


LIMITS: dict[str, Callable[..., np.ndarray]] = {
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "polygamma": _polygamma,
    "zeta": _zeta,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "igamma_grad_a": _each(_gamma_limit(of_quantile=False)),
    "random_gamma_grad": _each(_gamma_limit(of_quantile=True)),
    "betainc": special.betainc,
}
