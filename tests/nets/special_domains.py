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
    "betainc": [[0.0, 1e-5, 0.3, 1.0, 2.5, 40.0, 1e4], [0.0, 1e-5, 0.3, 1.0, 2.5, 40.0, 1e4],
                [0.0, 1e-10, 0.1, 0.5, 0.9, 1.0, _NAN]],
    "gammainc": [[0.0, 1e-5, 0.3, 1.0, 2.5, 40.0, 1e4, _INF, _NAN],
                 [-1.0, 0.0, 1e-10, 0.3, 1.0, 2.5, 30.0, 50.0, 1e4, _INF, _NAN]],
}  # fmt: skip
GRIDS["gammaincc"] = GRIDS["gammainc"]


def grid(row: str, count: int) -> list[np.ndarray]:
    """Return all points of a row, a column for each operand."""
    axes = GRIDS.get(row, [LINE if count == 1 else SHORT] * count)
    assert len(axes) == count
    return list(np.array(list(itertools.product(*axes))).T)


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
