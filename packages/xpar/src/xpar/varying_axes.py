"""Results that vary unsaid: over an axis of the mesh that their partition spec does not name.

There a collective is missing. `xprim.varying_axes` follows the values of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xprim import ClosedJaxpr, Equation
from xprim.varying_axes import Axes, varying_results

__all__ = ()

_NONE: Axes = frozenset()


def axes_brought(closed: ClosedJaxpr) -> Axes:
    """Return the axes over which some value of a program varies although no argument does."""
    found = _NONE
    for eqn in closed.jaxpr.eqns:
        rule = eqn.primitive.rules.get("shard")
        if rule is not None:
            found = found.union(*rule(*[_NONE] * len(eqn.inputs), **eqn.params))
        for param in eqn.params.values():
            inner = param if type(param) is tuple else (param,)
            found = found.union(*[axes_brought(x) for x in inner if type(x) is ClosedJaxpr])
    return found


def unsaid(
    closed: ClosedJaxpr, varying: Sequence[Axes], said: Sequence[Axes]
) -> Iterator[tuple[int, Axes, Equation | None]]:
    """Yield the results that vary over axes that are not said, with these and their equation.

    Args:
      closed: the program of one member.
      varying: for each argument, the axes over which it varies.
      said: for each result, the axes over which it may vary.
    """
    makers: dict[Any, Equation] = {out: eqn for eqn in closed.jaxpr.eqns for out in eqn.outputs}
    for i, axes in enumerate(varying_results(closed, varying)):
        if axes - said[i]:
            yield i, axes - said[i], makers.get(closed.jaxpr.outvars[i])


def alike_in_parts(
    closed: ClosedJaxpr, varying: Sequence[Axes], parts: Sequence[Axes]
) -> Iterator[tuple[int, Any]]:
    """Yield the results that count as parts of sums along an axis over which they do not vary.

    Args:
      closed: the program of one member.
      varying: for each argument, the axes over which it varies.
      parts: for each result, the axes along which its pieces are added up.
    """
    if any(parts):
        for i, axes in enumerate(varying_results(closed, varying)):
            yield from [(i, axis) for axis in sorted(parts[i] - axes, key=str)]
