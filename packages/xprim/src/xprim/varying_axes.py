"""Over which axes of a mesh the values of a program vary.

A value varies over an axis when members of the axis may hold different ones: pieces of an operand
that is cut along it, the number of the member, and what is computed of these; a collective over the
axis ends it. The rule of kind `shard` of a primitive says over which axes its results vary; without
one, over those of any operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim.jaxpr import ClosedJaxpr, Equation, Literal

__all__ = ["Axes", "grown_axes", "varying_results"]

__dir__ = __all__.copy

Axes = frozenset[Any]
_NONE: Axes = frozenset()


def varying_results(closed: ClosedJaxpr, varying: Sequence[Axes]) -> list[Axes]:
    """Return for each result of a program the axes over which it varies.

    Args:
      closed: the program.
      varying: for each argument, the axes over which it varies.
    """
    jaxpr = closed.jaxpr
    known: dict[Any, Axes] = dict(zip(jaxpr.invars, varying, strict=True))
    for eqn in jaxpr.eqns:
        operands = [_NONE if type(x) is Literal else known.get(x, _NONE) for x in eqn.inputs]
        known.update(zip(eqn.outputs, _of_equation(eqn, operands), strict=True))
    results: Sequence[Any] = jaxpr.outvars
    return [_NONE if type(x) is Literal else known.get(x, _NONE) for x in results]


def grown_axes(step: Callable[[list[Axes]], Sequence[Axes]], carry: Sequence[Axes]) -> list[Axes]:
    """Return over which axes the carry of a loop varies, whose step says it of one round."""
    before = list(carry)
    while True:
        after = [old | new for old, new in zip(before, step(before), strict=True)]
        if after == before:
            return after
        before = after


def _of_equation(eqn: Equation, operands: list[Axes]) -> Sequence[Axes]:
    rule: Callable[..., Sequence[Axes]] | None = eqn.primitive.rules.get("shard")
    if rule is not None:
        return rule(*operands, **eqn.params)
    inner = eqn.params.get("jaxpr")
    if type(inner) is ClosedJaxpr and len(inner.in_avals) == len(operands):
        return varying_results(inner, operands)
    everything = _NONE.union(*operands, *map(_axes_of_results, eqn.params.values()))
    return [everything] * len(eqn.outputs)


def _axes_of_results(param: Any) -> Axes:
    """Return the axes over which results of a program vary whatever its operands are."""
    if type(param) is not ClosedJaxpr:
        return _NONE
    return _NONE.union(*varying_results(param, [_NONE] * len(param.in_avals)))
