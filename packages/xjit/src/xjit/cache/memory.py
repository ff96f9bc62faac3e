"""Caches in memory: bounded, least recently used out first; locks by key; mappings."""

from __future__ import annotations

import gc
import logging
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from xprim.errors import OutOfMemoryError, message
from xtree.interning import forkable_lock, forkable_rlock

__all__ = ["LocksByKey"]

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------- locks by key
# Locks that are there for as long as somebody holds them or waits for them: one for each key.


class _Lock:
    """A lock of one key."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the same thread may come by again, by way of a finaliser

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self._lock.release()


class LocksByKey:
    """A lock for each key that is requested; a forked process begins without any.

    Example:
      >>> locks = LocksByKey()
      >>> with locks.of("a"), locks.of("b"), locks.of("a"):
      ...     len(locks)
      2
      >>> len(locks)
      0
    """

    def __init__(self) -> None:
        # One lock for each program that is being made, as long as someone waits.
        self._locks: weakref.WeakValueDictionary[Hashable, _Lock] = weakref.WeakValueDictionary()
        self._own = forkable_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._locks.clear)

    def __len__(self) -> int:
        return len(self._locks)

    def of(self, key: Hashable) -> _Lock:
        """Return the lock of a key."""
        with self._own:
            found = self._locks.get(key)
            if found is None:
                found = self._locks[key] = _Lock()
            return found


# -------------------------------------------------------------------------------------- mappings
# Room for compiled programs: Linux bounds the memory mappings of a process (`vm.max_map_count`).
#
# A program of the CPU takes a few mappings for each of its kernels, and XLA ends the process
# where it gets none. So mappings are counted as programs are compiled, and before they run short
# the programs that are only kept for later are forgotten, the least recently used first.

logger = logging.getLogger("xjit")

_MAPPINGS = Path("/proc/self/maps")
_LIMIT = Path("/proc/sys/vm/max_map_count")
_PER_OPERATION = 4  # mappings: measured 3 for each kernel, and an operation is a kernel at most
# Linux's own limit. Where a system allows more, programs that are only kept stop at the same
# number: 160 operations hold some 80 mappings and 4 MB, so half of it is 1.6 GB.
_USUAL_LIMIT = 65_530


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
        self._in_use = 0  # were left when everything had been forgotten
        self._forgetters: list[Callable[[float], None]] = []

    def when_short(self, forget: Callable[[float], None]) -> None:
        """Have a table forget that share of its programs when mappings run short."""
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
        usual = min(self._limit, _USUAL_LIMIT) // 2
        most = min(max(usual, 2 * self._in_use), self._limit // 2)
        if self._known + self._since < most:
            return
        self._recount()
        for share in (0.5, 1.0):
            if self._known + needed < most:
                return
            self._forget(share)
        self._in_use = self._known
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
        logger.info("dropped cached programs: %d memory mappings became %d", before, self._known)

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


# ---------------------------------------------------------------------------------- cache memory
# Caches in memory: bounded, the least recently used entries out first.
#
# A `Bounded` cache may weigh its entries (bytes of captured arrays), so that neither many small
# nor a few large ones pile up. Keys may hold weak identities (`xprim.function_keys`): an entry
# whose function died is never hit again, and goes when it is the oldest.

T = TypeVar("T")


class Bounded(Generic[T]):
    """A dictionary that forgets the least recently used entries.

    Args:
      capacity: the largest sum of weights; the newest entry stays whatever it weighs.
      weigh: the weight of an entry; by default each weighs 1.

    Example:
      >>> cache = Bounded(2)
      >>> for key in "abc":
      ...     cache.put(key, key.upper())
      >>> cache.get("a"), cache.get("c"), len(cache)
      (None, 'C', 2)
    """

    def __init__(self, capacity: float, weigh: Callable[[T], float] | None = None) -> None:
        self.capacity = capacity
        self._weigh = weigh
        self._entries: OrderedDict[Hashable, tuple[T, float]] = OrderedDict()
        self._total = 0.0
        self._lock = forkable_rlock()  # re-entrant: finalisers may remove entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> T | None:
        """Return an entry and mark it as used, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T) -> None:
        """Add or replace an entry and drop the oldest ones beyond the capacity."""
        weight = 1.0 if self._weigh is None else self._weigh(value)
        dropped = []  # die after the lock is released
        with self._lock:
            self._discard(key)
            self._entries[key] = (value, weight)
            self._total += weight
            while self._total > self.capacity and len(self._entries) > 1:
                _, (old, lost) = self._entries.popitem(last=False)
                self._total -= lost
                dropped.append(old)

    def reweigh(self, key: Hashable) -> None:
        """Weigh an entry again, after it has grown."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self.put(key, found[0])

    def remove(self, key: Hashable) -> None:
        """Drop an entry if it is there."""
        with self._lock:
            self._discard(key)

    def forget(self, share: float) -> None:
        """Drop a share of the entries, the least recently used ones."""
        with self._lock:
            count = math.ceil(share * len(self._entries))
            oldest = [self._entries.popitem(last=False) for _ in range(count)]
            self._total -= sum([weight for _, (_, weight) in oldest])
        oldest.clear()  # they die here, after the lock is released

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()
            self._total = 0.0

    def _discard(self, key: Hashable) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._total -= found[1]
