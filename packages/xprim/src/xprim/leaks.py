"""Find traced values that are kept beyond the function that was traced.

Nothing is recorded while tracing. With the option `check_tracer_leaks`, the end of a scope looks
among all objects that the garbage collector knows for tracers of the trace that ends, and says what
holds them. That is slow, and costs nothing when the option is off.
"""

from __future__ import annotations

import gc
import types
from typing import Any

from xprim.descriptions import with_article
from xprim.errors import UnexpectedTracerError
from xprim.trace import Trace, Tracer

__all__ = ()

_HINT = (
    "return the value from the transformed function instead of keeping it elsewhere\n"
    "(in a list, an attribute, a global)"
)


def check_no_leaks(trace: Trace) -> None:
    """Raise when a tracer of a trace that has ended is still alive.

    The caller drops its own references first.

    Raises:
      UnexpectedTracerError: naming the operation that made the value and what holds it.
    """
    gc.collect()
    # Their types: `isinstance` would ask other libraries' objects for `__class__`, and some warn.
    leaked = [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x._trace is trace]
    if not leaked:
        return
    tracer = leaked[0]
    holders = [_described(h) for h in gc.get_referrers(tracer) if _holds(h, leaked)]
    del leaked
    kept = f", kept in {holders[0]}" if holders else ""
    raise UnexpectedTracerError(
        tracer,
        problem=f"a traced value is still alive when its transformation ends{kept}.",
        hint=_HINT,
    )


def _holds(holder: Any, own: list[Tracer]) -> bool:
    return holder is not own and not isinstance(holder, types.FrameType | Trace)


def _described(holder: Any) -> str:
    if isinstance(holder, types.CellType):
        return "the closure of a function"
    if isinstance(holder, dict):
        names = [str(k) for k, v in holder.items() if isinstance(v, Tracer)]
        return f"a dict under {names[0]!r}" if names else "a dict"
    size = f" of length {len(holder)}" if isinstance(holder, list | tuple | set) else ""
    return f"{with_article(type(holder).__name__)}{size}"
