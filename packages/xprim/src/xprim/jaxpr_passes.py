"""Rewrites of jaxprs: dead code, common subexpressions, substitution of constants.

Each takes a jaxpr and returns a new one. Equations with effects are never dropped, merged or
reordered. Inner jaxprs are rewritten by the `dce` rule of the primitive that holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var


def dead_code_removed(jaxpr: Jaxpr, used: Sequence[bool] | None = None) -> tuple[Jaxpr, list[bool]]:
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
    live = {v for v in outvars if type(v) is not Literal}
    eqns: list[Equation] = []
    for eqn in reversed(jaxpr.eqns):
        kept = _live_part(eqn, live)
        if kept is not None:
            eqns.append(kept)
            live.update(x for x in kept.inputs if type(x) is not Literal)
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


def closed_without_dead_code(
    closed: ClosedJaxpr, used: Sequence[bool] | None = None, *, keep_arguments: bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """Drop dead code of a closed jaxpr, its unneeded constants included.

    Args:
      closed: the program.
      used: for each result, whether it is wanted; None wants all.
      keep_arguments: whether arguments stay although nothing needs them.
    """
    key = ("dce", None if used is None else tuple(used), keep_arguments)
    found = closed.memo.get(key)
    if found is None:
        jaxpr, needed = dead_code_removed(closed.jaxpr, used)
        if keep_arguments:
            jaxpr = jaxpr.replace(invars=closed.jaxpr.invars)
        found = closed.memo[key] = (_used_constants(jaxpr, closed.consts), needed)
    return found


def _used_constants(jaxpr: Jaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    if not consts:
        return ClosedJaxpr(jaxpr, ())
    live = {x for eqn in jaxpr.eqns for x in eqn.inputs} | set(jaxpr.outvars)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True) if v in live]
    return ClosedJaxpr(jaxpr.replace(constvars=[v for v, _ in kept]), [c for _, c in kept])


def common_subexpressions_merged(jaxpr: Jaxpr) -> Jaxpr:
    """Compute each repeated equation (same primitive, inputs and params) once."""
    renamed: dict[Var, Atom] = {}
    seen: dict[Any, Sequence[Var]] = {}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        inputs = [_renamed(x, renamed) for x in eqn.inputs] if renamed else eqn.inputs
        if "effects" in eqn.primitive.rules and eqn.effects:
            eqns.append(eqn.replace(inputs=inputs))
            continue
        key = _equation_key(eqn, inputs)
        first = seen.get(key)
        if first is None:
            seen[key] = eqn.outputs
            eqns.append(eqn.replace(inputs=inputs) if inputs is not eqn.inputs else eqn)
        else:
            renamed.update(zip(eqn.outputs, first, strict=True))
    outvars = [_renamed(x, renamed) for x in jaxpr.outvars]
    return jaxpr.replace(outvars=outvars, eqns=eqns)


def _equation_key(eqn: Equation, inputs: Sequence[Atom]) -> Any:
    return (eqn.primitive, *map(_identity, inputs), *eqn.params.items())


def _identity(atom: Atom) -> Any:
    if type(atom) is Literal:
        return atom.aval, atom.value.to_host().tobytes()
    return atom


def _renamed(atom: Atom, renamed: dict[Var, Atom]) -> Atom:
    return renamed.get(atom, atom) if isinstance(atom, Var) else atom


def substituted(jaxpr: Jaxpr, replacements: dict[Var, Atom]) -> Jaxpr:
    """Replace free occurrences of variables by other atoms in equations and results."""
    eqns = [
        eqn.replace(inputs=[_renamed(x, replacements) for x in eqn.inputs]) for eqn in jaxpr.eqns
    ]
    outvars = [_renamed(x, replacements) for x in jaxpr.outvars]
    return jaxpr.replace(eqns=eqns, outvars=outvars)
