"""Events of a process, for whoever counts them; why a call is traced again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from xprim import config
from xprim.errors import XStackRuntimeError, message, place_of
from xprim.strict_options import no_tracing
from xtree.errors import shown
from xtree.treedef import find_mismatches

if TYPE_CHECKING:
    from xjit.dispatch.arguments import Arguments

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs",
    "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_event_time_span_listener", "register_scalar_listener",
    "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener", "TRACED", "LOWERED",
    "COMPILED", "CACHE_HIT", "CACHE_MISS", "RetraceError", "check_retrace", "no_retrace",
    "retraces", "traces_are_counted", "pause_trace_counts",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ monitoring
# Events of a process, for whoever counts or exports them.
#
#     listener(event, **facts)                   what happened
#     listener(event, seconds, **facts)          how long it took
#     listener(event, start, end, **facts)       from when to when, in seconds of `time.time`
#     listener(event, value, **facts)            a number
#
# The library records, under the names that JAX has: each trace, lowering and compilation, with
# `fun_name`, and whether a program was in the cache on disk.

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


# ---------------------------------------------------------------------------------------- misses
# Why a call is traced: the first things in which it differs from the call traced before it.
#
# Keys hold whole structures, of a state of thousands of leaves maybe. What is said of them is the
# first place where they differ, and a bounded number of leaves.

_MOST = 3  # leaves that are told
_LONGEST = 60  # characters of a static value


class _Leaf(int):
    """Stands for a leaf in the description of a structure."""

    __qualname__ = "array"

    def __repr__(self) -> str:
        return "*"


def explain_miss(
    before: tuple[Any, ...] | None, after: tuple[Any, ...], arguments: Arguments
) -> str:
    """Say in what two keys of a function's cache differ.

    Args:
      before: (structure, statics, avals, context) of the last call that was traced, or None.
      after: the same of this call.
      arguments: of this call.
    """
    if before is None:
        return "it was not called before"
    reasons = []
    if before[0] != after[0]:
        reasons.append(f"the structure of the arguments: {_structures(before, after, arguments)}")
    elif before[2] != after[2]:
        reasons += _leaves(before[2], after[2], arguments)
    if before[1] != after[1]:
        name_of = arguments.signature.argument_name
        old, new = _statics(before[1], after[1], name_of), _statics(after[1], before[1], name_of)
        reasons.append(f"static values: {old} became {new}")
    if before[3] is not after[3]:
        reasons.append(f"options: {_options(before[3], after[3])}")
    return "; ".join(reasons) or "the function sees other values"


def _structures(before: tuple[Any, ...], after: tuple[Any, ...], arguments: Arguments) -> str:
    old, new = before[0], after[0]
    filled_old, filled_new = [tree.unflatten(map(_Leaf, range(tree.num_leaves)))
                              for tree in (old, new)]  # fmt: skip
    for prefix, full in ((old, filled_new), (new, filled_old)):
        for found in find_mismatches(prefix, full, limit=1):
            sides = (found.expected, found.got)
            one, other = sides if prefix is old else sides[::-1]
            if len(found.path) < 2:  # other numbers of arguments, or other names
                return f"{one} became {other}"
            return f"{arguments.name_of(found.path)}: {one} became {other}"
    return "other metadata"


def _leaves(before: Sequence[Any], after: Sequence[Any], arguments: Arguments) -> Iterator[str]:
    changed = [c for c in zip(arguments.names(), before, after, strict=True) if c[1] is not c[2]]
    for name, old, new in changed[:_MOST]:
        # an array here, a Python number there
        hint = f": pass an array each time, xnp.{new.dtype.name}({name})"
        hint = hint if old.strong() is new.strong() else ""
        yield f"{name}: {old.str_long()} became {new.str_long()}{hint}"
    if len(changed) > _MOST:
        yield f"and {len(changed) - _MOST} leaves more"


def _statics(statics: Any, other: Any, name_of: Callable[[Any], str]) -> str:
    """Return the static values that another call does not have."""
    changed = [pair for pair in statics if pair not in other]
    texts = [
        f"{name_of(where)}={_text(key)}" if type(key) is tuple else f"{key.__name__}s: {where}"
        for where, key in changed[:_MOST]
    ]
    more = [f"{len(changed) - _MOST} more"] if len(changed) > _MOST else []
    return ", ".join([*texts, *more]) or "none"


def _options(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Return the options that differ in two contexts, each with both values."""
    options = config.options()

    def values(context: Sequence[Any]) -> dict[str, Any]:
        names = config.names_in_trace_context()
        defaults = [options[name].default for name in names[len(context) :]]
        return dict(zip(names, [*context, *defaults], strict=True))

    old, new = values(before), values(after)
    changed = [name for name, value in new.items() if old[name] != value]
    return ", ".join([f"{name} {old[name]!r} became {new[name]!r}" for name in changed])


