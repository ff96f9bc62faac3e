"""Grids over the whole domains of special functions, and what stands at each of their points.

A row names a grid for each operand: numbers of both signs and all sizes, the poles, the ends of
branch cuts, the infinities and NaN. The value is that of mpmath where it is a finite real number;
elsewhere, at poles, at infinite operands and where the function is complex, that of SciPy, but for
the places that `UNLIKE_SCIPY` names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

mp = pytest.importorskip("mpmath").mp
scipy_special = pytest.importorskip("scipy.special")

_INF, _NAN = np.inf, np.nan
LINE = [-_INF, -1e10, -170.5, -40.0, -7.5, -3.0, -2.5, -2.0, -1.25, -1.0, -0.5, -1e-10, -0.0, 0.0,
        1e-10, 1e-3, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.3, 10.0, 35.0, 700.0, 1e5, 1e10, _INF,
        _NAN]  # fmt: skip
SHORT = [-_INF, -30.0, -3.0, -2.5, -1.0, -0.3, 0.0, 0.3, 0.5, 1.0, 2.0, 3.3, 12.0, 1e5, _INF, _NAN]
WHOLE = [0.0, 1.0, 2.0, 3.0, 5.0, 12.0]
UNIT = [-_INF, -1.0, -1e-10, 0.0, 1e-30, 1e-10, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0, 1.0001, 1.5, 2.0,
        3.0, _INF, _NAN]  # fmt: skip
PARAMETERS = [-3.0, -2.5, -1.0, -0.3, 0.0, 0.45, 0.7, 1.0, 2.0, 3.5, 7.0]
LOWER = [-3.0, -2.0, -0.5, 0.0, 0.45, 1.0, 2.5, 6.0]
GAUSS = [-_INF, -1e6, -40.0, -3.0, -1.0, -0.5, -1e-3, 0.0, 0.3, 0.8, 0.95, 0.9999, 1.0, 1.5, 3.0,
         _INF, _NAN]  # fmt: skip
KUMMER = [-_INF, -1e4, -650.0, -40.0, -3.0, -0.5, -1e-5, 0.0, 0.3, 2.0, 30.0, 650.0, _NAN]

# The grids of all operands; a row that is not named has `LINE`, of two operands `SHORT`.
GRIDS: dict[str, list[list[float]]] = {
    "comb": [[-2.0, 0.0, 1.0, 5.0, 12.0, 30.0], [-1.0, 0.0, 1.0, 3.0, 6.0, 12.0, 30.0]],
    "expn": [WHOLE, LINE], "polygamma": [WHOLE, LINE], "erfinv": [UNIT], "erfcinv": [UNIT],
    "logit": [UNIT], "ndtri": [UNIT],
    "zeta": [[-2.0, 0.5, 1.0, 1.1, 2.0, 3.0, 4.5, 20.0, 200.0, _INF, _NAN], LINE],
    "hyp1f1": [PARAMETERS, LOWER, KUMMER],
    "hyp2f1": [[-3.0, -0.3, 0.0, 0.45, 2.0, 7.0], [-2.5, -1.0, 0.7, 1.0, 3.5], LOWER, GAUSS],
}  # fmt: skip


def grid(row: str, count: int) -> list[np.ndarray]:
    """Return all points of a row, a column for each operand."""
    axes = GRIDS.get(row, [LINE if count == 1 else SHORT] * count)
    assert len(axes) == count
    return list(np.array(list(itertools.product(*axes))).T)


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Return hyp2f1, of a series that ends by its terms."""
    degrees = [-int(v) for v in (a, b) if v <= 0 and v == int(v)]
    if not degrees:
        return mp.hyp2f1(a, b, c, x)
    if c <= 0 and c == int(c) and -c < min(degrees) and x:
        raise ValueError("a pole")
    term = total = mp.mpf(1)
    for k in range(min(degrees) if x else 0):
        term = term * (a + k) * (b + k) / (c + k) * x / (k + 1)
        total += term
    return total


def _owens_t(h: Any, a: Any) -> Any:
    h, width = abs(h), abs(a)
    if h == 0 or width == 0:
        return mp.atan(a) / (2 * mp.pi)
    stops = sorted({min(width, s) for s in (mp.mpf(0), 0.1 / h, 1 / h, 8 / h, mp.mpf(1), width)})
    integral = mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), stops)
    return mp.sign(a) * integral / (2 * mp.pi)


