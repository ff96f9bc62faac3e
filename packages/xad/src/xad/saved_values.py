"""The programs behind a checkpoint that keeps some values: one makes them, one is given them.

The forward program has the saved values among its results. The derivative is that of the program in
which each saved value is joined with its computation, `saved_value(given, computed)`: both are the
same number, the tangent is that of the computation. After differentiation every use of the computed
value is replaced by the given one, and its computation is dead code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xad._checkpoint_policies import Policy, is_saved
from xad._jvp import tangent_avals
from xad._linearize import LinearizeHandle
from xprim import (
    ELEMENTWISE,
    ClosedJaxpr,
    Equation,
    Literal,
    Primitive,
    Trace,
    Var,
    closed_without_dead_code,
    eval_closed,
    state,
    substituted,
    trace_to_closed,
    undefined,
)
from xprim.derived_cells import given_values, taken, with_cells

__all__ = ()


def saved_values(jaxpr: ClosedJaxpr, policy: Policy | None) -> list[Var]:
    """Return the variables of a program that the policy lets the forward pass keep."""
    if policy is None:
        return []
    saved: list[Var] = []
    for eqn in jaxpr.eqns:
        if is_saved(policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params)):
            saved += eqn.outputs
    return saved


def computed_again(jaxpr: ClosedJaxpr, policy: Policy | None) -> ClosedJaxpr:
    """Return the program without what only has effects that the policy keeps from a repeat."""
    if policy is None or not jaxpr.effects:
        return jaxpr
    inner = jaxpr.jaxpr
    eqns = [
        eqn for eqn in inner.eqns
        if eqn.outputs
        or not is_saved(policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params))
    ]  # fmt: skip
    return ClosedJaxpr(inner.replace(eqns=eqns), jaxpr.consts)


def with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    """Return the program with more of its variables as results."""
    return jaxpr.derived(_with_results, tuple(extra)) if extra else jaxpr


def _with_results(jaxpr: ClosedJaxpr, extra: Sequence[Var]) -> ClosedJaxpr:
    inner = jaxpr.jaxpr
    return ClosedJaxpr(inner.replace(outvars=[*inner.outvars, *extra]), jaxpr.consts)


def saved_residuals_of(linear: ClosedJaxpr, known: int, policy: Policy | None) -> list[Var]:
    """Return the variables of a derivative, computed of primals alone, that the policy lets keep.

    Args:
      linear: the derivative.
      known: how many of its first arguments are primals.
      policy: what is asked.
    """
    if policy is None:
        return []
    primal = {*linear.jaxpr.invars[:known], *linear.jaxpr.constvars}
    saved: list[Var] = []
    for eqn in linear.eqns:
        if eqn.effects:  # is not to happen twice
            continue
        if all(isinstance(x, Literal) or x in primal for x in eqn.inputs):
            primal.update(eqn.outputs)
            if is_saved(policy(eqn.primitive, *[x.aval for x in eqn.inputs], **eqn.params)):
                saved += eqn.outputs
    return saved


def split_at(
    linear: ClosedJaxpr, known: int, saved: tuple[Var, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool]]:
    """Return the program of what a derivative needs of some of its variables, and the rest of it.

    Args:
      linear: the derivative.
      known: how many of its first arguments are primals.
      saved: the variables, computed of those alone.

    Returns:
      A program from the primals to the variables that are needed; one from these and some of the
      arguments to the results; and for each of `saved` and of the arguments, whether it takes it.
    """
    inner = linear.jaxpr
    given = frozenset(saved)
    eqns = [eqn for eqn in inner.eqns if given.isdisjoint(eqn.outputs)]
    opened = inner.replace(invars=[*saved, *inner.invars], eqns=eqns)
    rest, taken = closed_without_dead_code(ClosedJaxpr(opened, linear.consts))
    wanted = [v for v, is_taken in zip(saved, taken, strict=False) if is_taken]
    silent = [eqn for eqn in inner.eqns if not eqn.effects]
    all_made = inner.replace(invars=inner.invars[:known], eqns=silent, outvars=wanted)
    made = closed_without_dead_code(ClosedJaxpr(all_made, linear.consts), keep_arguments=True)[0]
    return made, rest, taken


def derivative_given(
    handle: LinearizeHandle, jaxpr: ClosedJaxpr, saved: Sequence[Var], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the derivative of a program that is given some of its values.

    Every equation of it either computes with primals alone or is linear in the tangents, those of
    calls inside included; so it can be transposed.

    Args:
      handle: differentiates a program.
      jaxpr: the program.
      saved: the variables whose values are leading arguments of the derivative.
      nonzero: for each argument of the program, whether it has a tangent that is not zero.

    Returns:
      A program from the saved values, the primals, the nonzero tangents and the values of cells
      that rules use to the results and their nonzero tangents; and for each result whether its
      tangent is among them.
    """
    if not saved:
        return jaxpr.derived(_joined_parts, handle, nonzero)
    return jaxpr.derived(_of_saved_values, handle, tuple(saved), nonzero)


def _of_saved_values(
    jaxpr: ClosedJaxpr, handle: LinearizeHandle, saved: Sequence[Var], nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    joined = _with_saved_values(jaxpr, saved)
    # Of this program and not of `joined`: the cells that rules use are told to who asks for it.
    derived, nonzero_out = _joined_parts(joined, handle, (False,) * len(saved) + nonzero)
    return _computations_replaced(derived), nonzero_out


def _joined_parts(
    closed: ClosedJaxpr, handle: LinearizeHandle, nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the primal program followed by the linear one, as one program."""
    uses = taken()
    split, cells = with_cells(handle.linearize_jaxpr, closed, nonzero)
    count = len(closed.in_avals)

    def both(*args: Any) -> list[Any]:
        primals = [*args[:count], *given_values(cells)]
        results = eval_closed(split.primal, *primals)  # the cells were written before: not again
        residuals = split.residuals(primals, results)
        dots = eval_closed(split.linear, *residuals, *args[count:])
        return [*results[: split.num_results], *dots]

    avals = [*closed.in_avals, *tangent_avals(closed.in_avals, nonzero)]
    return trace_to_closed(both, avals, name=closed.jaxpr.name, cells=uses), split.nonzero_out


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
    """Return the program with its plain calls written out, so that policies see inside.

    A plain call is a primitive with an `inline` rule, such as `jit`.
    """
    if not any("inline" in eqn.primitive.rules for eqn in jaxpr.eqns):
        return jaxpr
    return jaxpr.derived(_inlined)


def _inlined(jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    return trace_to_closed(
        lambda *args: _eval_inlined(jaxpr, args), jaxpr.in_avals, name=jaxpr.jaxpr.name
    )


def _eval_inlined(jaxpr: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    previous = state.trace
    state.trace = InliningTrace(previous)
    try:
        return eval_closed(jaxpr, *args)
    finally:
        state.trace = previous


class InliningTrace(Trace):
    """Hands every primitive to its parent, but the equations of a plain call one by one."""

    __slots__ = ()

    name = "inline"

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive, or the program that a call holds."""
        inline = primitive.rules.get("inline")
        if inline is not None:
            return inline(*operands, **params)  # type: ignore[no-any-return]
        assert self.parent is not None
        return self.parent.process(primitive, operands, params)
