"""Kernels on the host: a program written as one Python function of ndarrays.

Each equation becomes one line that calls the `numpy` rule of its primitive, with its params and
the literals bound as constants of the function. Where a `ufunc` rule says which call of NumPy
equals the rule, the line makes that call: it saves a Python call. Ufuncs broadcast their operands
themselves, and write over a large operand that nothing else needs. A call-like primitive is called
by its `kernel` rule, which asks for the functions of the programs that it holds.

Under `config.enable_checks` each call of NumPy is compared with the rule that it stands for.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xprim import config, dtypes
from xprim.array import ConcreteArray
from xprim.avals import ShapedArray
from xprim.eager import EAGER, results_are_checked
from xprim.eager_costs import HUGE
from xprim.errors import ImpureRuleError, message
from xprim.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from xprim.jaxpr_passes import dead_code_removed
from xprim.kernels import Refusal
from xprim.rules import NumpyCall, Operand
from xprim.strict_options import no_execution
from xtree.generated_code import define_function

__all__ = ["numpy_function", "same_elements"]

__dir__ = __all__.copy

MAX_EQUATIONS = 64
_LARGE = 1 << 13  # elements: where new memory costs more than to name the old


def numpy_function(
    program: ClosedJaxpr, *, single: bool = False, longest: int = MAX_EQUATIONS
) -> Callable[..., Any]:
    """Return a program as a function of ndarrays.

    Args:
      program: what is computed.
      single: whether there is one result and it is returned as such, an ndarray or, of rank 0, a
        NumPy scalar; else the function returns a tuple of ndarrays.
      longest: how many operations it may have, and each program inside it.

    Example:
      >>> from xprim import Primitive, shaped_array, trace_to_closed, undefined
      >>> gap = undefined("it is an example")
      >>> cube_p = Primitive(
      ...     "example_cube", shape=lambda x: (x,), numpy=lambda x: (x * x * x,), stablehlo=gap,
      ...     jvp=gap, transpose=gap, batch=gap,
      ... )
      >>> aval = shaped_array((2,), np.dtype(np.float32))
      >>> cubes = numpy_function(trace_to_closed(cube_p.bind, [aval]), single=True)
      >>> cubes(np.float32([2, 3]))
      array([ 8., 27.], dtype=float32)

    Raises:
      Refusal: for a program that is long, has effects, holds calls of primitives without a `kernel`
        rule, or has an operation that the compiler takes or whose result is large; and for all
        where each operation's result is to be looked at.
    """
    jaxpr = dead_code_removed(program.jaxpr)[0]
    _check_worth_writing(program, jaxpr, longest)
    if single and len(jaxpr.eqns) == 1:
        function = _function_of_equation(program.jaxpr, jaxpr.eqns[0])
        if function is not None:
            return function
    writer = _Writer(longest)
    for var, value in zip(jaxpr.constvars, program.consts, strict=True):
        writer.names[var] = writer.constant(value.to_host())
    return writer.function(program.jaxpr.invars, jaxpr, single)


def _check_worth_writing(program: ClosedJaxpr, jaxpr: Jaxpr, longest: int) -> None:
    if results_are_checked() or no_execution.value:
        raise Refusal("debug_nans, debug_infs and no_execution look at each operation")
    if program.effects:
        raise Refusal("it has effects")
    if len(jaxpr.eqns) > longest:
        raise Refusal(f"it has {len(jaxpr.eqns)} operations, more than {longest}")
    if {type(value) for value in program.consts} - {ConcreteArray}:
        raise Refusal("it captured a traced value")
    for eqn in jaxpr.eqns:
        _check_equation(eqn)


def _check_equation(eqn: Equation) -> None:
    if eqn.primitive.call_like:
        if "kernel" not in eqn.primitive.rules:
            raise Refusal(f"it holds a call ({eqn.primitive})")
    elif _is_compiled(eqn):
        raise Refusal(f"the compiler takes its {eqn.primitive}")
    if any(v.aval.size > HUGE for v in eqn.outputs):
        raise Refusal(f"the result of its {eqn.primitive} is huge")
    if any(dtypes.is_extended(v.aval.dtype) for v in (*eqn.inputs, *eqn.outputs)):
        raise Refusal(f"its {eqn.primitive} is about an extended dtype")


def _is_compiled(eqn: Equation) -> bool:
    stand_ins = tuple([ConcreteArray(None, x.aval) for x in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return EAGER.backend.takes(eqn.primitive, stand_ins, eqn.params, avals_out)


# --- the call of NumPy that equals a rule ---------------------------------------------------------


def _numpy_call(eqn: Equation) -> NumpyCall | None:
    """Return the call that the owner of a primitive says equals its rule, or None."""
    rule = eqn.primitive.rules.get("ufunc")
    if rule is None:
        return None
    found = rule([x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs], **eqn.params)
    return found if found is None or type(found) is NumpyCall else NumpyCall(found)


def _is_elementwise(call: NumpyCall | None) -> bool:
    """Say whether a call broadcasts its operands and may write over one of them."""
    function = None if call is None else call.function
    return isinstance(function, np.ufunc) and function.signature is None  # matmul has a signature


def _arguments(call: NumpyCall, operands: Sequence[Any], constant: Callable[[Any], Any]) -> Any:
    """Return the arguments of a call: operands, and what `constant` makes of its constants."""
    if call.arguments is None:
        return operands
    return [operands[x.number] if type(x) is Operand else constant(x) for x in call.arguments]


def _function_of_equation(jaxpr: Jaxpr, eqn: Equation) -> Callable[..., Any] | None:
    """Return the NumPy function that an equation alone amounts to, or None."""
    if list(eqn.inputs) != list(jaxpr.invars) or list(eqn.outputs) != list(jaxpr.outvars):
        return None
    call = _numpy_call(eqn)
    if call is None or call.arguments is not None:
        return None
    if config.values.enable_checks:
        return _compare(eqn, call)
    return _specialize(call, [x.aval for x in eqn.inputs], eqn)


def _specialize(call: NumpyCall, avals: list[ShapedArray], eqn: Equation) -> Callable[..., Any]:
    out = eqn.outputs[0].aval
    return call.function if call.specialize is None else call.specialize(avals, out)


def _compare(eqn: Equation, call: NumpyCall) -> Callable[..., Any]:
    """Return a function of an equation's operands that does both the call and the rule."""
    rule = eqn.primitive.rule("numpy")
    function = _specialize(call, [x.aval for x in eqn.inputs], eqn)

    def run(*operands: Any) -> Any:
        got = np.asarray(function(*_arguments(call, operands, lambda x: x)))
        expected = np.asarray(rule(*operands, **eqn.params)[0])
        if not same_elements(got, expected):
            raise _differs(eqn, function, got, expected)
        return got

    return run