def _text(key: Any) -> str:
    """Return the value whose `static_key` this is, as it prints."""
    kind, *parts = key
    if kind is tuple:
        texts = ", ".join(map(_text, parts)) + "," * (len(parts) == 1)
        return f"({texts})" if len(texts) <= _LONGEST else f"({texts[:_LONGEST]}...)"
    return repr(float.fromhex(parts[0])) if kind is float else shown(parts[0], _LONGEST)


# -------------------------------------------------------------------------------------- retraces
# No surprise recompiles: a function that is traced again and again says why.
#
# What: the option `retraces`, `no_retrace`, and `check_retrace`, which looks at each trace to
# come. Idea: the first trace of a function is expected, the second may be another batch size;
# from the third on each is logged with what differs from the last one, as a log record of level
# WARNING. In a `no_retrace()` block, and beyond `jit(f, max_traces=n)`, it is an error.

logger = logging.getLogger("xjit")

retraces = config.define(
    config.Option(
        "retraces",
        "warn",
        "What happens when a function is traced again: a warning is logged from its third trace "
        "on, nothing, or an error from its second on.",
        choices=("warn", "allow", "raise"),
    )
)

_FIRST_TOLD = 3
_HINT = (
    "\n  hint      each takes a compilation; config.update('retraces', 'allow') is silent about it"
)


class RetraceError(XStackRuntimeError):
    """A function was traced more often than it may be.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> f = jit(lambda x: 1 + x + x, max_traces=1)
      >>> _ = f(np.ones(2))
      >>> f(np.ones(3))
      Traceback (most recent call last):
      xjit.debug.monitoring.RetraceError: jit: <lambda> would be traced for the 2nd time.
        got       x: float32[2] became float32[3]
        expected  at most 1 trace (max_traces)
    """


def no_retrace() -> config.Override:
    """Return a context in which it is an error to trace a function that was traced before.

    Functions that are compiled in it for the first time may be traced once.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> f = jit(lambda x: x * 2)
      >>> with no_retrace():
      ...     for batch in (np.ones(2), np.zeros(2)):
      ...         _ = f(batch)
    """
    return retraces("raise")


traces_are_counted: ContextVar[bool] = ContextVar("traces_are_counted", default=True)


@contextmanager
def pause_trace_counts() -> Iterator[None]:
    """Count no trace of the block as a retrace: it is made for an explanation, not for a call."""
    token = traces_are_counted.set(False)
    try:
        yield
    finally:
        traces_are_counted.reset(token)


def check_retrace(
    api: str, name: str, fun: Callable[..., Any], traces: int, own: int,
    limit: int | None, reason: Callable[[], str],
) -> None:  # fmt: skip
    """Tell or refuse a trace to come.

    Args:
      api: the public function that transforms it.
      name: of the function.
      fun: the function.
      traces: how many there are already, those of functions of equal code among them.
      own: how many of them it made itself.
      limit: how many it may make, None for any number.
      reason: says what differs from the last one.

    Raises:
      RetraceError: there are as many as there may be, or config.no_tracing is set.
    """
    if no_tracing.value:
        raise RetraceError(message(
            api, f"{name} would be traced where config.no_tracing is set.", where=place_of(fun),
        ))  # fmt: skip
    if not traces or not traces_are_counted.get():
        return
    mode = retraces.value
    is_beyond = own > 0 and limit is not None and own >= limit
    if mode == "raise" or is_beyond:
        count = own if is_beyond else traces
        raise RetraceError(message(
            api, f"{name} would be traced for the {_ordinal(count + 1)} time.", got=reason(),
            expected=f"at most {limit} trace{'s' * (limit != 1)} (max_traces)" if is_beyond
            else "no further trace (no_retrace, or the option retraces)",
            where=place_of(fun) if "<lambda>" not in name else "",
        ))  # fmt: skip
    if mode == "warn" and traces + 1 >= _FIRST_TOLD:
        told = "retrace %d of `%s` (%s): %s" + _HINT * (traces + 1 == _FIRST_TOLD)
        logger.warning(told, traces + 1, name, place_of(fun), reason())


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
