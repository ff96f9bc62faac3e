"""How an eagerly evaluated `while` is run as a compiled program: in rounds of many steps.

Nobody knows whether a `while` ends, and no interrupt reaches a program that runs: so the program
stops after a number of steps, too, and starts again where it was. Its body is the same in every
round, so the carry is that of one long run. The rounds also tell how many steps there were.

    round = while(cond(carry) and counter != stop, body)

The counter is a part of the carry to which the body adds a constant, as most loops have one; only
where there is none is it added, since each further result of a body takes XLA long to compile.

Neighbours: `while_loop` has the primitive, `eager_loops` says which loops are compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xnp.primitives.eager_loops import run_compiled, work_of
from xnp.primitives.inner_programs import derived, traced
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    Literal,
    Primitive,
    dtypes,
    eval_closed,
    get_primitive,
    scalar_array,
    shaped_array,
)

__all__ = ()

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
    while_p: Primitive, loop: Loop, operands: Sequence[Any]
) -> tuple[tuple[Any, ...], int]:
    """Run a loop as a compiled program; return the carry and how many steps there were.

    Args:
      while_p: the primitive.
      loop: what it runs.
      operands: constants of the condition, constants of the body, and the carry.
    """
    one = derived(loop.body, loop.key, lambda: _round_of(loop))
    most = max(1, int(_WORK_OF_A_ROUND / (1 + work_of(loop.body))))
    count, total = loop.cond_nconsts + loop.body_nconsts, 0
    consts, carry = operands[:count], list(operands[count:])
    if one.is_added:
        carry.append(scalar_array(0, dtypes.int32))
    while True:
        start = carry[one.place]
        stop = start.to_host() + np.asarray(most * one.stride, start.dtype)
        stop = ConcreteArray(np.asarray(stop, start.dtype), start.aval)
        carry = list(run_compiled(while_p, [stop, *consts, *carry], loop.body, one.params))
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
        "cond_jaxpr": traced(goes_on, taken_avals), "cond_nconsts": 1 + cond_nconsts,
        "body_jaxpr": body, "body_nconsts": body_nconsts,
    }  # fmt: skip
    return _Round(params, place, stride, found is None)


def _counting(body: ClosedJaxpr) -> ClosedJaxpr:
    """Return the body with the number of steps at the end of the carry."""
    one = scalar_array(1, dtypes.int32)

    def step(*args: Any) -> Any:
        return [*eval_closed(body, *args[:-1]), *get_primitive("add").bind(args[-1], one)]

    return traced(step, [*body.in_avals, shaped_array((), dtypes.int32)])


def _counter_of(body: ClosedJaxpr, nconsts: int) -> tuple[int, int] | None:
    """Return which part of the carry counts steps, and by how much; None where none does."""
    jaxpr = body.jaxpr
    added: dict[Any, Sequence[Any]] = {
        eqn.outputs[0]: eqn.inputs for eqn in jaxpr.eqns if eqn.primitive.name == "add"
    }
    for i, (before, after) in enumerate(zip(jaxpr.invars[nconsts:], jaxpr.outvars, strict=True)):
        inputs = added.get(after, ())
        by = [x for x in inputs if type(x) is Literal]
        aval = before.aval
        if before in inputs and len(by) == 1 and not aval.shape and (
            dtypes.is_integer(aval.dtype) and aval.dtype.itemsize >= 4
        ):  # fmt: skip
            stride = int(by[0].value.to_host())
            if 0 < abs(stride) <= _LARGEST_STRIDE:
                return i, stride
    return None
