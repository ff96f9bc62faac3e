"""Programs that call Python, while they run.

What: `CompiledCallback`, which the runtime calls; `run_and_wait`, which starts a program with such
functions; `effects_barrier`.
Idea: a call of a program that calls Python is over when the program is. So what a program prints
is there when its call returns, calls of one thread have their effects in order, and the exception
of a function is raised where the program was called, as the object that it is. The runtime passes
on nothing but a text, so the exception waits here under a number that stands in the text.
A program waits for its functions, on a thread that other programs may need, so what a function of
Python computes with compiled functions is computed by NumPy: it never waits for the runtime.
Neighbours: `callback_primitive` writes the calls, `program` runs programs.
"""

from __future__ import annotations

import itertools
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit.jaxlib_gateway import RuntimeFailure
from xprim import EAGER_ON_HOST, ShapedArray, config, state
from xprim.errors import message
from xtree.locks import forkable_lock

__all__ = ["CompiledCallback", "effects_barrier", "run_and_wait"]

__dir__ = __all__.copy

_MAX_KEPT = 64  # exceptions of replicas that failed together: one of them is raised
_numbers = itertools.count()
# Errors of callbacks on their way through the runtime, which carries numbers alone.
_raised: dict[int, BaseException] = {}
_lock = forkable_lock()
_MARK = "the exception of a Python function, number "
_NUMBER = re.compile(re.escape(_MARK) + r"(\d+)")


class CompiledCallback:
    """What the runtime calls: a host function, seen from inside a program.

    Args:
      host: the function.
      avals: the abstract values of the results, that of the order first if there is one.
      ordered: whether the first operand and result only keep the order.
    """

    __slots__ = ("avals", "host", "ordered")

    def __init__(self, host: Any, avals: tuple[ShapedArray, ...], ordered: bool) -> None:
        self.host = host
        self.avals = avals[1:] if ordered else avals
        self.ordered = ordered

    def __call__(self, *operands: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        """Call the function, whatever thread this is; keep its exception for the one that waits."""
        previous, state.trace = state.trace, EAGER_ON_HOST
        outer, _thread.is_callback = _thread.is_callback, True
        me = threading.get_ident()
        _in_python.add(me)
        try:
            order, rest = (operands[:1], operands[1:]) if self.ordered else ((), operands)
            results = self.host(rest, self.avals)
        except BaseException as error:
            raise RuntimeError(f"{_MARK}{_kept(error)}") from None
        finally:
            state.trace = previous
            _thread.is_callback = outer
            if not outer:
                _in_python.discard(me)
        return (*order, *[np.asarray(x, order="C") for x in results])


_in_python: set[int] = set()
"""The threads that run a Python function of a program now."""


class _Thread(threading.local):
    is_callback = False


_thread = _Thread()


def _kept(error: BaseException) -> int:
    with _lock:
        number = next(_numbers)
        _raised[number] = error
        if len(_raised) > _MAX_KEPT:
            del _raised[next(iter(_raised))]
    return number


_running: set[threading.Event] = set()


def run_and_wait(
    start: Callable[..., Any], buffers: Sequence[Any], handlers: Sequence[Any]
) -> list[Any]:
    """Start a program that calls Python, wait until it is over, and return its results.

    Raises:
      RuntimeFailure: the program failed.
      BaseException: what a Python function of it raised.
    """
    over = threading.Event()
    _running.add(over)
    try:
        if not handlers:
            start(buffers, with_tokens=True).consume_token().block_until_ready()
            return []
        outs: list[Any] = start(buffers).consume_with_handlers(handlers)
        for out in outs:
            out.block_until_ready()
        return outs
    except RuntimeFailure as failure:
        found = _NUMBER.search(str(failure))
        error = _raised.pop(int(found.group(1)), None) if found else None
        if error is None:
            raise
    finally:
        _running.discard(over)
        over.set()
    raise error


callback_deadlock_seconds = config.define(
    config.Option[int](
        "callback_deadlock_seconds",
        30,
        "A program that waits for another one, whose Python function waits for a thread for so "
        "many seconds, raises; 0 has it wait for ever.",
        kind=int,
    )
)

_PAUSE = 0.001  # between two looks, in seconds
_WAITING = frozenset([threading.__file__, queue.__file__])


def wait_for_callbacks(is_over: Callable[[], bool]) -> None:
    """Wait until a program that calls Python is over.

    Its function may wait for a thread that waits here, which would never end: nobody can tell for
    certain, but a function that does nothing but wait for other threads, for long, is suspicious.

    Raises:
      RuntimeError: that is so for `callback_deadlock_seconds`.
    """
    limit = callback_deadlock_seconds.value
    since, seen = time.monotonic(), None
    while not is_over():
        now = time.monotonic()
        places = _where_functions_wait()
        if places is None or places != seen:
            since, seen = now, places
        elif limit and now - since > limit:
            raise RuntimeError(message(
                "callback", "a program waits for another one, whose Python function waits for a "
                "thread.", got=f"{len(places)} functions that have waited for over {limit} s",
                hint="start no program over several devices in a thread that a callback waits for; "
                "config.callback_deadlock_seconds says how long may be waited",
            ))  # fmt: skip
        time.sleep(_PAUSE)


def _where_functions_wait() -> list[tuple[int, int]] | None:
    """Return where each running function waits for other threads, None if one does anything."""
    frames = sys._current_frames()
    found = [frames[ident] for ident in list(_in_python) if ident in frames]
    if not found or any(frame.f_code.co_filename not in _WAITING for frame in found):
        return None
    return [(id(frame), frame.f_lasti) for frame in found]


def effects_barrier() -> None:
    """Wait until the effects of all programs that run are done, those of other threads included.

    A call of a program with callbacks or prints returns when the program is over, so a thread has
    nothing of its own to wait for.

    Raises:
      RuntimeError: it is called by a callback, which would wait for itself.

    Example:
      >>> effects_barrier()
    """
    if _thread.is_callback:
        raise RuntimeError(message(
            "effects_barrier", "a callback cannot wait for the program that calls it.",
            hint="call it where the compiled function is called",
        ))  # fmt: skip
    for over in list(_running):
        over.wait()
