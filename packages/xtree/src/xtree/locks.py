"""Locks that a forked process finds free.

A child made by `os.fork` has the memory of its parent but only the thread that forked: a lock that
another thread held at that moment would never be released in it. What these locks guard is whole
at any moment, so the child may take them.
Neighbours: `interning` and `registry` hold such locks, and so do the caches of other packages.
"""

from __future__ import annotations

import os
import threading
from typing import Any

__all__ = ["forkable_lock", "forkable_rlock"]

__dir__ = __all__.copy


def forkable_lock() -> threading.Lock:
    """Return a lock that is free in a forked child.

    Example:
      >>> with forkable_lock() as held:
      ...     held
      True
    """
    return _freed_in_child(threading.Lock())  # type: ignore[no-any-return]


def forkable_rlock() -> Any:
    """Return a lock that one thread may take several times, and that is free in a forked child."""
    return _freed_in_child(threading.RLock())


def _freed_in_child(lock: Any) -> Any:
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
