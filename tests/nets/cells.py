"""What a run draws of a wide net: a sample of its cells, or all of them.

A net is a generated table of cells (a function, a dtype, a special value, a transformation, ...)
with one check for all. An ordinary run tries a sample, the same at every run, so that a failure
blames the change that made it; `nox -s fuzz` (which sets `FUZZ_PROGRAMS`) tries all, of nets of
nested transformations cells with all combinations of a few of them, and of the longest a part each
day. A net's tests are marked `fuzz`. A parametrised test elsewhere is marked `sampled(every=N)`,
which the root's `conftest.py` reads: its cells are all collected, and most of them not run.
"""

from __future__ import annotations

import itertools
import os
import random
import zlib
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

IN_FULL = "FUZZ_PROGRAMS" in os.environ
PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "0"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))  # `nox -s fuzz` sets it: another one each day
UNOPTIMISED_CODE = {"xla_backend_optimization_level": 0}
COMPILER_OPTIONS = {} if IN_FULL else UNOPTIMISED_CODE
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


def in_turn(cells: Sequence[_T], days: int) -> Sequence[_T]:
    """Return one of so many cells in a full run, others at each `FUZZ_SEED`, and else all.

    For tables whose oracle takes longer than what is compared: in so many days all are tried.
    """
    return cells[SEED % days :: days] if IN_FULL else cells


def seeds(ordinary: range, one_of: int = 1, part: int = 0, parts: int = 1) -> range:
    """Return the seeds of the random programs that this run draws.

    Args:
      ordinary: those of an ordinary run.
      one_of: the full run draws one for so many of `FUZZ_PROGRAMS`, others at each `FUZZ_SEED`.
      part: which part of them, so that several processes share the work.
      parts: how many parts there are.
    """
    start = SEED * PROGRAMS % 2**24  # few enough bits for every generator
    return (range(start, start + PROGRAMS // one_of) if IN_FULL else ordinary)[part::parts]


def covering(
    cells: Sequence[_T], factors: Callable[[_T], Sequence[Hashable]], strength: int
) -> list[_T]:
    """Return cells that have every combination of so many factors that occurs in a table.

    With all combinations of three of the five factors of a nest (a rule, what is inside of it, what
    is outside) a tenth of the cells is enough; another seed (`FUZZ_SEED`) draws others. An ordinary
    run takes a sample of all cells instead.

    Source: D. R. Kuhn, D. R. Wallace and A. M. Gallo, Software fault interactions and implications
    for software testing, IEEE Transactions on Software Engineering 30 (2004).

    Args:
      cells: all cells of the net.
      factors: returns the values of a cell's factors, as many for each cell.
      strength: how many factors are combined.
    """
    if not IN_FULL:
        return list(cells)
    seen: set[Hashable] = set()
    chosen: list[int] = []
    for k in random.Random(SEED).sample(range(len(cells)), len(cells)):
        combinations = {*itertools.combinations(enumerate(factors(cells[k])), strength)}
        if not combinations <= seen:
            seen |= combinations
            chosen.append(k)
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
