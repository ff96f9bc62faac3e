"""Cells (references) among the arguments of functions that control flow calls.

A branch closes over the cells among its operands, which is what a function may do with any cell.
Of a cell that a loop goes along each step has an element of its own: a cell of the step, whose last
value is one more y; all of them together are what is written to the cell in the end.

Neighbours: `control_flow_staging` passes on the cells that functions close over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import xtree
from xprim.cells import Cell
from xprim.errors import message

__all__ = ()


def closing_over_cells(
    functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...], operation: str
) -> tuple[Sequence[Callable[..., Any]], tuple[Any, ...]]:
    """Return functions that close over the cells among the operands, and the other operands.

    Raises:
      ValueError: one cell is passed twice.
    """
    leaves, tree = xtree.flatten(operands)
    cells = _cells_in(leaves, operation)
    if not cells:
        return functions, operands

    def closing_over(fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            rest = iter(values)
            return fun(*tree.unflatten([x if isinstance(x, Cell) else next(rest) for x in leaves]))

        return functools.wraps(fun)(call) if callable(fun) else fun

    arrays = tuple([x for x in leaves if not isinstance(x, Cell)])
    return [closing_over(f) for f in functions], arrays


def along_cells(
    f: Callable[..., Any], xs: Any, run: Callable[[Callable[..., Any], Any], Any]
) -> Any:
    """Run a scan along arrays among which are cells, and write what the steps made of these.

    Args:
      f: from the carry and elements of `xs` to the next carry and a y.
      xs: a tree of arrays and cells.
      run: the scan, without cells: from the function and its `xs` to the carry and ys.
    """
    leaves, tree = xtree.flatten(xs)
    cells = _cells_in(leaves, "scan")

    def step(carry: Any, elements: Any) -> Any:
        own = [c.argument(x) if isinstance(c, Cell) else x
               for c, x in zip(leaves, elements, strict=True)]  # fmt: skip
        result = f(carry, tree.unflatten(own))
        if not isinstance(result, tuple | list) or len(result) != 2:
            return result  # which is refused
        return result[0], (result[1], [x.lend() for x in own if isinstance(x, Cell)])

    values = [x.value() if isinstance(x, Cell) else x for x in leaves]
    carry, (ys, ends) = run(functools.wraps(f)(step) if callable(f) else f, values)
    for cell, end in zip(cells, ends, strict=True):
        cell.write(end)
    return carry, ys


def _cells_in(leaves: Sequence[Any], operation: str) -> list[Cell]:
    found = [x for x in leaves if isinstance(x, Cell)]
    if len({id(x) for x in found}) < len(found):
        raise ValueError(message(
            operation, f"one {found[0].kind} is used under two names.",
            got=f"a {found[0].kind} that is passed twice",
            expected="each of them once, so that it is clear what a write changes",
        ))  # fmt: skip
    return found
