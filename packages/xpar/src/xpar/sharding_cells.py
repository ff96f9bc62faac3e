"""What stands in the pieces of a picture of a sharding, and the table that is drawn of it.

Neighbours: `sharding_pictures` prints these, `sharding_svg` draws them for notebooks and files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from xjit.shardings import Sharding

__all__ = ["cells_of", "drawn"]

__dir__ = __all__.copy

_COLOURS = (42, 44, 45, 46, 43, 41, 47, 100)  # backgrounds of a terminal, one after another


def cells_of(sharding: Sharding, ndim: int) -> list[list[str]]:
    """Return the names of the devices of each piece, row by row.

    Args:
      sharding: how an array lies.
      ndim: the number of its dimensions.
    """
    tiles, devices = sharding.tiles(ndim), sharding.devices_in_order
    down, across = _shown(tiles.counts)
    order = [dim for dim in (down, across) if dim is not None]
    hidden = tuple([0 if dim not in order else slice(None) for dim in range(len(tiles.counts))])
    pieces = tiles.devices[hidden]
    rows = 1 if down is None else tiles.counts[down]
    table = pieces.reshape(rows, 1 if across is None else tiles.counts[across], -1)
    return [[_label([devices[n] for n in sorted(cell)]) for cell in row] for row in table.tolist()]


def _shown(counts: Sequence[int]) -> tuple[Any, Any]:
    """Return the dimensions that go down and across in the picture, None where none does."""
    cut = [dim for dim, count in enumerate(counts) if count > 1]
    if len(cut) > 1:
        return cut[0], cut[1]
    if cut and len(counts) > 1 and cut[0] == 0:
        return 0, None
    return None, cut[0] if cut else None


def _label(devices: Sequence[Any]) -> str:
    """Return what is written on a piece: `CPU 0,1`."""
    return f"{devices[0].platform.upper()} {','.join([str(device.id) for device in devices])}"


def painted(text: str, number: int) -> str:
    """Return a text on the background of a piece, in the words of terminals."""
    return f"\x1b[30;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"


def drawn(
    cells: list[list[str]], width: int, height: int, in_colour: bool,
    paint: Callable[[str, int], str] = painted,
) -> list[str]:  # fmt: skip
    """Return the lines of a table.

    Args:
      cells: what stands in the pieces, row by row.
      width: of a piece, in characters.
      height: of a piece, in lines.
      in_colour: whether pieces have colours.
      paint: gives a text the colour of a number.
    """
    bars = ["─" * width] * len(cells[0])
    lines = ["┌" + "┬".join(bars) + "┐"]
    numbers = {label: i for i, label in enumerate(dict.fromkeys(itertools.chain(*cells)))}
    for i, row in enumerate(cells):
        if i:
            lines.append("├" + "┼".join(bars) + "┤")
        for line in range(height):
            shown = [label[:width] if line == height // 2 else "" for label in row]
            texts = [f"{text:^{width}}" for text in shown]
            if in_colour:
                texts = [paint(t, numbers[name]) for t, name in zip(texts, row, strict=True)]
            lines.append("│" + "│".join(texts) + "│")
    lines.append("└" + "┴".join(bars) + "┘")
    return lines
