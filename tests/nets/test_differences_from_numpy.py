"""The functions that NumPy has, too, give what NumPy's give, or their help says how they differ.

The operands are those of the net of values, in 64 bits. What differs in general stands in `GENERAL`
with the sentence of the page for those who come from NumPy; what differs in one function is a
sentence of its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xnp
import xstack
from tests.nets import value_rows, value_rows_of_modules
from tests.nets.cells import drawn
from tests.nets.value_cells import (
    Cell,
    Library,
    Point,
    called,
    cells,
    difference,
    library,
    points,
    tolerance_of,
)

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

TABLES = {
    "xnp": value_rows.XNP,
    "linalg": value_rows_of_modules.MODULES["linalg"],
    "fft": value_rows_of_modules.MODULES["fft"],
}
OURS = library(xstack, *TABLES)
OURS.spaces["xnp"] = xnp
NUMPYS = Library({"xnp": np, "linalg": np.linalg, "fft": np.fft}, lambda f: f, lambda a: a)
DTYPES = ("bool", "uint8", "int64", "float64", "complex128")
CELLS = [c for c in cells(DTYPES, TABLES) if hasattr(NUMPYS.spaces[c.space], c.name)]
PAGE = Path(__file__).parents[2] / "docs" / "explain" / "coming_from_numpy.md"

# What differs everywhere: a pattern of findings, and what the page says about it.
GENERAL = (
    (r"with Python: (kind|\S+ for )", "A Python number takes the dtype of the array beside it"),
    (r", Python: kind", "A Python number takes the dtype of the array beside it"),
    (r"an array of 0 dimensions", "An array without dimensions has no axis 0"),
)
# What cannot be compared, and why.
NOT_COMPARED = (
    (r"\.sort\(\)", "NumPy's method sorts in place and returns nothing"),
    (r"interp\(v, v, w\)", "the points do not ascend: undefined"),
    (r"fft\.i?[hr]fft\(v, \d\).*empty", "NumPy reads memory that it has not written"),
    (r"ix_\(v\).*empty", "the dtype of no positions"),
)
# Sentences of docstrings that say nothing about one function.
_COMMON = re.compile(
    r"where NumPy may widen it|where NumPy has (float|complex)\w+|NumPy's takes .{1,40} as well"
)


def says_how_it_differs(function: Any) -> bool:
    doc = " ".join((inspect.getdoc(function) or "").split())
    return "NumPy" in _COMMON.sub("", doc)


def unlike(point: Point) -> str:
    """Return how a function differs from NumPy's at a point; empty where it does not."""
    ours, theirs = (_result(library, point) for library in (OURS, NUMPYS))
    if isinstance(theirs, TypeError | AttributeError):
        return ""  # it takes less: other arguments, or other dtypes
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        both = isinstance(ours, Exception) and isinstance(theirs, Exception)
        return "" if both else f"{_shown(ours)} for {_shown(theirs)}"
    kinds = [[np.asarray(x).dtype.kind for x in leaves] for leaves in (ours, theirs)]
    if kinds[0] != kinds[1]:
        return f"kind {kinds[0]} for {kinds[1]}"
    # NumPy computes small integers in 16 bits: the wider of what both are rounded to.
    tolerances = [tolerance_of(str(x.dtype)) for x in map(np.asarray, (*ours, *theirs))
                  if x.dtype.kind in "fc"]  # fmt: skip
    return difference(ours, theirs, max(tolerances, default=0.0), types=False)


def _result(library: Library, point: Point) -> Any:
    try:
        return called(library, point)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        return error  # `LinAlgError` is a `ValueError`


def _shown(result: Any) -> str:
    return f"{type(result).__name__} {result}" if isinstance(result, Exception) else "a result"


def findings(some: list[Cell]) -> Iterator[str]:
    """Yield the points at which functions differ from NumPy's and neither help nor page says so."""
    with xstack.enable_x64(True), np.errstate(all="ignore"):
        for point in points(some):
            if says_how_it_differs(getattr(OURS.spaces[point.cell.space], point.cell.name)):
                continue
            text = f"{point}: {found}" if (found := unlike(point)) else ""
            if text and not any(re.search(p, text) for p, _ in (*GENERAL, *NOT_COMPARED)):
                yield text


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_that_differ_from_numpys_say_so(dtype):
    assert list(findings(drawn([c for c in CELLS if c.dtype == dtype], 120))) == []


def test_the_page_says_what_differs_in_general():
    page = PAGE.read_text(encoding="utf-8")
    assert [sentence for _, sentence in GENERAL if sentence not in page] == []


def test_each_general_difference_is_one():
    with xstack.enable_x64(True), np.errstate(all="ignore"):
        names = ("outer", "max", "imag")
        texts = [f"{p}: {unlike(p)}" for p in points([c for c in CELLS if c.name in names])]
    for pattern, _ in GENERAL:
        assert any(re.search(pattern, text) for text in texts), pattern


def test_a_difference_that_nobody_tells_is_found(monkeypatch):
    monkeypatch.setitem(OURS.spaces, "xnp", _With(cosh=lambda x: xnp.sinh(x)))
    (cell,) = [c for c in CELLS if (c.name, c.dtype) == ("cosh", "float64")]
    assert any("plain" in text for text in findings([cell]))


class _With:
    """The array functions with some of one's own."""

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(xnp, name)
