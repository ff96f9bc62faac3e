"""What the primitives of control flow share, and check and platform_index.

Rules of cond, scan and while rewrite inner jaxprs; loops that are evaluated eagerly are compiled
when that pays; checks inside of a batch know which examples take part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import xprim
from xnp.primitives.table import bind, broadcast_to, convert, reshape
from xprim import EAGER, ClosedJaxpr, Effect, Equation, Primitive, ShapedArray, Var, dtypes, state
from xprim.contracts import BatchAxis, Builder, JVPHandle, names_of_platform
from xprim.derived_refs import derive_once
from xprim.eager_costs import EQUATIONS_BEFORE_KERNEL, loop_steps_by_numpy, loop_work
from xprim.errors import message
from xprim.jaxpr import held_programs, interpret, program_of_equation
from xprim.kernels import Kernel, ProgramKernels, Refusal, numpy_function
from xprim.requirements import CheckSite, require
from xprim.static_keys import params_key
from xprim.strict_options import results_are_checked

__all__ = ()


# -------------------------------------------------------------------------------- inner programs
# What the rules of primitives that hold programs share: rewriting inner jaxprs, and running them.
#
# A rule that derives a program keeps it in the memo of the program it came from, so that a second
# call only dispatches. `derive` does that; the other functions rewrite arguments and results.

T = TypeVar("T")


def derive(closed: ClosedJaxpr, key: Hashable, make: Callable[[], T]) -> T:
    """Return what `make()` derives from a program, from the program's memo when it has it."""
    return derive_once(closed.memo, key, make)


def split_at(values: Sequence[T], *counts: int) -> list[list[T]]:
    """Cut a sequence into pieces of the given lengths and the rest."""
    pieces, start = [], 0
    for count in counts:
        pieces.append(list(values[start : start + count]))
        start += count
    return [*pieces, list(values[start:])]


def grow_mask(
    transformed: Callable[[list[bool]], tuple[Any, Sequence[bool]]], carry: list[bool]
) -> tuple[Any, list[bool], list[bool]]:
    """Grow the mask of the carry until the body keeps it; return what the body became, and masks.

    Args:
      transformed: from a mask of the carry to the transformed body and the mask of its results.
      carry: the mask at the start.
    """
    while True:
        result, out = transformed(carry)
        joint = [a or b for a, b in zip(carry, out[: len(carry)], strict=True)]
        if joint == carry:
            return result, carry, list(out[len(carry) :])
        carry = joint


def rearrange(
    closed: ClosedJaxpr,
    arguments: Sequence[int] | None = None,
    results: Sequence[int] | None = None,
) -> ClosedJaxpr:
    """Return the program with its arguments and results in another order.

    Args:
      closed: the program.
      arguments: for each new argument, the number of the old one; all must occur.
      results: for each new result, the number of the old one; some may be left out.
    """
    jaxpr = closed.jaxpr
    if arguments is not None:
        jaxpr = jaxpr.replace(invars=[jaxpr.invars[i] for i in arguments])
    if results is not None:
        jaxpr = jaxpr.replace(outvars=[jaxpr.outvars[i] for i in results])
    return ClosedJaxpr(jaxpr, closed.consts)


def with_ignored_arguments(
    closed: ClosedJaxpr, avals: Sequence[ShapedArray], at: int | None = None
) -> ClosedJaxpr:
    """Return the program with more arguments, which it ignores, at a position or the end."""
    invars = list(closed.jaxpr.invars)
    position = len(invars) if at is None else at
    invars[position:position] = [Var(a) for a in avals]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def trace_fun(
    fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str = ""
) -> ClosedJaxpr:
    """Return the program of a function that captures no traced values."""
    return ClosedJaxpr(*xprim.trace_to_jaxpr(fun, avals, name=name))


# ----------------------------------------------------------------------------------- eager loops
# When a loop that is evaluated eagerly is compiled.
#
# NumPy takes 1 to 2 us for an equation of a body, a compiled loop a tenth of that, but XLA needs
# 15 ms to compile it, and 0.1 ms more for each equation. So a loop is compiled, where a compiler
# is installed, when its *work* is worth that: the number of equations that it evaluates, each
# counted once more for every 4096 elements that it reads or writes, and for every 1.5 us that
# compiling saves by its `cost` rule. That depends on the program and on the number of steps
# alone. A loop over data on an accelerator is compiled however short it is.
#
# The number of steps of a `while` is not known. It begins in NumPy, and when it has more steps
# than are left to NumPy it begins again as a compiled program: a result is the one of NumPy or
# the one of the program, never of some steps here and some there, and which of them depends on
# nothing but the program and its operands. What a loop began with stays in memory until then.


