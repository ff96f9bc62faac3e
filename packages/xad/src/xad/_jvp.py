"""Forward mode: `jvp`, a trace that carries a tangent beside each primal value.

A `JVPTracer` is a pair of a primal and a tangent. The trace gives each primitive's `jvp` rule the
primals and tangents of its operands, with the parent trace as the current one; so the rule's own
operations go wherever the primals live, and traces nest to any order.

A primitive such as `jit` or `scan` holds a program in its params. Its rule gets a handle, asks it
for the derivative of that program, and binds itself again with it; so the owner of the primitive
imports no transformation, and this package knows nothing of loops or branches. Derived programs
are kept in the memo of the program they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import xtree
from xad import derivative_kernels
from xad.arguments import (
    FlatFunction,
    as_tangents,
    check_each_once,
    flat_arguments,
    split_tangents_and_refs,
    write_tangents,
)
from xad.derivative_kernels import JVPKernel, KernelTrace, template_of, use_template
from xad.tangents import (
    Tangent,
    check_tangents,
    instantiate,
    is_differentiable,
    jvp_rule,
    retype_as,
    tangent_aval,
    zeros_of,
)
from xprim import (
    EAGER,
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    Zero,
    append_template,
    check_no_leaks,
    config,
    state,
    trace_to_closed,
    trace_to_jaxpr,
    use_trace,
)
from xprim.derived_refs import claim_ref_uses
from xprim.eager_costs import USES_BEFORE_KERNEL
from xprim.errors import described, message
from xprim.jaxpr import interpret
from xprim.kernels import KernelTable, numpy_function, numpy_operand, staged_function
from xprim.sharded_types import vary
from xprim.source import capture
from xprim.tracebacks import boundary

T = TypeVar("T")
Aux = TypeVar("Aux")

# by primitive, abstract values of primals and tangents, and params
_kernels = KernelTable("jvp", uses=USES_BEFORE_KERNEL)
# the same while programs are staged: a rule is traced once for all that differentiate by it
_templates = KernelTable("jvp", uses=derivative_kernels.USES_BEFORE_TEMPLATE)
_values = config.values
_ONE_DOT = [0]  # the tangents of one result


class JVPTracer(Tracer):
    """A primal value with its tangent: what functions that are differentiated are given.

    Attributes:
      primal: the value.
      tangent: of the same shape.

    Example:
      >>> from xad import jvp
      >>> jvp(lambda x: (isinstance(x, JVPTracer), x)[1], (1.0,), (1.0,))[1].item()
      1.0
    """

    __slots__ = ("primal", "tangent")

    _trace: JVPTrace

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = primal.aval

    def concrete(self) -> Array | None:
        """Return the primal value when it is known."""
        primal = self.primal
        return primal if type(primal) is ConcreteArray else primal.concrete()

    def look(self) -> Array | None:
        """Return the primal value to a user who looks, when it is known then."""
        primal = self.primal
        return primal if type(primal) is ConcreteArray else primal.look()

    def varies(self) -> bool:
        """Return whether the derivative by this value, or by its primal, is still being taken."""
        primal = self.primal
        return not self._trace.closed or (isinstance(primal, Tracer) and primal.varies())

    def origin(self) -> str:
        """Say where the primal value comes from, or which argument this is."""
        known = getattr(self.primal, "origin", str)()
        return known or self._trace.argument_of(self.primal)

    def __repr__(self) -> str:
        kind = self._trace.name.capitalize()
        return f"{kind}Tracer<{self.aval.str_short(weak=True)}>(primal={self.primal!r})"


class JVPTrace(Trace):
    """Applies jvp rules; values without a tangent go to the parent trace."""

    __slots__ = ("_call",)

    name = "jvp"
    _call: tuple[Any, Sequence[Any]]

    def argument_of(self, primal: Any) -> str:
        """Say which argument of the function that is differentiated a value is, if it is one."""
        fun, primals = self._call
        return fun.argument_of(primals, primal) if isinstance(fun, FlatFunction) else ""

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Apply the jvp rule, or hand the primitive to the parent."""
        primals: list[Any] = []
        tangents: list[Tangent] = []
        active = False
        for x in operands:  # `split` written out, on the hottest path
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(Zero(x.aval))
        parent: Trace = self.parent  # type: ignore[assignment]
        if not active:
            return parent.process(primitive, operands, params)
        now = state.__dict__
        previous = now["trace"]
        located = self.keeps_sources and now["source"] is None and not primitive.call_like
        if located:
            now["source"] = capture(2)  # once for all operations of the rule
        now["trace"] = parent
        try:
            if primitive.call_like:
                rule = self.call_rule(primitive)
                outs, dots = rule(self.handle, primals, tangents, **params)
            else:
                outs, dots = jvp_rule(primitive)(primals, tangents, **params)
        finally:
            now["trace"] = previous
            if located:
                now["source"] = None
        if len(outs) == 1:
            out, dot = outs[0], dots[0]
            if not (out.aval.type_sharding is dot.aval.type_sharding is None):
                dot = self._varying_as(out, dot)
            return (out if type(dot) is Zero else JVPTracer(self, out, dot),)
        return tuple([
            out if type(dot) is Zero else JVPTracer(self, out, self._varying_as(out, dot))
            for out, dot in zip(outs, dots, strict=True)
        ])  # fmt: skip

    def _varying_as(self, out: Any, dot: Tangent) -> Tangent:
        """Return a tangent that varies over the manual axes over which its primal does.

        The sum of a value that varies and one that all members share has the tangent of the latter,
        where the former has none.
        """
        if out.aval.type_sharding is dot.aval.type_sharding:  # as everywhere where there is no mesh
            return dot
        if type(dot) is Zero or not out.aval.vma - dot.aval.vma:
            return dot
        with use_trace(self.parent):  # type: ignore[arg-type]
            return vary(dot, out.aval.vma, out.aval.type_sharding.mesh)

    def primal_of(self, value: Any) -> Any:
        """Return the primal of a tracer of this trace; anything else unchanged."""
        return value.primal if type(value) is JVPTracer and value._trace is self else value

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Tangent]]:
        """Return the primals and the tangents of values."""
        primals, tangents = [], []
        for x in values:
            own = type(x) is JVPTracer and x._trace is self
            primals.append(x.primal if own else x)
            tangents.append(x.tangent if own else Zero(tangent_aval(x)))
        return primals, tangents

    @property
    def handle(self) -> JVPHandle:
        """What the rules of call-like primitives transform their programs with."""
        return JVP_HANDLE

    def call_rule(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the rule of a primitive that holds programs."""
        return primitive.rule("jvp")  # type: ignore[no-any-return]


class EagerJVPTrace(KernelTrace, JVPTrace):
    """Forward mode while everything is evaluated at once: a rule used often becomes a kernel.

    So does the derivative of an array function, which may amount to several primitives.
    """

    __slots__ = ()

    kernels = _kernels
    kernel_type = JVPKernel

    @staticmethod
    def make_kernel(*args: Any) -> JVPKernel:
        """Return the kernel of a primitive; the arguments are those of `_kernel_of`."""
        return _kernel_of(*args)

    @staticmethod
    def make_function_kernel(*args: Any) -> JVPKernel:
        """Return the kernel of an array function; the arguments are those of `_function_kernel`."""
        return _function_kernel(*args)

    def on_host(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]] | None:
        """Return types of operands and tangents, and their elements; None unless NumPy has all."""
        hosts: list[Any] = []
        dots: list[Any] = []
        types: list[Any] = []
        for x in operands:
            dot_aval = None
            if type(x) is JVPTracer and x._trace is self:
                dot, x = x.tangent, x.primal
                if type(dot) is not ConcreteArray:
                    return None
                host = dot.host if dot.buffer is None else numpy_operand(dot)
                if host is None:
                    return None
                dots.append(host)
                dot_aval = dot.aval
            if type(x) is not ConcreteArray:
                return None
            host = x.host if x.buffer is None else numpy_operand(x)
            if host is None:
                return None
            hosts.append(host)
            types += x.aval, dot_aval
        return types, hosts, dots

    def by_kernel(
        self, kernel: JVPKernel, _what: Any, hosts: list[Any], dots: list[Any]
    ) -> tuple[Any, ...]:
        """Evaluate the results with their tangents."""
        results = state.__dict__["run_quietly"](kernel.run, *hosts, *dots)
        if kernel.dot_numbers == _ONE_DOT:
            (out, dot), (aval,), (dot_aval,) = results, kernel.avals_out, kernel.dot_avals
            return (JVPTracer(self, ConcreteArray(out, aval), ConcreteArray(dot, dot_aval)),)
        outs = list(map(ConcreteArray, results, kernel.avals_out))
        out_dots = list(map(ConcreteArray, results[len(outs) :], kernel.dot_avals))
        return tuple([
            out if k is None else JVPTracer(self, out, out_dots[k])
            for out, k in zip(outs, kernel.dot_numbers, strict=True)
        ])  # fmt: skip


class StagedJVPTrace(JVPTrace):
    """Forward mode while a program is staged: a rule applied often becomes a template."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Write the equations of the template of the derivative, else apply the rule."""
        primals: list[Any] = []
        dots: list[Any] = []
        types: list[Any] = []
        for x in operands:
            dot_aval = None
            if type(x) is JVPTracer and x._trace is self:
                dot = x.tangent
                dots.append(dot)
                dot_aval = dot.aval
                x = x.primal
            aval = x.aval
            if aval.type_sharding is not None:
                break
            primals.append(x)
            types += aval, dot_aval
        else:
            kernel = dots and use_template(_templates, _template_of, primitive, types, params)
            if kernel:
                return self._by_template(kernel, primals, dots)
        return super().process(primitive, operands, params)

    def _by_template(
        self, kernel: JVPKernel, primals: Sequence[Any], dots: Sequence[Any]
    ) -> tuple[Any, ...]:
        parent: Trace = self.parent  # type: ignore[assignment]
        now = state.__dict__
        located = self.keeps_sources and now["source"] is None
        if located:
            now["source"] = capture(3)
        try:
            results = append_template(parent, kernel.run, (*primals, *dots))
        finally:
            if located:
                now["source"] = None
        outs = results[: len(kernel.dot_numbers)]
        dots = results[len(outs) :]
        return tuple([
            out if k is None else JVPTracer(self, out, dots[k])
            for out, k in zip(outs, kernel.dot_numbers, strict=True)
        ])  # fmt: skip


@overload
def jvp(
    fun: Callable[..., T], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[False] = ...,
) -> tuple[T, T]: ...  # fmt: skip
@overload
def jvp(
    fun: Callable[..., tuple[T, Aux]], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[True] = ...,
) -> tuple[T, T, Aux]: ...  # fmt: skip
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = ...
) -> tuple[Any, ...]: ...
@boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Evaluate a function together with its derivative in one direction.

    For a function with Jacobian `J` at `primals` this gives `f(x)` and `J v`.

    Args:
      fun: a function of pytrees of arrays.
      primals: a tuple or list of the arguments.
      tangents: a direction for each, of the same structure, shapes and dtypes (`float0` arrays for
        integers). That of a reference is a reference, with the tangent of the value before; it
        is written with that of the value afterwards.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.

    Returns:
      `(result, tangent)`, or `(result, tangent, auxiliary)` with `has_aux`.

    Raises:
      TypeError: when structures, shapes or dtypes of primals and tangents differ.

    Example:
      >>> from xad import jvp
      >>> y, y_dot = jvp(lambda x: x * x, (3.0,), (1.0,))
      >>> float(y), float(y_dot)
      (9.0, 6.0)
    """
    return jvp_of("jvp", fun, primals, tangents, has_aux)


@overload
def jvp_and_value(
    fun: Callable[..., T], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[False] = ...,
) -> tuple[T, T]: ...  # fmt: skip
@overload
def jvp_and_value(
    fun: Callable[..., tuple[T, Aux]], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: Literal[True] = ...,
) -> tuple[T, tuple[T, Aux]]: ...  # fmt: skip
@overload
def jvp_and_value(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = ...
) -> tuple[Any, Any]: ...
@boundary
def jvp_and_value(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, Any]:
    """Return the derivative of a function in one direction, and what it returns, evaluated once.

    These are the results of `jvp`, the derivative first and the value second with its auxiliary
    output, as `value_and_grad` pairs them.

    Args:
      fun: a function of pytrees of arrays.
      primals: a tuple or list of the arguments.
      tangents: a direction for each, as for `jvp`.
      has_aux: whether `fun` returns a pair `(result, auxiliary)`.

    Returns:
      `(tangent, result)`, or `(tangent, (result, auxiliary))` with `has_aux`.

    Raises:
      TypeError: when structures, shapes or dtypes of primals and tangents differ.

    Example:
      >>> from xad import jvp_and_value
      >>> tangent, value = jvp_and_value(lambda x: x * x, (3.0,), (1.0,))
      >>> float(tangent), float(value)
      (6.0, 9.0)
    """
    value, tangent, *aux = jvp_of("jvp_and_value", fun, primals, tangents, has_aux)
    return tangent, (value, *aux) if has_aux else value


def jvp_of(
    operation: str, fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Do what `jvp` does, with errors that name an operation."""
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise TypeError(message(
                operation, f"{name} must be a tuple or list of arguments, got {described(value)}.",
                hint=f"{operation}(f, (x,), (x_dot,)) for a function of one argument",
            ))  # fmt: skip
    flat, leaves, in_tree = flat_arguments(fun, primals, operation=operation, has_aux=has_aux)
    in_avals = [x.aval for x in leaves]
    references = flat.references
    if references is None:
        dots = check_tangents(tuple(tangents), in_tree, in_avals, operation)
        outs, out_dots = jvp_flat(flat, leaves, dots)
    else:
        dots, refs = split_tangents_and_refs(
            tuple(tangents), references.refs, in_tree, in_avals, operation
        )
        check_each_once([*references.refs.values(), *refs.values()], operation)
        outs, out_dots = jvp_flat(flat, leaves, dots)
        outs = flat.results_of(outs)
        after = dict(zip(references.refs, out_dots[len(outs) :], strict=True))
        write_tangents(refs, after)
        out_dots = out_dots[: len(outs)]
    result = xtree.unflatten(flat.out_tree, outs)
    tangent = as_tangents(
        flat.out_tree,
        [
            zeros_of(o.aval) if type(d) is Zero else retype_as(d, o.aval)
            for o, d in zip(outs, out_dots, strict=True)
        ],
    )
    return (result, tangent, flat.aux) if has_aux else (result, tangent)


