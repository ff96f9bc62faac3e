"""Pictures of how arrays lie as SVG, for notebooks and files.

Neighbours: `sharding_cells` finds what stands in the pieces, and draws it as text.
"""

from __future__ import annotations

import html
import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from xjit.named_shardings import resolved
from xjit.shardings import Sharding
from xpar.sharding_cells import cells_of, drawn
from xprim import as_array
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import PyTree, ShardingLike

__all__ = ["ShardingPicture", "sharding_picture"]

__dir__ = __all__.copy

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
      sharding: how an array of this shape would lie: a sharding, or a partition spec over the mesh
        that is set.

    Returns:
      A picture, which notebooks show; `save(path)` writes it to a file.

    Raises:
      TypeError: a traced value, or what is no sharding.
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
    found = resolved(sharding, "sharding_picture")
    if not isinstance(found, Sharding):
        raise TypeError(message("sharding_picture", "this is no sharding.", got=repr(sharding)))
    found.check_shape(tuple(x), "sharding_picture")
    return ShardingPicture(cells_of(found, len(tuple(x))))
