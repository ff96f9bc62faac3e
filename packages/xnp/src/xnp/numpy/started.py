"""Large operations whose operands are with the compiler backend, started by one look-up.

After a large operation the processor's caches hold data, not the interpreter's state: each layer of
Python between the user and the runtime then costs microseconds. So an array function that
amounts to one primitive, which the backend takes, is remembered as that primitive's program.

Neighbours: `dispatch` has the plans of small operations and comes here with large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.numpy.host_programs import program_of
from xprim import EAGER, ConcreteArray, Equation, Var, config

Start = Callable[[tuple[Any, ...]], Any]

_MAX_STARTS = 2048
_values = config.values


def start(
    written: Callable[..., Any], table: dict[Any, Start], args: tuple[Any, ...], count: int
) -> Any:
    """Call a function of arrays, by the program that it amounts to where there is one.

    Args:
      written: the function for every trace.
      table: from abstract values, static arguments and options to what starts a program.
      args: `count` arrays or Python scalars, then the static arguments.
      count: how many.
    """
    operands = args[:count]
    try:
        key = (*[x.aval for x in operands], args[count:], _values.__dict__["cached_context"])
        found = table.get(key)
    except (AttributeError, TypeError):  # a Python scalar, an unhashable static argument
        return written(*args)
    if found is None:
        result = written(*args)
        if len(table) >= _MAX_STARTS:
            table.clear()
        table[key] = _start_of(written, operands, args[count:], result)
        return result
    result = found(operands)
    return written(*args) if result is None else result


def _start_of(
    written: Callable[..., Any], operands: tuple[Any, ...], statics: Any, result: Any
) -> Start:
    """Return what starts the program of a call that gave `result`."""
    if {type(x) for x in (*operands, result)} != {ConcreteArray}:
        return _by_the_written_route
    single = _single_equation(lambda *arrays: (written(*arrays, *statics),), operands)
    if single is None:
        return _by_the_written_route
    eqn, order = single
    found = EAGER.backend.started(eqn.primitive, [operands[i] for i in order], eqn.params)
    if found is None:
        return _by_the_written_route
    if order == list(range(len(operands))):
        return found
    return lambda arrays: found([arrays[i] for i in order])


def _single_equation(
    function: Callable[..., Any], operands: tuple[Any, ...]
) -> tuple[Equation, list[int]] | None:
    """Return the one equation that a function amounts to, and which operands it takes."""
    staged = program_of(function, [x.aval for x in operands])
    if staged is None or len(staged.jaxpr.eqns) != 1 or staged.consts:
        return None
    jaxpr = staged.jaxpr
    (eqn,) = jaxpr.eqns
    if not all(type(x) is Var for x in eqn.inputs) or [*eqn.outputs] != [*jaxpr.outvars]:
        return None
    return eqn, [jaxpr.invars.index(x) for x in eqn.inputs]


def _by_the_written_route(arrays: tuple[Any, ...]) -> Any:
    return None
