"""The cells of the net of values, how one is evaluated in a library, and how two results compare.

A cell is a function, a form and a dtype; its points are the layouts of the operands. Many points
are one compiled program, so that the net costs few compilations.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import xtree
from tests.nets import value_rows
from tests.nets.value_operands import Operands, layouts, numpy_dtype


class Cell(NamedTuple):
    """A function of a namespace, called in one form with operands of one dtype."""

    space: str
    name: str
    form: str
    dtype: str

    def __str__(self) -> str:
        call = self.form.replace("f(", f"{self.space}.{self.name}(", 1)
        return f"{call} of {self.dtype}"


def cells(
    dtypes: Sequence[str], tables: Mapping[str, Mapping[str, str]] = value_rows.TABLES
) -> list[Cell]:
    """Return the cells of all rows, in the order of the tables."""
    return [
        Cell(space, name, form, dtype)
        for space, rows in tables.items()
        for form, names in rows.items()
        for name in names.split()
        for dtype in dtypes
    ]


class Library(NamedTuple):
    """What the net needs of a library: its namespaces, `jit`, and a maker of arrays."""

    spaces: dict[str, Any]
    jit: Callable[..., Any]
    array: Callable[[Any], Any]


_PLACES = {
    "xnp": "numpy", "lax": "lax", "nn": "nn", "linalg": "numpy.linalg", "laxlinalg": "lax.linalg",
    "fft": "numpy.fft", "image": "image", "ops": "ops",
}  # fmt: skip


def library(root: Any, *spaces: str) -> Library:
    """Return a library by its package: `xstack`, or `jax`, which is laid out alike."""
    places = {space: module_at(root, _PLACES.get(space, space)) for space in spaces}
    return Library(places, root.jit, root.numpy.array)


def module_at(root: Any, path: str) -> Any:
    """Return a module by its path below a package."""
    place = root
    for name in path.split("."):
        if not hasattr(place, name):
            importlib.import_module(f"{place.__name__}.{name}")
        place = getattr(place, name)
    return place


class Point(NamedTuple):
    """A cell with the operands of one layout."""

    cell: Cell
    layout: str
    operands: Operands

    def __str__(self) -> str:
        return f"{self.cell}, {self.layout}"


def points(cells: Sequence[Cell]) -> list[Point]:
    """Return all points of some cells."""
    return [Point(c, name, o) for c in cells for name, o in layouts(c.dtype).items()]


def called(library: Library, point: Point, arrays: Operands | None = None) -> list[Any]:
    """Return the leaves of what a function returns at a point, types as their names.

    Args:
      library: whose function.
      point: which function and operands.
      arrays: those of the operands that are arrays, when they are traced; None makes them.
    """
    space = library.spaces[point.cell.space]
    if arrays is None:
        arrays = {k: library.array(v) for k, v in _arrays_of(point).items()}
    names = {"f": getattr(space, point.cell.name), "ns": space, **point.operands, **arrays}
    result = eval(point.cell.form, names)
    leaves = xtree.leaves(tuple(result) if isinstance(result, tuple) else result)
    return [str(x) if isinstance(x, type | np.dtype) else x for x in leaves]


def _arrays_of(point: Point) -> Operands:
    return {k: v for k, v in point.operands.items() if isinstance(v, np.ndarray)}


def compiled(library: Library, points: Sequence[Point]) -> list[list[Any]]:
    """Return the arrays among the results at all points, by one compiled program."""

    def program(operands: list[Operands]) -> list[list[Any]]:
        return [
            arrays_among(called(library, p, arrays))
            for p, arrays in zip(points, operands, strict=True)
        ]

    operands = [{k: library.array(v) for k, v in _arrays_of(p).items()} for p in points]
    result: list[list[Any]] = library.jit(program)(operands)
    return result


def arrays_among(leaves: Sequence[Any]) -> list[Any]:
    """Return those leaves that are arrays, which alone leave a compiled program."""
    return [x for x in leaves if hasattr(x, "dtype") and hasattr(x, "shape")]


def difference(found: Any, expected: Any, tolerance: float, *, types: bool = True) -> str:
    """Return in what two lists of leaves differ, or nothing."""
    if len(found) != len(expected):
        return f"{len(found)} results for {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        if not hasattr(theirs, "dtype") and not hasattr(ours, "dtype"):
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
    # a boolean has no weaker type: the flag, which the oracle sets on some, says nothing
    weak = "~" if getattr(x, "weak_type", False) and x.dtype != bool else ""
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
            same = (
                (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) <= scale + _floor(b, tolerance))
            )
    if np.all(same):
        return ""
    place = tuple(map(int, np.argwhere(~np.atleast_1d(same))[0]))
    ours, theirs = np.atleast_1d(ours), np.atleast_1d(theirs)
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
