"""Locks that are there for as long as somebody holds them or waits for them: one for each key.

Neighbour: `compile` has threads that want the same program wait for the one that compiles it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable
from types import TracebackType

from xtree.locks import forkable_lock

__all__ = ["LocksByKey"]

__dir__ = __all__.copy


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
    """A lock for each key that is asked for; a forked process begins without any.

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