def _polygamma(n: Any, x: Any) -> Any:
    """Return polygamma, far to the left by reflection: mpmath takes a term for each unit."""
    if x > -50:
        return mp.polygamma(n, x)
    if x == mp.floor(x):
        raise ValueError("a pole")
    cotangent = [0, 1]  # the n-th derivative of cot as a polynomial of it; cot' = -1 - cot^2
    for _ in range(int(n)):
        derived = [k * c for k, c in enumerate(cotangent)][1:]
        cotangent = [-(a + b) for a, b in zip([*derived, 0, 0], [0, 0, *derived], strict=True)]
    at = mp.polyval(cotangent[::-1], mp.cot(mp.pi * x))
    return (-1) ** int(n) * mp.polygamma(n, 1 - x) - mp.pi ** (n + 1) * at


# References of the whole domain, where that of `ROWS` is one of a part.
REFERENCES: dict[str, Callable[..., Any]] = {
    "hyp2f1": _gauss, "owens_t": _owens_t, "polygamma": _polygamma,
}  # fmt: skip


def _is_pole(b: Any) -> Any:
    return (b <= 0) & (np.floor(b) == b)


# Where mpmath continues what has another value in SciPy, or none.
BY_SCIPY: dict[str, Callable[..., Any]] = {
    "kl_div": lambda p, q: (p < 0) | (q < 0), "rel_entr": lambda p, q: (p < 0) | (q < 0),
    "factorial": lambda n: n < 0, "comb": lambda n, k: n < 0, "expn": lambda n, x: x < 0,
    "spence": lambda x: x <= 0,  # at 0 its slope is infinite, and that of differences is not
    "zeta": lambda s, q: (s < 1) | (q < 0),
    "hyp1f1": lambda a, b, x: _is_pole(b) & ~(_is_pole(a) & (a >= b)) & (x != 0),
}  # fmt: skip

# Where SciPy has no limit, or not that of the formula; a NaN of its own at infinite operands, too.
UNLIKE_SCIPY: dict[str, Callable[..., Any]] = {
    "beta": lambda a, b: np.isneginf(np.minimum(a, b))
    | (_is_pole(np.minimum(a, b)) & np.isinf(a + b)),
    "betaln": lambda a, b: np.isneginf(np.minimum(a, b)),
    "poch": lambda z, n: (np.isinf(z) | np.isinf(n)) & (z <= 0),  # it has no limit
    "hyp2f1": lambda a, b, c, x: np.isinf(x) & (_is_pole(a) | _is_pole(b)),  # of the wrong sign
    "hyp1f1": lambda a, b, x: (x == 0) & _is_pole(b),  # the limit of the series is 1
    "zeta": lambda s, q: np.isinf(s) & (q < 0),
    # the angle of the far waves has no digits left
    "fresnel sine": lambda x: np.abs(x) > 1e8, "fresnel cosine": lambda x: np.abs(x) > 1e8,
}  # fmt: skip


def expected(row: str, reference: Callable[..., Any], columns: list[np.ndarray]) -> np.ndarray:
    """Return what stands at the points of a row; a point with no value to be held to is inf - inf.

    Args:
      row: whose convention.
      reference: a function of mpmath.
      columns: the operands.
    """
    reference = REFERENCES.get(row, reference)
    points = np.array(columns).T
    by_scipy = np.broadcast_to(BY_SCIPY.get(row, lambda *_: np.zeros(1, bool))(*columns),
                               len(points))  # fmt: skip
    found = np.full(len(points), _NAN)
    found[~by_scipy] = [in_digits(reference, p) for p in points[~by_scipy]]
    name, _, part = row.partition(" ")
    theirs = getattr(scipy_special, name)(*columns)
    theirs = theirs[part == "cosine"] if part else theirs
    found = np.where(np.isfinite(found), found, theirs)
    return np.where(np.isnan(np.sum(columns, 0)) & np.isnan(columns).any(0), _NAN, found)


def is_held(row: str, columns: list[np.ndarray], values: np.ndarray) -> np.ndarray:
    """Return at which points a row must have the values."""
    better = UNLIKE_SCIPY.get(row, lambda *_: np.zeros(1, bool))(*columns)
    endless = np.isinf(columns).any(0) & np.isnan(values) & ~np.isnan(columns).any(0)
    return ~better & ~endless


def in_digits(reference: Callable[..., Any], values: Sequence[float]) -> float:
    """Return a finite real value that mpmath has, else NaN."""
    if not np.isfinite(values).all():
        return _NAN
    with mp.workdps(40):
        try:
            found = mp.mpmathify(reference(*map(mp.mpf, values)))
        except (ValueError, ArithmeticError, TypeError, mp.NoConvergence):
            return _NAN
        if mp.im(found) or not mp.isfinite(found):
            return _NAN
        return float(mp.re(found))
