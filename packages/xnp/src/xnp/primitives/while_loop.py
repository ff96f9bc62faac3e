"""while: run a program again and again while a condition on its results holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import xprim
from xnp.primitives import control_flow
from xnp.primitives.checkpointed_loop import Schedule, record_tangents, steps_taken
from xnp.primitives.control_flow import derive, grow_mask, only_checks, split_at, trace_fun, work_of
from xnp.primitives.lowering_text import choose
from xnp.primitives.table import broadcast_to, select
from xprim import (
    ClosedJaxpr,
    contracts,
    dtypes,
    eval_closed,
    get_primitive,
    not_mapped,
    shaped_array,
    state,
)
from xprim.calls import Programs, nonzero, where_true, with_zeros
from xprim.contracts import BatchAxis, Builder, ChecksHandle, JVPHandle, LinearizeHandle
from xprim.errors import UndefinedRuleError, message
from xprim.sharded_types import whole
from xprim.source import describe

__all__ = ()


# ---------------------------------------------------------------------------------- while rounds
# How an eagerly evaluated `while` is run as a compiled program: in rounds of many steps.
#
# It is unknown whether a `while` ends, and no interrupt reaches a program that runs: so the
# program stops after a number of steps, too, and starts again where it was. Its body is the same
# in every round, so the carry is that of one long run. The rounds also tell how many steps there
# were.
#
#     round = while(cond(carry) and counter != stop, body)
#
# The counter is a part of the carry to which the body adds a constant, as most loops have one;
# only where there is none is it added, since each further result of a body takes XLA long to
# compile.

_WORK_OF_A_ROUND = 1 << 24
# Counters of 32 bits with larger strides could come to where a round ends more than once.
_LARGEST_STRIDE = 64


class Loop(NamedTuple):
    """A while loop: two programs, and how many constants each takes."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    cond_nconsts: int
    body_nconsts: int

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the program among those that are kept with the body."""
        return ("round", self.cond, self.cond_nconsts, self.body_nconsts)

    @property
    def was_compiled(self) -> bool:
        """Whether this loop was run in rounds before."""
        return self.key in self.body.memo


class _Round(NamedTuple):
    params: dict[str, Any]
    place: int  # of the counter, in the carry
    stride: int
    is_added: bool  # whether the counter is not the user's


def run_in_rounds(
    while_p: xprim.Primitive, loop: Loop, operands: Sequence[Any]
) -> tuple[tuple[Any, ...], int]:
    """Run a loop as a compiled program; return the carry and how many steps there were.

    Args:
      while_p: the primitive.
      loop: what it runs.
      operands: constants of the condition, constants of the body, and the carry.
    """
    one = derive(loop.body, loop.key, lambda: _round_of(loop))
    most = max(1, int(_WORK_OF_A_ROUND / (1 + work_of(loop.body))))
    count, total = loop.cond_nconsts + loop.body_nconsts, 0
    consts, carry = operands[:count], list(operands[count:])
    if one.is_added:
        carry.append(xprim.scalar_array(0, dtypes.int32))
    while True:
        start = carry[one.place]
        stop = start.to_host() + np.asarray(most * one.stride, start.dtype)
        stop = xprim.ConcreteArray(np.asarray(stop, start.dtype), start.aval)
        carry = list(
            control_flow.run_compiled(while_p, [stop, *consts, *carry], loop.body, one.params)
        )
        steps = _steps_between(start, carry[one.place], one.stride)
        total += steps
        if steps < most:
            return tuple(carry[:-1] if one.is_added else carry), total


def _steps_between(start: Any, end: Any, stride: int) -> int:
    bits = 8 * start.dtype.itemsize
    way = (int(end) - int(start)) % (1 << bits)  # the counter may have passed its greatest value
    return (way if stride > 0 else way - (1 << bits) if way else 0) // stride


def _round_of(loop: Loop) -> _Round:
    cond, body, cond_nconsts, body_nconsts = loop
    found = _counter_of(body, body_nconsts)
    avals = body.in_avals[body_nconsts:]
    if found is None:
        avals = (*avals, shaped_array((), dtypes.int32))
        body = _counting(body)
    place, stride = found or (len(avals) - 1, 1)
    own = len(cond.in_avals)
    both, differ = get_primitive("and"), get_primitive("ne")

    def goes_on(stop: Any, *args: Any) -> Any:
        going = differ.bind(args[cond_nconsts + place], stop)
        return both.bind(*eval_closed(cond, *args[:own]), *going)

    taken_avals = [avals[place], *cond.in_avals[:cond_nconsts], *avals]
    params = {
        "cond_jaxpr": trace_fun(goes_on, taken_avals), "cond_nconsts": 1 + cond_nconsts,
        "body_jaxpr": body, "body_nconsts": body_nconsts,
    }  # fmt: skip
    return _Round(params, place, stride, found is None)


def _counting(body: ClosedJaxpr) -> ClosedJaxpr:
    """Return the body with the number of steps at the end of the carry."""
    one = xprim.scalar_array(1, dtypes.int32)

    def step(*args: Any) -> Any:
        return [*eval_closed(body, *args[:-1]), *get_primitive("add").bind(args[-1], one)]

    return trace_fun(step, [*body.in_avals, shaped_array((), dtypes.int32)])


def _counter_of(body: ClosedJaxpr, nconsts: int) -> tuple[int, int] | None:
    """Return which part of the carry counts steps, and by how much; None where none does."""
    jaxpr = body.jaxpr
    added: dict[Any, Sequence[Any]] = {
        eqn.outputs[0]: eqn.inputs for eqn in jaxpr.eqns if eqn.primitive.name == "add"
    }
    for i, (before, after) in enumerate(zip(jaxpr.invars[nconsts:], jaxpr.outvars, strict=True)):
        inputs = added.get(after, ())
        by = [x for x in inputs if type(x) is xprim.Literal]
        aval = before.aval
        if before in inputs and len(by) == 1 and not aval.shape and (
            dtypes.is_integer(aval.dtype) and aval.dtype.itemsize >= 4
        ):  # fmt: skip
            stride = int(by[0].value.to_host())
            if 0 < abs(stride) <= _LARGEST_STRIDE:
                return i, stride
    return None


# ------------------------------------------------------------------------------------ while loop
# while: run a program again and again while a condition on its results holds.
#
#     carry = while[cond_jaxpr cond_nconsts body_jaxpr body_nconsts] cond_consts body_consts carry
#
#     cond_jaxpr  cond_consts, carry -> one boolean
#     body_jaxpr  body_consts, carry -> carry
#
# Derivatives: forward mode carries the tangents along. Reverse mode would have to keep residuals
# of a number of steps that is unknown in advance: the tape holds the forward loop, which
# `linearize` can run and `transpose` refuses. With a `schedule`, which bounds the number of steps,
# it holds `loop_tangents`, which can be transposed.
#
# Under `vmap` with a mapped condition the loop runs until all examples are done; those that are
# done keep their values. What the body hands on as it got it is the same for all, and stays one
# value.
#
# Semantics: StableHLO specification, section while.


def _shape(*avals: xprim.ShapedArray, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
           cond_nconsts: int, body_nconsts: int,
           schedule: Schedule | None = None) -> Any:  # fmt: skip
    _, _, carry = split_at(avals, cond_nconsts, body_nconsts)
    expected = [whole(a.strong()) for a in body_jaxpr.out_avals]
    if [whole(a.strong()) for a in carry] != expected:
        raise TypeError(message(
            "while", "the carry does not have the types that the body returns.",
            got=", ".join(a.str_long() for a in carry),
            expected=", ".join(a.str_long() for a in expected),
        ))  # fmt: skip
    return body_jaxpr.out_avals


def _numpy(*operands: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
           body_nconsts: int, schedule: Schedule | None = None) -> Any:  # fmt: skip
    most, done = control_flow.steps_before_compiling((cond_jaxpr, body_jaxpr), operands), 0
    loop = Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts)
    may_be_long, steps = loop.was_compiled, _by_rules(loop, operands)
    carry: Sequence[Any] = operands[cond_nconsts + body_nconsts :]
    while done <= most:
        if done == _STEPS_BEFORE_ASKING[0] and may_be_long:
            results, count = run_in_rounds(while_p, loop, operands)
            if count > most:
                return results
        if done in _STEPS_BEFORE_ASKING:
            steps, carry = _by_kernels(loop, operands, done, carry) or (steps, carry)
        if not steps.goes_on(carry):
            return steps.arrays(carry)
        carry = steps.next(carry)
        done += 1
    return run_in_rounds(while_p, loop, operands)[0]


# A loop of fewer steps ends sooner than the runtime starts its program, or than its kernels are
# found; one of more steps than the second number is worth to have kernels written.
_STEPS_BEFORE_ASKING = (4, 16)


class _Steps(NamedTuple):
    """How NumPy runs a loop: on Arrays by the rules, or on ndarrays by kernels."""

    goes_on: Callable[[Sequence[Any]], Any]
    next: Callable[[Sequence[Any]], Sequence[Any]]
    arrays: Callable[[Sequence[Any]], tuple[Any, ...]]


def _kernel(
    write: Callable[[ClosedJaxpr], Callable[..., Any]], avals_in: Sequence[xprim.ShapedArray], *,
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int,
    schedule: Schedule | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return the loop as a function of ndarrays, which leaves the steps of a long one to `_numpy`.

    Where that begins, and what it returns, depends on the number of steps alone, so results are
    those of `_numpy`.
    """
    test, step = write(cond_jaxpr), write(body_jaxpr)
    most = control_flow.steps_before_compiling((cond_jaxpr, body_jaxpr), ())

    def run(*operands: Any) -> Sequence[Any]:
        cond_consts, body_consts, carry = split_at(operands, cond_nconsts, body_nconsts)
        done = 0
        while test(*cond_consts, *carry)[0]:
            if done > most:
                arrays = map(xprim.ConcreteArray, operands, avals_in)
                outs = state.run_inside_quiet_call(
                    _numpy, *arrays, cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr,
                    cond_nconsts=cond_nconsts, body_nconsts=body_nconsts,
                )  # fmt: skip
                return [x.to_host() for x in outs]
            carry = step(*body_consts, *carry)
            done += 1
        return carry

    return run


