"""When a loop that is evaluated eagerly is compiled.

NumPy takes 1 to 2 us for an equation of a body, a compiled loop a tenth of that, but XLA needs 15
ms to compile it, and 0.1 ms more for each equation. So a loop is compiled, where a compiler is
installed, when its *work* is worth that: the number of equations that it evaluates, each counted
once more for every 4096 elements that it reads or writes, and for every 1.5 us that compiling saves
by its `cost` rule. That depends on the program and on the
number of steps alone. A loop over data on an accelerator is compiled however short it is.

The number of steps of a `while` is not known. It begins in NumPy, and when it has more steps than
are left to NumPy it begins again as a compiled program: a result is the one of NumPy or the one of
the program, never of some steps here and some there, and which of them depends on nothing but the
program and its operands. What a loop began with stays in memory until then.

Neighbours: `scan` and `while_loop` ask; `EAGER.backend` compiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xnp.primitives.inner_programs import derived
from xprim import (
    EAGER,
    EAGER_ON_HOST,
    ClosedJaxpr,
    ConcreteArray,
    Equation,
    Primitive,
    Undefined,
    dtypes,
    state,
)
from xprim.finite import results_are_checked
from xprim.jaxpr import held_programs, program_of_equation
from xprim.kernels import Kernel, ProgramKernels, Refusal
from xprim.numpy_kernels import numpy_function
from xprim.static_keys import params_key

__all__ = ()

# Work is counted in equations of NumPy on small arrays. To compile a loop costs as much as 8192 to
# 16384 of them; it is compiled much before it has cost that, since loops are run more than once.
_WORTH_COMPILING = 512
# A long body takes long to compile: it is worth that when each of its equations runs so often.
_LEAST_STEPS = 16
_ELEMENTS_PER_UNIT = 4096
_NANOSECONDS_PER_UNIT = 1500


def steps_before_compiling(programs: Sequence[ClosedJaxpr], operands: Sequence[Any]) -> float:
    """Return how many steps a loop may have to be run by NumPy.

    Args:
      programs: what each step runs.
      operands: what the loop is called with.

    Returns:
      A number; infinity where the loop must not be compiled, and -1 where it must be.
    """
    backend = EAGER.backend
    if not backend.compiles or state.trace is EAGER_ON_HOST:
        return math.inf
    if not all(map(_has_compiled_form, programs)):
        return math.inf
    if results_are_checked():
        return math.inf
    if not all(map(backend.on_host, operands)):
        return -1
    return _LEAST_STEPS + _WORTH_COMPILING // (1 + sum(map(work_of, programs)))


def work_of(closed: ClosedJaxpr) -> float:
    """Return the work of one run in NumPy; loops inside count in full where that is known."""
    return derived(closed, "work", lambda: sum(map(_work_of_equation, closed.jaxpr.eqns)))


def _work_of_equation(eqn: Equation) -> float:
    inner = [work_of(closed) for closed in held_programs(eqn.params)]
    if "branches" in eqn.params:
        return 1 + max(inner, default=0)
    avals_in, avals_out = [x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs]
    elements = max([a.size for a in (*avals_in, *avals_out)], default=0)
    rule = eqn.primitive.rules.get("cost")
    saved = (rule and rule(avals_in, avals_out, **eqn.params)) or 0
    length = eqn.params.get("length", 1)
    times = length if isinstance(length, int) else 1
    return (
        1 + elements / _ELEMENTS_PER_UNIT + max(saved, 0) / _NANOSECONDS_PER_UNIT
        + times * sum(inner)
    )  # fmt: skip


def _has_compiled_form(closed: ClosedJaxpr) -> bool:
    """Return whether a program has no effects, and no primitive that only NumPy can evaluate."""
    return derived(closed, "has compiled form", lambda: _is_compilable(closed))


def _is_compilable(closed: ClosedJaxpr) -> bool:
    return not closed.effects and all(
        type(eqn.primitive.rules.get("stablehlo", _MISSING)) is not Undefined
        and all(map(_has_compiled_form, held_programs(eqn.params)))
        for eqn in closed.jaxpr.eqns
    )


_MISSING = Undefined("there is no such rule")


def numpy_step(
    closed: ClosedJaxpr, operands: Sequence[Any], steps: float
) -> Callable[..., Any] | None:
    """Return a program as one function of ndarrays, which gives the same to the last bit.

    Args:
      closed: what each step runs.
      operands: what the loop is called with.
      steps: how many steps there are; those of all calls are counted.

    Returns:
      None where the steps go by the rules: where there were few so far, where the program can have
      no such kernel, and where an operand is not on the host.
    """
    kernel = _steps.use(closed, steps, _kernel_of)
    return kernel.run if kernel and steps and all(map(EAGER.backend.on_host, operands)) else None


# It takes as long to write a kernel as to evaluate so many equations by their rules.
_steps = ProgramKernels("steps of loops", worth=128)


def _kernel_of(closed: ClosedJaxpr) -> Kernel:
    if any(dtypes.is_extended(a.dtype) for a in (*closed.in_avals, *closed.out_avals)):
        raise Refusal("it is about an extended dtype")
    return Kernel(numpy_function(closed), closed.out_avals)


def run_compiled(
    primitive: Primitive, operands: Sequence[ConcreteArray], inner: ClosedJaxpr,
    params: dict[str, Any],
) -> tuple[ConcreteArray, ...]:  # fmt: skip
    """Run one equation as a compiled program, which is kept with an inner program of it."""
    avals = tuple([x.aval for x in operands])
    key = ("program", primitive, avals, *params_key(params))
    closed = derived(inner, key, lambda: program_of_equation(primitive, avals, params))
    return EAGER.backend.run_program(closed, operands, primitive.name)
