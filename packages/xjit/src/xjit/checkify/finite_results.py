"""Programs that say which equation made the first NaN or infinity, for `debug_nans`, `debug_infs`.

Neighbour: `xjit.checks` runs them.
"""

from __future__ import annotations

from typing import Any

from xjit.checkify.failures import check_of, no_failure
from xjit.checkify.rewriting import Asked, width_needed
from xprim import ClosedJaxpr, trace_to_jaxpr

__all__ = ()


def with_code(closed: ClosedJaxpr, options: frozenset[str]) -> ClosedJaxpr:
    """Return the program with one more result first: the number of the check that failed, or 0.

    Args:
      closed: the program.
      options: which are set, by name.
    """
    return closed.derived(_with_code, options)


def _with_code(closed: ClosedJaxpr, options: frozenset[str]) -> ClosedJaxpr:
    def program(*operands: Any) -> list[Any]:
        asked = Asked(options, width_needed(closed.jaxpr, options))
        state, outs = asked.run(closed, no_failure(asked.width), operands)
        return [state.code, *outs]

    return ClosedJaxpr(*trace_to_jaxpr(program, closed.in_avals, name=closed.jaxpr.name))


def place_of(code: int) -> str:
    """Return the operation of the check with a number, and the user's line."""
    check = check_of(code)
    return check.text + (f" at {check.where}" if check.where else "")
