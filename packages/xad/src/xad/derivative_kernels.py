"""Derivatives as kernels; calls that mix primals and tangents, split by what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from xprim import (
    EAGER,
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    EquationTemplate,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    Trace,
    Var,
    operands_of_results,
    state,
    substitute,
)
from xprim.jaxpr import memo_of
from xprim.kernels import Kernel, KernelTable, Refusal
from xprim.static_keys import params_key
from xtree.records import Record

__all__ = ()


# ----------------------------------------------------------------------------------- known parts
# Calls that mix primals and tangents: which results are known without the tangents.
#
# The jvp rule of a user's function runs with its tangents on a tape and its primals known. It may
# pass both through one call (`jit`, `scan`, `while_loop`, `cond`, `checkpoint`), whose result
# then holds primals and tangents too. Such a call is divided by the `dce` rule of its primitive:
# the call that gives the results which need no tangent is made at once, the one that gives the
# others goes on the tape, with what it needs of the primals as residuals.


class Part(Record):
    """A smaller call, that gives some of the results of a call.

    Attributes:
      results: the numbers of these results.
      operands: the numbers of the operands that it needs.
      params: of the smaller call.
    """

    results: list[int]
    operands: list[int]
    params: dict[str, Any]


def divide(
    primitive: Primitive, avals: Sequence[ShapedArray], known: tuple[bool, ...],
    params: dict[str, Any],
) -> tuple[Part, Part]:  # fmt: skip
    """Return the part of a call that needs known operands only, and the part that needs others.

    Args:
      primitive: one with a `dce` rule: a call, or what hands on several operands at once.
      avals: the abstract values of the operands.
      known: for each operand, whether it is known.
      params: of the call.
    """
    memo = memo_of(params)
    key = ("divided", primitive, known, *params_key(params))
    if key not in memo:
        outputs = [Var(a) for a in primitive.infer(tuple(avals), params)]
        call = Equation(primitive, [Var(a) for a in avals], outputs, params)
        from_known = [all(known[k] for k in needs) for needs in operands_of_results(call)]
        memo[key] = _part(call, from_known), _part(call, [not f for f in from_known])
    return memo[key]  # type: ignore[no-any-return]


def _part(call: Equation, wanted: list[bool]) -> Part:
    if not any(wanted):
        return Part([], [], call.params)
    smaller = call.primitive.rules["dce"](wanted, call)
    operands = {v: k for k, v in enumerate(call.inputs)}
    results = {v: k for k, v in enumerate(call.outputs)}
    return Part(
        [results[v] for v in smaller.outputs], [operands[v] for v in smaller.inputs],
        smaller.params,
    )  # fmt: skip


# ---------------------------------------------------------------------------- derivative kernels
# Derivatives as kernels, and the equations by which a tape holds them.
#
# While everything is evaluated at once, differentiating a primitive by its rules means a dozen
# calls of Python around each call of NumPy. The kernel of a derivative is what the rules amount
# to for operands of given abstract values: one function of ndarrays for the primal and its
# residuals, one for the way back, which adds to the cotangents that are there. A `KernelEquation`
# stands on the tape for the linear part.
#
# Kernels are made from the programs that the rules themselves write, in the same order, so
# results are the same to the bit. A primitive gets its kernel when it was differentiated several
# times.
#
# While a program is staged, these programs serve as templates: their equations are appended, with
# the lines and name scopes of the equation that is differentiated, and no rule runs.


USES_BEFORE_TEMPLATE = 6
"""A template costs 0.13 ms, both ways, and saves 5 to 15 us at each use."""


class JVPKernel(Kernel):
    """A primitive with its derivative: the results, then the tangents that are not zero.

    Attributes:
      dot_numbers: for each result, the number of its tangent; None for zero.
      dot_avals: the abstract values of the tangents.
      is_single: whether an array function gives one result, and not a tuple of them.
    """

    __slots__ = ("dot_avals", "dot_numbers", "is_single")

    def __init__(
        self, run: Any, program: ClosedJaxpr, dot_numbers: Sequence[int | None],
        is_single: bool = False,
    ) -> None:  # fmt: skip
        count = len(dot_numbers)
        super().__init__(run, program.out_avals[:count], (program,))
        self.dot_numbers = dot_numbers
        self.dot_avals = program.out_avals[count:]
        self.is_single = is_single


class LinearizedKernel(Kernel):
    """How a primitive is evaluated and differentiated, for operands of given abstract values.

    `run` takes the elements of the operands; it returns those of the results and of new residuals.
    It is a template where programs are staged, of Arrays.

    Attributes:
      dots_out: for each result, the number of its tangent among the arguments, then the results,
        of `linear`; None for zero.
      linear: the derivative; its constant variables stand for the residuals.
      picked: for each residual, its place among the constants, the operands and what `run` returns.
      constants: residuals that do not depend on the operands.
      is_single: whether an array function gives one result, and not a tuple of them.
      reads_used: whether a transpose in it depends on which elements of its results are used.
    """

    __slots__ = ("constants", "dots_out", "is_single", "linear", "picked", "reads_used")

    def __init__(
        self, run: Any, avals_out: tuple[ShapedArray, ...],
        programs: Sequence[ClosedJaxpr], dots_out: Sequence[Any], linear: Jaxpr,
        picked: Sequence[int], constants: Sequence[Any], is_single: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(run, avals_out, programs)
        self.dots_out = dots_out
        self.linear = linear
        self.picked = picked
        self.constants = constants
        self.is_single = is_single
        self.reads_used = any("used" in eqn.primitive.rules for eqn in linear.eqns)


def use_template(
    table: KernelTable, make: Callable[..., Any], primitive: Primitive, types: Sequence[Any],
    params: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the template that a table has for a primitive, its operands' types and params.

    Returns:
      What `make(primitive, types, params)` made, or None for a call or a collective, after few
      uses, and where a template was refused.
    """
    if primitive.call_like or primitive.axis_param:
        return None
    return table.use((primitive, *types, *params_key(params)), make, primitive, types, params)


