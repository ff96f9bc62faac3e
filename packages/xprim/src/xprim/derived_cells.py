"""References that programs derived by rules of users read and write, passed as operands.

The references that a program itself uses are among its arguments and results. A user's rule, of
`custom_vjp` say, runs when its program is differentiated, and may use further references. The
derived program takes their values as its last arguments and returns the written ones as its last
results. A caller that can pass these values derives the program by `with_cells`; the code that
derives it stages with the list that `claim_ref_uses` returns. Without such a caller the values are
constants of a program that is never reused, and a write is an error.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xprim.config import state

__all__ = [
    "UsedCell",
    "given_values",
    "claim_ref_uses",
    "derive_once",
    "with_cells",
    "written_values",
]

__dir__ = __all__.copy

T = TypeVar("T")

_NOT_THERE: Any = object()


class CellUse:
    """How a program that is staged uses a cell of outside.

    Attributes:
      cell: the cell.
      variable: the argument of the program that is its value at the start.
      before: that value, outside.
      now: the value at this point of the program.
      is_written: whether the program writes it.
    """

    __slots__ = ("before", "cell", "is_written", "now", "variable")

    def __init__(self, cell: Any, variable: Any, before: Any, now: Any) -> None:
        self.cell = cell
        self.variable = variable
        self.before = before
        self.now = now
        self.is_written = False


class UsedCell:
    """A cell that a derived program uses, and whether it writes it."""

    __slots__ = ("cell", "is_written")

    def __init__(self, cell: Any, is_written: bool) -> None:
        self.cell = cell
        self.is_written = is_written


def with_cells(derive: Callable[..., T], *args: Any) -> tuple[T, Sequence[UsedCell]]:
    """Return a derived program, and the cells whose values are its last arguments.

    Args:
      derive: a method of a handle that derives one program.
      *args: of that.
    """
    now = state.__dict__
    outer = now["derived_cells"]
    now["derived_cells"] = collector = RefCollector()
    try:
        return derive(*args), collector.found
    finally:
        now["derived_cells"] = outer


def claim_ref_uses() -> list[CellUse] | None:
    """Return the list for the references of a program derived now; None if no caller passes them.

    Programs staged inside of it do not see the list.
    """
    now = state.__dict__
    collector, now["derived_cells"] = now["derived_cells"], None
    return None if collector is None else collector.uses


def given_values(cells: Sequence[UsedCell]) -> list[Any]:
    """Return the values of cells as a program gets them."""
    return [used.cell.value() for used in cells]


def written_values(cells: Sequence[UsedCell], results: Sequence[Any]) -> Sequence[Any]:
    """Write the last results of a program to the cells that it writes; return the others."""
    written = [used.cell for used in cells if used.is_written]
    count = len(results) - len(written)
    for cell, value in zip(written, results[count:], strict=True):
        cell.write(value)
    return results[:count]


class RefCollector:
    """The references of a derived program, for the caller of `with_cells`.

    Attributes:
      uses: of the program that is staged.
      found: the cells of the program that is returned.
    """

    __slots__ = ("found", "uses")

    def __init__(self) -> None:
        self.uses: list[CellUse] = []
        self.found: Sequence[UsedCell] = ()

    def note_found(self) -> Sequence[UsedCell]:
        """Return the cells of the program that was staged; their values in it are forgotten."""
        self.found = [UsedCell(use.cell, use.is_written) for use in self.uses]
        self.uses.clear()
        return self.found


def note_constants() -> None:
    """Note that a program has values of cells as constants: it is of this moment alone."""
    state.__dict__["constant_cells"] += 1


class WithCells:
    """A derived program in a memo, with the cells that it uses, which it does not keep alive."""

    __slots__ = ("_cells", "derived")

    def __init__(self, derived: Any, cells: Sequence[UsedCell]) -> None:
        self.derived = derived
        self._cells = [(weakref.ref(used.cell), used.is_written) for used in cells]

    def report_to(self, collector: RefCollector | None) -> bool:
        """Give the references to a collector; return whether there is one, and all are alive."""
        cells = [cell() for cell, _ in self._cells]
        if collector is None or any(cell is None for cell in cells):
            return False
        collector.found = [
            UsedCell(cell, w) for cell, (_, w) in zip(cells, self._cells, strict=True)
        ]
        return True


def derive_once(memo: dict[Any, Any], key: Any, make: Callable[..., T], *args: Any) -> T:
    """Return a program derived from another, from the memo of that one where possible.

    Args:
      memo: of the program.
      key: of what is derived.
      make: makes it.
      *args: of that.
    """
    now = state.__dict__
    collector = now["derived_cells"]
    old = memo.get(key, _NOT_THERE)
    if type(old) is WithCells:
        if old.report_to(collector):
            return old.derived  # type: ignore[no-any-return]
    elif old is not _NOT_THERE:
        return old  # type: ignore[no-any-return]
    constants = now["constant_cells"]
    made = make(*args)
    found: Sequence[UsedCell] = () if collector is None else collector.note_found()
    if now["constant_cells"] != constants:
        return made
    if not found:
        memo[key] = made
    elif all(used.cell.is_of_evaluation for used in found):
        memo[key] = WithCells(made, found)
    return made
