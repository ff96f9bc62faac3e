"""Programs of NumPy calls: a jaxpr turned into one Python function of ndarrays.

Each equation becomes one line that calls the `numpy` rule of its primitive, with its params and
the literals bound as constants of the function. A few rules are written out as the NumPy call they
end in, where the dtype is one that NumPy computes with itself: that saves a Python call.

Neighbours: `dispatch` keeps these functions in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xprim import ConcreteArray, Jaxpr, Literal, config, dead_code_removed, dtypes

MAX_EQUATIONS = 64

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


def compiled_program(
    program: HostProgram, backend: Any, *, bare: bool = True
) -> Callable[..., Any] | None:
    """Return a function of ndarrays, or None when the program must go through the traces.

    That is so for programs that are long, have effects, hold calls, or have an equation that the
    compiler backend takes; and for all where each operation's result is to be looked at.

    Args:
      program: a jaxpr with its constants.
      backend: the compiler that eager evaluation asks, or None.
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
        if eqn.primitive.call_like or (backend is not None and _is_taken(backend, eqn)):
            return None
    writer = _Writer()
    for var, value in zip(jaxpr.constvars, program.consts, strict=True):
        if type(value) is not ConcreteArray:
            return None
        writer.bind_constant(var, value.to_host())
    return writer.function(jaxpr.invars, smaller, bare)


def _is_taken(backend: Any, eqn: Any) -> bool:
    stand_ins = tuple([ConcreteArray(None, v.aval) for v in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return bool(backend.takes(eqn.primitive, stand_ins, avals_out))


def _is_mask(atom: Any) -> bool:
    return dtypes.is_bool(atom.aval.dtype)


class _Writer:
    """Writes the text of the function; names of variables are numbers, constants are globals."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self.names: dict[Any, str] = {}

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
        lines = [line for eqn in jaxpr.eqns for line in self.lines(eqn)]
        results = [self.atom(v) for v in jaxpr.outvars]
        result = results[0] if bare and len(results) == 1 else (
            f"({', '.join(results)},)" if results else "()")  # fmt: skip
        body = "\n    ".join([*lines, f"return {result}"])
        exec(f"def program({arguments}):\n    {body}", self.globals)
        function: Callable[..., Any] = self.globals["program"]
        return function

    def lines(self, eqn: Any) -> list[str]:
        operands = ", ".join([self.atom(x) for x in eqn.inputs])
        written_out = self.written_out(eqn, operands)
        if written_out:
            lines = [f"{self.fresh(eqn.outputs[0])} = {written_out}"]
        else:
            rule = self.constant(eqn.primitive.rule("numpy"))
            params = f", **{self.constant(dict(eqn.params))}" if eqn.params else ""
            left = "".join([f"{self.fresh(v)}," for v in eqn.outputs])
            separator = ", " if operands and params else ""
            lines = [f"{left} = {rule}({operands}{separator}{params.removeprefix(', ')})"]
        for v in eqn.outputs:
            if not v.aval.shape:  # NumPy gives scalars, rules take arrays
                name = self.names[v]
                lines.append(f"{name} = {self.constant(np.asarray)}({name})")
        return lines

    def written_out(self, eqn: Any, operands: str) -> str:
        """Return an expression that equals the rule and is faster, or nothing."""
        name, aval = eqn.primitive.name, eqn.outputs[0].aval
        if any(v.aval.dtype not in NATIVE for v in (*eqn.inputs, *eqn.outputs)):
            return ""
        if name in _UFUNCS:
            return f"{self.constant(_UFUNCS[name])}({operands})"
        if name == "div" and dtypes.is_inexact(aval.dtype):
            return f"{self.constant(np.true_divide)}({operands})"
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
