"""Caches in memory: bounded, the least recently used entries out first.

A `Bounded` cache may weigh its entries (bytes of captured arrays), so that neither many small nor
a few large ones pile up. Keys may hold weak identities (`xprim.function_keys`): an entry whose
function died is never found again, and goes when it is the oldest.

Neighbours: `jit` keeps the programs of functions here, `compile` the executables of texts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from xtree.locks import forkable_rlock

__all__ = ()

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
