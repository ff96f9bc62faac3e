"""The trace that interprets operations now, for libraries that install one of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xprim import EAGER, Trace, check_no_leaks, state
from xprim.tracebacks import boundaries

__all__ = ["find_top_trace", "set_current_trace", "take_current_trace", "trace_state_clean"]

__dir__ = __all__.copy


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Give the current trace, and evaluate operations inside the block.

    Example:
      >>> with take_current_trace() as trace:
      ...     trace.name
      'eager'
    """
    trace = state.trace
    with set_current_trace(EAGER):
        yield trace


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """Have a trace interpret the operations inside the block.

    Args:
      trace: as `take_current_trace` gives it, or of a class of one's own.
      check_leaks: whether values of that trace that live on after the block are an error.

    Raises:
      UnexpectedTracerError: naming such a value, and what holds it.

    Example:
      >>> with take_current_trace() as trace, set_current_trace(trace):
      ...     state.trace is trace
      True
    """
    previous = state.trace
    state.trace = trace
    try:
        yield
    finally:
        state.trace = previous
    if check_leaks:
        check_no_leaks(trace)


def find_top_trace(_values: Any = ()) -> Trace:
    """Return the trace that interprets operations now, whatever the values.

    Example:
      >>> find_top_trace().name
      'eager'
    """
    return state.trace


def trace_state_clean() -> bool:
    """Return whether operations are evaluated at once: no transformation is at work.

    Example:
      >>> trace_state_clean()
      True
    """
    return state.trace is EAGER


boundaries(globals())
