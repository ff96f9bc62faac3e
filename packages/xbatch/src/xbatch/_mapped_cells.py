"""References among the arguments that `vmap` maps: each example has its own part of one.

Inside, a cell of the batch trace stands for it; its last value goes back as a whole batch.

Neighbours: `_vmap` calls these, `xprim.cells` has the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xbatch.axis import BatchAxis
from xprim import not_mapped
from xprim.cells import Cell
from xprim.errors import message

__all__ = ()

MappedCells = dict[int, tuple[Cell, int]]
"""By the number of the argument: a cell that is mapped, and its batch dimension."""


def mapped_cells(leaves: Sequence[Any], values: Sequence[Any], dims: Sequence[Any]) -> MappedCells:
    """Return the cells among the mapped arguments.

    Args:
      leaves: the arguments.
      values: the same as arrays.
      dims: their batch dimensions.

    Raises:
      ValueError: one is passed twice.
    """
    found: MappedCells = {}
    for i, (x, value, dim) in enumerate(zip(leaves, values, dims, strict=True)):
        if value is not x and dim is not not_mapped and isinstance(x, Cell):
            if any(x is cell for cell, _ in found.values()):
                raise ValueError(message(
                    "vmap", f"one {x.kind} is used under two names.",
                    got=f"a {x.kind} of {x.aval.str_long()}, passed twice",
                    hint="leave out the argument, or pass two references",
                ))  # fmt: skip
            found[i] = (x, dim)
    return found


def inside(cells: MappedCells, elements: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments of the function for one example, with cells of its own."""
    return tuple([cells[i][0].argument(x) if i in cells else x for i, x in enumerate(elements)])


def last_values(cells: MappedCells, elements: Sequence[Any]) -> list[Any]:
    """Return the values that the cells of one example have in the end."""
    return [elements[i].lend() for i in cells]


def written_outside(
    axis: BatchAxis, cells: MappedCells, results: Sequence[Any], dims: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Write the last values of cells, and return the other results and their dimensions."""
    count = len(results) - len(cells)
    ends = zip(results[count:], dims[count:], cells.values(), strict=True)
    for value, dim, (cell, place) in ends:
        cell.write(
            axis.broadcast(value, place) if dim is not_mapped else axis.move(value, dim, place)
        )
    return [*results[:count]], [*dims[:count]]
