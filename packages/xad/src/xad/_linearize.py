"""Linearization: evaluate a function now, and keep its derivative as a linear program on a tape."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xad._jvp import JVPHandle, JVPTrace, JVPTracer, jvp_flat
from xad.derivative_kernels import (
    USES_BEFORE_TEMPLATE,
    KernelEquation,
    KernelTrace,
    LinearizedKernel,
    divide,
    template_of,
    use_template,
    without_kernels,
)
from xad.tangents import JvpRule, Tangent, instantiate, is_differentiable
from xprim import (
    EAGER,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Jaxpr,
    JaxprTrace,
    JaxprTracer,
    Primitive,
    Trace,
    Var,
    Zero,
    append_template,
    close_over,
    config,
    effects_text,
    get_primitive,
    prune_dead_code,
    state,
    substitute,
    trace_to_closed,
    trace_to_jaxpr,
    unrepeatable_effects,
)
from xprim.derived_refs import claim_ref_uses, derive_once
from xprim.eager_costs import USES_BEFORE_KERNEL
from xprim.errors import UndefinedRuleError, message
from xprim.jaxpr import interpret
from xprim.kernels import KernelTable, Refusal, numpy_function, numpy_operand, staged_function
from xprim.sharded_types import meshes_of
from xprim.source import capture
from xtree.records import Record

__all__ = ()


# ------------------------------------------------------------------------------------------ tape
# The tape: a trace that records what depends on tangents and evaluates the rest at once.
#
# Its tracers are the tangents. What a primitive that mixes primals and tangents gives depends on
# tangents as well, but for the calls in a rule of the user's: those are divided (`known_parts`).

# In place of what a tape that absorbs zeros records.
_ABSORBING = {"mul": "absorbing_product", "div": "absorbing_quotient"}

zero_absorbing = config.define(config.Option(
    "zero_absorbing", False, "Whether tangents and cotangents that are zero stay zero through "
    "infinite or NaN derivatives, as of a branch of where that is not selected, in reverse mode "
    "and linearize.", kind=bool, in_cache_key=True,
))  # fmt: skip
_values = config.values


class TapeTrace(JaxprTrace):
    """Records what depends on tangents, evaluates the rest through its parent."""

    __slots__ = ("absorbs", "divides_calls", "meshes", "records_all")

    name = "linearize"
    meshes: dict[Var, tuple[Any, ...]]

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.keeps_sources = parent.keeps_sources  # the tape itself is run at once
        self.absorbs = _values.zero_absorbing
        self.records_all = False
        self.divides_calls = False  # while a user's rule runs, which may mix primals and tangents
        self.meshes = {}

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Record what depends on a tangent, hand the rest to the parent."""
        for x in operands:
            if type(x) is JaxprTracer and x._trace is self:  # `owns`, on a hot path
                break
        else:
            if not self.records_all:
                return self.parent.process(primitive, operands, params)  # type: ignore[union-attr]
        if self.divides_calls and (primitive.call_like or "dce" in primitive.rules):
            return self._process_in_parts(primitive, operands, params)
        if not primitive.call_like:
            if self.absorbs and primitive.name in _ABSORBING:
                return self._append_absorbing(primitive, operands)
            return self.append(primitive, operands, params)
        return super().process(primitive, operands, params)

    def _append_absorbing(self, primitive: Primitive, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Record a product or quotient by what is known so that a tangent of 0 stays 0."""
        x, y = operands
        if primitive.name == "mul" and self.owns(y):
            x, y = y, x
        return self.append(get_primitive(_ABSORBING[primitive.name]), (x, y), {})

    def _process_in_parts(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate what of a call needs no tangent and record the rest."""
        rules = primitive.rules
        if "in_parts" in rules:
            return rules["in_parts"](*operands, **params)  # type: ignore[no-any-return]
        if "dce" not in rules:
            return super().process(primitive, operands, params)
        known = tuple([not self.owns(x) for x in operands])
        now, recorded = divide(primitive, [x.aval for x in operands], known, params)
        if now.results and recorded.results and unrepeatable_effects(primitive.effects(params)):
            raise _would_repeat_effects(primitive, params)
        result_by_number: dict[int, Any] = {}
        evaluate = self.parent.process  # type: ignore[union-attr]
        for part, process in ((recorded, self.append), (now, evaluate)):
            if part.results:
                needed = tuple([operands[k] for k in part.operands])
                results = process(primitive, needed, part.params)
                result_by_number.update(zip(part.results, results, strict=True))
        return tuple([result_by_number[k] for k in range(len(result_by_number))])

    def run_rule(self, rule: JvpRule, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Run a jvp rule of the user's, whose operations may mix primals and tangents.

        What a linear function gives whatever its operands is zero.

        Raises:
          TypeError: when a result depends on the tangents.
        """
        previous, self.divides_calls = self.divides_calls, True
        try:
            outs, dots = rule(primals, tangents)
        finally:
            self.divides_calls = previous
        for out in outs:
            if self.owns(out):
                raise _depends_on_tangents(out)
        return outs, [dot if self.owns(dot) else Zero(dot.aval) for dot in dots]

    def owns(self, value: Any) -> bool:
        """Return whether a value depends on a tangent."""
        return type(value) is JaxprTracer and value._trace is self

    def note_mesh(self, primal: Any, dot: Any) -> None:
        """Remember the mesh of a primal for the cotangent of its tangent.

        Types name no devices, and a cotangent may have nothing but its type.
        """
        meshes = meshes_of([primal])
        if meshes and self.owns(dot):
            self.meshes[dot.variable] = meshes


def _depends_on_tangents(out: Any) -> TypeError:
    origin = out.origin()
    return TypeError(message(
        "custom_jvp", "a rule's result depends on its tangents.",
        got=f"{out.aval.str_short()}, {origin}" if origin else "",
        expected="a pair (result, tangent) whose result is computed from the primals alone",
    ))  # fmt: skip


def _would_repeat_effects(primitive: Primitive, params: dict[str, Any]) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "custom_jvp", f"{primitive.name} in a rule has side effects, which reverse mode would "
        "repeat, as it computes primals and tangents apart.",
        got=f"effects: {effects_text(primitive.effects(params))}",
        hint="leave what has the effects out of the call that gets both",
    ))  # fmt: skip


# ------------------------------------------------------------------------------------- linearize
# Linearization: evaluate a function now, and keep its derivative as a linear program.
#
# `LinearizeTrace` is forward mode over a `TapeTrace`. The tape's tracers are the tangents; a
# primitive with a tangent among its operands becomes an equation on the tape, every other one is
# evaluated at once by the parent trace. So primal values are concrete when the parent is eager,
# and Python control flow works. The tape is a jaxpr whose constants are the residuals.
#
# For call-like primitives, `LinearizeHandle.linearize_jaxpr` does the same to the inner program
# under a staging parent: what the tape needs of it becomes extra results (residuals) of the
# primal program and extra arguments of the linear one.

# by primitive, tangents, abstract values and params
_kernels = KernelTable("linearize", uses=USES_BEFORE_KERNEL)
# the same while programs are staged: a rule is traced once for all that differentiate by it
_templates = KernelTable("linearize", uses=USES_BEFORE_TEMPLATE)


class LinearizeTrace(JVPTrace):
    """Forward mode over a tape; call-like primitives may split their programs."""

    __slots__ = ()

    name = "grad"
    parent: TapeTrace

    @property
    def handle(self) -> JVPHandle:
        """What the rules of call-like primitives transform their programs with."""
        return LINEARIZE_HANDLE

    def call_rule(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the `linearize` rule, or the `jvp` rule where there is none."""
        rule: Callable[..., Any] = primitive.rules.get("linearize") or primitive.rule("jvp")
        return functools.partial(self._run_call_rule, rule)

    def _run_call_rule(self, rule: Callable[..., Any], /, *args: Any, **params: Any) -> Any:
        """Run the rule of a call, of whose results no type may say that it runs on a mesh."""
        outs, dots = rule(*args, **params)
        for out, dot in zip(outs, dots, strict=True):
            self.parent.note_mesh(out, dot)
        return outs, dots

    def _varying_as(self, out: Any, dot: Tangent) -> Tangent:
        dot = super()._varying_as(out, dot)
        if out.aval.type_sharding is not None:
            self.parent.note_mesh(out, dot)
        return dot


class EagerLinearizeTrace(KernelTrace, LinearizeTrace):
    """The same while everything is evaluated at once: a rule used often becomes a kernel.

    So does the derivative of an array function, which may amount to several primitives.
    """

    __slots__ = ()

    kernels = _kernels
    kernel_type = LinearizedKernel

    @staticmethod
    def make_kernel(*args: Any) -> LinearizedKernel:
        """Return the kernel of a primitive; the arguments are those of `_kernel_of`."""
        return _kernel_of(*args)

    @staticmethod
    def make_function_kernel(*args: Any) -> LinearizedKernel:
        """Return the kernel of an array function; the arguments are those of `_function_kernel`."""
        return _function_kernel(*args)

    def on_host(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Var]] | None:
        """Return types and elements of operands, and each tangent once; None unless NumPy has all.

        The types are for each operand the number of its tangent, -1 for zero, and what it is.
        """
        tape = self.parent
        hosts: list[Any] = []
        types: list[Any] = []
        dots: list[Var] = []
        for x in operands:
            number = -1
            if type(x) is JVPTracer and x._trace is self:
                dot, x = x.tangent, x.primal
                if type(dot) is not JaxprTracer or dot._trace is not tape:
                    return None
                v = dot.variable
                if v in dots:
                    number = dots.index(v)
                else:
                    number = len(dots)
                    dots.append(v)
            if type(x) is not ConcreteArray:
                return None
            host = x.host if x.buffer is None else numpy_operand(x)
            if host is None:
                return None
            hosts.append(host)
            types += number, x.aval
        return types, hosts, dots

    def by_kernel(
        self, kernel: LinearizedKernel, what: Any, hosts: list[Any], dots: list[Var]
    ) -> tuple[Any, ...]:
        """Evaluate a primitive or an array function, and record the linear part."""
        results = state.run_quietly(kernel.run, *hosts)
        tape = self.parent
        if kernel.linear.outvars:
            outputs = [Var(v.aval) for v in kernel.linear.outvars]
            known = (*kernel.constants, *hosts, *results)
            residuals = [known[k] for k in kernel.picked]
            tape.eqns.append(KernelEquation(what, dots, outputs, kernel, residuals))
            dots = dots + outputs
        outs = []
        for aval, k, host in zip(kernel.avals_out, kernel.dots_out, results, strict=False):
            out = ConcreteArray(host, aval)
            outs.append(out if k is None else JVPTracer(self, out, JaxprTracer(tape, dots[k])))
        return tuple(outs)


class StagedLinearizeTrace(LinearizeTrace):
    """The same while a program is staged: a rule applied often becomes a template."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Write the equations of the template of the primitive, else apply its rule."""
        tape = self.parent
        primals: list[Any] = []
        types: list[Any] = []
        dots: list[Var] = []  # each once
        for x in operands:
            number = -1
            if type(x) is JVPTracer and x._trace is self:
                dot, x = x.tangent, x.primal
                if type(dot) is not JaxprTracer or dot._trace is not tape:
                    break
                v = dot.variable
                if v in dots:
                    number = dots.index(v)
                else:
                    number = len(dots)
                    dots.append(v)
            aval = x.aval
            if aval.type_sharding is not None:
                break
            primals.append(x)
            types += number, aval
        else:
            kernel = dots and use_template(_templates, _template_of, primitive, types, params)
            if kernel:
                return self._by_template(kernel, primitive, primals, dots)
        return super().process(primitive, operands, params)

    def _by_template(
        self, kernel: LinearizedKernel, primitive: Primitive, primals: list[Any], dots: list[Var]
    ) -> tuple[Any, ...]:
        """Write the equations of the primal, and record the linear part."""
        tape = self.parent
        staged: Trace = tape.parent  # type: ignore[assignment]
        now = state.__dict__
        located = self.keeps_sources and now["source"] is None
        if located:
            now["source"] = capture(3)
        try:
            results = append_template(staged, kernel.run, primals)
            if kernel.linear.outvars:
                outputs = [Var(v.aval) for v in kernel.linear.outvars]
                known = (*kernel.constants, *primals, *results)
                tape.eqns.append(KernelEquation(
                    primitive, dots, outputs, kernel, [known[k] for k in kernel.picked],
                    *tape.location(),
                ))  # fmt: skip
                dots = dots + outputs
        finally:
            if located:
                now["source"] = None
        return tuple([
            out if k is None else JVPTracer(self, out, JaxprTracer(tape, dots[k]))
            for out, k in zip(results, kernel.dots_out, strict=False)
        ])  # fmt: skip


class LinearProgram(Record):
    """The derivative of a function at a point: a tape between the tangents that are not zero."""

    jaxpr: Jaxpr
    residuals: Sequence[Any]
    nonzero_in: tuple[bool, ...]
    nonzero_out: tuple[bool, ...]
    meshes: Mapping[Var, tuple[Any, ...]]  # of the primals

    @property
    def meshes_of_all(self) -> tuple[Any, ...]:
        """The meshes over which any primal is sharded."""
        return tuple(dict.fromkeys(itertools.chain.from_iterable(self.meshes.values())))

    def as_program(self) -> ClosedJaxpr:
        """Return the tape as a program of plain equations without dead code."""
        closed = ClosedJaxpr(*without_kernels(self.jaxpr, self.residuals))
        return prune_dead_code(closed, keep_arguments=True)[0]


def linearize_flat(
    fun: Callable[..., Sequence[Any]] | ClosedJaxpr,
    primals: Sequence[Any],
    nonzero: Sequence[bool],
    wanted: Sequence[bool] = (),
    trace_class: type[LinearizeTrace] | None = None,
) -> tuple[list[Any], LinearProgram]:
    """Evaluate a function of flat lists at `primals` and return its derivative there.

    Args:
      fun: takes and returns flat sequences of Arrays; or a program.
      primals: where to evaluate.
      nonzero: for each primal, whether to differentiate with respect to it.
      wanted: for each result, whether its tangent is to be an array although zero.
      trace_class: `LinearizeTrace`, where each rule is to be applied anew.
    """
    parent = state.trace
    tape = TapeTrace(parent)
    dots = [tape.argument(p.aval) if nz else Zero(p.aval)
            for p, nz in zip(primals, nonzero, strict=True)]  # fmt: skip
    for primal, dot in zip(primals, dots, strict=True):
        if primal.aval.type_sharding is not None:
            tape.note_mesh(primal, dot)
    if trace_class is None:
        trace_class = EagerLinearizeTrace if parent is EAGER else StagedLinearizeTrace
    outs, out_dots = jvp_flat(fun, primals, dots, trace_class, tape)
    if wanted:
        out_dots = [
            _record_zero(tape, d) if w and type(d) is Zero and is_differentiable(d.aval) else d
            for d, w in zip(out_dots, wanted, strict=True)
        ]
    tape.closed = True
    nonzero_out = tuple([type(d) is not Zero for d in out_dots])
    jaxpr, residuals = tape.finish([d for d in out_dots if type(d) is not Zero])
    return outs, LinearProgram(jaxpr, residuals, tuple(nonzero), nonzero_out, tape.meshes)


def _record_zero(tape: TapeTrace, zero: Zero) -> Any:
    """Make a zero tangent an array by an equation of the tape, so that no constant is stored."""
    previous = state.trace
    state.trace, tape.records_all = tape, True
    try:
        return instantiate(zero)
    finally:
        state.trace, tape.records_all = previous, False


class Linearized(Record):
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

    def run_rule(self, rule: JvpRule, primals: Sequence[Any], tangents: Sequence[Tangent]) -> Any:
        """Run a jvp rule of the user's, whose operations may mix primals and tangents.

        Raises:
          TypeError: when a result depends on the tangents.
        """
        tape: TapeTrace = state.trace
        return tape.run_rule(rule, primals, tangents)

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
        args = tuple(nonzero), wanted, _values.zero_absorbing
        return derive_once(closed.memo, (_linearize, *args), _linearize, closed, *args)


LINEARIZE_HANDLE = LinearizeHandle()


def linearize_and_attribute(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...]
) -> tuple[Linearized, dict[Var, Equation]]:
    """Split a program, and say for each value of the linear part whose derivative rule made it.

    Args:
      closed: the program.
      nonzero: for each argument, whether it has a tangent that is not zero.
    """
    rule_of: dict[Var, Equation] = {}

    def run(eqn: Equation, operands: Sequence[Any]) -> Any:
        tape = state.trace.parent.eqns
        before = len(tape)
        results = state.trace.process(eqn.primitive, tuple(operands), eqn.params)
        rule_of.update((v, eqn) for recorded in tape[before:] for v in recorded.outputs)
        return results

    def note(*args: Any) -> list[Any]:
        return interpret(closed.jaxpr, closed.consts, args, run)

    wanted = (False,) * len(closed.out_avals)
    return _linearize(closed, nonzero, wanted, _values.zero_absorbing, note), rule_of