def steps_before_compiling(programs: Sequence[ClosedJaxpr], operands: Sequence[Any]) -> float:
    """Return how many steps a loop may have to be run by NumPy.

    Args:
      programs: what each step runs.
      operands: what the loop is called with.

    Returns:
      A number; infinity where the loop must not be compiled, and -1 where it must be.
    """
    backend = EAGER.backend
    if not backend.compiles or state.trace is xprim.EAGER_ON_HOST:
        return math.inf
    if not all(map(_has_compiled_form, programs)):
        return math.inf
    if results_are_checked():
        return math.inf
    if not all(map(backend.on_host, operands)):
        return -1
    return loop_steps_by_numpy(sum(map(work_of, programs)))


def work_of(closed: ClosedJaxpr) -> float:
    """Return the work of one run in NumPy; loops inside count in full where that is known."""
    return derive(closed, "work", lambda: sum(map(_work_of_equation, closed.jaxpr.eqns)))


def _work_of_equation(eqn: Equation) -> float:
    inner = [work_of(closed) for closed in held_programs(eqn.params)]
    if "branches" in eqn.params:
        return 1 + max(inner, default=0)
    length = eqn.params.get("length", 1)
    times = length if isinstance(length, int) else 1
    return loop_work(eqn) + times * sum(inner)


def _has_compiled_form(closed: ClosedJaxpr) -> bool:
    """Return whether a program has no effects, and no primitive that only NumPy can evaluate."""
    return derive(closed, "has compiled form", lambda: _is_compilable(closed))


def _is_compilable(closed: ClosedJaxpr) -> bool:
    return not closed.effects and all(
        type(eqn.primitive.rules.get("stablehlo", _MISSING)) is not xprim.Undefined
        and all(map(_has_compiled_form, held_programs(eqn.params)))
        for eqn in closed.jaxpr.eqns
    )


_MISSING = xprim.Undefined("the rule is missing")


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


# Kernels of the steps of loops, by program.
_steps = ProgramKernels("steps of loops", worth=EQUATIONS_BEFORE_KERNEL)


def _kernel_of(closed: ClosedJaxpr) -> Kernel:
    if any(dtypes.is_extended(a.dtype) for a in (*closed.in_avals, *closed.out_avals)):
        raise Refusal("it is about an extended dtype")
    return Kernel(numpy_function(closed), closed.out_avals)


def run_compiled(
    primitive: Primitive, operands: Sequence[xprim.ConcreteArray], inner: ClosedJaxpr,
    params: dict[str, Any],
) -> tuple[xprim.ConcreteArray, ...]:  # fmt: skip
    """Run one equation as a compiled program, which is kept with an inner program of it."""
    avals = tuple([x.aval for x in operands])
    key = ("program", primitive, avals, *params_key(params))
    closed = derive(inner, key, lambda: program_of_equation(primitive, avals, params))
    return EAGER.backend.run_program(closed, operands, primitive.name)


# ----------------------------------------------------------------------------------------- check
# check: raise unless a boolean holds.
#
#     check[site batch_ndim mapped] pred values...
#
# It has no results, and an effect that keeps it in the program. Under `vmap` the predicate gets
# dimensions in front (`batch_ndim` of them), the values those that are mapped; the first example
# that fails is shown. Compiled, only a failure calls Python.

CHECK = Effect("check", ordered=False, repeatable=True)
DEBUG_CHECK = Effect("debug check", ordered=False, exact=False)


def _check_shape(pred: ShapedArray, *avals: ShapedArray, **_: Any) -> Any:
    require(
        pred.dtype == dtypes.bool_, "check", "the predicate must be boolean.", got=pred,
        error=TypeError,
    )  # fmt: skip
    return ()


def first_failure(
    pred: np.ndarray[Any, Any], values: Sequence[Any], batch_ndim: int, mapped: tuple[bool, ...]
) -> tuple[Sequence[Any], tuple[int, ...] | None]:
    """Return the values of the first example that fails, and its index in the batch."""
    if not batch_ndim:
        return values, None
    failed = ~pred.reshape(*pred.shape[:batch_ndim], -1).all(-1)
    index = tuple([int(i) for i in np.argwhere(failed)[0]])
    return [np.asarray(v)[index] if m else v for v, m in zip(values, mapped, strict=True)], index