def jvp_flat(
    fun: Callable[..., Sequence[Any]] | ClosedJaxpr, primals: Sequence[Any],
    tangents: Sequence[Tangent], trace_class: type[JVPTrace] | None = None,
    parent: Trace | None = None,
) -> tuple[list[Any], list[Tangent]]:  # fmt: skip
    """Run a function of flat lists forward on primals and tangents (arrays or `Zero`).

    It may be a program, which is run from here: Python bounds the frames, and so how deep programs
    nest.
    """
    previous = state.trace
    parent = previous if parent is None else parent
    if trace_class is None:
        trace_class = EagerJVPTrace if parent is EAGER else StagedJVPTrace
    trace = trace_class(parent)
    trace._call = fun, primals
    args = [p if type(t) is Zero else JVPTracer(trace, p, t)
            for p, t in zip(primals, tangents, strict=True)]  # fmt: skip
    state.trace = trace
    try:
        if type(fun) is ClosedJaxpr:
            results: Sequence[Any] = interpret(fun.jaxpr, fun.consts, args)
        else:
            results = fun(*args)  # type: ignore[operator]
    finally:
        state.trace = previous
        trace.closed = True
    primals_out, tangents_out = trace.split(results)
    if config.values.check_tracer_leaks:
        del args, results
        check_no_leaks(trace)
    return primals_out, tangents_out


