"""The net of values: every public function of `xnp` and `xnp.lax` on the operands of a grid.

At each point the result outside of `jit` is compared with the compiled one, and its value, dtype,
weak type and shape with the oracle's. A public function without a row fails. What differs on
purpose is in `value_differences`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xnp
import xstack
from tests.nets import value_rows, value_rows_of_modules
from tests.nets.cells import COMPILER_OPTIONS, IN_FULL, UNOPTIMISED_CODE, drawn, in_turn
from tests.nets.value_cells import (
    Cell,
    Library,
    Point,
    arrays_among,
    called,
    cells,
    compiled,
    difference,
    library,
    module_at,
    points,
    tolerance_of,
)
from tests.nets.value_differences import reason_for
from tests.nets.value_operands import DTYPES, WIDE_DTYPES
from xprim import config

pytestmark = [pytest.mark.fuzz, pytest.mark.filterwarnings("ignore")]

SPACES = (*value_rows.TABLES, *value_rows_of_modules.MODULES)
OURS = library(xstack, *SPACES)
OURS.spaces.update({"xnp": xnp, "lax": xnp.lax})  # without the collectives
CELLS = cells(DTYPES)
CELLS_OF_MODULES = cells(value_rows_of_modules.DTYPES, value_rows_of_modules.MODULES)
CHUNK = 12 if IN_FULL else 4  # cells in one program


def chunks(some: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Return cells in groups of one dtype."""
    by_dtype = sorted(some, key=lambda c: c.dtype)
    return [tuple(by_dtype[k : k + CHUNK]) for k in range(0, len(by_dtype), CHUNK)]


def name_of(chunk: Sequence[Cell]) -> str:
    return f"{chunk[0].name}..{chunk[-1].name}-{chunk[0].dtype}"


def is_function(module: Any, name: str) -> bool:
    """Return whether a name of a module is a public function."""
    value = getattr(module, name)
    is_class = isinstance(value, type) and module not in (xnp, xnp.lax)
    return callable(value) and not is_class and name[0] != "_" and not name.endswith("_p")


def test_every_public_module_of_scipy_has_rows() -> None:
    seen = {id(module) for module in OURS.spaces.values()}
    seen.add(id(xstack.scipy.optimize))  # of functions to be minimised: tests/composition
    modules = [xstack.scipy]
    for module in modules:
        inner = [getattr(module, n) for n in dir(module) if n[0] != "_"]
        modules += [m for m in inner if isinstance(m, ModuleType) and m not in modules]
        functions = [n for n in dir(module) if is_function(module, n)]
        assert id(module) in seen or not functions, f"{module.__name__}: {functions}"


def test_every_public_function_has_a_row() -> None:
    without = {n for names in value_rows.WITHOUT_ROW.values() for n in names.split()}
    for space, module in OURS.spaces.items():
        with_row = {c.name for c in CELLS + CELLS_OF_MODULES if c.space == space}
        public = {n for n in dir(module) if is_function(module, n)}
        assert sorted(public - with_row - without) == []
        assert sorted(with_row - public) == []


def test_the_net_is_wide() -> None:
    print(f"{len(CELLS)} cells, {len(CELLS_OF_MODULES)} of other modules, 8 points each")
    assert len(CELLS) >= 6900
    assert len(CELLS_OF_MODULES) >= 1500
    assert len(points(CELLS[:20])) == 160


def _eager(some: Sequence[Point]) -> Iterator[tuple[Point, list[Any]]]:
    """Yield the points whose function takes the operands, with its results."""
    for point in some:
        try:
            yield point, called(OURS, point)
        except (AttributeError, TypeError, ValueError, IndexError, OverflowError):
            continue  # the form, or the function, does not take these operands


def _unlike(point: Point, found: Any, expected: Any, against: str) -> list[str]:
    text = difference(found, expected, tolerance_of(point.cell.dtype))
    if not text or reason_for(f"{point}: {text}", against):
        return []
    return [f"{point}: {text}"]


EVERY_CHUNK = [*drawn(chunks(CELLS), 7), *drawn(chunks(CELLS_OF_MODULES), 2)]
# The reference of `scipy` is SciPy, here and in the nets of its special functions.
CHUNKS_OF_JAX = [
    *drawn(in_turn(chunks(CELLS), 2), 6),
    *drawn(chunks([c for c in CELLS_OF_MODULES if not c.space.startswith("scipy.")]), 2),
]
CELLS_OF_SCIPY = [
    c for c in CELLS_OF_MODULES if c.space.startswith("scipy.") and c.dtype == "float32"
]