def _by_rules(loop: Loop, operands: Sequence[Any]) -> _Steps:
    cond_consts, body_consts, _ = split_at(operands, loop.cond_nconsts, loop.body_nconsts)
    return _Steps(
        lambda carry: eval_closed(loop.cond, *cond_consts, *carry)[0].to_host(),
        lambda carry: eval_closed(loop.body, *body_consts, *carry),
        tuple,
    )


def _by_kernels(
    loop: Loop, operands: Sequence[Any], done: int, carry: Sequence[Any]
) -> tuple[_Steps, Sequence[Any]] | None:
    """Return kernels for the steps and the carry for them, if there are such."""
    if not carry or type(carry[0]) is not xprim.ConcreteArray:  # on ndarrays already
        return None
    expected = math.inf if done == _STEPS_BEFORE_ASKING[-1] else done
    test, step = [control_flow.numpy_step(p, operands, expected) for p in (loop.cond, loop.body)]
    if test is None or step is None:
        return None
    consts = [x.to_host() for x in operands[: loop.cond_nconsts + loop.body_nconsts]]
    cond_consts, body_consts = split_at(consts, loop.cond_nconsts)
    quietly, avals = state.run_quietly, loop.body.out_avals
    steps = _Steps(
        lambda carry: quietly(test, *cond_consts, *carry)[0],
        lambda carry: quietly(step, *body_consts, *carry),
        lambda carry: tuple(map(xprim.ConcreteArray, carry, avals)),
    )
    return steps, [x.to_host() for x in carry]


