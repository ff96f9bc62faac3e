"""The checks of programs inside of equations: calls, branches, loops, custom rules.

Each rule hands the state to the inner program and takes it from its results. An equation whose
program is not known to these rules is left as it is: checks in it raise, as they do everywhere.

Neighbour: `rewriting` asks `rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xjit.checkify.failures import State
from xjit.checkify.rewriting import Asked, checked_program, rules, run_checked
from xnp import lax
from xprim import ClosedJaxpr, Equation, Zero, dtypes, eval_closed, shaped_array, trace_to_jaxpr

__all__ = ()

Result = tuple[State, Sequence[Any]]


def _call(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    jaxpr = checked_program(eqn.params["jaxpr"], asked)
    outs = eqn.primitive.bind(*state, *operands, **eqn.params | {"jaxpr": jaxpr})
    return State(*outs[:2]), outs[2:]


def _cond(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    index, *rest = operands
    branches = tuple([checked_program(b, asked) for b in eqn.params["branches"]])
    outs = eqn.primitive.bind(index, *state, *rest, branches=branches)
    return State(*outs[:2]), outs[2:]


def _traced(fun: Any, avals: Sequence[Any], name: str) -> ClosedJaxpr:
    jaxpr, consts = trace_to_jaxpr(fun, avals, name=name)
    return ClosedJaxpr(jaxpr, consts)


def _state_avals(asked: Asked) -> list[Any]:
    return [shaped_array((), dtypes.int32), shaped_array((asked.width,), dtypes.uint8)]


def _scan(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    params = eqn.params
    count = params["num_consts"]
    jaxpr = params["jaxpr"].derived(_checked_step, count, asked)
    carry = params["num_carry"] + 2
    changes = {"jaxpr": jaxpr, "num_carry": carry}
    outs = eqn.primitive.bind(*operands[:count], *state, *operands[count:], **params | changes)
    return State(*outs[:2]), outs[2:]


def _checked_step(closed: ClosedJaxpr, count: int, asked: Asked) -> ClosedJaxpr:
    """Return the step of a loop with the state after its constants and first of its results."""

    def step(*args: Any) -> list[Any]:
        consts, state, rest = args[:count], State(*args[count : count + 2]), args[count + 2 :]
        state, outs = run_checked(closed, state, [*consts, *rest], asked)
        return [*state, *outs]

    avals = closed.in_avals
    return _traced(step, [*avals[:count], *_state_avals(asked), *avals[count:]], closed.jaxpr.name)


def _while(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    """Carry the state along; the condition is checked before the loop and after each step."""
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    of_cond, of_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts = operands[:of_cond]
    carry = operands[of_cond + of_body :]
    state, _ = run_checked(cond, state, [*cond_consts, *carry], asked)
    test = cond.derived(_blind_condition, of_cond, asked)
    step = body.derived(_checked_turn, cond, of_cond, of_body, asked)
    outs = eqn.primitive.bind(
        *cond_consts, *operands[: of_cond + of_body], *state, *carry, cond_jaxpr=test,
        body_jaxpr=step, cond_nconsts=of_cond, body_nconsts=of_cond + of_body,
    )  # fmt: skip
    return State(*outs[:2]), outs[2:]


def _blind_condition(cond: ClosedJaxpr, count: int, asked: Asked) -> ClosedJaxpr:
    """Return the condition that does not look at the state, and makes no check."""
    nothing = Asked(frozenset(), asked.width)

    def test(*args: Any) -> list[Any]:
        state = State(*args[count : count + 2])
        return run_checked(cond, state, [*args[:count], *args[count + 2 :]], nothing)[1]

    avals = cond.in_avals
    return _traced(test, [*avals[:count], *_state_avals(asked), *avals[count:]], cond.jaxpr.name)


def _checked_turn(
    body: ClosedJaxpr, cond: ClosedJaxpr, of_cond: int, of_body: int, asked: Asked
) -> ClosedJaxpr:
    """Return the step of a loop, with the checks of the condition on what it gives."""

    def turn(*args: Any) -> list[Any]:
        cond_consts, rest = args[:of_cond], args[of_cond:]
        body_consts, (code, payload, *carry) = rest[:of_body], rest[of_body:]
        state, outs = run_checked(body, State(code, payload), [*body_consts, *carry], asked)
        state, _ = run_checked(cond, state, [*cond_consts, *outs], asked)
        return [*state, *outs]

    avals = [*cond.in_avals[:of_cond], *body.in_avals[:of_body], *_state_avals(asked)]
    return _traced(turn, [*avals, *body.in_avals[of_body:]], body.jaxpr.name)


def _custom_jvp(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    call, rule = checked_program(eqn.params["call"], asked), eqn.params["jvp"]

    def jvp(primals: Any, tangents: Any) -> Any:
        after = eval_closed(call, *primals)[:2]
        outs, dots = rule(primals[2:], tangents[2:])
        return (*after, *outs), (*[_no_tangent(x) for x in after], *dots)

    outs = eqn.primitive.bind(*state, *operands, call=call, jvp=jvp)
    return State(*outs[:2]), outs[2:]


def _no_tangent(x: Any) -> Zero:
    return Zero(shaped_array(x.aval.shape, dtypes.float0))


def _custom_vjp(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    params = eqn.params
    call = checked_program(params["call"], asked)

    def forward(perturbed: Sequence[bool]) -> Any:
        own = params["fwd"](perturbed[2:])
        return lambda *xs: [*eval_closed(call, *xs)[:2], *own(*xs[2:])]

    def backward(residuals: Any, cotangents: Any) -> Any:
        none = [Zero(shaped_array(a.shape, dtypes.float0)) for a in _state_avals(asked)]
        return [*none, *params["bwd"](residuals, cotangents[2:])]

    outs = eqn.primitive.bind(
        *state, *operands, call=call, fwd=forward, bwd=backward,
        count_outs=lambda: params["count_outs"]() + 2,
    )  # fmt: skip
    return State(*outs[:2]), outs[2:]


def _in_place(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    """Run the program of a call whose own rule is for transformations that came before."""
    return run_checked(eqn.params["call"], state, operands, asked)


def _over_mesh(state: State, eqn: Equation, operands: Sequence[Any], asked: Asked) -> Result:
    """Let each member begin with nothing; their failures are stacked, and the first one counts."""
    rule = eqn.primitive.rules["checked"]
    codes, payloads, outs = rule(
        lambda jaxpr: checked_program(jaxpr, asked), operands, **eqn.params
    )
    first = lax.argmax(lax.ne(codes, np.int32(0)), 0, np.int32)
    new = [lax.dynamic_index_in_dim(x, first, 0, False) for x in (codes, payloads)]
    had = lax.ne(state.code, np.int32(0))
    code = lax.select(had, state.code, new[0])
    payload = lax.select(lax.broadcast(had, new[1].aval.shape), state.payload, new[1])
    return State(code, payload), outs


rules.update({
    "jit": _call, "checkpoint": _call, "cond": _cond, "scan": _scan, "while": _while,
    "custom_jvp_call": _custom_jvp, "custom_vjp_call": _custom_vjp, "custom_vmap_call": _in_place,
    "shard_map": _over_mesh,
})  # fmt: skip
