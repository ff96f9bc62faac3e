"""Cells (references) that a program uses which is derived from another: by rules of users.

What a program itself does with cells is among its arguments and results. A rule of the user's, of
`custom_vjp` say, runs when its program is differentiated, and may use cells of its own. Then the
derived program gets the values of these as its last arguments, and gives those that it writes as
its last results. Who asks a handle for a derived program, and can pass these along, asks by
`with_cells`; what derives it stages with what `taken` returns. Where nobody asks, the values are
constants of a program that is made for this moment alone, and nothing may be written.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xprim.config import state

__all__ = ["UsedCell", "given_values", "kept", "taken", "with_cells", "written_values"]

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
    now["derived_cells"] = asked = Asked()
    try:
        return derive(*args), asked.found
    finally:
        now["derived_cells"] = outer


def taken() -> list[CellUse] | None:
    """Return where a program that is derived now notes its cells; None: nobody passes them along.

    What it is staged with asks for itself.
    """
    now = state.__dict__
    asked, now["derived_cells"] = now["derived_cells"], None
    return None if asked is None else asked.uses


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


class Asked:
    """What is noted for who asked by `with_cells`.

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

    def for_asked(self, asked: Asked | None) -> bool:
        """Tell who asks of the cells; return whether somebody does, and they are all there."""
        cells = [cell() for cell, _ in self._cells]
        if asked is None or any(cell is None for cell in cells):
            return False
        asked.found = [UsedCell(cell, w) for cell, (_, w) in zip(cells, self._cells, strict=True)]
        return True


def kept(memo: dict[Any, Any], key: Any, make: Callable[..., T], *args: Any) -> T:
    """Return what is derived from a program, from its memo where that may be.

    Args:
      memo: of the program.
      key: of what is derived.
      make: makes it.
      *args: of that.
    """
    now = state.__dict__
    asked = now["derived_cells"]
    old = memo.get(key, _NOT_THERE)
    if type(old) is WithCells:
        if old.for_asked(asked):
            return old.derived  # type: ignore[no-any-return]
    elif old is not _NOT_THERE:
        return old  # type: ignore[no-any-return]
    constants = now["constant_cells"]
    made = make(*args)
    found: Sequence[UsedCell] = () if asked is None else asked.note_found()
    if now["constant_cells"] != constants:
        return made
    if not found:
        memo[key] = made
    elif all(used.cell.is_of_evaluation for used in found):
        memo[key] = WithCells(made, found)
    return made