# The carry of a CPU's loop is in memory, and each step waits for what the one before has stored,
# some 3 ns for a value and twice that for one that is copied first. So a turn of a loop of few
# operations on scalars holds several, the condition after each of which selects the state in
# which the loop ends: what comes after it is computed in vain, and so it must be cheap. Steps have
# no side effects, and no operation among these fails.
#
# Source: docs/benchmarks/notes.md, "Steps of while loops".
_CHEAP = frozenset({
    "abs", "add", "and", "ceil", "clamp", "convert_element_type", "eq", "floor", "ge", "gt",
    "integer_pow", "is_finite", "le", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "round",
    "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "square",
    "sub", "xor",
})  # fmt: skip
_CHEAP_BY_A_NUMBER = frozenset({"div", "rem"})  # which the compiler writes as products
_READS = frozenset({"dynamic_slice", "reshape", "slice", "squeeze"})  # of elements of constants
_MOST_EQUATIONS, _STEPS_OF_A_TURN = 16, 5


def _steps_of_a_turn(cond: ClosedJaxpr, body: ClosedJaxpr) -> int:
    """Return how many steps a turn of the compiled loop holds; 1 for all but cheap scalar loops."""
    eqns = [*cond.jaxpr.eqns, *body.jaxpr.eqns]
    is_cheap = (
        sum([eqn.primitive.name not in _READS for eqn in eqns]) <= _MOST_EQUATIONS
        and not body.effects and not cond.effects
        and all(not a.shape and not dtypes.is_extended(a.dtype) for a in body.out_avals)
        and all(map(_is_cheap, eqns))
    )  # fmt: skip
    return _STEPS_OF_A_TURN if is_cheap else 1