def _linearize(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], wanted: tuple[bool, ...], absorbs: bool,
    fun: Callable[..., Sequence[Any]] | None = None,
) -> Linearized:  # fmt: skip
    captured: list[Any] = []

    def primal_part(*primals: Any) -> list[Any]:
        outs, program = linearize_flat(fun or closed, primals, nonzero, wanted, LinearizeTrace)
        linear, needed = _linear_part(program)
        captured.append((linear, program.nonzero_out))
        return [*outs, *needed]

    uses = claim_ref_uses()
    jaxpr, consts = trace_to_jaxpr(primal_part, closed.in_avals, name=closed.jaxpr.name, refs=uses)
    linear, nonzero_out = captured[0]
    count = len(nonzero_out)
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    end = len(jaxpr.outvars) - sum(use.is_written for use in uses or ())
    extra = jaxpr.outvars[count:end]
    forwarded = tuple([position.get(v, -1) if type(v) is Var else -1 for v in extra])
    new = [v for v, k in zip(extra, forwarded, strict=True) if k < 0]
    outvars = [*jaxpr.outvars[:count], *new, *jaxpr.outvars[end:]]
    primal, _ = prune_dead_code(
        ClosedJaxpr(jaxpr.replace(outvars=outvars), consts), keep_arguments=True
    )
    return Linearized(primal, linear, nonzero_out, forwarded)


