"""`debug_nans` and `debug_infs`: find the operation whose result is not finite.

Results of compiled programs are looked at when one of the options is set. If one is at fault, the
program runs again, one equation at a time, to name the operation and the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit.placement import Placement
from xjit.program import program_of
from xprim import EAGER, ClosedJaxpr, ConcreteArray, Literal, config, source, state
from xprim.finite import fault_in

__all__ = ()

_nans, _infs = config.debug_nans, config.debug_infs


def run_checked(
    closed: ClosedJaxpr, operands: Sequence[Any], name: str, placement: Placement | None = None
) -> tuple[ConcreteArray, ...]:
    """Run a compiled program; its results are looked at where an option asks for that."""
    results = program_of(closed, name, placement).call(operands)
    if _nans.used or _infs.used:
        check_finite(name, results, closed, operands)
    return tuple(results)


def check_finite(name: str, results: Sequence[ConcreteArray], closed: ClosedJaxpr,
                 arguments: Sequence[ConcreteArray] | None) -> None:  # fmt: skip
    """Raise if a result holds a NaN or an infinity that the options forbid.

    Args:
      name: of the function.
      results: what it returned.
      closed: its program.
      arguments: what it was called with, to run it again; None when they were donated.

    Raises:
      FloatingPointError: naming the operation that made the first bad value.
    """
    found = next((f for x in results if (f := fault_in(x.to_stored()))), "")
    if not found:
        return
    place = "" if arguments is None else _first_fault(closed, arguments)
    where = f"\n  where     {place}" if place else ""
    raise FloatingPointError(f"{name}: {found} was computed.{where}")


def _first_fault(closed: ClosedJaxpr, arguments: Sequence[ConcreteArray]) -> str:
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, arguments, strict=True))
    previous = state.trace
    state.trace = EAGER
    try:
        for eqn in jaxpr.eqns:
            operands = tuple([x.value if type(x) is Literal else env[x] for x in eqn.inputs])
            try:
                results = EAGER.process(eqn.primitive, operands, eqn.params)
            except FloatingPointError:
                shapes = ", ".join([x.aval.str_long() for x in operands])
                place = source.describe(eqn.source)
                return f"{eqn.primitive.name}({shapes})" + (f" at {place}" if place else "")
            env.update(zip(eqn.outputs, results, strict=True))
    finally:
        state.trace = previous
    return ""
