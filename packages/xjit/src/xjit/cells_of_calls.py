"""The cells (references) that a compiled function gets or closes over.

A program takes the values of cells as arguments, those of outside as the last ones, and gives the
next values of those that it writes as its last results: of arguments first. What it writes takes
the memory of what was there.

Neighbours: `calls` runs programs, `xprim.cells` has the cells.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from xjit.arguments import Arguments
from xprim.cells import Cell, CellUse
from xprim.errors import message
from xprim.jaxpr import ClosedJaxpr, programs_inside
from xtree.records import Record, set_once

__all__ = ()

one_at_a_time = threading.RLock()
"""Held from when a program is given the values of cells until its own are written."""


class CellsOfProgram:
    """How the program of a trace uses cells; it keeps none of them alive.

    Args:
      uses: of cells of outside.
      written_arguments: the numbers of arguments that are cells and are written.
    """

    __slots__ = ("_captured", "_written_arguments")

    def __init__(self, uses: Sequence[CellUse], written_arguments: Sequence[int]) -> None:
        self._captured = [(weakref.ref(use.cell), use.is_written) for use in uses]
        self._written_arguments = tuple(written_arguments)

    @property
    def are_there(self) -> bool:
        """Whether all cells of outside that it uses exist."""
        return all(cell() is not None for cell, _ in self._captured)

    def kept_alive(self) -> list[Cell]:
        """Return the cells of outside, for who calls the program as long as it likes."""
        return [cell for cell in (weak() for weak, _ in self._captured) if cell is not None]

    def counts(self) -> tuple[int, int]:
        """Return how many arguments the program has for cells of outside, and results for any."""
        written = sum(is_written for _, is_written in self._captured)
        return len(self._captured), len(self._written_arguments) + written

    def donated(self, donated: Sequence[bool]) -> list[bool]:
        """Return for each argument of the program whether it gives its memory.

        Args:
          donated: the same of the arguments that the user passes.
        """
        return [
            *[d or i in self._written_arguments for i, d in enumerate(donated)],
            *[is_written for _, is_written in self._captured],
        ]

    def of_call(self, api: str, name: str, arguments: Arguments) -> CellsOfCall:
        """Return the cells of a call.

        Raises:
          ValueError: a cell is passed twice, or passed and closed over.
        """
        passed = {i: arguments.leaves[i] for i, _ in arguments.cells}
        captured = [(cell(), is_written) for cell, is_written in self._captured]
        numbers: dict[Any, int] = {}
        for i, cell in passed.items():
            if numbers.setdefault(cell, i) != i:
                names = arguments.names()
                raise _aliased(api, name, cell, f"as {names[numbers[cell]]} and as {names[i]}")
        for captured_cell, _ in captured:
            if captured_cell in numbers:
                where = arguments.names()[numbers[captured_cell]]
                raise _aliased(api, name, captured_cell, f"as {where}, and closed over")
        return CellsOfCall(passed, self._written_arguments, captured)


class CellsOfCall(Record):
    """The cells that one call uses.

    Attributes:
      passed: by the number of the argument.
      written_arguments: the numbers of those that are written.
      captured: those of outside, and whether they are written.
    """

    __slots__ = __match_args__ = ("passed", "written_arguments", "captured")
    passed: dict[int, Any]
    written_arguments: tuple[int, ...]
    captured: Sequence[tuple[Any, bool]]

    def __init__(
        self, passed: dict[int, Any], written_arguments: tuple[int, ...],
        captured: Sequence[tuple[Any, bool]],
    ) -> None:  # fmt: skip
        set_once(self, "passed", passed)
        set_once(self, "written_arguments", written_arguments)
        set_once(self, "captured", captured)

    def given(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arguments of a program that runs now, and may take the memory of some."""
        own = list(arrays)
        for i in self.written_arguments:
            own[i] = self.passed[i].give()
        return [*own, *[cell.give() if written else cell.lend() for cell, written in self.captured]]

    def lent(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arguments of a program that becomes part of another."""
        return [*arrays, *[cell.lend() for cell, _ in self.captured]]

    def write(self, results: Sequence[Any], *, fresh: bool) -> Sequence[Any]:
        """Write the last results to the cells, and return the others.

        Args:
          results: of the program.
          fresh: whether nobody else holds them.
        """
        cells: list[Cell] = [self.passed[i] for i in self.written_arguments]
        cells += [cell for cell, is_written in self.captured if is_written]
        count = len(results) - len(cells)
        for cell, value in zip(cells, results[count:], strict=True):
            cell.write(value, is_shared=not fresh)
        return results[:count]


def has_rules(closed: ClosedJaxpr) -> bool:
    """Return whether a program calls functions with rules of users.

    A rule may keep the cell that stands for an argument, and use it when the program is
    differentiated, for whatever call: in the program of a call there is no cell then.
    """
    return closed.derived(_has_rules)


def _has_rules(closed: ClosedJaxpr) -> bool:
    own = any(eqn.primitive.name.startswith("custom_") for eqn in closed.eqns)
    return own or any(map(has_rules, programs_inside(closed)))


def _aliased(api: str, name: str, cell: Any, how: str) -> ValueError:
    return ValueError(message(
        f"{api}({name})", f"one {cell.kind} is used under two names.",
        got=f"a {cell.kind} of {cell.aval.str_long()}, passed {how}",
        expected="each of them once, so that it is clear what a write changes",
        hint="leave out the argument, or pass two references",
    ))  # fmt: skip


def refused_write(api: str, name: str, cell: Cell) -> ValueError:
    """Return the error for a function that writes a reference which it cannot give on."""
    return ValueError(message(
        f"{api}({name})", f"the function writes a {cell.kind} that it closes over.",
        got=f"a {cell.kind} of {cell.aval.str_long()}",
        expected="reading it; or a reference among the arguments, which says who has which part",
    ))  # fmt: skip
