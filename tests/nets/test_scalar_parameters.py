"""Net: numbers that a scalar parameter may be given, and those that it may not.

Each public function of arrays is called as the nets of values and of integers call it, with one
of its scalar parameters (an axis, an order, a size, a tolerance, a shape parameter, ...) replaced
by 0, -1, 1, huge numbers, infinities, NaN, fractions, booleans, NumPy's scalars, and arrays of rank
0. It returns, within seconds, or raises an error that begins with the name of a function; what
NumPy or SciPy return for the same call, it returns.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import signal
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pytest

import xstack
from tests.nets.cells import IN_FULL, drawn
from tests.nets.test_arguments_that_are_integers import call_row, row_that_calls
from tests.public_names import functions_of, kept

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

VALUES: dict[str, Callable[[], Any]] = {
    **{str(x): lambda x=x: x for x in (0, -1, 1, 7, 10**12, -(10**12), 10**30)},
    **{str(x): lambda x=x: x for x in (np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, 1e300, True)},
    "int64(1)": lambda: np.int64(1), "float64(0.5)": lambda: np.float64(0.5),
    "array(1)": lambda: np.array(1), "Array(1)": lambda: xstack.numpy.asarray(1),
    "Array(0.5)": lambda: xstack.numpy.asarray(0.5),
}  # fmt: skip
_SCALAR = frozenset(
    "int float Axis Axes DimSize ShapeLike Shape Bins StepSize Sequence[int]".split()
)
# Parameters of such types that are not numbers of the mathematics, or that other nets have.
_OTHER_PARAMETERS = frozenset("out where dtype device out_sharding key precision".split())
_MODULES = ("numpy", "lax", "nn", "scipy", "image", "random", "ops")
_SECONDS = 20.0
_REFUSALS = (
    ArithmeticError, IndexError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip

_CASTS = "integers of NaN and infinities: NumPy's casts are not defined, ours saturate"
_OVERFLOWS = "a number beyond the range of float32 is infinite"
_NO_FREEDOM = "without degrees of freedom the result is NaN, as in JAX; NumPy divides by 0"
# Why values differ from NumPy's or SciPy's, by patterns of the texts of cells.
DELIBERATE: dict[str, str] = {
    "numpy.geomspace(*)": _CASTS, "numpy.logspace(base=*)": _CASTS,
    **dict.fromkeys(
        ("numpy.*std(ddof=*)", "numpy.*var(ddof=*)", "scipy.stats.sem(ddof=*)"), _NO_FREEDOM),
    **dict.fromkeys(
        ("numpy.select(default=1e+300)", "scipy.signal.*(fs=1e+300)", "*.trapezoid(dx=*1e+300)"),
        _OVERFLOWS),
    "numpy.diag_indices(ndim=*rray(1))": "NumPy multiplies a tuple by an array",
    "numpy.mask_indices(n=1*)": "the error may be one of the function that is given",
    "numpy.linalg.vector_norm(ord=1e+300)": _OVERFLOWS,
    "*.trapezoid(dx=*inf)": "the sum is multiplied by dx once",
    "numpy.polyfit(rcond=*)": "a cutoff of 1 or more leaves nothing, as in JAX; LAPACK ignores it",
    "numpy.unwrap(period=-1)": "no difference is within half of a negative period",
    "numpy.fromfunction(shape=*)": "the error is one of the function that is given",
    "numpy.frompyfunc(nout=*)": "the function's results are counted when it is called",
    "scipy.special.expn(n=*)": "an order is an integer of any size; NaN for others",
    "scipy.signal.istft(nperseg=*)": "the overlap of segments of one sample",
}  # fmt: skip


class Cell(NamedTuple):
    """A parameter of a function, a row that calls it, and the value that it gets."""

    path: str
    row: str
    dtype: str
    parameter: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}({self.parameter}={self.value})"


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions of arrays by path, each once."""
    return functions_of(
        holder for holder in kept()
        if holder.removeprefix("xstack.").partition(".")[0] in _MODULES
    )  # fmt: skip