class _Raise:
    """Raises the failure of a check, called by a compiled program with its operands."""

    __slots__ = ("params",)

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def __call__(self, operands: Sequence[Any], _avals: Any = ()) -> tuple[()]:
        params = self.params
        pred, *values = [np.asarray(x) for x in operands]
        found = first_failure(pred, values, params["batch_ndim"], params["mapped"])
        raise params["site"].error(*found)


def _check_numpy(pred: Any, *values: Any, **params: Any) -> Any:
    if not params["site"].is_debug and not pred.to_host().all():
        _Raise(params)([pred.to_host(), *[v.to_host() for v in values]])
    return ()


def _check_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
) -> Any:
    if params["site"].is_debug:
        return []

    def write(pred: Any, *values: Any) -> Any:
        avals = [pred.aval, *[v.aval for v in values]]
        branches = [_program(lambda *_: (), avals), _program(_calling(params), avals)]
        holds = bind("reduce_and", pred, axes=tuple(range(pred.ndim))) if pred.ndim else pred
        index = convert(bind("not", holds), dtypes.int32)
        return xprim.get_primitive("cond").bind(index, pred, *values, branches=tuple(branches))

    return b.traced(write, operands, avals_in, ("check", *params.values()))


def _calling(params: dict[str, Any]) -> Any:
    def call(*operands: Any) -> Any:
        return xprim.get_primitive("callback").bind(
            *operands, host=_Raise(params), avals=(), effect=CHECK, vmap_method=None
        )

    return call


