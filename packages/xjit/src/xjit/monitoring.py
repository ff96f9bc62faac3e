"""Events of a process, for whoever counts or exports them.

    listener(event, **facts)                   what happened
    listener(event, seconds, **facts)          how long it took
    listener(event, start, end, **facts)       from when to when, in seconds of `time.time`
    listener(event, value, **facts)            a number

The library records, under the names that JAX has: each trace, lowering and compilation, with
`fun_name`, and whether a program was in the cache on disk.

Neighbours: `function_caches`, `program` and `compile` record; `xstack.testing` counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xprim.errors import message

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener", "TRACED", "LOWERED",
    "COMPILED", "CACHE_HIT", "CACHE_MISS",
]  # fmt: skip

__dir__ = __all__.copy

# The names are those that JAX records (jax/_src/dispatch.py, jax/_src/compiler.py).
TRACED: Final = "/jax/core/compile/jaxpr_trace_duration"
LOWERED: Final = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED: Final = "/jax/core/compile/backend_compile_duration"
CACHE_ASKED: Final = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"
CACHE_MISS: Final = "/jax/compilation_cache/cache_misses"

Listener = Callable[..., None]


class _Listeners:
    """Those who listen to one kind of events; a tuple, so that recording needs no lock."""

    __slots__ = ("_all", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._all: tuple[Listener, ...] = ()

    def add(self, callback: Listener) -> None:
        """Have a function called at each event."""
        self._all = (*self._all, callback)

    def remove(self, callback: Listener) -> None:
        """Have it called no more."""
        kept = list(self._all)
        try:
            kept.remove(callback)
        except ValueError:
            raise ValueError(message(
                f"unregister_{self.kind}_listener", "this function is not registered.",
                got=repr(callback),
            )) from None  # fmt: skip
        self._all = tuple(kept)

    def clear(self) -> None:
        """Forget all."""
        self._all = ()

    def record(self, *values: Any, **facts: Any) -> None:
        """Call all."""
        for callback in self._all:
            callback(*values, **facts)


_events = _Listeners("event")
_durations = _Listeners("event_duration")
_spans = _Listeners("event_time_span")
_scalars = _Listeners("scalar")


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners that something happened.

    Example:
      >>> seen = []
      >>> register_event_listener(lambda event, **facts: seen.append((event, facts)))
      >>> record_event("/mine/retried", attempt=2)
      >>> seen
      [('/mine/retried', {'attempt': 2})]
      >>> clear_event_listeners()
    """
    _events.record(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners how many seconds something took."""
    _durations.record(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell the listeners from when to when something went on."""
    _spans.record(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell the listeners a number."""
    _scalars.record(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have `callback(event, **facts)` called by `record_event`."""
    _events.add(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have `callback(event, seconds, **facts)` called by `record_event_duration_secs`."""
    _durations.add(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Have `callback(event, start, end, **facts)` called by `record_event_time_span`."""
    _spans.add(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Have `callback(event, value, **facts)` called by `record_scalar`."""
    _scalars.add(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Take back `register_event_listener`.

    Raises:
      ValueError: it is not registered.
    """
    _events.remove(callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Take back `register_event_duration_secs_listener`.

    Raises:
      ValueError: it is not registered.
    """
    _durations.remove(callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Take back `register_event_time_span_listener`.

    Raises:
      ValueError: it is not registered.
    """
    _spans.remove(callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Take back `register_scalar_listener`.

    Raises:
      ValueError: it is not registered.
    """
    _scalars.remove(callback)


def clear_event_listeners() -> None:
    """Forget all listeners of all kinds."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
