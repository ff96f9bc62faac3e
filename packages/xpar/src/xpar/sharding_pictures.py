"""Pictures of shardings: which device has which piece, printed, or as SVG for notebooks."""

from __future__ import annotations

import html
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xjit.sharding.inspection import inspect_value
from xjit.sharding.shardings import Sharding, resolve
from xprim import as_array
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.transformed import check_function
from xprim.typing import ArrayLike, PyTree, ShardingLike
from xtree.namespaces import late_import

__all__ = [
    "cells_of", "drawn", "ShardingPicture", "sharding_picture", "inspect_array_sharding",
    "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip

__dir__ = __all__.copy

_console = late_import("rich.console", "the extra pictures installs it")


# -------------------------------------------------------------------------------- sharding cells
# What stands in the pieces of a picture of a sharding, and the table that is drawn of it.

_COLOURS = (42, 44, 45, 46, 43, 41, 47, 100)  # backgrounds of a terminal, one after another


def cells_of(sharding: Sharding, ndim: int) -> list[list[str]]:
    """Return the names of the devices of each piece, row by row.

    Args:
      sharding: the sharding of an array.
      ndim: the number of its dimensions.
    """
    tiles, devices = sharding.tiles(ndim), sharding.devices_in_order
    down, across = _dims_of_picture(tiles.counts)
    order = [dim for dim in (down, across) if dim is not None]
    hidden = tuple([0 if dim not in order else slice(None) for dim in range(len(tiles.counts))])
    pieces = tiles.devices[hidden]
    rows = 1 if down is None else tiles.counts[down]
    table = pieces.reshape(rows, 1 if across is None else tiles.counts[across], -1)
    return [[_label([devices[n] for n in sorted(cell)]) for cell in row] for row in table.tolist()]


def _dims_of_picture(counts: Sequence[int]) -> tuple[Any, Any]:
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


def paint_piece(text: str, number: int) -> str:
    """Return a text on the background of a piece, in the words of terminals."""
    return f"\x1b[30;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"


def drawn(
    cells: list[list[str]], width: int, height: int, in_colour: bool,
    paint: Callable[[str, int], str] = paint_piece,
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


# ---------------------------------------------------------------------------------- sharding svg
# Pictures of the shardings of arrays as SVG, for notebooks and files.

_WIDTH, _HEIGHT = 96, 40  # of a piece, in pixels
BACKGROUNDS = (
    "#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#dddddd", "#8dd3c7",
)  # fmt: skip


class ShardingPicture:
    """A picture of which device has which piece of an array.

    A notebook shows it as SVG; printed it is text.

    Args:
      cells: what stands in the pieces, row by row.
    """

    __slots__ = ("_cells",)

    def __init__(self, cells: Sequence[Sequence[str]]) -> None:
        self._cells = [list(row) for row in cells]

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Return the picture as the text of an SVG document."""
        labels = dict.fromkeys(itertools.chain(*self._cells))
        colours = dict(zip(labels, itertools.cycle(BACKGROUNDS), strict=False))
        width = max(_WIDTH, *[8 * len(label) + 16 for label in labels])
        size = width * len(self._cells[0]), _HEIGHT * len(self._cells)
        right, bottom = size[0] + 2, size[1] + 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom}" '
            f'viewBox="-1 -1 {right} {bottom}">'
        ]
        for i, row in enumerate(self._cells):
            for j, label in enumerate(row):
                parts.append(
                    f'<rect x="{j * width}" y="{i * _HEIGHT}" width="{width}" height="{_HEIGHT}" '
                    f'fill="{colours[label]}" stroke="black"/>'
                    f'<text x="{(j + 0.5) * width}" y="{(i + 0.5) * _HEIGHT}" font-size="13" '
                    'font-family="monospace" text-anchor="middle" dominant-baseline="central">'
                    f"{html.escape(label)}</text>"
                )
        return "\n".join([*parts, "</svg>\n"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to an SVG file.

        Args:
          path: of the file, which is replaced.
        """
        Path(path).write_text(self.svg(), encoding="utf-8")

    def __str__(self) -> str:
        width = max(9, *[len(label) + 2 for row in self._cells for label in row])
        return "\n".join(drawn(self._cells, width, 1, in_colour=False))

    __repr__ = __str__


@boundary
def sharding_picture(x: PyTree, sharding: ShardingLike = None) -> ShardingPicture:
    """Return a picture of which device has which piece of an array.

    Args:
      x: an array; or, with `sharding`, its shape.
      sharding: how an array of this shape would lie: a sharding, or a partition spec over the
        context mesh.

    Returns:
      A picture, which notebooks show; `save(path)` writes it to a file.

    Raises:
      TypeError: a traced value, or what is not a sharding.
      ValueError: such an array cannot be cut so.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, devices
      >>> sharding_picture(device_put(np.ones(4), devices("cpu")[0]))
      ┌─────────┐
      │  CPU 0  │
      └─────────┘
    """
    if sharding is None:
        array = as_array(x, what="sharding_picture")
        x, sharding = array.shape, getattr(array, "sharding", None)
    found = resolve(sharding, "sharding_picture")
    require(
        isinstance(found, Sharding), "sharding_picture", "this is not a sharding.", got=sharding,
        error=TypeError,
    )  # fmt: skip
    found.check_shape(tuple(x), "sharding_picture")
    return ShardingPicture(cells_of(found, len(tuple(x))))


# ----------------------------------------------------------------------------- sharding pictures
# Pictures of the shardings of arrays: which device has which piece, printed or shown.
#
# `visualize_array_sharding` shows an array, `visualize_sharding` a sharding for a shape, and
# `inspect_array_sharding` hands the sharding to a function. An array of one dimension is a row of
# pieces, one of two a table; of more, the first two dimensions that are cut are shown. Of a
# traced value it is known when its program is compiled, and shown then.


def visualize_array_sharding(arr: ArrayLike, **kwargs: Any) -> None:
    """Show which device has which piece of an array.

    Args:
      arr: an array. Of a traced value the picture appears when its program has been compiled.
      **kwargs: as for `visualize_sharding`.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, devices
      >>> visualize_array_sharding(device_put(np.ones(4), devices("cpu")[0]))
      ┌─────────┐
      │  CPU 0  │
      └─────────┘
    """
    x = as_array(arr, what="visualize_array_sharding")
    inspect_value(x, lambda sharding: visualize_sharding(x.shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int], sharding: ShardingLike, *, use_color: bool = True, scale: float = 1.0,
    min_width: int = 9, max_width: int = 80,
) -> None:  # fmt: skip
    """Show which device would have which piece of an array of a shape.

    A notebook shows a drawing. Elsewhere it is text, in a terminal with colours: by the library
    `rich` where it is installed (`pip install rich`), which knows what the
    terminal can.

    Args:
      shape: of the array.
      sharding: its sharding.
      use_color: whether pieces have colours, where the output is a terminal.
      scale: the number of lines of a piece, at least one.
      min_width: the least number of characters of a piece.
      max_width: of the whole picture; names of devices that do not fit in a piece are cut.

    Raises:
      ValueError: such an array cannot be cut so.
      TypeError: this is not a sharding.

    Example:
      >>> from xpar import NamedSharding, P, make_mesh
      >>> visualize_sharding((4, 2), NamedSharding(make_mesh((1,), ("x",)), P("x")), min_width=11)
      ┌───────────┐
      │   CPU 0   │
      └───────────┘
    """
    found = resolve(sharding, "visualize_sharding")
    require(
        isinstance(found, Sharding), "visualize_sharding", "this is not a sharding.", got=sharding,
        error=TypeError,
    )  # fmt: skip
    found.check_shape(tuple(shape), "visualize_sharding")
    cells = cells_of(found, len(shape))
    if _show_in_notebook(cells):
        return
    room = max(1, (max_width - 1) // len(cells[0]) - 1)
    width = min(max(*[len(label) + 2 for row in cells for label in row], min_width), room)
    _print(cells, width, max(1, round(scale)), use_color and sys.stdout.isatty())


def _show_in_notebook(cells: list[list[str]]) -> bool:
    """Show a drawing where the program runs in a notebook, whose library is loaded then."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or not hasattr(shell, "kernel"):
        return False
    ipython.display.display(ShardingPicture(cells))
    return True


def _print(cells: list[list[str]], width: int, height: int, in_colour: bool) -> None:
    if in_colour:
        try:
            console = _console.Console()
        except ImportError:
            pass
        else:
            lines = drawn(cells, width, height, in_colour=True, paint=_mark)
            console.print("\n".join(lines), highlight=False, soft_wrap=True)
            return
    sys.stdout.write("\n".join(drawn(cells, width, height, in_colour)) + "\n")


def _mark(text: str, number: int) -> str:
    """Return a text on the background of a piece, in the words of `rich`."""
    return f"[black on {BACKGROUNDS[number % len(BACKGROUNDS)]}]{text}[/]"


def inspect_array_sharding(value: ArrayLike, *, callback: Callable[[Sharding], Any]) -> None:
    """Call a function with the sharding of an array.

    How a value inside a compiled program lies is decided when it is compiled: the function is
    called once then, not when the program runs again. Inside `shard_map` it gets the sharding of
    what a member has, which is whole along the axes of the members.

    Args:
      value: an array, or a traced value.
      callback: takes its sharding. Under `vmap` that is of the whole batch.

    Raises:
      TypeError: `callback` is not a function.
      ValueError: in a `shard_map` over some of the axes of a mesh, which leaves several others to
        the compiler.

    Example:
      >>> import numpy as np
      >>> from xjit import device_put, jit
      >>> from xpar import NamedSharding, P, make_mesh
      >>> @jit
      ... def f(x):
      ...     y = x.T
      ...     inspect_array_sharding(y, callback=lambda sharding: print(sharding.num_devices))
      ...     return y
      >>> x = device_put(np.ones((2, 3)), NamedSharding(make_mesh((1,), ("x",)), P("x")))
      >>> _ = f(x), f(x)
      1
    """
    check_function(callback, "inspect_array_sharding", "it takes the sharding")
    inspect_value(as_array(value, what="inspect_array_sharding"), callback)


boundaries(
    globals(), names=["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]
)