def template_of(program: ClosedJaxpr) -> EquationTemplate:
    """Return a program as a template, in place of a function of ndarrays.

    Raises:
      Refusal: where it needs more than its operands; see `EquationTemplate.fits`.
    """
    if not EquationTemplate.fits(program):
        raise Refusal("a program with calls, effects, arrays or meshes is not a template")
    return EquationTemplate(program)


class KernelTrace(Trace):
    """Evaluates primitives and array functions by the kernels of their derivatives.

    To be mixed into a trace that defines the attributes.

    Attributes:
      kernels: those that were made.
      kernel_type: their class.
      on_host: returns the types of operands, their elements and the tangents; None unless NumPy
        has all elements.
      by_kernel: called with a kernel, what it computes, the elements and the tangents; returns the
        results.
      make_kernel: called with a primitive, the types of its operands and its params.
      make_function_kernel: called with an array function, the types and its static arguments.
    """

    __slots__ = ()

    applies_functions = True
    kernels: ClassVar[KernelTable]
    kernel_type: ClassVar[type[Kernel]]
    on_host: ClassVar[Callable[..., Any]]
    by_kernel: ClassVar[Callable[..., Any]]
    make_kernel: ClassVar[Callable[..., Any]]
    make_function_kernel: ClassVar[Callable[..., Any]]

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Run the kernel of the derivative where there is one, else apply the rule."""
        found = self.on_host(operands)
        if found is not None:
            types, hosts, dots = found
            if not dots:
                return EAGER.process(primitive, operands, params)
            key = (primitive, *types, *(params and params_key(params)))
            try:
                kernel = self.kernels.get((*key, state.__dict__["options"]))
            except TypeError:  # an unhashable param: the rules say which
                kernel = None
            if type(kernel) is not self.kernel_type and not primitive.call_like:
                kernel = self.kernels.use(key, self.make_kernel, primitive, types, params)
            if kernel is not None:
                results: tuple[Any, ...] = self.by_kernel(kernel, primitive, hosts, dots)
                return results
        return super().process(primitive, operands, params)

    def apply_function(
        self, function: Callable[..., Any], operands: tuple[Any, ...], statics: tuple[Any, ...]
    ) -> Any:
        """Run the kernel of the derivative of an array function; None where there is none."""
        found = self.on_host(operands)
        if found is None or not found[2]:
            return None
        types, hosts, dots = found
        key = (function, *types, statics)
        try:
            kernel: Any = self.kernels.get((*key, state.__dict__["options"]))
        except TypeError:  # an unhashable static argument
            return None
        if type(kernel) is not self.kernel_type:
            kernel = self.kernels.use(key, self.make_function_kernel, function, types, statics)
            if kernel is None:
                return None
        outs = self.by_kernel(kernel, function, hosts, dots)
        return outs[0] if kernel.is_single else outs


class KernelEquation(Equation):
    """Stands on a tape for the equations from tangents to tangents that a kernel has.

    Attributes:
      primitive: what was evaluated, or the array function that was.
      inputs: the variables of the tangents of its operands, each once.
      outputs: the variables that it defines.
      kernel: of the primitive.
      residuals: the elements of the residuals, an ndarray for each; Arrays beside a template.
    """

    __slots__ = ("kernel", "residuals")

    def __init__(
        self, primitive: Any, inputs: list[Var], outputs: list[Var], kernel: LinearizedKernel,
        residuals: list[Any], source: Any = None, name_stack: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.primitive = primitive
        self.inputs = inputs
        self.outputs = outputs
        self.kernel = kernel
        self.residuals = residuals
        self.source = source
        self.name_stack = name_stack

    def expand(self) -> tuple[list[Equation], dict[Var, Any]]:
        """Return plain equations that say the same, and the values of their constants."""
        linear = self.kernel.linear
        atoms: dict[Any, Any] = dict(zip(linear.invars, self.inputs, strict=True))
        atoms.update(zip(linear.outvars, self.outputs, strict=True))
        values = {}
        for v, x in zip(linear.constvars, self.residuals, strict=True):
            value = x if isinstance(x, Array) else ConcreteArray(x, v.aval)
            if v.aval.ndim or type(value) is not ConcreteArray:
                atoms[v] = Var(v.aval)
                values[atoms[v]] = value
            else:
                atoms[v] = Literal(value)
        eqns = []
        for eqn in linear.eqns:
            for v in eqn.outputs:
                if v not in atoms:
                    atoms[v] = Var(v.aval)
            eqns.append(Equation(
                eqn.primitive, [atoms.get(x, x) for x in eqn.inputs],
                [atoms[v] for v in eqn.outputs], eqn.params, self.source, self.name_stack,
                eqn.signature,
            ))  # fmt: skip
        return eqns, values


def without_kernels(jaxpr: Jaxpr, residuals: Sequence[Any]) -> tuple[Jaxpr, Sequence[Any]]:
    """Return a tape and its constants, in the order of their uses, with plain equations alone."""
    if not any(type(eqn) is KernelEquation for eqn in jaxpr.eqns):
        return jaxpr, residuals
    eqns: list[Equation] = []
    value_by_var: dict[Var, Any] = dict(zip(jaxpr.constvars, residuals, strict=True))
    for eqn in jaxpr.eqns:
        if type(eqn) is KernelEquation:
            plain, values = eqn.expand()
            eqns += plain
            value_by_var.update(values)
        else:
            eqns.append(eqn)
    used = dict.fromkeys(x for x in _atoms(eqns, jaxpr.outvars) if x in value_by_var)
    first_by_id: dict[int, Var] = {}
    same: dict[Var, Any] = {v: first_by_id.setdefault(id(value_by_var[v]), v) for v in used}
    constvars = list(first_by_id.values())
    plain_jaxpr = substitute(jaxpr.replace(constvars=constvars, eqns=eqns), same)
    return plain_jaxpr, [value_by_var[v] for v in constvars]


def _atoms(eqns: Sequence[Equation], outvars: Sequence[Any]) -> Iterator[Any]:
    for eqn in eqns:
        yield from eqn.inputs
    yield from outvars
