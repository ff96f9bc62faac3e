"""What a run draws of a wide net: a sample of its cells, or all of them.

A net is a generated table of cells (a function, a dtype, a special value, a transformation, ...)
with one check for all. An ordinary run tries a sample, the same at every run, so that a failure
blames the change that made it; `nox -s fuzz` (which sets `FUZZ_PROGRAMS`) tries all. A net's tests
are marked `fuzz`. A parametrised test elsewhere is marked `sampled(every=N)`, which the root's
`conftest.py` reads: its cells are all collected, and most of them not run.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Hashable, Sequence
from typing import TypeVar

IN_FULL = "FUZZ_PROGRAMS" in os.environ
COMPILER_OPTIONS = {} if IN_FULL else {"xla_backend_optimization_level": 0}
"""For `jit` of programs of hundreds of operations: LLVM takes a third of the time that it takes to
optimise them."""

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


def spread(name: str, groups: Sequence[Hashable], every: int) -> list[int]:
    """Return which cells of a table an ordinary run tries: evenly spread, one of a group at least.

    Args:
      name: of the test. Tests of the same table begin at different cells, so that together they
        try more of it.
      groups: for each cell what must not be left out with it, such as the primitive.
      every: one of so many cells of each group is tried.
    """
    positions: dict[Hashable, list[int]] = {}
    for k, group in enumerate(groups):
        positions.setdefault(group, []).append(k)
    chosen: list[int] = []
    for number, cells in enumerate(positions.values()):
        first = (zlib.crc32(name.encode()) + number) % min(every, len(cells))
        chosen += cells[first::every]
    return sorted(chosen)
