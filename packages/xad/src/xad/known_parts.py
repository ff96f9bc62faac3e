"""Calls that mix primals and tangents: which results are known without the tangents.

The jvp rule of a user's function runs with its tangents on a tape and its primals known. It may
pass both through one call (`jit`, `scan`, `while_loop`, `cond`, `checkpoint`), whose result then
holds primals and tangents too. Such a call is divided by the `dce` rule of its primitive: the call
that gives the results which need no tangent is made at once, the one that gives the others goes on
the tape, with what it needs of the primals as residuals.

Neighbours: `tape` asks for it, and `transpose` of the programs in calls on a tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xprim import Equation, Primitive, ShapedArray, Var, operands_of_results
from xprim.jaxpr import memo_of
from xprim.static_keys import params_key
from xtree.records import Record, set_once

__all__ = ()


class Part(Record):
    """A smaller call, that gives some of the results of a call.

    Attributes:
      results: the numbers of these results.
      operands: the numbers of the operands that it needs.
      params: of the smaller call.
    """

    __slots__ = __match_args__ = ("results", "operands", "params")
    results: list[int]
    operands: list[int]
    params: dict[str, Any]

    def __init__(
        self, results: list[int], operands: list[int], params: dict[str, Any],
    ) -> None:  # fmt: skip
        set_once(self, "results", results)
        set_once(self, "operands", operands)
        set_once(self, "params", params)


def divided(
    primitive: Primitive, avals: Sequence[ShapedArray], known: tuple[bool, ...],
    params: dict[str, Any],
) -> tuple[Part, Part]:  # fmt: skip
    """Return the part of a call that needs known operands only, and the part that needs others.

    Args:
      primitive: one with a `dce` rule: a call, or what hands on several operands at once.
      avals: the abstract values of the operands.
      known: for each operand, whether it is known.
      params: of the call.
    """
    memo = memo_of(params)
    key = ("divided", primitive, known, *params_key(params))
    if key not in memo:
        outputs = [Var(a) for a in primitive.infer(tuple(avals), params)]
        call = Equation(primitive, [Var(a) for a in avals], outputs, params)
        from_known = [all(known[k] for k in needs) for needs in operands_of_results(call)]
        memo[key] = _part(call, from_known), _part(call, [not f for f in from_known])
    return memo[key]  # type: ignore[no-any-return]


def _part(call: Equation, wanted: list[bool]) -> Part:
    if not any(wanted):
        return Part([], [], call.params)
    smaller = call.primitive.rules["dce"](wanted, call)
    operands = {v: k for k, v in enumerate(call.inputs)}
    results = {v: k for k, v in enumerate(call.outputs)}
    return Part(
        [results[v] for v in smaller.outputs], [operands[v] for v in smaller.inputs],
        smaller.params,
    )  # fmt: skip
