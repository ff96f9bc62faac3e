"""From a program to the program with its checks: equation by equation.

    run_checked(program, state, operands)  ->  state after it, results

A check of the user's, and an operation for which one is asked (division, indexing, whatever may
give a NaN), moves the state on. Programs inside (calls, loops, branches) get the state as two more
operands and results; `checked_program` makes each once and keeps it in its memo.

Neighbours: `inner_programs` has the rules of equations that hold programs, `index_bounds` those of
indexing, `failures` the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    dtypes,
    shaped_array,
    source,
    trace_to_jaxpr,
)
from xprim.check_sites import CheckSite
from xprim.jaxpr import interpret, subjaxprs

__all__ = ["Asked", "checked_program", "run_checked", "width_needed"]

__dir__ = __all__.copy


@dataclass(frozen=True, slots=True)
class Asked:
    """Which checks are made, and how many bytes the values take that they show."""

    kinds: frozenset[str]
    width: int


Rule = Callable[[State, Equation, Sequence[Any], Asked], tuple[State, Sequence[Any]]]
rules: dict[str, Rule] = {}
"""The rules of equations that hold programs, by the name of their primitive."""


def width_needed(jaxpr: Jaxpr, kinds: frozenset[str]) -> int:
    """Return how many bytes the values of the checks of a program take, at most."""
    most = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "check":
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


def checked_program(closed: ClosedJaxpr, asked: Asked) -> ClosedJaxpr:
    """Return the program with checks: from (code, payload, *operands) to the same and results."""
    return closed.derived(_checked_program, asked)


def _checked_program(closed: ClosedJaxpr, asked: Asked) -> ClosedJaxpr:
    def checked(code: Any, payload: Any, *operands: Any) -> list[Any]:
        state, outs = run_checked(closed, State(code, payload), operands, asked)
        return [*state, *outs]

    state_avals = [shaped_array((), dtypes.int32), shaped_array((asked.width,), dtypes.uint8)]
    avals = [*state_avals, *closed.in_avals]
    jaxpr, consts = trace_to_jaxpr(checked, avals, name=closed.jaxpr.name)
    return ClosedJaxpr(jaxpr, consts)


def run_checked(
    closed: ClosedJaxpr, state: State, operands: Sequence[Any], asked: Asked
) -> tuple[State, list[Any]]:
    """Run a program with its checks under the current trace.

    Args:
      closed: the program.
      state: what failed before.
      operands: of the program.
      asked: which checks are made.

    Returns:
      What failed first, and the results.
    """

    def run(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
        nonlocal state
        state, results = rules.get(eqn.primitive.name, _plain)(state, eqn, values, asked)
        return results

    outs = interpret(closed.jaxpr, closed.consts, operands, run)
    return state, outs


def site_of(eqn: Equation, kind: str, text: str) -> CheckSite:
    """Return what an automatic check of an equation says."""
    return CheckSite(kind, text, where=source.describe(eqn.source))


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
    moves_elements = rules.get("physical") is STRUCTURAL  # a NaN of its results is no new one
    if asked.kinds & _OF_RESULTS and not moves_elements:
        for x in results:
            if dtypes.is_inexact(x.aval.dtype):
                state = _checked_result(state, eqn, x, asked)
    return state, results


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


rules["check"] = _check
