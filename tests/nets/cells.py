"""What a run draws of a wide net: a sample of its cells, or all of them.

A net is a generated table of cells (a function, a dtype, a special value, a transformation, ...)
with one check for all. An ordinary run tries a sample, the same at every run, so that a failure
blames the change that made it; `nox -s fuzz` (which sets `FUZZ_PROGRAMS`) tries all. A net's tests
are marked `fuzz`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

IN_FULL = "FUZZ_PROGRAMS" in os.environ
_T = TypeVar("_T")


def drawn(cells: Sequence[_T], at_most: int) -> list[_T]:
    """Return the cells that this run tries, in their order.

    Args:
      cells: all cells of the net.
      at_most: how many an ordinary run tries.
    """
    if IN_FULL or len(cells) <= at_most:
        return list(cells)
    chosen = random.Random(0).sample(range(len(cells)), at_most)
    return [cells[k] for k in sorted(chosen)]
