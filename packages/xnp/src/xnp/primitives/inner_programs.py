"""What the rules of primitives that hold programs share: rewriting inner jaxprs, and running them.

A rule that derives a program keeps it in the memo of the program it came from, so that a second
call only dispatches. `derived` does that; the other functions rewrite arguments and results.

Neighbours: `cond`, `while_loop`, `scan`; `xprim.calls` has the bookkeeping of tangents and masks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from xprim import (
    ClosedJaxpr,
    ShapedArray,
    Var,
    closed_without_dead_code,
    trace_to_jaxpr,
)
from xprim.calls import where_true
from xprim.derived_cells import kept

__all__ = ()

T = TypeVar("T")


def derived(closed: ClosedJaxpr, key: Hashable, make: Callable[[], T]) -> T:
    """Return what `make()` derives from a program, from the program's memo when it has it."""
    return kept(closed.memo, key, make)


def split_at(values: Sequence[T], *counts: int) -> list[list[T]]:
    """Cut a sequence into pieces of the given lengths and the rest."""
    pieces, start = [], 0
    for count in counts:
        pieces.append(list(values[start : start + count]))
        start += count
    return [*pieces, list(values[start:])]


def grown_mask(
    transformed: Callable[[list[bool]], tuple[Any, Sequence[bool]]], carry: list[bool]
) -> tuple[Any, list[bool], list[bool]]:
    """Grow the mask of the carry until the body keeps it; return what the body became, and masks.

    Args:
      transformed: from a mask of the carry to the transformed body and the mask of its results.
      carry: the mask at the start.
    """
    while True:
        result, out = transformed(carry)
        joint = [a or b for a, b in zip(carry, out[: len(carry)], strict=True)]
        if joint == carry:
            return result, carry, list(out[len(carry) :])
        carry = joint


def rearranged(
    closed: ClosedJaxpr,
    arguments: Sequence[int] | None = None,
    results: Sequence[int] | None = None,
) -> ClosedJaxpr:
    """Return the program with its arguments and results in another order.

    Args:
      closed: the program.
      arguments: for each new argument, the number of the old one; all must occur.
      results: for each new result, the number of the old one; some may be left out.
    """
    jaxpr = closed.jaxpr
    if arguments is not None:
        jaxpr = jaxpr.replace(invars=[jaxpr.invars[i] for i in arguments])
    if results is not None:
        jaxpr = jaxpr.replace(outvars=[jaxpr.outvars[i] for i in results])
    return ClosedJaxpr(jaxpr, closed.consts)


def with_ignored_arguments(
    closed: ClosedJaxpr, avals: Sequence[ShapedArray], at: int | None = None
) -> ClosedJaxpr:
    """Return the program with more arguments, which it ignores, at a position or the end."""
    invars = list(closed.jaxpr.invars)
    position = len(invars) if at is None else at
    invars[position:position] = [Var(a) for a in avals]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def narrowed(
    closed: ClosedJaxpr, results: Sequence[bool], arguments: Sequence[bool]
) -> ClosedJaxpr:
    """Return the program with some results and arguments only; these must be all it needs."""
    smaller, _ = closed_without_dead_code(closed, results, keep_arguments=True)
    jaxpr = smaller.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=where_true(jaxpr.invars, arguments)), smaller.consts)


def needed_arguments(closed: ClosedJaxpr, results: Sequence[bool]) -> list[bool]:
    """Return for each argument whether some of the results depend on it."""
    return closed_without_dead_code(closed, results, keep_arguments=True)[1]


def traced(
    fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str = ""
) -> ClosedJaxpr:
    """Return the program of a function that captures no traced values."""
    return ClosedJaxpr(*trace_to_jaxpr(fun, avals, name=name))