def _linear_part(program: LinearProgram) -> tuple[ClosedJaxpr, list[Any]]:
    """Close a linear program; residuals that are traced become its leading arguments."""
    live = program.as_program()
    return close_over(live.jaxpr, live.consts)


# --- kernels --------------------------------------------------------------------------------------


def _kernel_of(
    primitive: Primitive, types: Sequence[Any], params: dict[str, Any],
    executable: Callable[..., Any] = numpy_function,
) -> LinearizedKernel:  # fmt: skip
    """Return the kernel of a primitive.

    Args:
      primitive: what is evaluated.
      types: for each operand the number of its tangent, -1 for zero, and its abstract value.
      params: of the primitive.
      executable: makes of the program of the primal what runs it.
    """
    evaluated = trace_to_closed(lambda *xs: primitive.evaluate(xs, params), types[1::2])
    return _linearize_kernel(evaluated, types, executable)


def _function_kernel(
    function: Callable[..., Any], types: Sequence[Any], statics: tuple[Any, ...]
) -> LinearizedKernel:
    """Return the kernel of an array function; `types` as for `_kernel_of`."""
    evaluated, is_single = staged_function(function, types[1::2], statics)
    return _linearize_kernel(evaluated, types, numpy_function, is_single)


def _linearize_kernel(
    evaluated: ClosedJaxpr, types: Sequence[Any], executable: Callable[..., Any],
    is_single: bool = False,
) -> LinearizedKernel:  # fmt: skip
    numbers, avals = types[::2], types[1::2]
    split = LINEARIZE_HANDLE.linearize_jaxpr(evaluated, [k >= 0 for k in numbers])
    run = executable(split.primal)
    if any(type(c) is not ConcreteArray for c in split.linear.consts):
        raise Refusal("its derivative captured a traced value")
    linear, dots_out = _with_shared_tangents(split, [k for k in numbers if k >= 0])
    constants = [c.to_host() for c in split.linear.consts]
    first = len(constants)
    extra = itertools.count(first + len(avals) + split.num_results)
    picked = [*range(first), *[first + k if k >= 0 else next(extra) for k in split.forwarded]]
    avals_out = split.primal.out_avals[: split.num_results]
    programs = (split.primal, split.linear)
    return LinearizedKernel(
        run, avals_out, programs, dots_out, linear, picked, constants, is_single
    )


