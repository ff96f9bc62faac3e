"""The cells of the net of values, how one is evaluated in a library, and how two results compare.

A cell is a function, a form and a dtype; its points are the layouts of the operands. All points of
a cell are one compiled program, so that the net costs one compilation a cell and library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import xtree
from tests.nets import value_rows
from tests.nets.value_operands import Operands, numpy_dtype

Points = dict[str, Any]  # result by layout


class Cell(NamedTuple):
    """A function of a namespace, called in one form with operands of one dtype."""

    space: str
    name: str
    form: str
    dtype: str

    def __str__(self) -> str:
        call = self.form.replace("f(", f"{self.space}.{self.name}(", 1)
        return f"{call} of {self.dtype}"


def cells(dtypes: Sequence[str]) -> list[Cell]:
    """Return the cells of all rows, in the order of the table."""
    return [
        Cell(space, name, form, dtype)
        for space, rows in (("xnp", value_rows.XNP), ("lax", value_rows.LAX))
        for form, names in rows.items()
        for name in names.split()
        for dtype in dtypes
    ]


class Library(NamedTuple):
    """What the net needs of a library: its namespaces, `jit`, and a maker of arrays."""

    spaces: dict[str, Any]
    jit: Callable[..., Any]
    array: Callable[[Any], Any]

    def arrays(self, operands: Operands) -> Operands:
        return {k: self.array(v) if isinstance(v, np.ndarray) else v for k, v in operands.items()}


def call(library: Library, cell: Cell, operands: Operands) -> Any:
    """Return the leaves of what a cell's function returns."""
    space = library.spaces[cell.space]
    names = {"f": getattr(space, cell.name), "ns": space, **operands}
    result = eval(cell.form, names)
    leaves = xtree.leaves(tuple(result) if isinstance(result, tuple) else result)
    return [x if hasattr(x, "dtype") and hasattr(x, "shape") else _plain(x) for x in leaves]


def _plain(value: Any) -> Any:
    """Return a result that is no array in a form that compares by equality."""
    return str(value) if isinstance(value, type | np.dtype) else value


def compiled(library: Library, cell: Cell, points: dict[str, Operands]) -> Points:
    """Return the results at all points by one compiled program."""

    def program(points: dict[str, Operands]) -> Points:
        return {layout: call(library, cell, operands) for layout, operands in points.items()}

    result: Points = library.jit(program)(points)
    return result


def difference(found: Any, expected: Any, tolerance: float, *, types: bool = True) -> str:
    """Return in what two lists of leaves differ, or nothing."""
    if len(found) != len(expected):
        return f"{len(found)} results for {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        if not hasattr(theirs, "dtype"):
            if ours != theirs:
                return f"{ours!r} for {theirs!r}"
            continue
        if types and _type_of(ours) != _type_of(theirs):
            return f"{_type_of(ours)} for {_type_of(theirs)}"
        text = _value_difference(np.asarray(ours), np.asarray(theirs), tolerance)
        if text:
            return text
    return ""


def _type_of(x: Any) -> str:
    if not hasattr(x, "dtype"):
        return f"a Python {type(x).__name__}"
    weak = "~" if getattr(x, "weak_type", False) else ""
    return f"{weak}{np.dtype(x.dtype).name}{list(x.shape)}"


def _value_difference(ours: Any, theirs: Any, tolerance: float) -> str:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} for {theirs.shape}"
    kind = theirs.dtype.kind
    if kind in "biu":
        same = ours == theirs
    else:
        wide = np.complex128 if kind == "c" else np.float64
        with np.errstate(all="ignore"):
            a, b = ours.astype(wide), theirs.astype(wide)
            scale = tolerance * np.abs(b)
            same = (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) <= scale + _floor(b, tolerance))
    if np.all(same):
        return ""
    place = tuple(int(k[0]) for k in np.nonzero(~same))
    return f"{ours[place]} for {theirs[place]} at {place}, {np.sum(~same)} of {same.size}"


def _floor(values: Any, tolerance: float) -> Any:
    """Return the absolute error that rounding of the largest ordinary value amounts to."""
    finite = np.abs(values[np.isfinite(values)])
    ordinary = finite[finite < 1e6]
    return tolerance * (ordinary.max() if ordinary.size else 0.0)


def tolerance_of(dtype: str) -> float:
    """Return the relative error that a few roundings make in a dtype."""
    kind = numpy_dtype(dtype)
    name = kind.name
    if name in ("float16", "bfloat16"):
        return 4e-3 if name == "float16" else 3e-2
    return 1e-12 if name in ("float64", "complex128") else 2e-5