# --- kernels --------------------------------------------------------------------------------------


def _kernel_of(
    primitive: Primitive, types: Sequence[Any], params: dict[str, Any],
    executable: Callable[..., Any] = numpy_function,
) -> JVPKernel:  # fmt: skip
    """Return the kernel of a primitive with its derivative.

    Args:
      primitive: what is differentiated.
      types: for each operand its abstract value and that of its tangent, None for zero.
      params: of the primitive.
      executable: makes of the program what runs it.
    """

    def evaluate(*xs: Any) -> tuple[Any, ...]:
        return primitive.evaluate(xs, params)

    return JVPKernel(*_forward_derivative(evaluate, types, executable))


def _function_kernel(
    function: Callable[..., Any], types: Sequence[Any], statics: tuple[Any, ...]
) -> JVPKernel:
    """Return the kernel of an array function with its derivative; `types` as for `_kernel_of`."""
    evaluated, is_single = staged_function(function, types[::2], statics)
    return JVPKernel(*_forward_derivative(evaluated, types, numpy_function), is_single)


def _forward_derivative(
    fun: Callable[..., Sequence[Any]] | ClosedJaxpr, types: Sequence[Any],
    executable: Callable[..., Any],
) -> tuple[Any, ClosedJaxpr, list[int | None]]:  # fmt: skip
    """Return what runs results and tangents, its program, and the numbers of the tangents."""
    avals, dot_avals = types[::2], types[1::2]
    dot_numbers: list[int | None] = []

    def forward(*values: Any) -> list[Any]:
        given = iter(values[len(avals) :])
        dots = [Zero(a) if d is None else next(given)
                for a, d in zip(avals, dot_avals, strict=True)]  # fmt: skip
        outs, out_dots = jvp_flat(fun, values[: len(avals)], dots, JVPTrace)
        nonzero = [d for d in out_dots if type(d) is not Zero]
        numbers = iter(range(len(nonzero)))
        dot_numbers.extend([None if type(d) is Zero else next(numbers) for d in out_dots])
        return [*outs, *nonzero]

    given_avals = [*avals, *[d for d in dot_avals if d is not None]]
    program = trace_to_closed(forward, given_avals)
    return executable(program), program, dot_numbers


