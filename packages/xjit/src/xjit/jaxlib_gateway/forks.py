"""After a fork: the child has the memory of its parent, and none of its threads.

The runtime's threads do the work of programs and copies, so whatever needs them in the child would
wait for ever. `startable` knows all that can start a program; in the child each is made to raise.
Memory on the host stays readable. A parent that has used no device leaves nothing to guard.
Neighbours: `clients` notes that devices are in use, `buffers` asks before it waits.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from xprim.errors import message

from .runtime import XlaError

__all__ = ()

in_use = [False]
"""Whether this process has made a client."""

is_orphan = [False]
"""Whether this process was forked from one that had."""

# What starts a program: in a child of a fork all of these refuse.
_startable: weakref.WeakSet[Any] = weakref.WeakSet()
_callbacks: list[Callable[[], None]] = []


def guard_forks() -> None:
    """Have children of this process look after themselves.

    To be called once, when all locks exist: children free them in the order of their making, and
    what is done here takes some.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=_in_child)


def startable(x: Any) -> None:
    """Note an object whose attribute `start` starts a program."""
    _startable.add(x)


def when_orphaned(callback: Callable[[], None]) -> None:
    """Have `callback` called in a child that cannot use the devices of its parent."""
    _callbacks.append(callback)


def refuse(*_: Any) -> NoReturn:
    """Raise the error for the use of a device in such a child."""
    raise XlaError(message(
        "devices", "this process was forked from one that had used them, and has none.",
        expected="a process of its own, or work that NumPy does",
        hint="multiprocessing.get_context('spawn') starts processes that can use devices;\nso does "
        "a fork before the first use of a device",
    ))  # fmt: skip


def check() -> None:
    """Raise where devices are out of reach."""
    if is_orphan[0]:
        refuse()


def _in_child() -> None:
    if not in_use[0]:
        return
    is_orphan[0] = True
    for x in list(_startable):
        x.start = refuse
    for callback in _callbacks:
        callback()
