"""Over which axes of a mesh the values of a program vary, and results that vary unsaid.

A value varies over an axis when members of the axis may hold different ones: pieces of an operand
that is cut along it, the number of the member, and what is computed of these; a collective over the
axis ends it. `unsaid` walks the equations of a program once and returns the results that vary over
an axis which their partition spec does not name: there a collective is missing.

The rule of kind `shard` of a primitive says over which axes its results vary; without one, over
those of any operand. Loops are walked until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xprim import ClosedJaxpr, Equation, Literal

__all__ = ()

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


def _of_equation(eqn: Equation, operands: list[Axes]) -> Sequence[Axes]:
    rule: Callable[..., Any] | None = eqn.primitive.rules.get("shard")
    if rule is not None:
        found: Sequence[Axes] = rule(*operands, **eqn.params)
        return found
    special = _PROGRAMS.get(eqn.primitive.name)
    if special is not None:
        return special(operands, eqn.params)
    inner = eqn.params.get("jaxpr")
    if type(inner) is ClosedJaxpr and len(inner.in_avals) == len(operands):
        return varying_results(inner, operands)
    everything = _NONE.union(*operands, *map(_brought, eqn.params.values()))
    return [everything] * len(eqn.outputs)


def _brought(param: Any) -> Axes:
    """Return the axes over which results of a program vary whatever its operands are."""
    if type(param) is not ClosedJaxpr:
        return _NONE
    return _NONE.union(*varying_results(param, [_NONE] * len(param.in_avals)))


def _of_cond(operands: list[Axes], params: dict[str, Any]) -> Sequence[Axes]:
    chosen_by, rest = operands[0], operands[1:]
    each = [varying_results(branch, rest) for branch in params["branches"]]
    return [chosen_by.union(*axes) for axes in zip(*each, strict=True)]


def _of_scan(operands: list[Axes], params: dict[str, Any]) -> Sequence[Axes]:
    start, stop = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, carry, xs = operands[:start], operands[start:stop], operands[stop:]

    def step(carry: list[Axes]) -> list[Axes]:
        return varying_results(params["jaxpr"], [*consts, *carry, *xs])

    carry = _fixed_point(lambda carry: step(carry)[: len(carry)], carry)
    return [*carry, *step(carry)[len(carry) :]]


def _of_while(operands: list[Axes], params: dict[str, Any]) -> Sequence[Axes]:
    start, stop = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    tested, consts, carry = operands[:start], operands[start:stop], operands[stop:]

    def step(carry: list[Axes]) -> list[Axes]:
        (goes_on,) = varying_results(params["cond_jaxpr"], [*tested, *carry])
        found = varying_results(params["body_jaxpr"], [*consts, *carry])
        return [axes | goes_on for axes in found]  # members may take different numbers of steps

    return _fixed_point(step, carry)


def _fixed_point(step: Callable[[list[Axes]], list[Axes]], carry: list[Axes]) -> list[Axes]:
    while True:
        after = [old | new for old, new in zip(carry, step(carry), strict=True)]
        if after == carry:
            return carry
        carry = after


_PROGRAMS: dict[str, Callable[[list[Axes], dict[str, Any]], Sequence[Axes]]] = {
    "cond": _of_cond, "scan": _of_scan, "while": _of_while,
}  # fmt: skip