def _template_of(primitive: Primitive, types: Sequence[Any], params: dict[str, Any]) -> JVPKernel:
    """Return the kernel of a primitive as a template; the arguments are those of `_kernel_of`."""
    return _kernel_of(primitive, types, params, template_of)


class JVPHandle:
    """Given to the `jvp` rules of call-like primitives."""

    instantiate = staticmethod(instantiate)
    tangent_aval = staticmethod(tangent_aval)

    def jvp_jaxpr(
        self,
        closed: ClosedJaxpr,
        nonzero: Sequence[bool],
        instantiate: bool | Sequence[bool] = False,
    ) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        """Return the forward derivative of a program.

        Args:
          closed: the program.
          nonzero: for each argument, whether it has a tangent that is not zero.
          instantiate: whether (or which) tangents of results are made arrays although zero.

        Returns:
          A program from the primals and the nonzero tangents to the results and their nonzero
          tangents, and for each result whether its tangent is among them.
        """
        nonzero = tuple(nonzero)
        wanted = (instantiate,) * len(closed.out_avals) if isinstance(instantiate, bool) else (
            tuple(instantiate))  # fmt: skip
        return closed.derived(_jvp_of, nonzero, wanted)


def _jvp_of(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], wanted: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    count = len(closed.in_avals)
    nonzero_out: list[bool] = []

    def forward(*args: Any) -> list[Any]:
        given = iter(args[count:])
        dots = [next(given) if nz else Zero(a)
                for nz, a in zip(nonzero, closed.in_avals, strict=True)]  # fmt: skip
        outs, out_dots = jvp_flat(closed, args[:count], dots)
        nonzero_out.extend(
            (w and is_differentiable(out.aval)) or type(d) is not Zero
            for w, out, d in zip(wanted, outs, out_dots, strict=True)
        )
        kept = [instantiate(d) for d, nz in zip(out_dots, nonzero_out, strict=True) if nz]
        return [*outs, *kept]

    avals = [*closed.in_avals, *tangent_avals(closed.in_avals, nonzero)]
    # as `trace_to_closed` does, in a frame less for each program inside of another
    jaxpr, consts = trace_to_jaxpr(forward, avals, name=closed.jaxpr.name, refs=claim_ref_uses())
    return ClosedJaxpr(jaxpr, consts), tuple(nonzero_out)


def tangent_avals(avals: Sequence[ShapedArray], nonzero: Sequence[bool]) -> list[ShapedArray]:
    """Return the abstract values of the tangents that are not zero."""
    return [a.strong() for a, nz in zip(avals, nonzero, strict=True) if nz]


JVP_HANDLE = JVPHandle()