def _is_cheap(eqn: xprim.Equation) -> bool:
    name = eqn.primitive.name
    by_a_number = name in _CHEAP_BY_A_NUMBER and type(eqn.inputs[1]) is xprim.Literal
    is_known = by_a_number or name in _CHEAP or name in _READS
    return is_known and all(v.aval.size == 1 for v in eqn.outputs)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, cond_jaxpr: ClosedJaxpr,
               body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int,
               schedule: Schedule | None = None) -> Any:  # fmt: skip
    cond_consts, body_consts, carry = split_at(operands, cond_nconsts, body_nconsts)
    carry_avals = [a.strong() for a in avals_out]
    boolean = shaped_array((), dtypes.bool_)
    if not xprim.ordered_effects(cond_jaxpr.effects | body_jaxpr.effects):
        condition = b.region(
            carry_avals, lambda inner, xs: inner.inline(cond_jaxpr, [*cond_consts, *xs]), [boolean]
        )
        steps = _steps_of_a_turn(cond_jaxpr, body_jaxpr) if b.platform == "cpu" else 1

        def turn(inner: Builder, xs: Sequence[str]) -> Sequence[str]:
            states = [xs]
            for _ in range(steps):
                states.append(inner.inline(body_jaxpr, [*body_consts, *states[-1]]))
            *states, result = states[1:]
            for values in reversed(states):
                (goes_on,) = inner.inline(cond_jaxpr, [*cond_consts, *values])
                pairs = zip(result, values, carry_avals, strict=True)
                result = [choose(inner, goes_on, x, y, aval) for x, y, aval in pairs]
            return result

        body = contracts.loop_region(b, carry_avals, turn, carry_avals)
        regions = b.regions(condition, body)
        return b.op("stablehlo.while", carry, carry_avals, carry_avals, regions=regions)

    # XLA takes what only a condition does for needless: it is computed before the loop and after
    # each step, and the order is one more part of the carry.
    def test(inner: Builder, xs: Sequence[str]) -> list[str]:
        return [*xs, *inner.inline(cond_jaxpr, [*cond_consts, *xs]), inner.order]

    def step(inner: Builder, xs: Any) -> list[str]:
        *xs, _, inner.order = xs
        return test(inner, inner.inline(body_jaxpr, [*body_consts, *xs]))

    avals = [*carry_avals, boolean, xprim.ORDER]
    condition = b.region(avals, lambda _, xs: [xs[-2]], [boolean])
    body = contracts.loop_region(b, avals, step, avals)
    regions = b.regions(condition, body)
    *results, _, b.order = b.op("stablehlo.while", test(b, carry), avals, avals, regions=regions)
    return results


