"""Array functions of large operands as one program of the compiler's.

A function that amounts to several primitives passes over memory once for each; where the compiler
takes one of them for its size, it is given all of them. So what decides are the `cost` rules of the
primitives, and a function of equal operands always goes the same way. A function whose primitives
all leave as many elements as they take is compiled for its passes alone, where they are many.

On a device a function that amounts to one operation has that operation's program alone.

Neighbours: `dispatch` keeps the programs, beside the functions of ndarrays for smaller operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import xprim
from xprim import EAGER, ClosedJaxpr, ConcreteArray, Equation, Var, dtypes, scalar_array
from xprim.errors import XStackError
from xprim.finite import results_are_checked
from xprim.kernels import Kernel, Refusal

__all__ = ()

_SMALL = 1 << 13  # elements: no compiler takes work on fewer
_WORTH_COMPILING = 1 << 19  # nanoseconds; a pass takes an eighth of one for each element
_TAKEN = frozenset([ConcreteArray, bool, int, float, complex])


class ProgramKernel(Kernel):
    """The compiled form of an array function.

    Attributes:
      start: from arrays and Python scalars, as the function takes them, to its results.
    """

    __slots__ = ("start",)

    def __init__(self, start: Callable[[Sequence[Any]], Any], avals_out: Any) -> None:
        super().__init__(None, avals_out)
        self.start = start


def program_kernel(
    function: Callable[..., Any], operands: Sequence[Any], statics: Sequence[Any] = (),
    dtype: Any = None,
) -> ProgramKernel | None:  # fmt: skip
    """Return the compiled form of a function of arrays if the compiler takes what it amounts to.

    Args:
      function: as it is for every trace.
      operands: arrays and Python scalars.
      statics: its further arguments.
      dtype: of Python scalars; None for their own.

    Returns:
      None for small operands, for one primitive alone, which goes to the compiler by itself, and
      for operands that the function refuses, or looks into.
    """
    if {type(x) for x in operands} - _TAKEN:
        return None
    if dtype is None and not scalars_keep_their_values(operands):
        return None
    if not EAGER.backend.compiles or results_are_checked():
        return None
    arrays = _arrays_that_fit(operands, dtype)
    sizes = [v for v in statics if type(v) is int]  # of results, maybe
    if max(math.prod([x.aval.size for x in arrays]), *sizes, 0) < _SMALL:
        return None
    program, single = _traced(function, arrays, statics)
    if program is None or not _is_taken(program):
        return None
    name = function.__name__.lstrip("_")  # as errors and records of time tell it

    def start(operands: Sequence[Any]) -> Any:
        results = EAGER.backend.run_program(program, _as_arrays(operands, dtype), name)
        return results[0] if single else results

    return ProgramKernel(start, program.out_avals[0] if single else program.out_avals)


def scalars_keep_their_values(operands: Any) -> bool:
    """Whether Python numbers among the operands can go through their default dtypes unharmed."""
    kinds = {type(x) for x in operands}
    found = {x.aval.dtype for x in operands if type(x) is ConcreteArray}
    if kinds & {float, complex} and dtypes.python_scalar_dtype(float) != dtypes.float64:
        return not found & {dtypes.float64, dtypes.complex128}
    narrow = {d for d in found if dtypes.is_integer(d)} - {dtypes.int32, dtypes.int64}
    return int not in kinds or not narrow


def _arrays_that_fit(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    """Return the operands as arrays, and none if the function refuses a Python integer."""
    try:
        return _as_arrays(operands, dtype)
    except OverflowError:
        return []


def _as_arrays(operands: Sequence[Any], dtype: Any) -> list[ConcreteArray]:
    return [x if type(x) is ConcreteArray else scalar_array(x) if dtype is None else (
        scalar_array(x, dtype, True)) for x in operands]  # fmt: skip


def _traced(
    function: Callable[..., Any], arrays: Sequence[ConcreteArray], statics: Sequence[Any]
) -> tuple[ClosedJaxpr | None, bool]:
    """Return the program of a function, and whether it gives one result instead of several."""
    single = False

    def flat(*arrays: Any) -> Any:
        nonlocal single
        results = function(*arrays, *statics)
        single = not isinstance(results, tuple | list)
        return (results,) if single else results

    try:
        return xprim.trace_to_closed(flat, [x.aval for x in arrays]), single
    except (ArithmeticError, LookupError, TypeError, ValueError, XStackError):
        return None, single  # the function itself says what is wrong with values that are there


def _is_taken(program: ClosedJaxpr) -> bool:
    eqns = program.jaxpr.eqns
    if len(eqns) < 2 or program.effects or {type(x) for x in program.consts} - {ConcreteArray}:
        return False
    atoms = [x for eqn in eqns for x in (*eqn.inputs, *eqn.outputs)]
    if any(dtypes.is_extended(x.aval.dtype) for x in atoms):
        return False
    return _passes(eqns) >= _WORTH_COMPILING or any(_compiler_takes(eqn) for eqn in eqns)


def _passes(eqns: Sequence[Equation]) -> float:
    """Return the nanoseconds that all passes over memory but one take, 0 where one sums up."""
    sizes = []
    for eqn in eqns:
        most, size = max([x.aval.size for x in eqn.inputs], default=0), eqn.outputs[0].aval.size
        if eqn.primitive.call_like or (most > _SMALL and size < most // 2):
            return 0
        sizes.append(size)
    return (sum(sizes) - max(sizes)) / 8


def _compiler_takes(eqn: Equation) -> bool:
    stand_ins = tuple([ConcreteArray(None, x.aval) for x in eqn.inputs])
    avals_out = tuple([v.aval for v in eqn.outputs])
    return EAGER.backend.takes(eqn.primitive, stand_ins, eqn.params, avals_out)


# --- one operation on a device ------------------------------------------------------------------


def operation_kernel(
    function: Callable[..., Any], operands: Sequence[Any], statics: Sequence[Any], result: Any
) -> Kernel:
    """Return what starts the program of a call that gave `result`."""
    if {type(x) for x in (*operands, result)} != {ConcreteArray}:
        raise Refusal("not one array from arrays")
    eqn, order = _single_equation(lambda *arrays: (function(*arrays, *statics),), operands)
    start = EAGER.backend.compiled_operation(
        eqn.primitive, [operands[i] for i in order], eqn.params
    )
    if start is None:
        raise Refusal(f"the compiler has no program of {eqn.primitive} that starts at once")
    if order != list(range(len(operands))):
        return Kernel(lambda arrays: start([arrays[i] for i in order]), result.aval)
    return Kernel(start, result.aval)


def _single_equation(
    function: Callable[..., Any], operands: Sequence[Any]
) -> tuple[Equation, list[int]]:
    """Return the one equation that a function amounts to, and which operands it takes."""
    jaxpr, consts = xprim.trace_to_jaxpr(function, [x.aval for x in operands])
    if len(jaxpr.eqns) != 1 or consts:
        raise Refusal(f"it amounts to {len(jaxpr.eqns)} operations")
    (eqn,) = jaxpr.eqns
    if not all(type(x) is Var for x in eqn.inputs) or [*eqn.outputs] != [*jaxpr.outvars]:
        raise Refusal("its operation takes or gives other values, too")
    return eqn, [jaxpr.invars.index(x) for x in eqn.inputs]
