"""Staging: run a Python function once on tracers and keep what it did as a jaxpr; find leaks."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Sequence
from marshal import dumps
from typing import Any, Protocol

import numpy as np

from xprim import config, dtypes
from xprim.array import Array, ConcreteArray, is_shared
from xprim.avals import ShapedArray
from xprim.config import state
from xprim.derived_refs import note_constants
from xprim.errors import LazyNames, MixedMemoryError, UnexpectedTracerError, derivative_lost
from xprim.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, check_jaxpr
from xprim.primitive import Primitive
from xprim.refs import BaseRef, RefUse
from xprim.sharded_types import captured, is_uncommitted, operands_on_host
from xprim.source import Source, capture, describe
from xprim.trace import LastingScope, Trace, Tracer, foreign_operand, raise_leaked
from xtree.errors import with_article

__all__ = ()


# ----------------------------------------------------------------------------------------- leaks
# Find traced values that are kept beyond the function that was traced.
#
# Nothing is recorded while tracing. With the option `check_tracer_leaks`, the end of a scope counts
# the references to the trace that ends. Where there are others than the caller's, it looks among
# all objects that the garbage collector knows for tracers of that trace, and says what holds them,
# which takes a second in a large process.

_HINT = (
    "return the value from the transformed function instead of keeping it elsewhere\n"
    "(in a list, an attribute, a global)"
)


def check_no_leaks(trace: Trace) -> None:
    """Raise when a tracer of a trace that has ended is still alive.

    The caller drops its own references first.

    Raises:
      UnexpectedTracerError: naming the operation that made the value and what holds it.
    """
    if sys.getrefcount(trace) <= _REFERENCES_WITHOUT_TRACERS or not _tracers_of(trace):
        return
    gc.collect()
    leaked = _tracers_of(trace)
    if not leaked:
        return
    tracer = leaked[0]
    holders = [_describe(h) for h in gc.get_referrers(tracer) if _holds(h, leaked)]
    del leaked
    kept = f", kept in {holders[0]}" if holders else ""
    raise UnexpectedTracerError(
        tracer,
        "Leaked trace",
        f"a traced value is still alive when its transformation ends{kept}.",
        _HINT,
    )


def _tracers_of(trace: Trace) -> list[Tracer]:
    # Their types: `isinstance` would ask other libraries' objects for `__class__`, and some warn.
    holders = gc.get_referrers(trace)
    return [x for x in holders if issubclass(type(x), Tracer) and x._trace is trace]


def _count_references(x: object) -> int:
    return sys.getrefcount(x)


def _count_references_of_a_variable() -> int:
    x = object()
    return _count_references(x)


# What `check_no_leaks` counts where its caller's variable alone refers to the trace.
_REFERENCES_WITHOUT_TRACERS = _count_references_of_a_variable()


def _holds(holder: Any, own: list[Tracer]) -> bool:
    return holder is not own and not isinstance(holder, types.FrameType | Trace)


def _describe(holder: Any) -> str:
    if isinstance(holder, types.CellType):
        return "the closure of a function"
    if isinstance(holder, dict):
        names = [str(k) for k, v in holder.items() if isinstance(v, Tracer)]
        return f"a dict under {names[0]!r}" if names else "a dict"
    size = f" of length {len(holder)}" if isinstance(holder, list | tuple | set) else ""
    return f"{with_article(type(holder).__name__)}{size}"


# --------------------------------------------------------------------------------------- staging
# Staging: run a Python function once on tracers and keep what it did as a jaxpr.
#
# A `JaxprTrace` appends one equation for each primitive. Its tracers know only their abstract
# value. Whatever the function closes over becomes a constant: a concrete scalar a literal,
# anything else (larger arrays, tracers of enclosing transformations) a constant variable, each
# once.

_HIDDEN_CALLERS = 3  # `capture`, `append`, and the `process` or `stage` rule that called it


class Values(Protocol):
    """What is known of the values of a function while it is traced, for those who look."""

    def value(self, x: Tracer) -> Array | None:
        """Return the value of a tracer, or None."""

    def description(self, x: Tracer) -> str | None:
        """Return how a tracer is printed, or None."""

    def varies(self) -> bool:
        """Return whether a derivative is being taken by an argument."""


class JaxprTracer(Tracer):
    """A value inside a function that is being staged: shape and dtype are known, the rest not."""

    __slots__ = ("variable",)  # not `var`, which is an array method

    _trace: JaxprTrace
    variable: Var

    def __init__(self, trace: JaxprTrace, var: Var) -> None:
        self._trace = trace
        self.variable = var
        self.aval = var.aval

    def origin(self) -> str:
        """Say which equation or argument this value comes from."""
        return self._trace.origin_of(self.variable)

    def look(self) -> Array | None:
        """Return the value where the arguments of the function are known, and somebody looks."""
        values = self._trace.values
        return None if values is None else values.value(self)

    def varies(self) -> bool:
        """Return whether a derivative is taken by an argument of the function."""
        values = self._trace.values
        return values is not None and values.varies()

    def description(self) -> str | None:
        """Return the value as text where the arguments of the function are known."""
        values = self._trace.values
        return None if values is None else values.description(self)

    def __repr__(self) -> str:
        return self.description() or super().__repr__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        value = self.look()
        if value is None:
            super().__array__()
        if self.varies():
            raise derivative_lost(self, "asarray", describe(capture()))
        return np.asarray(value, *args, **kwargs)


class JaxprTrace(Trace):
    """Appends each primitive to a growing jaxpr."""

    __slots__ = (
        "_atom_by_id", "arg_names", "refs", "constvars", "consts", "depth", "eqns", "fun_name",
        "invars", "keeps_scalars", "lasting", "values",
    )  # fmt: skip

    name = "jit"

    def __init__(self, parent: Trace | None = None, fun_name: str = "") -> None:
        super().__init__(parent)
        self.fun_name = fun_name
        self.eqns: list[Equation] = []
        self.invars: list[Var] = []
        self.constvars: list[Var] = []
        self.consts: list[Any] = []
        self.arg_names: Sequence[str] = ()
        self.refs: dict[BaseRef, RefUse] | None = None
        self.values: Values | None = None
        self.keeps_sources = True
        self.keeps_scalars = False
        outer = state.name_stack
        self.depth = len(outer)  # the scopes around are those of each call, not of this
        self.lasting = tuple([s for s in outer if isinstance(s, LastingScope)]) if outer else outer
        self._atom_by_id: dict[int, Atom] = {}  # `consts` and literals keep the ids unique

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Add an equation; a call of a Python function stages itself."""
        if primitive.call_like:
            stage = primitive.rules.get("stage")
            if stage is not None:
                return stage(self, operands, params)  # type: ignore[no-any-return]
        return self.append(primitive, operands, params)

    def append(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Add an equation and return tracers for its results."""
        inputs: list[Atom] = []
        kinds = []
        for x in operands:  # one loop: two comprehensions take twice as long for so few operands
            atom = x.variable if type(x) is JaxprTracer and x._trace is self else self.constant(x)
            inputs.append(atom)
            kinds.append(atom.aval)
        key: Any = (avals := tuple(kinds))
        if params:
            try:
                key = (avals, dumps(params, 2))  # `plain_key`, for most of them
            except ValueError:
                key = None
        try:
            signature = primitive.signatures.get(key) or primitive.signature(avals, params)
        except MixedMemoryError as error:
            found = operands_on_host(operands, self._is_of_constants, self, error)
            return self.append(primitive, found, params)
        outputs = list(map(Var, signature.avals_out))
        if self.keeps_sources:
            now = state.__dict__
            source = now["source"] or capture(_HIDDEN_CALLERS)
            name_stack = now["name_stack"]
            if name_stack:
                name_stack = self.lasting + name_stack[self.depth :]
        else:
            source, name_stack = None, ()
        self.eqns.append(
            Equation(primitive, inputs, outputs, params, source, name_stack, signature)
        )
        if len(outputs) == 1:
            return (JaxprTracer(self, outputs[0]),)
        return tuple([JaxprTracer(self, v) for v in outputs])

    def append_all(self, template: EquationTemplate, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Add the equations of a template and return tracers for its results."""
        atoms: list[Any] = [
            x.variable if type(x) is JaxprTracer and x._trace is self else self.constant(x)
            for x in operands
        ]
        known = len(atoms)
        atoms += template.literals
        source, name_stack = self.location()
        append = self.eqns.append
        for primitive, numbers, params, signature in template.steps:
            inputs, outputs = [atoms[k] for k in numbers], list(map(Var, signature.avals_out))
            append(Equation(primitive, inputs, outputs, params, source, name_stack, signature))
            atoms += outputs
        values: dict[int, Any] = {}
        for k in template.results:
            # one tracer for each value: who saves it twice, by identity, saves it once
            if k not in values:
                atom = operands[k] if k < known else atoms[k]
                values[k] = JaxprTracer(self, atom) if type(atom) is Var else (
                    atom.value if type(atom) is Literal else atom)  # fmt: skip
        return tuple([values[k] for k in template.results])

    def location(self) -> tuple[Source | None, tuple[str, ...]]:
        """Return the line of the current operation and its name scopes inside of this program."""
        if not self.keeps_sources:
            return None, ()
        now = state.__dict__
        name_stack = now["name_stack"]
        return now["source"], self.lasting + name_stack[self.depth :] if name_stack else name_stack

    def argument(self, aval: ShapedArray) -> JaxprTracer:
        """Add an argument of the program."""
        var = Var(aval)
        self.invars.append(var)
        return JaxprTracer(self, var)

    def use_ref(self, ref: BaseRef, before: Array) -> RefUse:
        """Begin to use an outer reference, which has a value there."""
        var = Var(ref.aval)
        return RefUse(ref, var, before, JaxprTracer(self, var))

    def constant(self, value: Any) -> Atom:
        """Return the literal or constant variable that stands for a value from outside."""
        atom = self._atom_by_id.get(id(value))
        if atom is None:
            atom = self._atom_by_id[id(value)] = self._new_constant(value)
        return atom

    def _new_constant(self, value: Any) -> Atom:
        if type(value) is ConcreteArray:
            aval = value.aval
            is_number = not (aval.physical and dtypes.is_extended(aval.dtype))
            if aval.ndim == 0 and is_number and (not self.keeps_scalars or is_shared(value)):
                return Literal(value)
        elif not isinstance(value, Tracer):
            raise foreign_operand("bind", value)
        elif value._trace.closed:
            raise_leaked(value)
        aval = value.aval
        var = Var(aval if aval.type_sharding is None else captured(aval))
        self.constvars.append(var)
        self.consts.append(value)
        return var

    def _is_of_constants(self, value: Any) -> bool:
        """Return whether a value is computed from scalars, and arrays that were put nowhere."""
        found = {v for v, x in zip(self.constvars, self.consts, strict=True) if is_uncommitted(x)}
        for eqn in self.eqns:
            if all(x.aval.ndim == 0 or x in found for x in eqn.inputs):
                found.update(eqn.outputs)
        return self.atom(value) in found

    def atom(self, value: Array) -> Atom:
        """Return the atom of a result: a variable of this trace, or a constant."""
        if type(value) is JaxprTracer and value._trace is self:
            return value.variable
        return self.constant(value)

    def finish(self, results: Sequence[Array]) -> tuple[Jaxpr, list[Any]]:
        """Return the jaxpr with these results, and the values of its constants."""
        outvars = [self.atom(x) for x in results]
        for value in self.consts:
            if isinstance(value, Tracer) and value._trace.closed:
                raise_leaked(value)
        jaxpr = Jaxpr(self.constvars, self.invars, outvars, self.eqns, self.fun_name)
        return jaxpr, self.consts

    def pass_refs(self, jaxpr: Jaxpr, consts: list[Any], uses: list[RefUse] | None) -> Jaxpr:
        """Return the program with the values of references among its arguments and results.

        Args:
          jaxpr: the program without them.
          consts: the values of its constants; those of references join them where `uses` is None.
          uses: gets what is added to the arguments, in their order.
        """
        assert self.refs is not None
        found = list(self.refs.values())
        written = [use for use in found if use.is_written]
        if uses is not None:
            uses += found
            outvars = [*jaxpr.outvars, *[self.atom(use.now) for use in written]]
            invars = [*jaxpr.invars, *[use.variable for use in found]]
            return jaxpr.replace(invars=invars, outvars=outvars)
        if written:
            raise written[0].ref.write_refused(self.fun_name)
        note_constants()
        consts += [use.before for use in found]
        return jaxpr.replace(constvars=[*jaxpr.constvars, *[use.variable for use in found]])

    def origin_of(self, var: Var) -> str:
        """Say where a variable of this trace was made."""
        for eqn in self.eqns:
            if any(v is var for v in eqn.outputs):
                operands = ", ".join(x.aval.str_short() for x in eqn.inputs)
                return f"the operation {eqn.primitive.name}({operands}) at {describe(eqn.source)}"
        for i, v in enumerate(self.invars):
            if v is var:
                name = self.arg_names[i] if i < len(self.arg_names) else f"number {i}"
                names = self.arg_names
                place = names.place() if isinstance(names, LazyNames) else ""
                function = place or self.fun_name
                return f"the argument {name} of {function}" if function else f"the argument {name}"
        return "a constant"


class EquationTemplate:
    """A program without calls, whose equations are appended to jaxprs without running its rules.

    A derivative rule binds the same primitives for all operands of the same types. Values are
    numbered: operands, then literals, then the results of the equations in their order.

    Attributes:
      literals: the scalar constants.
      steps: for each equation its primitive, the numbers of its operands, its params and signature.
      results: the numbers of the results.
    """

    __slots__ = ("literals", "results", "steps")

    def __init__(self, closed: ClosedJaxpr) -> None:
        jaxpr = closed.jaxpr
        inputs = [x for eqn in jaxpr.eqns for x in eqn.inputs]
        self.literals = list({x: None for x in (*inputs, *jaxpr.outvars) if type(x) is Literal})
        numbers: dict[Any, int] = {}
        for x in (*jaxpr.invars, *self.literals, *[v for eqn in jaxpr.eqns for v in eqn.outputs]):
            numbers[x] = len(numbers)
        self.steps: list[tuple[Primitive, list[int], dict[str, Any], Any]] = [
            (eqn.primitive, [numbers[x] for x in eqn.inputs], eqn.params, eqn.signature)
            for eqn in jaxpr.eqns
        ]
        self.results = [numbers[x] for x in jaxpr.outvars]

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Apply the operations under the current trace: a template is an array function."""
        return self.bind(state.trace, operands)

    def bind(self, trace: Trace, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Apply the operations under a trace, one after the other."""
        values = [*operands, *[x.value for x in self.literals]]
        for primitive, numbers, params, _ in self.steps:
            values += trace.process(primitive, tuple([values[k] for k in numbers]), params)
        return tuple([values[k] for k in self.results])

    @staticmethod
    def fits(closed: ClosedJaxpr) -> bool:
        """Return whether a program has operations on its operands and on scalars alone.

        Calls, effects, collectives, arrays, meshes and extended dtypes depend on more than types.
        """
        eqns = closed.jaxpr.eqns
        if closed.consts or any(eqn.signature is None for eqn in eqns):
            return False
        if any(
            eqn.primitive.call_like or eqn.primitive.axis_param
            or "effects" in eqn.primitive.rules for eqn in eqns
        ):  # fmt: skip
            return False
        avals = [x.aval for eqn in eqns for x in (*eqn.inputs, *eqn.outputs)]
        return all(a.type_sharding is None and a.physical is None for a in avals)


def append_template(
    trace: Trace, template: EquationTemplate, operands: Sequence[Any]
) -> tuple[Any, ...]:
    """Apply the operations of a template under a trace, with the current line and name scopes."""
    if type(trace) is JaxprTrace:
        return trace.append_all(template, operands)
    if trace.applies_functions:
        results: tuple[Any, ...] | None = trace.apply_function(template, tuple(operands), ())
        if results is not None:
            return results
    return template.bind(trace, operands)


def trace_to_jaxpr(
    fun: Callable[..., Sequence[Array]],
    avals: Sequence[ShapedArray],
    *,
    name: str = "",
    arg_names: Sequence[str] = (),
    refs: list[RefUse] | None = None,
    keeps_scalars: bool = False,
) -> tuple[Jaxpr, list[Any]]:
    """Run `fun` on tracers of the given abstract values and return its jaxpr and constants.

    Args:
      fun: takes as many Arrays as there are `avals`, returns a sequence of Arrays.
      avals: the abstract values of the arguments.
      name: what errors and prints call the program.
      arg_names: what errors call the arguments (key paths).
      refs: gets a `RefUse` for each outer reference that the function uses. Their values are the
        last arguments of the jaxpr, and the last results for those that it writes. Without it they
        are constants, and none may be written.
      keeps_scalars: whether scalar arrays of outside are constants as others are, not literals.

    Returns:
      The jaxpr, and the values of its constants: concrete arrays or tracers of traces that enclose
      the call.
    """
    previous = state.trace
    trace = JaxprTrace(previous, name)
    trace.arg_names = arg_names
    trace.refs = {}
    trace.keeps_scalars = keeps_scalars
    args = [trace.argument(aval) for aval in avals]
    outer_source, constants = state.source, state.constant_refs
    state.trace = trace
    state.source = None
    try:
        jaxpr, consts = trace.finish(fun(*args))
        state.constant_refs = constants  # those in programs inside are values of this one
        if trace.refs:
            jaxpr = trace.pass_refs(jaxpr, consts, refs)
    finally:
        state.trace = previous
        state.source = outer_source
        trace.closed = True
        trace.refs = None  # whose uses hold tracers of this: nothing of it outlives the call
        trace.values = None
    if config.enable_checks.used and config.values.enable_checks:
        check_jaxpr(jaxpr)
    if config.values.check_tracer_leaks:
        del args
        check_no_leaks(trace)
    return jaxpr, consts


def trace_to_closed(
    fun: Callable[..., Sequence[Array]], avals: Sequence[ShapedArray], *, name: str = "",
    refs: list[RefUse] | None = None,
) -> ClosedJaxpr:  # fmt: skip
    """Run `fun` on tracers as `trace_to_jaxpr` does; return the program with its constants."""
    return ClosedJaxpr(*trace_to_jaxpr(fun, avals, name=name, refs=refs))


def close_over(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """Turn constants that are tracers into leading arguments.

    Returns:
      A closed jaxpr whose remaining constants are concrete, and the captured tracers, to be passed
      before its other arguments.
    """
    if not any(isinstance(c, Tracer) for c in consts):
        return ClosedJaxpr(jaxpr, consts), []
    captured = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True)
                if isinstance(c, Tracer)]  # fmt: skip
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True)
            if not isinstance(c, Tracer)]  # fmt: skip
    opened = jaxpr.replace(
        constvars=[v for v, _ in kept], invars=[*(v for v, _ in captured), *jaxpr.invars]
    )
    return ClosedJaxpr(opened, [c for _, c in kept]), [c for _, c in captured]
