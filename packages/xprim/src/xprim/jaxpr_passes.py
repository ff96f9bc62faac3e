"""Rewrites of jaxprs: dead code, common subexpressions, substitution of constants; comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from xprim.array import ConcreteArray
from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, memo_of
from xprim.static_keys import params_key

__all__ = ()


# --------------------------------------------------------------------------- program differences
# Where two programs differ that should do the same.
#
# Two programs are the same when they have the same equations in the same order, with equal params
# and constants of the same bits. The names of their variables do not count, nor where they were
# written.


def first_difference(one: ClosedJaxpr, other: ClosedJaxpr) -> tuple[str, str] | None:
    """Return what the first equation (or the results) that differs looks like in each, or None."""
    for a, b in zip_longest(_describe(one), _describe(other), fillvalue=("nothing", None)):
        if a[1] != b[1]:
            return a[0], b[0]
    return None


def _describe(program: ClosedJaxpr) -> Iterator[tuple[str, Any]]:
    """Yield text and comparable form of the constants, of each equation and of the results."""
    jaxpr = program.jaxpr
    defined = [*jaxpr.constvars, *jaxpr.invars, *[v for e in jaxpr.eqns for v in e.outputs]]
    numbers = {v: number for number, v in enumerate(defined)}

    def comparable(x: Any) -> Any:
        return x.key if type(x) is Literal else (x.aval, numbers[x])

    for value in program.consts:
        yield f"the constant {value!r}", _constant(value)
    for eqn in jaxpr.eqns:
        inputs = [comparable(x) for x in eqn.inputs]
        outputs = [comparable(v) for v in eqn.outputs]
        params = [(name, _param(value)) for name, value in eqn.params.items()]
        yield _text(eqn), (eqn.primitive, inputs, outputs, params)
    yield f"{len(jaxpr.outvars)} results", [comparable(x) for x in jaxpr.outvars]


def _constant(value: Any) -> Any:
    if type(value) is not ConcreteArray:
        return value.aval, id(value)
    return value.aval, value.to_host().tobytes()


def _param(value: Any) -> Any:
    """Return a param in a form that compares programs by what they do."""
    if isinstance(value, ClosedJaxpr):
        return [form for _, form in _describe(value)]
    return [_param(item) for item in value] if isinstance(value, tuple | list) else value


def _text(eqn: Equation) -> str:
    inputs = [str(x.val) if type(x) is Literal else x.aval.str_short() for x in eqn.inputs]
    return f"{eqn.primitive.name}({', '.join(inputs)})"


# ---------------------------------------------------------------------------------- jaxpr passes
# Rewrites of jaxprs: dead code, common subexpressions, substitution of constants.
#
# Each takes a jaxpr and returns a new one. Equations with effects are never dropped, merged or
# reordered. Inner jaxprs are rewritten by the `dce` rule of the primitive that holds them.


def remove_dead_code(jaxpr: Jaxpr, used: Sequence[bool] | None = None) -> tuple[Jaxpr, list[bool]]:
    """Drop the results that are not used and every equation that only they need.

    Args:
      jaxpr: the program.
      used: for each result, whether it is wanted; None wants all.

    Returns:
      The smaller jaxpr, with the wanted results and the needed arguments only, and for each
      argument of the old one whether it is needed.
    """
    outvars = [v for v, u in zip(jaxpr.outvars, used, strict=True) if u] if used is not None else (
        list(jaxpr.outvars))  # fmt: skip
    live: set[Any] = set(outvars)  # literals among them do no harm
    eqns: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        outputs = eqn.outputs
        if len(outputs) == 1 and outputs[0] in live:
            kept = eqn
        elif len(outputs) == 1 and "effects" not in eqn.primitive.rules:
            continue
        else:
            part = _live_part(eqn, live)
            if part is None:
                continue
            kept = part
        eqns.append(kept)
        live.update(kept.inputs)
    eqns.reverse()
    needed = [v in live for v in jaxpr.invars]
    invars = [v for v, n in zip(jaxpr.invars, needed, strict=True) if n]
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns), needed


def _live_part(eqn: Equation, live: set[Any]) -> Equation | None:
    rules = eqn.primitive.rules
    used = [v in live for v in eqn.outputs]
    if "effects" in rules and eqn.effects:
        return eqn
    if not any(used):
        return None
    if "dce" in rules and not all(used):
        return rules["dce"](used, eqn)  # type: ignore[no-any-return]
    return eqn


def operands_of_results(eqn: Equation) -> Sequence[Collection[int]]:
    """Return, for each result of an equation, the numbers of the operands that it depends on.

    The `dce` rule of the primitive says it, as of calls and of control flow; of one without, each
    result depends on all operands.
    """
    outputs, primitive = eqn.outputs, eqn.primitive
    everything = range(len(eqn.inputs))
    if len(outputs) == 1 or "dce" not in primitive.rules:
        return [everything] * len(outputs)
    memo = memo_of(eqn.params)
    key = ("operands of results", primitive, *params_key(eqn.params))
    if key not in memo:
        memo[key] = _operands_by_dead_code(eqn)
    return memo[key]  # type: ignore[no-any-return]


def _operands_by_dead_code(eqn: Equation) -> list[frozenset[int]]:
    operands = [Var(x.aval) for x in eqn.inputs]  # apart, where one is given twice
    numbers = {v: k for k, v in enumerate(operands)}
    outputs = [Var(v.aval) for v in eqn.outputs]
    call = Equation(eqn.primitive, operands, outputs, eqn.params)
    found = []
    for out in outputs:
        smaller = eqn.primitive.rules["dce"]([v is out for v in outputs], call)
        found.append(frozenset([numbers[v] for v in smaller.inputs]))
    return found


def prune_dead_code(
    closed: ClosedJaxpr, used: Sequence[bool] | None = None, *, keep_arguments: bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Drop dead code of a closed jaxpr, its unneeded constants included.

    Args:
      closed: the program.
      used: for each result, whether it is wanted; None wants all.
      keep_arguments: whether arguments stay although nothing needs them.
    """
    return closed.derived(_live_program, None if used is None else tuple(used), keep_arguments)


