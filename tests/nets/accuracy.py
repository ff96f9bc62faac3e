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
import xjit
import xnp
from tests.nets import special_references, test_scipy_special as net
from xprim import config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accuracy.md"

HEAD = """# How exact the special functions are

The greatest errors that a run found beside [mpmath](https://mpmath.org) in 40 digits, at numbers of
each function's whole domain, ordinary and hard ones: in float32 in units of the last place, in
float64 relative to the result, uncompiled and compiled. The columns of derivatives are the
relative errors of first derivatives, forward, of the worst operand; near a zero of the
derivative they are larger than elsewhere. Those of `fresnel` turn with the square of the
operand, of which float32 has no digit left behind the point at 10,000; those of `beta` are
differences of digammas. The tests hold the bounds, at other numbers: 4 units and 1e-13, or what
the row says with its reason.

"""

_gamma = [net.spread(-1, 2), net.spread(-1, 2)]
MORE: dict[str, tuple[Callable[..., Any], list[Callable[[int], np.ndarray]]]] = {
    "gammainc": (special_references.IN_DIGITS["igamma"], _gamma),
    "gammaincc": (special_references.IN_DIGITS["igammac"], _gamma),
    "betainc": (special_references.betainc,
                [net.spread(-1, 2), net.spread(-1, 2), net.within(0.01, 0.99)]),
}  # fmt: skip
BOUND_OF_MORE = 6, 2e-14, "and 5e-16 for each e-fold of an exponential far below 1"


ELEMENTARY_HEAD = """
## Elementary functions

In units of the last place, of arrays of 131,072 numbers: on a CPU compiled programs have vector
code of their own for most of these functions from 1,024 elements on. `sin`, `cos` and `tan` of
float32 are within 1, 1 and 1.6 units where 65,536 numbers or more are all between -800 and 800.

| function | numbers | float32 | compiled | float64 | compiled |
|---|---|---|---|---|---|
"""
_mp = net.mp
_COUNT = 1 << 17
_OF_REALS = net.mixed(net.within(-30, 30), net.spread(-6, 4))
_OF_UNIT = net.mixed(net.within(-1, 1), net.spread(-6, -1))
_SIZES = net.mixed(net.spread(-30, 30), net.within(0.5, 2))
_EXPONENTS = net.mixed(net.within(-80, 80), net.spread(-6, 0))
# Numbers as the page names them, and how they are drawn.
_KINDS: dict[str, list[Callable[[int], np.ndarray]]] = {
    "of both signs to 10,000": [_OF_REALS],
    "-1 to 1": [_OF_UNIT],
    "pairs of both signs": [_OF_REALS, net.within(-30, 30)],
    "above 0, of all sizes": [_SIZES],
    "1 to 10,000": [net.mixed(net.within(1, 3), net.spread(0, 4))],
    "-80 to 80": [_EXPONENTS],
    "0.01 to 100, to the power -9 to 9": [net.spread(-2, 2), net.within(-9, 9)],
}
ELEMENTARY: dict[str, tuple[Callable[..., Any], str]] = {
    "sin": (_mp.sin, "of both signs to 10,000"),
    "cos": (_mp.cos, "of both signs to 10,000"),
    "tan": (_mp.tan, "of both signs to 10,000"),
    "arcsin": (_mp.asin, "-1 to 1"),
    "arccos": (_mp.acos, "-1 to 1"),
    "arctan": (_mp.atan, "of both signs to 10,000"),
    "arctan2": (_mp.atan2, "pairs of both signs"),
    "cbrt": (lambda x: _mp.sign(x) * _mp.cbrt(abs(x)), "of both signs to 10,000"),
    "exp": (_mp.exp, "-80 to 80"),
    "exp2": (lambda x: _mp.power(2, x), "-80 to 80"),
    "expm1": (_mp.expm1, "-80 to 80"),
    "log": (_mp.log, "above 0, of all sizes"),
    "log1p": (_mp.log1p, "above 0, of all sizes"),
    "log2": (lambda x: _mp.log(x) / _mp.log(2), "above 0, of all sizes"),
    "sinh": (_mp.sinh, "-80 to 80"),
    "cosh": (_mp.cosh, "-80 to 80"),
    "tanh": (_mp.tanh, "-80 to 80"),
    "arcsinh": (_mp.asinh, "of both signs to 10,000"),
    "arccosh": (_mp.acosh, "1 to 10,000"),
    "arctanh": (_mp.atanh, "-1 to 1"),
    "power": (_mp.power, "0.01 to 100, to the power -9 to 9"),
}


def elementary_line(name: str) -> str:
    """Return the line of an elementary function."""
    worst = [f"{e:.2f}" for dtype in ("float32", "float64") for e in elementary_errors(name, dtype)]
    return f"| `{name}` | {ELEMENTARY[name][1]} | {' | '.join(worst)} |"


def elementary_errors(name: str, dtype: str) -> list[float]:
    """Return the greatest errors in units of the last place, uncompiled and compiled."""
    reference, kind = ELEMENTARY[name]
    columns = [np.resize(draw(_COUNT), _COUNT).astype(dtype) for draw in _KINDS[kind]]
    with _mp.workdps(40):
        exact = [reference(*[_mp.mpf(float(v)) for v in point])
                 for point in zip(*columns, strict=True)]  # fmt: skip
    rounded = np.array([float(v) for v in exact]).astype(dtype)
    info = np.finfo(dtype)
    usual = (np.abs(rounded) > info.tiny) & (np.abs(rounded) < info.max)
    rest = np.array([float(v - _mp.mpf(float(r))) for v, r in zip(exact, rounded, strict=True)])
    with config.enable_x64(dtype == "float64"):
        function, arrays = getattr(xnp, name), [xnp.asarray(c) for c in columns]
        found = [np.asarray(run(*arrays)) for run in (function, xjit.jit(function))]
    # of both the numbers nearest to the exact ones are subtracted
    unit = np.spacing(np.abs(rounded))
    return [float((np.abs(f - rounded - rest) / unit)[usual].max()) for f in found]


def errors(row: str, dtype: str, count: int) -> list[float]:
    """Return the greatest errors of a function, uncompiled and compiled."""
    columns = net.operands_of(row, dtype, count)
    expected = net.in_digits(row, columns)
    normal, unit = net.units_of(expected, dtype)
    return [float((np.abs(net.run(row, columns, dtype, compiled) - expected) / unit)[normal].max())
            for compiled in (False, True)]  # fmt: skip


def derivative_error(row: str, dtype: str, count: int) -> float | None:
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
    derivatives = (
        [] if row in MORE else [derivative_error(row, d, count) for d in ("float32", "float64")]
    )
    less = BOUND_OF_MORE if row in MORE else net.LESS.get(row)
    cells = [f"{e:.1f}" for e in units] + [f"{e:.0e}" for e in relative]
    cells += ["" if e is None else f"{e:.0e}" for e in derivatives or (None, None)]
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
        "| function | float32 | compiled | float64 | compiled "
        "| derivative, float32 | float64 | bound |",
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
    elementary = "\n".join(map(elementary_line, ELEMENTARY))
    table = "\n".join(lines)
    written = f"{run}; written by `python -m tests.nets.accuracy`."
    return f"{HEAD}{written}\n\n{table}\n{ELEMENTARY_HEAD}{elementary}\n"


if __name__ == "__main__":
    PAGE.write_text(page(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
