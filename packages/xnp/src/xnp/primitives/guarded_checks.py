"""Checks in programs that run for examples which do not take part: they are told who does.

Under `vmap` all branches of a `cond` run for all examples, and the body of a `while_loop` for those
that are done. `with_guard` gives such a program a boolean as its first operand, and its checks,
those of programs within included, hold wherever it is False.

Neighbours: `check` is the check; `cond` and `while_loop` ask for this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xnp.primitives.check import CHECK, check_p
from xnp.primitives.inner_programs import traced
from xnp.primitives.operations import bind, broadcasted
from xprim import (
    ClosedJaxpr,
    Equation,
    ShapedArray,
    dtypes,
    exact_effects,
    scalar_array,
    shaped_array,
)
from xprim.jaxpr import interpret

__all__ = ()


def only_checks(closed: ClosedJaxpr) -> bool:
    """Return whether the effects of a program are checks, if it has any."""
    return all(effect is CHECK for effect in exact_effects(closed.effects))


def with_guard(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with one more operand, the first: whether its checks count."""
    return closed.derived(_with_guard, 0, True)


@dataclass(frozen=True, slots=True)
class _Guard:
    """What rules of kind `checked` get (`xprim.contracts.ChecksHandle`); it never changes."""

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The type of the guard."""
        return (shaped_array((), dtypes.bool_),)

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[Sequence[Any], list[Any]]:
        """Run a program whose checks count where the guard is True."""

        def under_guard(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
            if eqn.primitive is check_p:
                return _checked(state[0], values, eqn.params)
            rule = eqn.primitive.rules.get("checked")
            if rule is None or CHECK not in eqn.effects:
                return eqn.primitive.bind(*values, **eqn.params)
            results: Sequence[Any] = rule(self, state, values, **eqn.params)[1]
            return results

        return state, interpret(closed.jaxpr, closed.consts, operands, under_guard)

    def program(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the guard after so many operands, and gives it first."""
        return closed.derived(_with_guard, after, False)

    def unchecked(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the guard and checks nothing."""
        return closed.derived(_without_checks, after)

    def first(self, state: Sequence[Any], states: Sequence[Any]) -> Sequence[Any]:
        """Return the guard, which is the same for all members."""
        del states
        return state


_GUARD = _Guard()


def _checked(guard: Any, values: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    pred, *shown = values
    spared = broadcasted(bind("not", guard), pred.aval.shape, ())
    return check_p.bind(bind("or", pred, spared), *shown, **params)


def _with_guard(closed: ClosedJaxpr, after: int, alone: bool) -> ClosedJaxpr:
    """Return the program with the guard among its operands, and first of its results or not."""

    def program(*args: Any) -> list[Any]:
        guard, operands = args[after], [*args[:after], *args[after + 1 :]]
        _, outs = _GUARD.run(closed, (guard,), operands)
        return outs if alone else [guard, *outs]

    return _traced(program, closed, after)


def _without_checks(closed: ClosedJaxpr, after: int) -> ClosedJaxpr:
    def program(*args: Any) -> list[Any]:
        nobody = (scalar_array(False, dtypes.bool_),)
        return _GUARD.run(closed, nobody, [*args[:after], *args[after + 1 :]])[1]

    return _traced(program, closed, after)


def _traced(program: Any, closed: ClosedJaxpr, after: int) -> ClosedJaxpr:
    avals = [*closed.in_avals[:after], *_GUARD.avals, *closed.in_avals[after:]]
    return traced(program, avals, closed.jaxpr.name)