def _live_program(
    closed: ClosedJaxpr, used: Sequence[bool] | None, keep_arguments: bool
) -> tuple[ClosedJaxpr, list[bool]]:
    jaxpr, needed = remove_dead_code(closed.jaxpr, used)
    if keep_arguments:
        jaxpr = jaxpr.replace(invars=closed.jaxpr.invars)
    return _drop_unused_constants(jaxpr, closed.consts), needed


def _drop_unused_constants(jaxpr: Jaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    if not consts:
        return ClosedJaxpr(jaxpr, ())
    live = {x for eqn in jaxpr.eqns for x in eqn.inputs} | set(jaxpr.outvars)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True) if v in live]
    return ClosedJaxpr(jaxpr.replace(constvars=[v for v, _ in kept]), [c for _, c in kept])


def merge_common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Compute each repeated equation (same primitive, inputs and params) once."""
    renamed: dict[Any, Atom] = {}
    seen: dict[Any, Equation] = {}  # the first of its primitive and inputs, most are alone
    alike: dict[Any, Sequence[Var]] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        kept = eqn if not renamed else _with_renamed_inputs(eqn, renamed)
        if "effects" in kept.primitive.rules and kept.effects:
            eqns.append(kept)
            continue
        key = (kept.primitive, *[x.key if type(x) is Literal else x for x in kept.inputs])
        first = seen.setdefault(key, kept)
        if first is not kept:
            if first.signature is kept.signature is not None:
                renamed.update(zip(kept.outputs, first.outputs, strict=True))
                continue
            alike.setdefault((key, params_key(first.params)), first.outputs)
            same = alike.setdefault((key, params_key(kept.params)), kept.outputs)
            if same is not kept.outputs:
                renamed.update(zip(kept.outputs, same, strict=True))
                continue
        eqns.append(kept)
    outvars = [renamed.get(x, x) for x in jaxpr.outvars]
    return jaxpr.replace(outvars=outvars, eqns=eqns)


def _with_renamed_inputs(eqn: Equation, renamed: dict[Any, Atom]) -> Equation:
    for x in eqn.inputs:
        if x in renamed:
            return eqn.with_inputs([renamed.get(y, y) for y in eqn.inputs])
    return eqn


def _rename(atom: Atom, renamed: dict[Var, Atom]) -> Atom:
    return renamed.get(atom, atom) if isinstance(atom, Var) else atom


def substitute(jaxpr: Jaxpr, replacements: dict[Var, Atom]) -> Jaxpr:
    """Replace free occurrences of variables by other atoms in equations and results."""
    eqns = [
        eqn.replace(inputs=[_rename(x, replacements) for x in eqn.inputs]) for eqn in jaxpr.eqns
    ]
    outvars = [_rename(x, replacements) for x in jaxpr.outvars]
    return jaxpr.replace(eqns=eqns, outvars=outvars)
