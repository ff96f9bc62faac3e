"""What a thread is doing now: its trace, its options, named axes, name scopes and source override.

All of it lives in one `threading.local` (a `ContextVar` would be copied into worker threads, which
would then record into a stranger's jaxpr). An attribute of such an object costs 60 ns, its
dictionary 28 ns and each item of that 10 ns, so hot code takes the dictionary once:

    now = state.__dict__
    if now["trace"] is EAGER:
        kernel = table.get((*key, now["options"]))

`ThreadItems` says what is in it.

Neighbours: `trace` has the functions by which the other code reads and writes this, `config` the
options, `kernels` the tables that are keyed by them.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np

if TYPE_CHECKING:
    from xprim.derived_cells import Asked
    from xprim.source import Source
    from xprim.trace import Trace

__all__ = ["STALE", "ThreadItems", "ThreadState", "no_more_threads", "state", "threads_seen"]

__dir__ = __all__.copy


class ThreadItems(TypedDict):
    """The items of `state.__dict__`, which are the attributes of `state`.

    Attributes:
      trace: the trace that interprets primitives now.
      options: stands for the values of all options on which programs depend, as the last call of
        `config.trace_context` found them; `STALE` before, and when the thread enters or leaves a
        scope of other values. Part of the key of whatever depends on them.
      axis_sizes: the named axes in scope; replaced, never written to.
      name_stack: the names of the scopes that the thread is in.
      source: the user's line for all operations, or None where each looks for its own.
      run_quietly: calls a function with NumPy's floating-point warnings off, which rules expect. A
        `contextvars` context of the thread costs 0.1 us, `np.errstate` 0.5 us.
      derived_cells: who asks for the cells of the next program that is derived: `derived_cells`.
      constant_cells: how many programs were staged that have values of cells as constants.
    """

    trace: Trace
    options: tuple[int, Any]
    axis_sizes: Mapping[Any, int]
    name_stack: tuple[str, ...]
    source: Source | None
    run_quietly: Callable[..., Any]
    derived_cells: Asked | None
    constant_cells: int


STALE: Final[tuple[int, Any]] = (-1, None)

threads_seen: set[int] = set()
"""The identifiers of all threads that have used the library; of ended ones, too."""

no_more_threads: Final = threading.Event()
"""Set when the interpreter ends: then a thread that uses the library for the first time ends."""


class ThreadState(threading.local):
    """The state of each thread: see `ThreadItems` for its attributes."""

    __dict__: ThreadItems  # type: ignore[assignment]  # declared: others may read it

    trace: Trace  # that of the class is where threads start
    options: tuple[int, Any]
    axis_sizes: Mapping[Any, int]
    name_stack: tuple[str, ...]
    source: Source | None
    run_quietly: Callable[..., Any]
    derived_cells: Asked | None
    constant_cells: int

    def __init__(self) -> None:
        self.trace = getattr(type(self), "trace", None)  # type: ignore[assignment]
        self.options = STALE
        self.axis_sizes = MappingProxyType({})
        self.name_stack = ()
        self.source = None
        self.derived_cells = None
        self.constant_cells = 0
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        threads_seen.add(threading.get_ident())
        if no_more_threads.is_set():
            raise SystemExit
        self.run_quietly = context.run


state = ThreadState()
