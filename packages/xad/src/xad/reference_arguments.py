"""References among the arguments of a function that is differentiated.

A reference is one more argument, its value before, and one more result, its value afterwards. So a
derivative maps the tangent of the one to that of the other, and a pull-back the other way round:
what has the tangents or cotangents is a reference, too, whose value is replaced.

Neighbours: `arguments` has the function that is differentiated, `linear_functions` the derivative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import xtree
from xad.tangents import Tangent, checked_tangents, is_differentiable, typed_as, zeros_of
from xprim import Array, ShapedArray, Zero
from xprim.cells import Cell
from xprim.descriptions import described
from xprim.errors import message
from xprim.leaves import path_of

__all__ = ()


class ReferenceArguments:
    """The references among the leaves of arguments, by their numbers.

    Attributes:
      cells: what the caller gave.
    """

    __slots__ = ("_changed", "_given", "_inside", "_operation", "cells")

    def __init__(self, cells: Mapping[int, Cell], operation: str) -> None:
        self.cells = cells
        self._operation = operation
        self._given: list[Array] = []
        self._inside: list[Cell] = []
        self._changed: list[bool] = []

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves with the value of each reference in its place."""
        self._given = [cell.value() for cell in self.cells.values()]
        given = iter(self._given)
        return [next(given) if i in self.cells else x for i, x in enumerate(leaves)]

    def entered(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves with a reference of the function's own in the place of each value."""
        entered = list(leaves)
        for i, cell in self.cells.items():
            entered[i] = cell.argument(leaves[i])
        self._inside = [entered[i] for i in self.cells]
        self._changed = [False] * len(self.cells)
        return entered

    def left(self, leaves: Sequence[Any]) -> list[Array]:
        """Return the values afterwards, given those before."""
        values = [cell.lend() for cell in self._inside]
        before = [leaves[i] for i in self.cells]
        self._changed = [x is not y for x, y in zip(values, before, strict=True)]
        self._inside = []
        return values

    def write(self, values: Sequence[Any]) -> None:
        """Write the references that the function has written; there is a value for each.

        Raises:
          ValueError: the function has written one that it closes over as well.
        """
        for cell, before in zip(self.cells.values(), self._given, strict=True):
            if cell.lend() is not before:
                raise _aliased(cell, self._operation, "passed to the function and closed over")
        for cell, value, changed in zip(self.cells.values(), values, self._changed, strict=True):
            if changed:
                cell.write(value)


def references_in(leaves: Sequence[Any], operation: str) -> ReferenceArguments | None:
    """Return the references among leaves, or None where there is none.

    Raises:
      ValueError: one is passed twice.
    """
    cells = {i: x for i, x in enumerate(leaves) if isinstance(x, Cell)}
    check_each_once(cells.values(), operation)
    return ReferenceArguments(cells, operation) if cells else None


def check_each_once(cells: Iterable[Cell], operation: str) -> None:
    """Refuse a reference that is given twice: a write to the one would be one to the other."""
    seen: set[int] = set()
    for cell in cells:
        if id(cell) in seen:
            raise _aliased(cell, operation, "passed twice")
        seen.add(id(cell))


def _aliased(cell: Cell, operation: str, how: str) -> ValueError:
    return ValueError(message(
        operation, f"one {cell.kind} is used under two names.",
        got=f"a {cell.kind} of {cell.aval.str_long()}, {how}",
        hint="leave out the argument, or pass two references",
    ))  # fmt: skip


def refuse_references(leaves: Sequence[Any], tree: Any, operation: str) -> None:
    """Raise the error of a function that returns derivatives by its arguments, for a reference."""
    for i, x in enumerate(leaves):
        if isinstance(x, Cell):
            raise TypeError(message(
                operation, f"it cannot differentiate with respect to a {x.kind}"
                f"{path_of(tree, i, ' at ')}: its cotangent lies in a {x.kind}, too.",
                got=f"a {x.kind} of {x.aval.str_long()}",
                hint="vjp(f, ref)[1].with_refs(cotangent_ref) takes one; arguments that argnums "
                "leaves out\nmay be references",
            ))  # fmt: skip


def tangents_and_cells(
    tangents: Any, references: Iterable[int], tree: Any, avals: Sequence[ShapedArray],
    operation: str,
) -> tuple[list[Tangent], dict[int, Cell]]:  # fmt: skip
    """Return the leaves of tangents, checked against the primals, and the references among them.

    Args:
      tangents: the tree that the user gave, with a reference for each that is differentiated.
      references: the numbers of the primals that are references.
      tree: the structure of the primals.
      avals: their abstract values.
      operation: the function that errors name.

    Raises:
      ValueError: what belongs to a reference is none, or one of them is there twice.
    """
    values, given = xtree.flatten(tangents)
    if given != tree:
        return checked_tangents(tangents, tree, avals, operation), {}  # raises
    cells: dict[int, Cell] = {}
    for i in references:
        value, aval = values[i], avals[i]
        if not is_differentiable(aval):
            values[i] = zeros_of(aval)
        elif isinstance(value, Cell):
            cells[i] = value
            values[i] = value.value()
        else:
            raise ValueError(message(
                operation, f"the tangent{path_of(tree, i, ' at ')} of a reference is a reference.",
                got=described(value), expected="what new_ref(tangent) returns",
                hint="it holds the tangent of the value before, and then of that afterwards",
            ))  # fmt: skip
    check_each_once(cells.values(), operation)
    return checked_tangents(xtree.unflatten(tree, values), tree, avals, operation), cells


def write_tangents(cells: Mapping[int, Cell], after: Mapping[int, Any]) -> None:
    """Write tangents or cotangents to their references, both by the numbers of the primals."""
    for i, cell in cells.items():
        value = after[i]
        cell.write(zeros_of(cell.aval) if type(value) is Zero else typed_as(value, cell.aval))
