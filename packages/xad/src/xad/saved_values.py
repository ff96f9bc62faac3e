"""The programs behind a checkpoint that keeps some values: one makes them, one is given them.

The forward program has the saved values among its results. The derivative is that of the program in
which each saved value is joined with its computation, `saved_value(given, computed)`: both are the
same number, the tangent is that of the computation. After differentiation every use of the computed
value is replaced by the given one, and its computation is dead code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xad.checkpoint_policies import Policy, is_saved
from xad.jvp import JVPHandle
from xprim import (
    ELEMENTWISE,
    ClosedJaxpr,
    Equation,
    Primitive,
    Trace,
    Var,
    eval_closed,
    state,
    substituted,
    trace_to_jaxpr,
    undefined,
)


def saved_values(jaxpr: ClosedJaxpr, policy: Policy | None) -> list[Var]:
    """Return the variables of a program that the policy lets the forward pass keep."""
    if policy is None:
        return []
    saved: list[Var] = []
    for eqn in jaxpr.eqns:
        if is_saved(policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params)):
            saved += eqn.outputs
    return saved


def with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    """Return the program with more of its variables as results."""
    if not extra:
        return jaxpr
    inner = jaxpr.jaxpr
    return ClosedJaxpr(inner.replace(outvars=[*inner.outvars, *extra]), jaxpr.consts)


def derivative_given(
    handle: JVPHandle, jaxpr: ClosedJaxpr, saved: Sequence[Var], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the forward derivative of a program that is given some of its values.

    Args:
      handle: differentiates a program.
      jaxpr: the program.
      saved: the variables whose values are leading arguments of the derivative.
      nonzero: for each argument of the program, whether it has a tangent that is not zero.

    Returns:
      As `handle.jvp_jaxpr` does.
    """
    if not saved:
        return handle.jvp_jaxpr(jaxpr, nonzero)
    key = ("given", tuple(saved), nonzero)
    if key not in jaxpr.memo:
        joined = _with_saved_values(jaxpr, saved)
        derived, nonzero_out = handle.jvp_jaxpr(joined, (False,) * len(saved) + nonzero)
        jaxpr.memo[key] = _computations_replaced(derived), nonzero_out
    return jaxpr.memo[key]  # type: ignore[no-any-return]


def _with_saved_values(jaxpr: ClosedJaxpr, saved: Sequence[Var]) -> ClosedJaxpr:
    inner = jaxpr.jaxpr
    given = {v: Var(v.aval) for v in saved}
    joined: dict[Any, Var] = {}
    eqns: list[Equation] = []
    for eqn in inner.eqns:
        inputs = [joined.get(x, x) for x in eqn.inputs]
        eqns.append(eqn.replace(inputs=inputs))
        for v in eqn.outputs:
            if v in given:
                joined[v] = Var(v.aval)
                eqns.append(Equation(saved_value_p, [given[v], v], [joined[v]], {}, eqn.source))
    return ClosedJaxpr(
        inner.replace(
            invars=[*given.values(), *inner.invars],
            eqns=eqns,
            outvars=[joined.get(x, x) for x in inner.outvars],
        ),
        jaxpr.consts,
    )


def _computations_replaced(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Use the given values where their computations and what joins the two are used."""
    replacements: dict[Var, Any] = {}
    eqns = []
    for eqn in closed.eqns:
        if eqn.primitive is saved_value_p:
            given, computed = eqn.inputs
            replacements[eqn.outputs[0]] = given
            if isinstance(computed, Var):
                replacements[computed] = given
        else:
            eqns.append(eqn)
    return ClosedJaxpr(substituted(closed.jaxpr.replace(eqns=eqns), replacements), closed.consts)


def _first(given: Any, computed: Any) -> Any:
    return (given,)


def _saved_jvp(primals: Any, tangents: Any) -> Any:
    return saved_value_p.bind(*primals), (tangents[1],)


saved_value_p = Primitive(
    "saved_value",
    shape=_first,
    numpy=_first,
    stablehlo=lambda b, operands, avals_in, avals_out: operands[:1],
    jvp=_saved_jvp,
    transpose=undefined("it disappears when it is differentiated"),
    batch=ELEMENTWISE,
)


# --- calls inside ------------------------------------------------------------------------------


def with_calls_inlined(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with its plain calls (`jit`) written out, so that policies see inside."""
    if not any(eqn.primitive.name == "jit" for eqn in jaxpr.eqns):
        return jaxpr
    if "inlined" not in jaxpr.memo:

        def run(*args: Any) -> list[Any]:
            return _eval_inlined(jaxpr, args)

        inner, consts = trace_to_jaxpr(run, jaxpr.in_avals, name=jaxpr.jaxpr.name)
        jaxpr.memo["inlined"] = ClosedJaxpr(inner, consts)
    return jaxpr.memo["inlined"]  # type: ignore[no-any-return]


def _eval_inlined(jaxpr: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    previous = state.trace
    state.trace = InliningTrace(previous)
    try:
        return eval_closed(jaxpr, *args)
    finally:
        state.trace = previous


class InliningTrace(Trace):
    """Hands every primitive to its parent, but the equations of a `jit` one by one."""

    __slots__ = ()

    name = "inline"

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive, or the program that a call holds."""
        if primitive.name == "jit":
            return tuple(eval_closed(params["jaxpr"], *operands))
        assert self.parent is not None
        return self.parent.process(primitive, operands, params)
