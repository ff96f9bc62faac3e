"""Values of programs in the memory of the host: where they come back to the device."""

from __future__ import annotations

from itertools import compress
from typing import Any

from xprim import ClosedJaxpr, Equation, Var, get_primitive

__all__ = ()


def return_to_device(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program whose results, and what it puts on its devices, are in their memory.

    What was put into the memory of the host is there until another kind is said; XLA refuses a
    result that is there but is wanted on the device.
    """
    on_host: set[Any] = set()
    eqns: list[Equation] = []

    def fetch(v: Any) -> Any:
        copy = Var(v.aval)
        eqns.append(Equation(get_primitive("in_memory"), [v], [copy], {"kind": "device"}, None))
        return copy

    for eqn in closed.eqns:
        if eqn.primitive.name == "device_put":  # to memory of the host it would be `in_memory`
            eqn = eqn.replace(inputs=[fetch(v) if v in on_host else v for v in eqn.inputs])
        eqns.append(eqn)
        on_host.update(compress(eqn.outputs, _leaves_on_host(eqn, on_host)))
    outvars = [fetch(v) if v in on_host else v for v in closed.jaxpr.outvars]
    if len(eqns) == len(closed.eqns):
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, outvars=outvars), closed.consts)


def _leaves_on_host(eqn: Equation, on_host: set[Any]) -> list[bool]:
    """Return for each result of an equation whether it is in the memory of the host."""
    name, program = eqn.primitive.name, eqn.params.get("jaxpr")
    if name == "in_memory":
        return [eqn.params["kind"] != "device"]
    if name == "optimization_barrier":
        return [x in on_host for x in eqn.inputs]
    if not isinstance(program, ClosedJaxpr) or len(program.out_avals) != len(eqn.outputs):
        return [False] * len(eqn.outputs)
    inside: set[Any] = set()
    if len(program.jaxpr.invars) == len(eqn.inputs):  # what is passed through stays where it is
        inside.update(compress(program.jaxpr.invars, [x in on_host for x in eqn.inputs]))
    for inner in program.eqns:
        inside.update(compress(inner.outputs, _leaves_on_host(inner, inside)))
    return [v in inside for v in program.jaxpr.outvars]