def _call(cell: Cell, function: Callable[..., Any], convert: Callable[[Any], Any]) -> Any:
    """Call a function as the row of a cell does, with its parameter replaced."""

    @functools.wraps(functions()[cell.path])  # rows bind to our signature; NumPy's differ
    def converted(*args: Any, **kwargs: Any) -> Any:
        return function(*map(convert, args), **{name: convert(x) for name, x in kwargs.items()})

    replaced = {cell.parameter: VALUES[cell.value]()}
    return call_row(cell.path, cell.row, cell.dtype, replaced, converted)


def _parameters(path: str) -> Iterator[str]:
    for p in inspect.signature(functions()[path]).parameters.values():
        parts = str(p.annotation).split(" | ")
        is_number = isinstance(p.default, int | float) and not isinstance(p.default, bool)
        is_scalar = is_number or not _SCALAR.isdisjoint(parts)
        is_other = p.name in _OTHER_PARAMETERS or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if is_scalar and not is_other:
            yield p.name


@functools.cache
def _cells() -> list[Cell]:
    found = []
    for path, function in functions().items():
        parameters = [*_parameters(path)]
        row = row_that_calls(path, function) if parameters else None
        if row is not None:
            found += [Cell(path, *row, name, value) for name in parameters for value in VALUES]
    return found


class _TooLong(BaseException):
    """Raised by the alarm: nothing that is called catches it."""


def _within_seconds(call: Callable[[], Any]) -> Any:
    def stop(number: int, frame: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _arrays(results: Any) -> list[np.ndarray[Any, Any]]:
    leaves = xstack.tree.leaves(results)
    return [np.asarray(x) for x in leaves if isinstance(x, int | float) or hasattr(x, "dtype")]


def _to_numpy(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)([_to_numpy(y) for y in x])
    return np.asarray(x) if isinstance(x, xstack.Array) else x


def _expected(cell: Cell) -> list[np.ndarray[Any, Any]] | None:
    """Return what NumPy or SciPy return for a call, or None where they have none."""
    module, _, name = cell.path.rpartition(".")
    if module.partition(".")[0] not in ("numpy", "scipy"):
        return None
    try:
        theirs = getattr(importlib.import_module(module), name)
        with np.errstate(all="ignore"):
            return _arrays(_within_seconds(lambda: _call(cell, theirs, _to_numpy)))
    except (Exception, _TooLong):  # what they refuse, another net compares
        return None


def _is_close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    if found.shape != expected.shape:
        return False
    if not {found.dtype.kind, expected.dtype.kind} <= {*"biufc"}:
        return True
    # of float32 beside float64; the nets of values hold each function to its bound
    return np.allclose(found.astype(complex), expected.astype(complex), 1e-3, 1e-4, equal_nan=True)


def found_in(cell: Cell) -> str:
    """Return what is wrong with a cell, or nothing."""
    ours = functions()[cell.path]
    try:
        found = _within_seconds(lambda: _arrays(_call(cell, ours, lambda x: x)))
    except _REFUSALS as error:
        has_name = re.match(r"[\w.<>]+: ", str(error))
        return "" if has_name else f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    except _TooLong:
        return f"takes more than {_SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[:1]}"
    expected = _expected(cell)
    if expected is None or len(expected) != len(found):
        return ""
    if all(map(_is_close, found, expected)):
        return ""
    return f"{[x.ravel()[:3] for x in found]} and {[x.ravel()[:3] for x in expected]}"


def _is_deliberate(cell: Cell) -> bool:
    return any(fnmatchcase(str(cell), pattern) for pattern in DELIBERATE)


def test_the_net_of_scalar_parameters_is_wide() -> None:
    paths = {cell.path for cell in _cells()}
    print(f"{len(paths)} functions, {len(_cells())} cells")
    assert len(_cells()) >= 12_000


# A huge size is refused before memory is allocated; what is made of huge shapes is not.
def test_scalar_parameters_are_computed_with_or_refused_by_name() -> None:
    cells = [c for c in drawn(_cells(), 150) if IN_FULL or not _is_deliberate(c)]
    faults = {str(cell): found_in(cell) for cell in cells if not _is_deliberate(cell)}
    assert {cell: fault for cell, fault in faults.items() if fault} == {}
