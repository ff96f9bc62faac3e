"""No surprise recompiles: a function that is traced again and again says why.

What: the option `retraces`, `no_retrace`, and `check_retrace`, which looks at each trace to come.
Idea: the first trace of a function is expected, the second may be another batch size; from the
third on each is told with what differs from the last one, as a log record of level WARNING. In a
`no_retrace()` block, and beyond `jit(f, max_traces=n)`, it is an error.

Neighbours: `function_caches` finds out that there is no trace, `arguments` what differs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from xprim import config
from xprim.descriptions import place_of
from xprim.errors import XStackRuntimeError, message
from xprim.seldom_options import no_tracing

__all__ = ["RetraceError", "check_retrace", "no_retrace", "retraces"]

__dir__ = __all__.copy

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
      xjit.retraces.RetraceError: jit: <lambda> would be traced for the 2nd time.
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
    if not traces:
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