def _move(schedule: Schedule | None, place: Callable[[int], int]) -> dict[str, Any]:
    """Return the param of a loop whose counter is elsewhere in the carry, if it has one."""
    return {"schedule": replace(schedule, counter=place(schedule.counter))} if schedule else {}


def _derive(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return where the counter is in the carry of a smaller loop."""
    results = range(len(params["body_jaxpr"].out_avals))
    _, kept = entries((), results, None, int)
    return _move(params.get("schedule"), kept.index)


# --- derivatives -------------------------------------------------------------------------------


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, *, cond_jaxpr: ClosedJaxpr,
         body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int,
         **schedule: Any) -> Any:  # fmt: skip
    cond_consts, body_consts, carry = split_at(primals, cond_nconsts, body_nconsts)
    _, const_dots, carry_dots = split_at(tangents, cond_nconsts, body_nconsts)
    const_mask = nonzero(const_dots)
    body, mask = _body_jvp(handle, body_jaxpr, const_mask, nonzero(carry_dots), body_nconsts)
    if not any(mask):
        outs = while_p.bind(*primals, cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr,
                            cond_nconsts=cond_nconsts, body_nconsts=body_nconsts,
                            **schedule)  # fmt: skip
        return outs, with_zeros(handle, outs, (), mask)
    count = len(carry)
    dot_avals = [a.strong() for a in where_true(body_jaxpr.out_avals, mask)]
    cond = derive(
        cond_jaxpr,
        ("ignoring", *dot_avals),
        lambda: control_flow.with_ignored_arguments(cond_jaxpr, dot_avals),
    )
    dots = [handle.instantiate(t) for t in where_true(carry_dots, mask)]
    results = while_p.bind(
        *cond_consts, *body_consts, *where_true(const_dots, const_mask), *carry, *dots,
        cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts + sum(const_mask), **schedule,
    )  # fmt: skip
    outs = results[:count]
    return outs, with_zeros(handle, outs, results[count:], mask)


def _body_jvp(
    handle: JVPHandle, body: ClosedJaxpr, const_mask: list[bool], mask: list[bool], nconsts: int
) -> tuple[ClosedJaxpr, list[bool]]:
    """Return the body on (consts, their tangents, carry, its tangents), and which tangents.

    A tangent of the carry that is zero at first may become nonzero by a step: the mask grows until
    a step does not change it.
    """
    forward, mask, _ = grow_mask(
        lambda carry: handle.jvp_jaxpr(body, [*const_mask, *carry], carry), mask
    )

    def make() -> ClosedJaxpr:
        count, consts = len(mask), sum(const_mask)
        order = range(len(forward.in_avals))
        own, carry, const_dots, dots = split_at(order, nconsts, count, consts)
        return control_flow.rearrange(forward, [*own, *const_dots, *carry, *dots])

    return derive(forward, ("while", nconsts), make), mask


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    """Run the loop now, and leave on the tape the loop that carries tangents along."""
    if "schedule" in params:
        return _linearize_bounded(handle, primals, tangents, **params)
    outs, dots = _jvp(handle, primals, tangents, **params)
    if any(nonzero(dots)):
        if xprim.unrepeatable_effects(while_p.effects(params)):
            raise _refuse_effects("be linearized, which runs it twice", params)
        outs = while_p.bind(*primals, **params)  # those of the joint loop are on the tape
    return outs, dots


def _linearize_bounded(
    handle: LinearizeHandle, primals: Any, tangents: Any, *, schedule: Schedule, **params: Any
) -> Any:
    """Run the loop now, and leave on the tape its derivative for the number of steps it took."""
    outs = while_p.bind(*primals, schedule=schedule, **params)
    counts = params["cond_nconsts"], params["body_nconsts"]
    _, consts, carry = split_at(primals, *counts)
    _, const_dots, carry_dots = split_at(tangents, *counts)
    if not any(nonzero([*const_dots, *carry_dots])):
        return outs, with_zeros(handle, outs, (), [False] * len(outs))
    if xprim.unrepeatable_effects(while_p.effects(params)):
        raise _refuse_effects("be linearized, which runs it twice", params)
    dots, mask = record_tangents(
        handle, steps_taken(outs, schedule), params["body_jaxpr"], consts, carry, const_dots,
        carry_dots, schedule,
    )  # fmt: skip
    return outs, with_zeros(handle, outs, dots, mask)


def _refuse_effects(what: str, params: dict[str, Any]) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "while_loop", f"a loop with side effects cannot {what}.",
        got=f"effects: {xprim.effects_text(xprim.exact_effects(while_p.effects(params)))}",
    ))  # fmt: skip


def _transpose(_handle: Any, _cts: Any, *_operands: Any, body_jaxpr: ClosedJaxpr, **_: Any) -> Any:
    where = next(filter(None, [describe(eqn.source) for eqn in body_jaxpr.jaxpr.eqns]), "")
    raise UndefinedRuleError(message(
        "Reverse-mode differentiation does not work for lax.while_loop",
        "it has no max_steps.",
        where=f"the loop whose body is at {where}" if where else "",
        hint="max_steps=N bounds it; or use scan, or fori_loop with bounds that are integers;\n"
        "maxiter=N bounds that of a solver",
    ))  # fmt: skip


# --- batching ----------------------------------------------------------------------------------


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, cond_jaxpr: ClosedJaxpr,
           body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int,
           schedule: Schedule | None = None) -> Any:  # fmt: skip
    mapped = [d is not not_mapped for d in dims]
    cond_mapped, body_mapped, carry_mapped = split_at(mapped, cond_nconsts, body_nconsts)
    body, carry_mapped, _ = grow_mask(
        lambda mask: axis.batch_jaxpr(body_jaxpr, (*body_mapped, *mask), mask), carry_mapped
    )
    cond, (test_mapped,) = axis.batch_jaxpr(cond_jaxpr, (*cond_mapped, *carry_mapped), False)
    if test_mapped:
        programs: dict[str, Any] = {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}
        if not (only_checks(cond_jaxpr) and only_checks(body_jaxpr)):
            raise _refuse_effects("run for a batch of conditions: all examples take part until "
                                   "the last is done", programs)  # fmt: skip
        ins, outs = body_jaxpr.jaxpr.invars[body_nconsts:], body_jaxpr.jaxpr.outvars
        carry_mapped = [m or y is not x for m, x, y in zip(carry_mapped, ins, outs, strict=True)]
        body = _of_those_that_go_on(axis, body_jaxpr, body_mapped, carry_mapped)
        cond, _ = axis.batch_jaxpr(cond_jaxpr, (*cond_mapped, *carry_mapped), True)
    front = [
        axis.to_front(x, d) if m or d is not not_mapped else x
        for x, d, m in zip(operands, dims, [*cond_mapped, *body_mapped, *carry_mapped], strict=True)
    ]
    if test_mapped:
        consts = front[: cond_nconsts + body_nconsts]
        outs = _until_all_are_done(
            cond, body, consts, front[len(consts) :], cond_nconsts, tuple(carry_mapped), schedule
        )
    else:
        outs = while_p.bind(*front, cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=cond_nconsts,
                            body_nconsts=body_nconsts, **_move(schedule, int))  # fmt: skip
    return outs, tuple([0 if m else not_mapped for m in carry_mapped])


def _of_those_that_go_on(
    axis: BatchAxis, body: ClosedJaxpr, consts_mapped: Sequence[bool], carry_mapped: Sequence[bool]
) -> ClosedJaxpr:
    """Return the batched body; if it checks something, who goes on is its first operand."""
    mapped = (*consts_mapped, *carry_mapped)
    if xprim.exact_effects(body.effects):
        body, mapped = control_flow.with_guard(body), (True, *mapped)
    return axis.batch_jaxpr(body, mapped, carry_mapped)[0]


def _until_all_are_done(
    cond: ClosedJaxpr, body: ClosedJaxpr, consts: list[Any], carry: list[Any], cond_nconsts: int,
    mapped: tuple[bool, ...], schedule: Schedule | None,
) -> Any:  # fmt: skip
    """Loop while any example's condition holds; the carry gets these conditions in front."""
    (test,) = eval_closed(cond, *consts[:cond_nconsts], *carry)
    key = ("until all are done", cond, len(consts), mapped)
    any_cond, guarded = derive(body, key, lambda: _guard(cond, body, consts, cond_nconsts, mapped))
    results = while_p.bind(
        *consts, test, *carry, cond_jaxpr=any_cond, body_jaxpr=guarded, cond_nconsts=0,
        body_nconsts=len(consts), **_move(schedule, lambda place: place + 1),
    )  # fmt: skip
    return tuple(results[1:])


def _guard(
    cond: ClosedJaxpr, body: ClosedJaxpr, consts: list[Any], cond_nconsts: int,
    mapped: tuple[bool, ...],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:  # fmt: skip
    before_carry = len(body.in_avals) - len(body.out_avals)
    has_guard = before_carry > len(consts) - cond_nconsts

    def step(*args: Any) -> list[Any]:
        own, (test, *carry) = args[: len(consts)], args[len(consts) :]
        taking_part = [test] if has_guard else []
        new = eval_closed(body, *taking_part, *own[cond_nconsts:], *carry)
        kept = [
            select(broadcast_to(test, x.aval.shape, (0,)), y, x) if m else x
            for x, y, m in zip(carry, new, mapped, strict=True)
        ]
        (more,) = eval_closed(cond, *own[:cond_nconsts], *kept)
        return [get_primitive("and").bind(test, more)[0], *kept]

    def any_test(test: Any, *carry: Any) -> Any:
        return get_primitive("reduce_or").bind(test, axes=(0,))

    avals = [cond.out_avals[0], *body.in_avals[before_carry:]]
    any_cond = trace_fun(any_test, avals, cond.jaxpr.name)
    const_avals = [x.aval for x in consts]
    return any_cond, trace_fun(step, [*const_avals, *avals], body.jaxpr.name)


def _check(
    handle: ChecksHandle, state: Any, operands: Any, *, cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int,
    schedule: Schedule | None = None,
) -> Any:  # fmt: skip
    """Carry the state along; the condition is checked before the loop and after each step."""
    cond_consts, body_consts, carry = split_at(operands, cond_nconsts, body_nconsts)
    state, _ = handle.run(cond_jaxpr, state, [*cond_consts, *carry])
    step = body_jaxpr.derived(_check_step, handle, cond_jaxpr, cond_nconsts, body_nconsts)
    results = while_p.bind(
        *cond_consts, *cond_consts, *body_consts, *state, *carry, body_jaxpr=step,
        cond_jaxpr=handle.remove_checks(cond_jaxpr, after=cond_nconsts),
        cond_nconsts=cond_nconsts, body_nconsts=cond_nconsts + body_nconsts,
        **_move(schedule, lambda place: place + len(state)),
    )  # fmt: skip
    return results[: len(state)], results[len(state) :]


def _check_step(
    body: ClosedJaxpr, handle: ChecksHandle, cond: ClosedJaxpr, of_cond: int, of_body: int
) -> ClosedJaxpr:
    """Return the step of a loop, with the checks of the condition on what it gives."""
    new = len(handle.avals)

    def step(*args: Any) -> list[Any]:
        cond_consts, body_consts, state, carry = split_at(args, of_cond, of_body, new)
        after, outs = handle.run(body, state, [*body_consts, *carry])
        after, _ = handle.run(cond, after, [*cond_consts, *outs])
        return [*after, *outs]

    consts, carry = cond.in_avals[:of_cond], body.in_avals[of_body:]
    avals = [*consts, *body.in_avals[:of_body], *handle.avals, *carry]
    return ClosedJaxpr(*xprim.trace_to_jaxpr(step, avals, name=body.jaxpr.name))


while_p = xprim.Primitive(
    "while",
    call_like=True,
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    eager=xprim.Eager(kernel=_kernel),
    programs=Programs(
        {"cond_jaxpr": ("cond_consts", "carry"), "body_jaxpr": ("body_consts", "carry")},
        operands={"cond_consts": "cond_nconsts", "body_consts": "body_nconsts", "carry": None},
        carry="carry",
        test="cond_jaxpr",
        unbounded=True,
        derived=_derive,
        checked=_check,
    ),
)
