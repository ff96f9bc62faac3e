"""Eager evaluation of large operations: compiled once for each (primitive, avals, params).

`EagerBackend.takes` decides by sizes and placement alone, so equal programs take equal paths: data
that was put on another device than the host's, and work that is large, goes to XLA, asynchronously;
the rest runs in NumPy. `compile_and_run` does the same for whoever asks.

Neighbours: `xprim.eager` asks, `program` runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xjit.program import program_of
from xprim import (
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    config,
)

_MAX_PROGRAMS = 4096

# Results of fewer elements are never looked at further.
_LARGE = 1 << 17

_programs: dict[Any, ClosedJaxpr] = {}


class EagerBackend:
    """What `xjit` offers to eager evaluation."""

    __slots__ = ()

    def takes(
        self, primitive: Primitive, operands: tuple[Any, ...], avals_out: tuple[ShapedArray, ...]
    ) -> bool:
        """Return whether an operation is compiled rather than run by NumPy."""
        for a in avals_out:
            if a.size >= _LARGE:
                return True
        return False

    def evaluate(
        self,
        primitive: Primitive,
        operands: tuple[Any, ...],
        params: dict[str, Any],
        avals_out: tuple[ShapedArray, ...],
    ) -> tuple[ConcreteArray, ...]:
        """Compile and run one primitive."""
        return compile_and_run(primitive, operands, params)

    def run_program(
        self, program: ClosedJaxpr, operands: Sequence[Any]
    ) -> tuple[ConcreteArray, ...]:
        """Run a program compiled: what long loops ask for, which keep their program themselves."""
        return tuple(program_of(program, program.jaxpr.name).call(tuple(operands)))


def compile_and_run(
    primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
) -> tuple[ConcreteArray, ...]:
    """Apply a primitive to concrete arrays with XLA, compiled once for their types and the params.

    Args:
      primitive: it needs a `stablehlo` rule.
      operands: concrete arrays.
      params: hashable.

    Returns:
      The results, which may still be in the making.
    """
    avals = tuple([x.aval for x in operands])
    key = (primitive, avals, config.trace_context(), *params.items())
    closed = _programs.get(key)
    if closed is None:
        closed = _single_equation(primitive, avals, params)
        if not primitive.call_like:  # those hold jaxprs, which would stay alive
            if len(_programs) >= _MAX_PROGRAMS:
                _programs.clear()
            _programs[key] = closed
    return tuple(program_of(closed, primitive.name).call(operands))


def _single_equation(
    primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]
) -> ClosedJaxpr:
    invars = [Var(a) for a in avals]
    outvars = [Var(a) for a in primitive.infer(avals, params)]
    eqn = Equation(primitive, invars, outvars, params)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], primitive.name))
