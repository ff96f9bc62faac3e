"""Linearization: evaluate a function now, and keep its derivative as a linear program.

`LinearizeTrace` is forward mode over a `TapeTrace`. The tape's tracers are the tangents; a
primitive with a tangent among its operands becomes an equation on the tape, every other one is
evaluated at once by the parent trace. So primal values are concrete when the parent is eager, and
Python control flow works. The tape is a jaxpr whose constants are the residuals.

For call-like primitives, `LinearizeHandle.linearize_jaxpr` does the same to the inner program under
a staging parent: what the tape needs of it becomes extra results (residuals) of the primal program
and extra arguments of the linear one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xad.jvp import JVPHandle, JVPTrace, jvp_flat
from xad.tangents import instantiate, is_differentiable
from xprim import (
    ClosedJaxpr,
    Jaxpr,
    JaxprTrace,
    JaxprTracer,
    Primitive,
    Trace,
    Var,
    Zero,
    close_over,
    closed_without_dead_code,
    eval_closed,
    state,
    trace_to_jaxpr,
)


class TapeTrace(JaxprTrace):
    """Records what depends on tangents, evaluates the rest through its parent."""

    __slots__ = ("records_all",)

    name = "linearize"

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.keeps_sources = parent.keeps_sources  # the tape itself is run at once
        self.records_all = False

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Record what depends on a tangent, hand the rest to the parent."""
        for x in operands:
            if type(x) is JaxprTracer and x._trace is self:
                break
        else:
            if not self.records_all:
                return self.parent.process(primitive, operands, params)  # type: ignore[union-attr]
        if primitive.call_like:
            return super().process(primitive, operands, params)
        return self.append(primitive, operands, params)


class LinearizeTrace(JVPTrace):
    """Forward mode over a tape; call-like primitives may split their programs."""

    __slots__ = ()

    name = "grad"

    @property
    def handle(self) -> JVPHandle:
        """What the rules of call-like primitives transform their programs with."""
        return LINEARIZE_HANDLE

    def call_rule(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the `linearize` rule, or the `jvp` rule where there is none."""
        rule: Callable[..., Any] = primitive.rules.get("linearize") or primitive.rule("jvp")
        return rule


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """The derivative of a function at a point: a jaxpr between the tangents that are not zero."""

    jaxpr: Jaxpr
    residuals: Sequence[Any]
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]


def linearize_flat(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    nonzero: Sequence[bool],
    wanted: Sequence[bool] = (),
) -> tuple[list[Any], LinearProgram]:
    """Evaluate a function of flat lists at `primals` and return its derivative there.

    Args:
      fun: takes and returns flat sequences of Arrays.
      primals: where to evaluate.
      nonzero: for each primal, whether to differentiate with respect to it.
      wanted: for each result, whether its tangent is to be an array although zero.
    """
    parent = state.trace
    tape = TapeTrace(parent)
    dots = [tape.argument(p.aval) if nz else Zero(p.aval)
            for p, nz in zip(primals, nonzero, strict=True)]  # fmt: skip
    outs, out_dots = jvp_flat(fun, primals, dots, LinearizeTrace, tape)
    if wanted:
        out_dots = [
            _recorded_zero(tape, d) if w and type(d) is Zero and is_differentiable(d.aval) else d
            for d, w in zip(out_dots, wanted, strict=True)
        ]
    tape.closed = True
    nonzero_out = tuple([type(d) is not Zero for d in out_dots])
    jaxpr, residuals = tape.finish([d for d in out_dots if type(d) is not Zero])
    return outs, LinearProgram(jaxpr, residuals, tuple(nonzero), nonzero_out)


def _recorded_zero(tape: TapeTrace, zero: Zero) -> Any:
    """Make a zero tangent an array by an equation of the tape, so that no constant is stored."""
    previous = state.trace
    state.trace, tape.records_all = tape, True
    try:
        return instantiate(zero)
    finally:
        state.trace, tape.records_all = previous, False


@dataclass(frozen=True, slots=True)
class Linearized:
    """A program split in two.

    Attributes:
      primal: from the arguments to the results followed by residuals.
      linear: from all residuals followed by the nonzero tangents to the nonzero result tangents.
      nonzero_out: for each result, whether its tangent is a result of `linear`.
      forwarded: for each residual, the number of the argument that it is, or -1 when it is the
        next of the extra results of `primal`.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    nonzero_out: tuple[bool, ...]
    forwarded: tuple[int, ...]

    @property
    def num_results(self) -> int:
        """How many results of `primal` are results of the original program."""
        return len(self.nonzero_out)

    def residuals(self, arguments: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Pick the residuals from the arguments and all results of `primal`."""
        extra = iter(results[self.num_results :])
        return [arguments[k] if k >= 0 else next(extra) for k in self.forwarded]


class LinearizeHandle(JVPHandle):
    """Given to the `linearize` (and `jvp`) rules of call-like primitives in reverse mode."""

    def linearize_jaxpr(
        self,
        closed: ClosedJaxpr,
        nonzero: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> Linearized:
        """Split a program into its primal part and the linear part for the nonzero tangents.

        Args:
          closed: the program.
          nonzero: for each argument, whether it has a tangent that is not zero.
          instantiate: whether (or which) tangents of results are made arrays although zero.
        """
        wanted = (instantiate,) * len(closed.out_avals) if isinstance(instantiate, bool) else (
            tuple(instantiate))  # fmt: skip
        key = ("linearize", tuple(nonzero), wanted)
        if key not in closed.memo:
            closed.memo[key] = _linearized(closed, tuple(nonzero), wanted)
        return closed.memo[key]  # type: ignore[no-any-return]


LINEARIZE_HANDLE = LinearizeHandle()


def _linearized(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], wanted: tuple[bool, ...]
) -> Linearized:
    captured: list[Any] = []

    def primal_part(*primals: Any) -> list[Any]:
        outs, program = linearize_flat(
            lambda *xs: eval_closed(closed, *xs), primals, nonzero, wanted
        )
        linear, needed = _linear_part(program)
        captured.append((linear, program.nonzero_out))
        return [*outs, *needed]

    jaxpr, consts = trace_to_jaxpr(primal_part, closed.in_avals, name=closed.jaxpr.name)
    linear, nonzero_out = captured[0]
    count = len(nonzero_out)
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    extra = jaxpr.outvars[count:]
    forwarded = tuple([position.get(v, -1) if type(v) is Var else -1 for v in extra])
    outvars = [*jaxpr.outvars[:count], *(v for v, k in zip(extra, forwarded, strict=True) if k < 0)]
    primal, _ = closed_without_dead_code(
        ClosedJaxpr(jaxpr.replace(outvars=outvars), consts), keep_arguments=True
    )
    return Linearized(primal, linear, nonzero_out, forwarded)


def _linear_part(program: LinearProgram) -> tuple[ClosedJaxpr, list[Any]]:
    """Close a linear program; residuals that are traced become its leading arguments."""
    live = ClosedJaxpr(program.jaxpr, program.residuals)
    live, _ = closed_without_dead_code(live, keep_arguments=True)
    return close_over(live.jaxpr, live.consts)
