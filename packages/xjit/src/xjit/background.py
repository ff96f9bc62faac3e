"""Work that nobody waits for, done by one thread, one after the other.

The thread is there while there is work, and takes no room otherwise. At the end of the interpreter
what has not begun is left out, and what has is waited for: until Python 3.14 a thread that comes
out of the runtime afterwards would end the process by a signal. A finaliser or a handler of a
signal may come by again in the same thread, so locks are re-entrant.
Neighbours: `first_tier` compiles here; `exits` ends the threads of users.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable

from xtree.locks import forkable_rlock

__all__ = ["InTurn", "Once"]

__dir__ = __all__.copy


class Once:
    """Work that is done by whoever comes first; who comes second waits until it is done.

    Example:
      >>> work = Once(lambda: print("done"))
      >>> work()
      done
      >>> work()
    """

    __slots__ = ("_lock", "_work")

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._lock = forkable_rlock()

    def __call__(self) -> None:
        """Do the work, or wait until it is done."""
        with self._lock:
            work, self._work = self._work, None
            if work is not None:
                work()


class InTurn:
    """A queue of work with a thread, which ends with the work.

    Args:
      name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._lock = forkable_rlock()
        self._is_over = False

    def add(self, work: Callable[[], None]) -> bool:
        """Have something done later, which raises nothing; False where the process is ending."""
        with self._lock:
            if self._is_over:
                return False
            self._work.append(work)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there can be no more threads
                    self._work.pop()
                    return False
                self._thread = thread
            return True

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._work:
                    self._thread = None
                    return
                work = self._work.popleft()
            work()
            del work  # it may hold programs that have died meanwhile

    def _end(self) -> None:
        """Leave out what has not begun, and wait for what has."""
        with self._lock:
            self._is_over = True
            self._work.clear()
        self.wait()

    def _forget(self) -> None:
        """Have no thread in a forked process, where it is not."""
        self._work.clear()
        self._thread = None

    def end_at_exit(self) -> InTurn:
        """Return this, which ends before the interpreter does, and is empty after a fork."""
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        return self
