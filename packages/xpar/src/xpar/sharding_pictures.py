"""Pictures of how arrays lie: which device has which piece, drawn as text.

`visualize_array_sharding` shows an array, `visualize_sharding` a sharding for a shape, and
`inspect_array_sharding` hands the sharding to a function. An array of one dimension is a row of
pieces, one of two a table; of more, the first two dimensions that are cut are shown.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from xjit.named_shardings import resolved
from xjit.shardings import Sharding
from xprim import Array, Tracer, as_array
from xprim.errors import message
from xprim.tracebacks import boundaries

__all__ = [
    "cells_of", "drawn", "inspect_array_sharding", "visualize_array_sharding",
    "visualize_sharding",
]  # fmt: skip

__dir__ = __all__.copy

_COLOURS = (42, 44, 45, 46, 43, 41, 47, 100)  # backgrounds of a terminal, one after another


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print which device has which piece of an array.

    Args:
      arr: an array.
      **kwargs: as for `visualize_sharding`.

    Raises:
      TypeError: a traced value, which is nowhere yet.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, devices
      >>> visualize_array_sharding(device_put(np.ones(4), devices("cpu")[0]))
      ┌─────────┐
      │  CPU 0  │
      └─────────┘
    """
    x = _placed("visualize_array_sharding", arr)
    visualize_sharding(x.shape, x.sharding, **kwargs)


def visualize_sharding(
    shape: Sequence[int], sharding: Any, *, use_color: bool = True, scale: float = 1.0,
    min_width: int = 9, max_width: int = 80,
) -> None:  # fmt: skip
    """Print which device would have which piece of an array of a shape.

    Args:
      shape: of the array.
      sharding: how it would lie.
      use_color: whether pieces have colours, where the output is a terminal.
      scale: the number of lines of a piece, at least one.
      min_width: the least number of characters of a piece.
      max_width: of the whole picture; names of devices that do not fit in a piece are cut.

    Raises:
      ValueError: such an array cannot be cut so.
      TypeError: this is no sharding.
    """
    found = resolved(sharding, "visualize_sharding")
    if not isinstance(found, Sharding):
        raise TypeError(message("visualize_sharding", "this is no sharding.", got=repr(sharding)))
    found.check_shape(tuple(shape), "visualize_sharding")
    cells = cells_of(found, len(shape))
    room = max(1, (max_width - 1) // len(cells[0]) - 1)
    width = min(max(*[len(label) + 2 for row in cells for label in row], min_width), room)
    in_colour = use_color and sys.stdout.isatty()
    lines = drawn(cells, width, max(1, round(scale)), in_colour)
    sys.stdout.write("\n".join(lines) + "\n")


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Call a function with the sharding of an array.

    Args:
      value: an array.
      callback: takes its sharding.

    Raises:
      TypeError: a traced value: how it lies is decided when the program is compiled.
    """
    callback(_placed("inspect_array_sharding", value).sharding)


def _placed(operation: str, value: Any) -> Any:
    if isinstance(value, Tracer):
        raise TypeError(message(
            operation, "a traced value is on no device yet.", got=repr(value),
            hint="return it from the compiled function, and look at the result;\n"
            "with_sharding_constraint says how a value is to lie",
        ))  # fmt: skip
    x: Array = as_array(value, what=operation)
    return x


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


def drawn(cells: list[list[str]], width: int, height: int, in_colour: bool) -> list[str]:
    """Return the lines of a table.

    Args:
      cells: what stands in the pieces, row by row.
      width: of a piece, in characters.
      height: of a piece, in lines.
      in_colour: whether pieces have colours.
    """
    bars = ["─" * width] * len(cells[0])
    lines = ["┌" + "┬".join(bars) + "┐"]
    numbers = {label: i for i, label in enumerate(dict.fromkeys(itertools.chain(*cells)))}
    for i, row in enumerate(cells):
        if i:
            lines.append("├" + "┼".join(bars) + "┤")
        for line in range(height):
            shown = [label[:width] if line == height // 2 else "" for label in row]
            painted = [_painted(f"{text:^{width}}", numbers[label], in_colour)
                       for text, label in zip(shown, row, strict=True)]  # fmt: skip
            lines.append("│" + "│".join(painted) + "│")
    lines.append("└" + "┴".join(bars) + "┘")
    return lines


def _painted(text: str, number: int, in_colour: bool) -> str:
    if not in_colour:
        return text
    return f"\x1b[30;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"


boundaries(globals())
