"""Where two programs differ that should do the same.

Two programs are the same when they have the same equations in the same order, with equal params and
constants of the same bits. The names of their variables do not count, nor where they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from xprim.array import ConcreteArray
from xprim.jaxpr import ClosedJaxpr, Equation, Literal

__all__ = ()


def first_difference(one: ClosedJaxpr, other: ClosedJaxpr) -> tuple[str, str] | None:
    """Return what the first equation (or the results) that differs looks like in each, or None."""
    for a, b in zip_longest(_described(one), _described(other), fillvalue=("nothing", None)):
        if a[1] != b[1]:
            return a[0], b[0]
    return None


def _described(program: ClosedJaxpr) -> Iterator[tuple[str, Any]]:
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
        return [form for _, form in _described(value)]
    return [_param(item) for item in value] if isinstance(value, tuple | list) else value


def _text(eqn: Equation) -> str:
    inputs = [str(x.val) if type(x) is Literal else x.aval.str_short() for x in eqn.inputs]
    return f"{eqn.primitive.name}({', '.join(inputs)})"
