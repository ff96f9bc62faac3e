"""Programs of NumPy calls: a jaxpr turned into one Python function of ndarrays.

Each equation becomes one line that calls the `numpy` rule of its primitive, with its params and
the literals bound as constants of the function. A few rules are written out as the NumPy call they
end in, where the dtype is one that NumPy computes with itself: that saves a Python call. Such calls
broadcast their operands themselves, and write over a large operand that nothing else needs.

Neighbours: `dispatch` keeps these functions in tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xnp.numpy.layouts import arranged
from xprim import (
    Backend,
    ConcreteArray,
    Jaxpr,
    Literal,
    ShapedArray,
    Var,
    config,
    dead_code_removed,
    dtypes,
)
from xprim.errors import XStackError
from xprim.staging import trace_to_jaxpr

MAX_EQUATIONS = 64
_LARGE = 1 << 13  # elements: where new memory costs more than to name the old
# An operation with more elements gains nothing, and goes by its rule, which says what did not fit
# into memory.
_HUGE = 1 << 24

NATIVE = frozenset([
    dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
    dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.float32, dtypes.float64,
    dtypes.complex64, dtypes.complex128,
])  # fmt: skip

# NumPy functions that equal the rule of a primitive on operands of a native dtype.
_UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "neg": np.negative,
}  # fmt: skip


class HostProgram(NamedTuple):
    """A jaxpr and the values of its constants."""

    jaxpr: Jaxpr
    consts: Sequence[Any]


def program_of(
    function: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]
) -> HostProgram | None:
    """Return what a function of arrays amounts to, or None where it looks at their values."""
    try:
        return HostProgram(*trace_to_jaxpr(function, avals))
    except XStackError:
        return None


def compiled_program(
    program: HostProgram, backend: Backend, *, bare: bool = True
) -> Callable[..., Any] | None:
    """Return a function of ndarrays, or None when the program must go through the traces.

    That is so for programs that are long, have effects, hold calls, or have an equation that the
    compiler backend takes or whose result is large; and for all where each operation's result is
    to be looked at.

    Args:
      program: a jaxpr with its constants.
      backend: the one that eager evaluation asks.
      bare: whether one result is returned as such, not in a tuple.

    Returns:
      A function from the arguments to the result, or to a tuple of results.
    """
    jaxpr = program.jaxpr
    if jaxpr.effects or config.values.debug_nans or config.values.debug_infs:
        return None
    smaller = dead_code_removed(jaxpr)[0]
    if len(smaller.eqns) > MAX_EQUATIONS:
        return None
    for eqn in smaller.eqns:
        if eqn.primitive.call_like or _is_taken(backend, eqn):
            return None
        avals = [v.aval for v in (*eqn.inputs, *eqn.outputs)]
        if any(a.size > _HUGE or dtypes.is_extended(a.dtype) for a in avals):
            return None
    writer = _Writer()
    for var, value in zip(jaxpr.constvars, program.consts, strict=True):
        if type(value) is not ConcreteArray:
            return None
        writer.bind_constant(var, value.to_host())
    return writer.function(jaxpr.invars, smaller, bare)


def _is_taken(backend: Backend, eqn: Any) -> bool:
    stand_ins = tuple([ConcreteArray(None, v.aval) for v in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return backend.takes(eqn.primitive, stand_ins, avals_out)


def _is_mask(atom: Any) -> bool:
    return dtypes.is_bool(atom.aval.dtype)


def _is_native(eqn: Any) -> bool:
    return all(v.aval.dtype in NATIVE for v in (*eqn.inputs, *eqn.outputs))


def _ufunc_of(eqn: Any) -> Any:
    """Return the NumPy function that equals the rule of an equation, or None."""
    if not _is_native(eqn):
        return None
    name = eqn.primitive.name
    if name == "div" and dtypes.is_inexact(eqn.outputs[0].aval.dtype):
        return np.true_divide
    return _UFUNCS.get(name)


def _implicit(jaxpr: Jaxpr) -> dict[Any, Any]:
    """Return the broadcasts that NumPy does itself, for they only meet operands of that shape."""
    sources = {eqn.outputs[0]: eqn.inputs[0] for eqn in jaxpr.eqns if _is_trailing(eqn)}
    written_out = [*jaxpr.outvars]
    for eqn in jaxpr.eqns:
        if _ufunc_of(eqn) is None or not _has_whole_operand(eqn, sources):
            written_out += eqn.inputs
    for x in written_out:
        if type(x) is Var:
            sources.pop(x, None)
    return sources


def _has_whole_operand(eqn: Any, sources: dict[Any, Any]) -> bool:
    shape = eqn.outputs[0].aval.shape
    return any(x.aval.shape == shape and not (type(x) is Var and x in sources) for x in eqn.inputs)


def _is_trailing(eqn: Any) -> bool:
    """Say whether an equation repeats an array as NumPy would, along leading dimensions."""
    if eqn.primitive.name != "broadcast_in_dim":
        return False
    ndim, dims = eqn.outputs[0].aval.ndim, eqn.params["broadcast_dimensions"]
    return tuple(dims) == tuple(range(ndim - len(dims), ndim))


class _Writer:
    """Writes the text of the function; names of variables are numbers, constants are globals."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self.names: dict[Any, str] = {}
        self.uses: Counter[Any] = Counter()
        self.implicit: dict[Any, Any] = {}
        self.own: set[Any] = set()  # variables whose memory was made here, and is large

    def bind_constant(self, var: Any, value: Any) -> None:
        self.names[var] = self.constant(value)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.globals)}"
        self.globals[name] = value
        return name

    def atom(self, x: Any) -> str:
        return self.constant(x.value.to_host()) if type(x) is Literal else self.names[x]

    def fresh(self, var: Any) -> str:
        name = self.names[var] = f"v{len(self.names)}"
        return name

    def function(self, invars: Any, jaxpr: Jaxpr, bare: bool) -> Callable[..., Any]:
        arguments = ", ".join([self.fresh(v) for v in invars])
        atoms = [*jaxpr.outvars, *[x for eqn in jaxpr.eqns for x in eqn.inputs]]
        self.uses = Counter([x for x in atoms if type(x) is Var])
        self.implicit = _implicit(jaxpr)
        lines = [line for eqn in jaxpr.eqns for line in self.lines(eqn)]
        results = [self.atom(v) for v in jaxpr.outvars]
        result = results[0] if bare and len(results) == 1 else (
            f"({', '.join(results)},)" if results else "()")  # fmt: skip
        body = "\n    ".join([*lines, f"return {result}"])
        exec(f"def program({arguments}):\n    {body}", self.globals)
        function: Callable[..., Any] = self.globals["program"]
        return function

    def lines(self, eqn: Any) -> list[str]:
        if eqn.outputs and eqn.outputs[0] in self.implicit:
            return []
        written_out = self.written_out(eqn)
        if written_out:
            lines = [f"{self.fresh(eqn.outputs[0])} = {written_out}"]
        else:
            rule = self.constant(eqn.primitive.rule("numpy"))
            operands = [self.atom(x) for x in eqn.inputs]
            if eqn.params:
                operands.append(f"**{self.constant(dict(eqn.params))}")
            left = "".join([f"{self.fresh(v)}," for v in eqn.outputs])
            lines = [f"{left} = {rule}({', '.join(operands)})"]
        for v in eqn.outputs:
            if not v.aval.shape:  # NumPy gives scalars, rules take arrays
                name = self.names[v]
                lines.append(f"{name} = {self.constant(np.asarray)}({name})")
        return lines

    def written_out(self, eqn: Any) -> str:
        """Return an expression that equals the rule and is faster, or nothing."""
        if not _is_native(eqn):
            return ""
        ufunc = _ufunc_of(eqn)
        if ufunc is not None:
            return self.ufunc_call(ufunc, eqn, eqn.inputs)
        name, aval = eqn.primitive.name, eqn.outputs[0].aval
        if name == "integer_pow" and eqn.params["y"] == 2:
            return self.ufunc_call(np.multiply, eqn, [*eqn.inputs, *eqn.inputs])
        operands = ", ".join([self.atom(x) for x in eqn.inputs])
        if name in ("reshape", "squeeze"):
            return f"{operands}.reshape({self.constant(aval.shape)})"
        if name == "broadcast_in_dim" and eqn.inputs[0].aval.size == aval.size:
            return f"{operands}.reshape({self.constant(aval.shape)})"
        if name == "select_n" and len(eqn.inputs) == 3 and _is_mask(eqn.inputs[0]):
            which, first, second = operands.split(", ")
            return f"{self.constant(np.where)}({which}, {second}, {first})"
        if name == "reduce_sum" and not aval.shape:  # the rule sums many rows in another way
            axes, dtype = self.constant(eqn.params["axes"]), self.constant(aval.dtype)
            return f"{self.constant(np.add.reduce)}({operands}, {axes}, {dtype})"
        if name == "transpose":
            return f"{operands}.transpose({self.constant(eqn.params['permutation'])})"
        return ""

    def ufunc_call(self, ufunc: Any, eqn: Any, inputs: Sequence[Any]) -> str:
        """Return the call, in the quickest way for the layout and with the memory at hand."""
        sources = [self.implicit.get(x, x) if type(x) is Var else x for x in inputs]
        (out,), function = eqn.outputs, ufunc
        if len(sources) == 2:
            function = arranged(ufunc, sources[0].aval, sources[1].aval, out.aval)
        operands = [self.atom(x) for x in sources]
        if out.aval.size >= _LARGE:
            self.own.add(out)
            if function is ufunc:
                operands += [self.names[x] for x in eqn.inputs if self.may_write_over(x, eqn)][:1]
        return f"{self.constant(function)}({', '.join(operands)})"

    def may_write_over(self, x: Any, eqn: Any) -> bool:
        """Say whether an input has the type of the result, and its memory no other use."""
        aval = eqn.outputs[0].aval
        return (
            x in self.own
            and self.uses[x] == list(eqn.inputs).count(x)
            and (x.aval.shape, x.aval.dtype) == (aval.shape, aval.dtype)
        )