def _program(fun: Any, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    return ClosedJaxpr(*xprim.trace_to_jaxpr(fun, avals))


def _jvp(handle: JVPHandle, primals: Any, tangents: Any, **params: Any) -> Any:
    check_p.bind(*primals, **params)
    return (), ()


def _check_batch(axis: BatchAxis, operands: Any, dims: Any, *, site: CheckSite, batch_ndim: int,
           mapped: tuple[bool, ...]) -> Any:  # fmt: skip
    (pred, *values), (pred_dim, *value_dims) = operands, dims
    pred = axis.to_front(pred, pred_dim)
    fronts, now_mapped = [], []
    for x, d, was in zip(values, value_dims, mapped, strict=True):
        is_new = d is not xprim.not_mapped
        if was or is_new:
            x = axis.to_front(x, d)
        if is_new and not was:  # has the new dimension, and none of the older ones
            outer = pred.shape[: batch_ndim + 1]
            spread = (x.shape[0], *(1,) * batch_ndim, *x.shape[1:])
            x = broadcast_to(
                reshape(x, spread), (*outer, *x.shape[1:]), tuple(range(len(spread)))
            ) if batch_ndim else x  # fmt: skip
        fronts.append(x)
        now_mapped.append(was or is_new)
    check_p.bind(pred, *fronts, site=site, batch_ndim=batch_ndim + 1, mapped=tuple(now_mapped))
    return (), ()


def _effects(*, site: CheckSite, **_: Any) -> frozenset[Any]:
    return frozenset([DEBUG_CHECK if site.is_debug else CHECK])


def _print(*, site: CheckSite, **_: Any) -> dict[str, Any]:
    return {"text": site.text}


check_p: Primitive = Primitive(
    "check",
    call_like=True,
    shape=_check_shape,
    numpy=_check_numpy,
    stablehlo=_check_stablehlo,
    jvp=_jvp,
    transpose=xprim.undefined("a check has no results"),
    batch=_check_batch,
    effects=_effects,
    print=_print,
)


# -------------------------------------------------------------------------------- guarded checks
# Checks in programs that run for examples which do not take part: they are told who does.
#
# Under `vmap` all branches of a `cond` run for all examples, and the body of a `while_loop` for
# those that are done. `with_guard` gives such a program a boolean as its first operand, and its
# checks, those of programs within included, hold wherever it is False.


def only_checks(closed: ClosedJaxpr) -> bool:
    """Return whether the effects of a program are checks, if it has any."""
    return all(effect is CHECK for effect in xprim.exact_effects(closed.effects))


def with_guard(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program with one more operand, the first: whether its checks count."""
    return closed.derived(_with_guard, 0, True)


@dataclass(frozen=True, slots=True)
class _Guard:
    """What rules of kind `checked` get (`xprim.contracts.ChecksHandle`); it never changes."""

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The type of the guard."""
        return (xprim.shaped_array((), dtypes.bool_),)

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[Sequence[Any], list[Any]]:
        """Run a program whose checks count where the guard is True."""

        def under_guard(eqn: Equation, values: Sequence[Any]) -> Sequence[Any]:
            if eqn.primitive is check_p:
                return _check(state[0], values, eqn.params)
            rule = eqn.primitive.rules.get("checked")
            if rule is None or CHECK not in eqn.effects:
                return eqn.primitive.bind(*values, **eqn.params)
            results: Sequence[Any] = rule(self, state, values, **eqn.params)[1]
            return results

        return state, interpret(closed.jaxpr, closed.consts, operands, under_guard)

    def program(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the guard after so many operands, and gives it first."""
        return closed.derived(_with_guard, after, False)

    def remove_checks(self, closed: ClosedJaxpr, after: int = 0) -> ClosedJaxpr:
        """Return the program that takes the guard and checks nothing."""
        return closed.derived(_without_checks, after)

    def first(self, state: Sequence[Any], states: Sequence[Any]) -> Sequence[Any]:
        """Return the guard, which is the same for all members."""
        del states
        return state


_GUARD = _Guard()


def _check(guard: Any, values: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    pred, *shown = values
    spared = broadcast_to(bind("not", guard), pred.aval.shape, ())
    return check_p.bind(bind("or", pred, spared), *shown, **params)


def _with_guard(closed: ClosedJaxpr, after: int, alone: bool) -> ClosedJaxpr:
    """Return the program with the guard among its operands, and first of its results or not."""

    def program(*args: Any) -> list[Any]:
        guard, operands = args[after], [*args[:after], *args[after + 1 :]]
        _, outs = _GUARD.run(closed, (guard,), operands)
        return outs if alone else [guard, *outs]

    return _trace_checks(program, closed, after)


def _without_checks(closed: ClosedJaxpr, after: int) -> ClosedJaxpr:
    def program(*args: Any) -> list[Any]:
        nobody = (xprim.scalar_array(False, dtypes.bool_),)
        return _GUARD.run(closed, nobody, [*args[:after], *args[after + 1 :]])[1]

    return _trace_checks(program, closed, after)


def _trace_checks(program: Any, closed: ClosedJaxpr, after: int) -> ClosedJaxpr:
    avals = [*closed.in_avals[:after], *_GUARD.avals, *closed.in_avals[after:]]
    return trace_fun(program, avals, closed.jaxpr.name)


# -------------------------------------------------------------------------------- platform index
# platform_index: the place of the platform in a list, known when a program is lowered.
#
# The operands are there for their place alone. Evaluated, those on an accelerator or a second
# device take the operation there, as they take every other; else the platform is that of the
# default device, and `cpu` without a compiler.


class NoPlatformError(NotImplementedError, ValueError):
    """No function is given for the platform of a program; caught as JAX's error, too."""


def _place(platform: str, platforms: tuple[str, ...], has_default: bool) -> int:
    for name in names_of_platform(platform):
        if name in platforms:
            return platforms.index(name)
    if has_default:
        return len(platforms)
    raise NoPlatformError(message(
        "platform_dependent", f"there is no function for the platform {platform!r}.",
        got=f"functions for {', '.join(platforms)}", hint="default= serves every other platform",
    ))  # fmt: skip


def _platform_index_shape(*avals: Any, platforms: tuple[str, ...], has_default: bool) -> Any:
    return (xprim.shaped_array((), dtypes.int32),)


def _platform_index_numpy(*operands: Any, platforms: tuple[str, ...], has_default: bool) -> Any:
    return (np.asarray(_place(EAGER.backend.platform(), platforms, has_default), np.int32),)


def _platform_index_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               platforms: tuple[str, ...], has_default: bool) -> Any:  # fmt: skip
    return [b.scalar(_place(b.platform, platforms, has_default), dtypes.int32)]


def _platform_index_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    return platform_index_p.bind(*operands, **params), (xprim.not_mapped,)


def _platform_index_axes(
    *varying: frozenset[Any], platforms: Any, has_default: bool
) -> tuple[frozenset[Any]]:
    return (frozenset(),)  # the members of a mesh are devices of one platform


platform_index_p = Primitive(
    "platform_index",
    shape=_platform_index_shape,
    numpy=_platform_index_numpy,
    stablehlo=_platform_index_stablehlo,
    jvp=xprim.ZERO,
    transpose=xprim.undefined("it is linear in nothing: its operands say where, not what"),
    batch=_platform_index_batch,
    sharding=xprim.Sharding(varying=_platform_index_axes),
)
