"""From a program to the program with its checks: equation by equation.

    asked.run(program, state, operands)  ->  state after it, results

A check of the user's, and an operation for which one is asked (division, indexing, whatever may
give a NaN), moves the state on. Programs inside (calls, loops, branches) get the state as two more
operands and results by the rules of kind `checked`, from the owners of the primitives that hold
them; each is made once and kept in the memo of its program.

Neighbours: `index_bounds` has the checks of indexing, `failures` the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xjit.checkify.failures import State, width_of
from xjit.checkify.index_bounds import BYTES_OF_INDEX, check_bounds
from xnp import lax
from xprim import (
    STRUCTURAL,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    ShapedArray,
    dtypes,
    get_primitive,
    shaped_array,
    source,
    trace_to_jaxpr,
)
from xprim.check_sites import CheckSite
from xprim.jaxpr import interpret, subjaxprs

__all__ = ["Asked", "width_needed"]

__dir__ = __all__.copy


_CHECK = get_primitive("check")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which checks are made, and how many bytes the values take that they show.

    It is what rules of kind `checked` get (`xprim.contracts.ChecksHandle`).
    """

    kinds: frozenset[str]
    width: int

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The types of the state."""
        return shaped_array((), dtypes.int32), shaped_array((self.width,), dtypes.uint8)

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[State, list[Any]]:
        """Run a program with its checks under the current trace.

        Args:
          closed: the program.
          state: what failed before.
          operands: of the program.

        Returns:
          What failed first, and the results.
        """
        now = State(*state)

        def checked(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
            nonlocal now
            now, results = _checked(now, eqn, values, self)
            return results

        outs = interpret(closed.jaxpr, closed.consts, operands, checked)
        return now, outs

    def program(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state after so many operands, and gives it first."""
        return closed.derived(_with_state, self, after)

    def unchecked(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the state likewise, leaves it alone, and checks nothing."""
        return closed.derived(_unchecked, self, after)

    def first(self, state: Sequence[Any], states: Sequence[Any]) -> State:
        """Return the state after members that began with none that failed: theirs are stacked."""
        before, (codes, payloads) = State(*state), states
        first = lax.argmax(lax.ne(codes, np.int32(0)), 0, np.int32)
        new = [lax.dynamic_index_in_dim(x, first, 0, False) for x in (codes, payloads)]
        had = lax.ne(before.code, np.int32(0))
        code = lax.select(had, before.code, new[0])
        had_all = lax.broadcast(had, new[1].aval.shape)
        return State(code, lax.select(had_all, before.payload, new[1]))


def _with_state(closed: ClosedJaxpr, asked: Asked, after: int) -> ClosedJaxpr:
    def program(*args: Any) -> list[Any]:
        state, operands = args[after : after + 2], [*args[:after], *args[after + 2 :]]
        state, outs = asked.run(closed, state, operands)
        return [*state, *outs]

    return _traced(program, closed, asked, after)


def _unchecked(closed: ClosedJaxpr, asked: Asked, after: int) -> ClosedJaxpr:
    nothing = Asked(frozenset(), asked.width)

    def program(*args: Any) -> list[Any]:
        state, operands = args[after : after + 2], [*args[:after], *args[after + 2 :]]
        return nothing.run(closed, state, operands)[1]

    return _traced(program, closed, asked, after)


def _traced(program: Any, closed: ClosedJaxpr, asked: Asked, after: int) -> ClosedJaxpr:
    avals = [*closed.in_avals[:after], *asked.avals, *closed.in_avals[after:]]
    return ClosedJaxpr(*trace_to_jaxpr(program, avals, name=closed.jaxpr.name))


def width_needed(jaxpr: Jaxpr, kinds: frozenset[str]) -> int:
    """Return how many bytes the values of the checks of a program take, at most."""
    most = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive is _CHECK:
            most = max(most, _width_of_check(eqn))
        if "index" in kinds and "windows" in eqn.primitive.rules:
            most = max(most, BYTES_OF_INDEX)
        for inner in subjaxprs(eqn.params):
            most = max(most, width_needed(inner, kinds))
    return most


def _width_of_check(eqn: Equation) -> int:
    ndim: int
    ndim, mapped = eqn.params["batch_ndim"], eqn.params["mapped"]
    avals = [x.aval for x in eqn.inputs[1:]]
    return 4 * ndim + width_of([
        shaped_array(a.shape[ndim:] if m else a.shape, a.dtype)
        for a, m in zip(avals, mapped, strict=True)
    ])  # fmt: skip


def site_of(eqn: Equation, kind: str, text: str) -> CheckSite:
    """Return what an automatic check of an equation says."""
    return CheckSite(kind, text, where=source.describe(eqn.source))


def _checked(
    state: State, eqn: Equation, operands: Sequence[Any], asked: Asked
) -> tuple[State, Sequence[Any]]:
    """Run an equation with its checks."""
    if eqn.primitive is _CHECK:
        return _check(state, eqn, operands, asked)
    rule = eqn.primitive.rules.get("checked")
    if rule is None:
        return _plain(state, eqn, operands, asked)
    after, results = rule(asked, state, operands, **eqn.params)
    return State(*after), results


def _plain(
    state: State, eqn: Equation, operands: Sequence[Any], asked: Asked
) -> tuple[State, Sequence[Any]]:
    """Run an equation, with the automatic checks that are asked for."""
    rules = eqn.primitive.rules
    if "index" in asked.kinds and "windows" in rules:
        state = check_bounds(state, eqn, operands)
    if "div" in asked.kinds and "divisor" in rules:
        divisor = operands[rules["divisor"].number]
        zero = lax.eq(divisor, lax.full(divisor.aval.shape, 0, divisor.aval.dtype))
        state = state.failing(_any(zero), site_of(eqn, "div", "division by zero"))
    results = eqn.primitive.bind(*operands, **eqn.params)
    # A NaN of its results is no new one.
    moves_elements = rules.get("physical") is STRUCTURAL or eqn.primitive.name in _MOVERS
    if asked.kinds & _OF_RESULTS and not moves_elements:
        for x in results:
            if dtypes.is_inexact(x.aval.dtype):
                state = _checked_result(state, eqn, x, asked)
    return state, results


# What moves elements otherwise than by its batch rule, where they are of an extended dtype.
_MOVERS = frozenset(["branch_operands", "optimization_barrier", "sort"])


def _checked_result(state: State, eqn: Equation, x: Any, asked: Asked) -> State:
    if "nan" in asked.kinds:
        text = f"nan generated by primitive: {eqn.primitive.name}."
        state = state.failing(_any(lax.ne(x, x)), site_of(eqn, "nan", text))
    if "debug_nans" in asked.kinds:
        state = state.failing(_any(lax.ne(x, x)), site_of(eqn, "debug_nans", _shown(eqn)))
    if "debug_infs" in asked.kinds:
        state = state.failing(_any(_infinite(x)), site_of(eqn, "debug_infs", _shown(eqn)))
    return state


def _shown(eqn: Equation) -> str:
    return f"{eqn.primitive.name}({', '.join([x.aval.str_long() for x in eqn.inputs])})"


def _infinite(x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(_infinite(lax.real(x)), _infinite(lax.imag(x)))
    return lax.eq(lax.abs(x), lax.full(x.aval.shape, np.inf, x.aval.dtype))


_OF_OPTIONS = frozenset(["debug_nans", "debug_infs"])
_OF_RESULTS = _OF_OPTIONS | {"nan"}


def _any(x: Any) -> Any:
    return lax.reduce_or(x, tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _check(
    state: State, eqn: Equation, operands: Sequence[Any], asked: Asked
) -> tuple[State, Sequence[Any]]:
    """Make a check a part of the state; where it is not asked for, it raises.

    But a check of the user's under `checkify` that does not ask for it is dropped.
    """
    if eqn.params["site"].kind not in asked.kinds:
        if eqn.params["site"].kind != "user" or asked.kinds & _OF_OPTIONS:
            eqn.primitive.bind(*operands, **eqn.params)
        return state, ()
    (pred, *values), params = operands, eqn.params
    ndim = params["batch_ndim"]
    if not ndim:
        return state.failing(lax.bitwise_not(_all(pred)), params["site"], values), ()
    count = int(np.prod(pred.aval.shape[:ndim]))
    own = pred.aval.shape[ndim:]
    each = lax.reshape(pred, (count, *own))
    each = lax.reduce_and(each, tuple(range(1, each.aval.ndim))) if own else each
    position = lax.argmin(each, 0, np.int32)
    shown = [_example(v, position, ndim, count) if m else v
             for v, m in zip(values, params["mapped"], strict=True)]  # fmt: skip
    index = _unravelled(position, pred.aval.shape[:ndim])
    failed = lax.bitwise_not(_all(pred))
    return state.failing(failed, params["site"], [index, *shown], ndim), ()


def _all(x: Any) -> Any:
    return lax.reduce_and(x, tuple(range(x.aval.ndim))) if x.aval.ndim else x


def _example(x: Any, position: Any, ndim: int, count: int) -> Any:
    flat = lax.reshape(x, (count, *x.aval.shape[ndim:]))
    return lax.dynamic_index_in_dim(flat, position, 0, keepdims=False)


def _unravelled(position: Any, shape: Sequence[int]) -> Any:
    parts = []
    for size in reversed(shape):
        parts.append(lax.reshape(lax.rem(position, np.int32(size)), (1,)))
        position = lax.div(position, np.int32(size))
    return lax.concatenate(parts[::-1], 0)
