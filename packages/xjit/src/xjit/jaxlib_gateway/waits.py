"""Waiting for the runtime while other processes may fail.

The runtime waits in C++ for values of other processes, for ever if one of them has stopped. Where
processes work together somebody watches them (`watch`): then waiting is asking again and again, and
the watcher may raise in between.

Neighbours: `processes` joins the processes; `buffers` waits for results here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .runtime import RuntimeFailure

__all__ = ()

T = TypeVar("T")


class Watcher(Protocol):
    """Who knows whether the other processes live."""

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return when `is_done` says so; raise where that will not come."""

    def explain(self, failure: BaseException) -> None:
        """Raise what stands behind a failure of the runtime, or return where nothing is known."""

    def agree(self, text: str, name: str, devices: tuple[Any, ...]) -> None:
        """Raise where other processes compile another program for their part of these devices."""


watch: list[Watcher | None] = [None]
"""Who watches the other processes, if there are any."""


def until_ready(buffer: Any) -> None:
    """Wait until a buffer is computed.

    Raises:
        RuntimeFailure: it was not computed, or is deleted.
    """
    watcher = watch[0]
    if watcher is None or buffer.is_deleted():
        buffer.block_until_ready()
        return
    watcher.wait(buffer.is_ready)
    try:
        buffer.block_until_ready()
    except RuntimeFailure as failure:
        watcher.explain(failure)
        raise


def watched(work: Callable[[], T]) -> T:
    """Return the result of work that waits for other processes in C++."""
    watcher = watch[0]
    if watcher is None:
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="xjit: waiting for other processes", daemon=True)
    thread.start()
    watcher.wait(lambda: not thread.is_alive())
    if errors:
        watcher.explain(errors[0])
        raise errors[0]
    return results[0]
