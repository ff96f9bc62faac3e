"""Room for compiled programs: Linux bounds the memory mappings of a process (`vm.max_map_count`).

A program of the CPU takes a few mappings for each of its kernels, and XLA ends the process where it
gets none. So mappings are counted as programs are compiled, and before they run short the programs
that are only kept for later are forgotten, the least recently used first.

Neighbours: `compile` asks for room; the tables that keep programs say how to forget some.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path

from xprim.errors import OutOfMemoryError, message

__all__ = ()

logger = logging.getLogger("xjit")

_MAPPINGS = Path("/proc/self/maps")
_LIMIT = Path("/proc/sys/vm/max_map_count")
_PER_OPERATION = 4  # mappings: measured 3 for each kernel, and an operation is a kernel at most


class Room:
    """Counts mappings, roughly, and has programs forgotten in time.

    Args:
      limit: how many mappings the process may have; None where that is not bounded.
      count: says how many it has; it reads a file of a line for each.
    """

    def __init__(self, limit: int | None, count: Callable[[], int]) -> None:
        self._limit = limit
        self._count = count
        self._known = 0
        self._since = 0  # at most so many more since they were counted
        self._forgetters: list[Callable[[float], None]] = []

    def when_short(self, forget: Callable[[float], None]) -> None:
        """Have a table asked, when mappings run short, to forget that share of its programs."""
        self._forgetters.append(forget)

    def make(self, text: str) -> None:
        """Make room for a program of this text.

        Raises:
          OutOfMemoryError: the programs that are in use leave none.
        """
        if self._limit is None:
            return
        needed = _PER_OPERATION * text.count("\n")
        self._since += needed
        if self._known + self._since < self._limit // 2:
            return
        self._recount()
        for share in (0.5, 1.0):
            if self._known + needed < self._limit // 2:
                return
            self._forget(share)
        if self._known > 0.9 * self._limit:
            raise OutOfMemoryError(
                message(
                    "compile", "the process has no room for another program.",
                    got=f"{self._known} memory mappings, of {self._limit} that Linux allows",
                    hint="programs are freed with the jitted functions that hold them; sysctl\n"
                    "vm.max_map_count says how many mappings a process may have",
                )
            )  # fmt: skip

    def _forget(self, share: float) -> None:
        before = self._known
        for forget in self._forgetters:
            forget(share)
        gc.collect()
        self._recount()
        logger.info("forgot kept programs: %d memory mappings became %d", before, self._known)

    def _recount(self) -> None:
        self._known, self._since = self._count(), 0


def _limit() -> int | None:
    try:
        return int(_LIMIT.read_text()) if _MAPPINGS.exists() else None
    except (OSError, ValueError):
        return None


def _count() -> int:
    with _MAPPINGS.open("rb") as lines:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(1 << 20), b""))


room = Room(_limit(), _count)