def tried(chunk: Sequence[Cell]) -> list[Point]:
    """Return the points of cells that a run compiles.

    A special function or a distribution takes XLA half a second at each point: of those of other
    modules an ordinary run tries a quarter, so that cells side by side try all layouts.
    """
    if IN_FULL or chunk[0].space in value_rows.TABLES:
        return points(chunk)
    return [p for k, cell in enumerate(chunk) for p in points([cell])[k % 4 :: 4]]


@pytest.mark.parametrize("chunk", EVERY_CHUNK, ids=name_of)
def test_compiled_functions_give_what_evaluated_ones_give(chunk: tuple[Cell, ...]) -> None:
    some = [p for p in tried(chunk) if not reason_for(str(p), "compiled")]
    results = list(_eager(some))
    # LLVM takes a third of the time of a chunk: of most dtypes its code is not optimised
    options = COMPILER_OPTIONS if chunk[0].dtype in ("float32", "complex64") else UNOPTIMISED_CODE
    ours = OURS._replace(jit=functools.partial(OURS.jit, compiler_options=options))
    found = compiled(ours, [p for p, _ in results])
    faults = [
        fault
        for (point, eager), staged in zip(results, found, strict=True)
        for fault in _unlike(point, arrays_among(eager), staged, "compiled")
    ]
    assert faults == []


def _oracle() -> Library:
    jax = pytest.importorskip("jax")
    return library(jax, *SPACES)


def _taken_by_oracle(oracle: Library, some: Sequence[Point]) -> Iterator[Point]:
    jax = pytest.importorskip("jax")
    for point in some:
        if reason_for(str(point), "oracle"):
            continue
        arrays = {k: v for k, v in point.operands.items() if isinstance(v, np.ndarray)}
        try:
            jax.eval_shape(lambda a, p=point: arrays_among(called(oracle, p, a)), arrays)
        except Exception:  # whatever it says: the oracle does not take these operands
            continue
        yield point


def _of_oracle(oracle: Library, some: Sequence[Point]) -> Iterator[tuple[Point, list[Any]]]:
    """Yield the points with the oracle's results, but for those that it traces and no more."""
    try:
        yield from zip(some, compiled(oracle, some), strict=True)
    except Exception:  # whatever it says: it cannot compile one of them
        if len(some) > 1:
            for point in some:
                yield from _of_oracle(oracle, [point])


@pytest.mark.parametrize("chunk", CHUNKS_OF_JAX, ids=name_of)
def test_functions_give_what_the_oracle_gives(chunk: tuple[Cell, ...]) -> None:
    oracle = _oracle()
    some = list(_taken_by_oracle(oracle, points(chunk)))
    faults = []
    for point, theirs in _of_oracle(oracle, some):
        try:
            ours = arrays_among(called(OURS, point))
        except Exception as error:  # each one is a finding
            faults.append(f"{point}: {type(error).__name__}: {str(error).splitlines()[0]}")
        else:
            faults += _unlike(point, ours, theirs, "oracle")
    assert faults == []


@pytest.mark.parametrize("cell", drawn(CELLS_OF_SCIPY, 40), ids=str)
def test_functions_of_scipy_give_what_scipy_gives(cell: Cell) -> None:
    scipy = pytest.importorskip("scipy")
    place = module_at(scipy, cell.space.removeprefix("scipy."))
    numpy = Library({cell.space: place}, lambda f: f, np.asarray)
    faults = []
    for point in points([cell]):
        if point.layout in _NOT_FOR_SCIPY or reason_for(str(point), "scipy"):
            continue
        try:
            theirs = arrays_among(called(numpy, point))
        except (AttributeError, TypeError, ValueError, IndexError, RuntimeError):
            continue  # SciPy does not take these operands, or it spells a keyword in another way
        text = difference(arrays_among(called(OURS, point)), theirs, 1e-4, types=False)
        faults += [f"{point}: {text}"] if text else []
    assert faults == []


# Special values are those of `test_scipy_special`; a Python number is a float64 to SciPy.
_NOT_FOR_SCIPY = ("special", "with Python", "Python", "empty")


@pytest.mark.parametrize("chunk", drawn(chunks(cells(WIDE_DTYPES)), 1), ids=name_of)
def test_wide_functions_give_what_the_oracle_gives(chunk: tuple[Cell, ...]) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True), config.enable_x64(True):
        test_functions_give_what_the_oracle_gives(chunk)