def _template_of(
    primitive: Primitive, types: Sequence[Any], params: dict[str, Any]
) -> LinearizedKernel:
    """Return the kernel of a primitive as a template; the arguments are those of `_kernel_of`."""
    kernel = _kernel_of(primitive, types, params, template_of)
    template_of(kernel.programs[1])  # whose equations are written as well
    return kernel


def _with_shared_tangents(split: Linearized, numbers: list[int]) -> tuple[Jaxpr, list[int | None]]:
    """Return the linear part with the residuals as constants and each tangent as one argument.

    Args:
      split: the program of one primitive.
      numbers: for each tangent that is not zero, which of the distinct ones it is.

    Returns:
      The program, its results without those that are tangents of operands; and for each result of
      the primitive which tangent is its own, counted from the operands' on, or None.
    """
    jaxpr = split.linear.jaxpr
    residuals, dots = jaxpr.invars[: -len(numbers)], jaxpr.invars[-len(numbers) :]
    firsts = [dots[numbers.index(k)] for k in numbers]
    jaxpr = substitute(jaxpr, dict(zip(dots, firsts, strict=True)))
    distinct = list(dict.fromkeys(firsts))
    made = {v for eqn in jaxpr.eqns for v in eqn.outputs}
    results: list[Any] = []
    dots_out: list[int | None] = []
    outvars = iter(jaxpr.outvars)
    for nonzero in split.nonzero_out:
        v = next(outvars) if nonzero else None
        if v in distinct:
            dots_out.append(distinct.index(v))
        elif v is None:
            dots_out.append(None)
        else:
            if v not in made or v in results:
                raise Refusal("two of its results have one tangent, or a tangent is constant")
            dots_out.append(len(distinct) + len(results))
            results.append(v)
    constvars = [*jaxpr.constvars, *residuals]
    return jaxpr.replace(constvars=constvars, invars=distinct, outvars=results), dots_out