def same_elements(a: Any, b: Any) -> bool:
    """Return whether two ndarrays have the same types and elements; a NaN equals any other."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=dtypes.is_inexact(a.dtype))


def _differs(eqn: Equation, function: Any, got: Any, expected: Any) -> ImpureRuleError:
    name = eqn.primitive.name
    operands = ", ".join([x.aval.str_short() for x in eqn.inputs])
    return ImpureRuleError(message(
        name, "its ufunc rule names a call of NumPy that is not what its numpy rule does.",
        got=f"{function!r} of {operands}: {got.dtype}{list(got.shape)}, {got.ravel()[:4]}",
        expected=f"{expected.dtype}{list(expected.shape)}, {expected.ravel()[:4]}",
        where=f"ufunc rule at {eqn.primitive.place_of_rule('ufunc')}\nnumpy rule at "
        f"{eqn.primitive.place_of_rule('numpy')}",
        hint="both are pure functions of operands, abstract values and params",
    ))  # fmt: skip


def _implicit_broadcasts(jaxpr: Jaxpr, calls: dict[Equation, NumpyCall | None]) -> dict[Any, Any]:
    """Return what is broadcast, by variables that only meet operands of their shape in ufuncs."""
    sources = {
        eqn.outputs[0]: eqn.inputs[0]
        for eqn, call in calls.items()
        if call is not None and call.function is np.broadcast_to
    }
    computed = [*jaxpr.outvars]
    for eqn in jaxpr.eqns:
        call = calls[eqn]
        if not _is_elementwise(call) or not _has_whole_operand(eqn, sources):
            computed += eqn.inputs
    for x in computed:
        if type(x) is Var:
            sources.pop(x, None)
    return sources


def _has_whole_operand(eqn: Equation, sources: dict[Any, Any]) -> bool:
    shape = eqn.outputs[0].aval.shape
    return any(x.aval.shape == shape and not (type(x) is Var and x in sources) for x in eqn.inputs)


class _Writer:
    """Writes the text of the function; names of variables are numbers, constants are globals."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.globals: dict[str, Any] = {}
        self.names: dict[Any, str] = {}
        self.uses: Counter[Any] = Counter()
        self.calls: dict[Equation, NumpyCall | None] = {}
        self.implicit: dict[Any, Any] = {}
        self.compares = config.values.enable_checks
        self.own: set[Any] = set()  # variables whose memory was made here, and is large

    def constant(self, value: Any) -> str:
        name = f"c{len(self.globals)}"
        self.globals[name] = value
        return name

    def atom(self, x: Any) -> str:
        return self.constant(x.value.to_host()) if type(x) is Literal else self.names[x]

    def fresh(self, var: Any) -> str:
        name = self.names[var] = f"v{len(self.names)}"
        return name

    def function(self, invars: Any, jaxpr: Jaxpr, single: bool) -> Callable[..., Any]:
        arguments = ", ".join([self.fresh(v) for v in invars])
        atoms = [*jaxpr.outvars, *[x for eqn in jaxpr.eqns for x in eqn.inputs]]
        self.uses = Counter(atoms)
        self.calls = {eqn: _numpy_call(eqn) for eqn in jaxpr.eqns}
        if not self.compares:
            self.implicit = _implicit_broadcasts(jaxpr, self.calls)
        lines = [line for eqn in jaxpr.eqns for line in self.lines(eqn)]
        results = ", ".join([self.atom(v) for v in jaxpr.outvars])
        result = results if single or not results else f"{results},"
        body = "\n    ".join([*lines, f"return ({result})"])
        text = f"def kernel({arguments}):\n    {body}"
        function: Callable[..., Any] = define_function("kernel", text, self.globals, home=__file__)
        return function

    def lines(self, eqn: Equation) -> list[str]:
        if eqn.outputs and eqn.outputs[0] in self.implicit:
            return []
        text = self.numpy_call(eqn) or self.rule_call(eqn)
        left = [self.fresh(v) for v in eqn.outputs]
        lines = [f"{', '.join(left)}{text}"]
        for name, v in zip(left, eqn.outputs, strict=True):
            if not v.aval.shape:  # NumPy gives scalars, rules take arrays
                lines.append(f"{name} = {self.constant(np.asarray)}({name})")
        return lines

    def rule_call(self, eqn: Equation) -> str:
        operands = [self.atom(x) for x in eqn.inputs]
        if eqn.primitive.call_like:
            write = functools.partial(numpy_function, longest=self.longest)
            avals = [x.aval for x in eqn.inputs]
            rule = eqn.primitive.rule("kernel")(write, avals, **eqn.params)
        else:
            rule = eqn.primitive.rule("numpy")
            if eqn.params:
                operands.append(f"**{self.constant(dict(eqn.params))}")
        return f", = {self.constant(rule)}({', '.join(operands)})"

    def numpy_call(self, eqn: Equation) -> str:
        """Return the call that equals the rule, if there is one."""
        call = self.calls[eqn]
        if call is None or call.function is np.broadcast_to:
            return ""
        if self.compares:
            function, operands = _compare(eqn, call), [self.atom(x) for x in eqn.inputs]
        elif _is_elementwise(call):
            function, operands = self.ufunc_call(call, eqn)
        else:
            function = call.function
            operands = _arguments(call, [self.atom(x) for x in eqn.inputs], self.constant)
        return f" = {self.constant(function)}({', '.join(operands)})"

    def ufunc_call(self, call: NumpyCall, eqn: Equation) -> tuple[Callable[..., Any], list[str]]:
        """Return a function and its arguments, with the memory at hand."""
        sources = [self.implicit.get(x, x) if type(x) is Var else x for x in eqn.inputs]
        (out,), function = eqn.outputs, _specialize(call, [x.aval for x in sources], eqn)
        operands = [*_arguments(call, [self.atom(x) for x in sources], self.constant)]
        if out.aval.size >= _LARGE:
            self.own.add(out)
            if function is call.function:
                operands += [
                    f"out={self.names[x]}" for x in eqn.inputs if self.may_write_over(x, eqn)
                ][:1]
        return function, operands

    def may_write_over(self, x: Any, eqn: Equation) -> bool:
        """Say whether an input has the type of the result, and its memory no other use."""
        aval = eqn.outputs[0].aval
        return (
            x in self.own
            and self.uses[x] == list(eqn.inputs).count(x)
            and (x.aval.shape, x.aval.dtype) == (aval.shape, aval.dtype)
        )
