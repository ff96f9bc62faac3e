"""Measure the special functions beside mpmath, and write the page of their accuracy.

    python -m tests.nets.accuracy [COUNT]     numbers of each kind for each operand; 30 by default

The rows, their references in 40 digits and the bounds are those of the net in `test_scipy_special`;
three more have references in `special_references`.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import xad
import xnp
from tests.nets import special_references, test_scipy_special as net
from xprim import config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accuracy.md"

HEAD = """# How exact the special functions are

The greatest errors that a run found beside [mpmath](https://mpmath.org) in 40 digits, at numbers of
each function's whole domain, ordinary and hard ones: in float32 in units of the last place, in
float64 relative to the result, uncompiled and compiled. The columns of slopes are the relative
errors of first derivatives, forward, of the worst operand; near a zero of the slope they are larger
than elsewhere. Those of `fresnel` turn with the square of the operand, of which float32 has no
digit left behind the point at 10,000; those of `beta` are differences of digammas. The tests
hold the bounds, at other numbers: 4 units and 1e-13, or what the row says with its reason.

"""

_gamma = [net.spread(-1, 2), net.spread(-1, 2)]
MORE: dict[str, tuple[Callable[..., Any], list[Callable[[int], np.ndarray]]]] = {
    "gammainc": (special_references.IN_DIGITS["igamma"], _gamma),
    "gammaincc": (special_references.IN_DIGITS["igammac"], _gamma),
    "betainc": (special_references.betainc,
                [net.spread(-1, 2), net.spread(-1, 2), net.within(0.01, 0.99)]),
}  # fmt: skip
BOUND_OF_MORE = 6, 2e-14, "and 5e-16 for each e-fold of an exponential far below 1"


def errors(row: str, dtype: str, count: int) -> list[float]:
    """Return the greatest errors of a function, uncompiled and compiled."""
    columns = net.operands_of(row, dtype, count)
    expected = net.in_digits(row, columns)
    normal, unit = net.units_of(expected, dtype)
    return [float((np.abs(net.run(row, columns, dtype, compiled) - expected) / unit)[normal].max())
            for compiled in (False, True)]  # fmt: skip


def slope_error(row: str, dtype: str, count: int) -> float | None:
    """Return the greatest relative error of first derivatives, None where there are none."""
    worst = None
    for position in [i for name, i in net.SLOPES if name == row]:
        columns = net.operands_of(row, dtype, count)
        expected = net.slopes_in_digits(row, position, columns)
        with config.enable_x64(dtype == "float64"):
            x = [xnp.asarray(c.astype(dtype)) for c in columns]
            function = _of_one(net.function_of(row), x, position)
            tangent = xnp.ones_like(x[position])
            found = np.asarray(xad.jvp(function, [x[position]], [tangent])[1]).astype(float)
        info = np.finfo(dtype)
        usual = (np.abs(expected) < info.max) & (np.abs(expected) > info.tiny)
        relative = np.abs(found - expected)[usual] / np.abs(expected)[usual]
        worst = max(worst or 0.0, float(relative.max(initial=0.0)))
    return worst


def _of_one(function: Callable[..., Any], x: list[Any], position: int) -> Callable[[Any], Any]:
    return lambda v: function(*x[:position], v, *x[position + 1 :])


def line(row: str, count: int) -> str:
    """Return the line of a function."""
    units, relative = [errors(row, dtype, count) for dtype in ("float32", "float64")]
    slopes = [] if row in MORE else [slope_error(row, d, count) for d in ("float32", "float64")]
    less = BOUND_OF_MORE if row in MORE else net.LESS.get(row)
    cells = [f"{e:.1f}" for e in units] + [f"{e:.0e}" for e in relative]
    cells += ["" if e is None else f"{e:.0e}" for e in slopes or (None, None)]
    bound = "" if less is None else f"{less[0]:g} units, {less[1]:.0e}: {less[2]}"
    return f"| `{row.partition(' ')[0]}`{_part(row)} | {' | '.join(cells)} | {bound} |"


def _part(row: str) -> str:
    part = row.partition(" ")[2]
    return f" ({part})" if part else ""


def page(count: int) -> str:
    """Return the page of a run."""
    net.ROWS.update(MORE)
    rows = sorted(net.ROWS)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "jaxlib")]
    lines = [
        "| function | float32 | compiled | float64 | compiled | slope, float32 | float64 | bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows:
            lines.append(line(row, count))
            print(lines[-1], file=sys.stderr, flush=True)
    run = (
        f"{datetime.date.today().isoformat()}, {', '.join(versions)}, {count} numbers of each kind"
    )
    return f"{HEAD}{run}; written by `python -m tests.nets.accuracy`.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
