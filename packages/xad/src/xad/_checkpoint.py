"""Rematerialization: keep less of the forward pass, compute it again in the backward pass.

`checkpoint(f)` stages `f` and binds the primitive `checkpoint`. Evaluated, it is a plain call. In
reverse mode its derivative goes onto the tape as one equation, whose residuals are the arguments of
`f` and whatever the policy lets it save; transposing that equation computes the rest again. So
nothing of the inside of `f` is kept between the passes but what the policy names. The program is
kept for the next call of an equal function with equal types.

Neighbours: `checkpoint_policies` has the policies and the names they speak of, `saved_values` the
programs that make and use what is saved, `residuals` shows what is kept, `xprim.calls` the rules of
all calls.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import xtree
from xad._checkpoint_policies import POLICY_MAKERS, Policy
from xad._linearize import LinearizeHandle
from xad.reference_arguments import references_in
from xad.saved_values import (
    computed_again,
    derivative_given,
    saved_residuals_of,
    saved_values,
    split_at,
    with_calls_inlined,
    with_results,
)
from xprim import (
    ClosedJaxpr,
    Primitive,
    closed_without_dead_code,
    effects_text,
    eval_closed,
    stage,
    static_positions,
    trace_to_closed,
    unrepeatable_effects,
)
from xprim.callables import check_function
from xprim.calls import call_rules, nonzero, where_true, with_zeros
from xprim.cells import Cell, CellUse
from xprim.contracts import Builder
from xprim.derived_cells import UsedCell, given_values, with_cells, written_values
from xprim.descriptions import described
from xprim.errors import UndefinedRuleError, message
from xprim.kept_programs import KeptPrograms, Staged, staged_with_cells
from xprim.leaves import as_arrays
from xprim.sizes import size_of
from xprim.tracebacks import boundary, shorten
from xprim.transformed import transforming

F = TypeVar("F", bound=Callable[..., Any])


@overload
def checkpoint(
    fun: F, *, prevent_cse: bool = ..., policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ..., static_argnames: str | Sequence[str] = ...,
    concrete: bool = ...,
) -> F: ...  # fmt: skip
@overload
def checkpoint(
    fun: None = ..., *, prevent_cse: bool = ..., policy: Policy | None = ...,
    static_argnums: int | Sequence[int] = ..., static_argnames: str | Sequence[str] = ...,
    concrete: bool = ...,
) -> Callable[[F], F]: ...  # fmt: skip
@boundary
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """Return `fun` with its intermediate values recomputed, not stored, when differentiated.

    Args:
      fun: a function of pytrees of arrays; without it, a decorator is returned.
      prevent_cse: whether the compiler is kept from merging the recomputation with the forward
        pass (which would undo the saving); False is safe inside `scan`.
      policy: which intermediate results may be kept: a function `(primitive, *avals, **params) ->
        bool`, such as those in `checkpoint_policies`; None keeps none.
      static_argnums: positions of arguments that are passed to `fun` as they are.
      static_argnames: names of such arguments, given by position or by name.
      concrete: must be False (JAX's removed option).

    Example:
      >>> from xad import checkpoint, grad
      >>> float(grad(checkpoint(lambda x: x * x * x))(2.0))
      12.0
    """
    if concrete:
        raise ValueError("checkpoint: concrete=True is not supported; name static_argnums instead.")
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums,
                                 static_argnames=static_argnames)  # fmt: skip
    check_function(fun, "checkpoint")
    _check_policy(policy)
    given = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    static = tuple(map(size_of, given))
    if static_argnames:
        options = {"prevent_cse": prevent_cse, "policy": policy}
        return _with_static_names(fun, static, static_argnames, options)

    @transforming(fun, "checkpoint")
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            fixed = static_positions(static, len(args), "checkpoint")
            return _called(fun, args, kwargs, fixed, prevent_cse, policy)
        except Exception as error:
            shorten(error)
            raise

    return checkpointed


def _called(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], fixed: Sequence[int],
    prevent_cse: Any, policy: Any,
) -> Any:  # fmt: skip
    """Bind the primitive with the program of a function for a call."""
    dynamic = [a for i, a in enumerate(args) if i not in fixed]
    leaves, in_tree = xtree.flatten((dynamic, kwargs))
    if any(isinstance(x, Cell) for x in leaves):
        return _with_references(fun, args, kwargs, fixed, prevent_cse, policy)
    operands = as_arrays(leaves, "checkpoint", in_tree)
    program = _program_for(fun, args, kwargs, fixed, in_tree, operands)
    outs = checkpoint_p.bind(
        *program.captured, *operands, *[use.before for use in program.cells], jaxpr=program.closed,
        prevent_cse=prevent_cse, policy=policy, differentiated=False,
    )  # fmt: skip
    count = len(program.out_avals)
    for use, value in zip(program.cells, outs[count:], strict=True):
        use.cell.write(value)
    return xtree.unflatten(program.out_tree, outs[:count])


def _with_references(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], fixed: Sequence[int],
    prevent_cse: Any, policy: Any,
) -> Any:  # fmt: skip
    """Call a checkpointed function of references: one of their values, which gives the next."""
    dynamic = {i: a for i, a in enumerate(args) if i not in fixed}
    leaves, tree = xtree.flatten((dynamic, kwargs))
    references = references_in(leaves, "checkpoint")
    if references is None:
        raise AssertionError("there is a reference among the arguments")

    @functools.wraps(fun)
    def of_values(*values: Any) -> Any:
        entered, named = xtree.unflatten(tree, references.entered(values))
        full = [entered.get(i, a) for i, a in enumerate(args)]
        return fun(*full, **named), references.left(values)

    values = references.values(leaves)
    result, after = checkpoint(of_values, prevent_cse=prevent_cse, policy=policy)(*values)
    references.write(after)
    return result


def _with_static_names(
    fun: Callable[..., Any], static: Sequence[int], names: str | Sequence[str], options: Any
) -> Callable[..., Any]:
    """Return the checkpointed function of the arguments that are not named."""
    names = (names,) if isinstance(names, str) else tuple(names)
    parameters = list(inspect.signature(fun).parameters)
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise ValueError(f"checkpoint: the function has no argument {unknown[0]!r}.")
    named = [parameters.index(name) for name in names]

    @transforming(fun, "checkpoint")
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            fixed = {name: kwargs.pop(name) for name in names if name in kwargs}
            positions = [*static, *[p for p in named if p < len(args)]]
            inner = functools.partial(fun, **fixed) if fixed else fun
            return checkpoint(inner, static_argnums=positions, **options)(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return checkpointed


# --- programs that are kept ----------------------------------------------------------------------

# Functions under `checkpoint`.
_programs = KeptPrograms(limit=1024)


def _program_for(
    fun: Callable[..., Any], args: Any, kwargs: Any, fixed: Sequence[int], in_tree: Any,
    operands: Sequence[Any],
) -> Staged:  # fmt: skip
    """Return the program of a function for a call, traced now unless it is kept."""

    def traced() -> Staged:
        uses: list[CellUse] = []
        closed, out_tree = stage(fun, args, kwargs, fixed, operation="checkpoint", uses=uses)
        return staged_with_cells(closed.jaxpr, closed.consts, uses, out_tree)

    statics = [(i, args[i]) for i in fixed]
    avals = [x.aval for x in operands]
    return _programs.program_of(fun, in_tree, avals, traced, statics)


def _check_policy(policy: Any) -> None:
    if not (policy is None or callable(policy)):
        raise TypeError(message(
            "checkpoint", f"the policy must be a function, got {described(policy)}.",
            hint="checkpoint_policies has the common ones",
        ))  # fmt: skip
    if policy in POLICY_MAKERS:
        raise TypeError(message(
            "checkpoint", f"{policy.__name__} is no policy but makes one.",
            hint=f"policy=checkpoint_policies.{policy.__name__}(...)",
        ))  # fmt: skip


remat = checkpoint


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, jaxpr: ClosedJaxpr,
               prevent_cse: bool, policy: Any, differentiated: bool) -> Any:  # fmt: skip
    if prevent_cse and differentiated:
        operands = b.op("stablehlo.optimization_barrier", operands, avals_in, avals_in)
    return b.inline(jaxpr, operands)


def _linearize(handle: LinearizeHandle, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
               policy: Policy | None, **params: Any) -> Any:  # fmt: skip
    """Run the program and keep what the policy lets it; the tape computes the rest again."""
    if unrepeatable_effects(jaxpr.effects):
        raise _would_repeat_effects(jaxpr)
    mask = nonzero(tangents)
    jaxpr = with_calls_inlined(jaxpr) if policy is not None else jaxpr
    count = len(jaxpr.out_avals)
    saved = saved_values(jaxpr, policy)
    again = computed_again(jaxpr, policy)
    (derived, mask_out), cells = with_cells(derivative_given, handle, again, saved, tuple(mask))
    linear, needed = closed_without_dead_code(derived, (False,) * count + (True,) * sum(mask_out))
    kept = tuple([v for v, n in zip(saved, needed, strict=False) if n])
    used = tuple(needed[len(saved) : len(saved) + len(primals)])
    known = len(kept) + sum(used)
    rest = [*primals, *where_true(tangents, mask), *given_values(cells)]  # before they are written
    forward, written = _with_writes(handle, with_results(jaxpr, kept), mask, cells)
    residuals = tuple(saved_residuals_of(linear, known, policy))
    wanted = [True] * len(linear.in_avals)
    if residuals:
        made, linear, is_taken = linear.derived(split_at, known, residuals)
        wanted = is_taken[len(residuals) :]
        forward = forward.derived(_with_residuals, count, used, made, tuple(wanted[: len(kept)]))
    results = written_values(written, checkpoint_p.bind(
        *primals, *given_values(written), jaxpr=forward, policy=policy, **params
    ))  # fmt: skip
    rest = where_true(rest, needed[len(saved) :])
    operands = [*results[count:], *where_true(rest, wanted[len(kept) :])]
    out_dots = checkpoint_p.bind(*operands, jaxpr=linear, policy=policy, **params)
    return results[:count], with_zeros(handle, results[:count], out_dots, mask_out)


def _with_writes(
    handle: LinearizeHandle, forward: ClosedJaxpr, mask: Sequence[bool], cells: Sequence[UsedCell]
) -> tuple[ClosedJaxpr, Sequence[UsedCell]]:
    """Return the forward program, as the rules inside compute it where these write cells.

    Args:
      handle: differentiates a program.
      forward: the program, computed without rules.
      mask: for each argument, whether it has a tangent.
      cells: those that its derivative uses.

    Returns:
      The program, and the cells whose values are its last arguments; those that are written have
      their next values among its last results.
    """
    if not cells:
        return forward, ()
    split, used = with_cells(handle.linearize_jaxpr, forward, mask)
    count = sum(cell.is_written for cell in used)
    if not count:
        return forward, ()
    return split.primal.derived(_results_and_writes, split.num_results, count), used


def _results_and_writes(primal: ClosedJaxpr, results: int, writes: int) -> ClosedJaxpr:
    """Return a program without the residuals between its results and what it writes."""
    outvars = primal.jaxpr.outvars
    kept = primal.jaxpr.replace(outvars=[*outvars[:results], *outvars[-writes:]])
    return closed_without_dead_code(ClosedJaxpr(kept, primal.consts), keep_arguments=True)[0]


def _with_residuals(
    forward: ClosedJaxpr, count: int, used: Sequence[bool], made: ClosedJaxpr,
    wanted: Sequence[bool],
) -> ClosedJaxpr:  # fmt: skip
    """Return the forward program with residuals, and those of the values it keeps that are wanted.

    Args:
      forward: gives the results, the values of it that the derivative is given, and what it writes.
      count: how many results there are.
      used: for each of its first arguments, whether the derivative takes it.
      made: computes the residuals from those values and arguments.
      wanted: for each of the values, whether it is still wanted beside the residuals.
    """
    end = count + len(wanted)

    def run(*args: Any) -> list[Any]:
        results = eval_closed(forward, *args)
        values = results[count:end]
        residuals = eval_closed(made, *values, *where_true(args[: len(used)], used))
        return [*results[:count], *residuals, *where_true(values, wanted), *results[end:]]

    return trace_to_closed(run, forward.in_avals, name=forward.jaxpr.name)


def _would_repeat_effects(jaxpr: ClosedJaxpr) -> UndefinedRuleError:
    return UndefinedRuleError(message(
        "checkpoint", f"{jaxpr.jaxpr.name or 'the function'} has side effects, which computing it "
        "again in the backward pass would repeat.",
        got=f"effects: {effects_text(unrepeatable_effects(jaxpr.effects))}",
        hint="leave what has the effects out of the checkpointed function",
    ))  # fmt: skip


def _derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Mark what runs in the backward pass."""
    return {"differentiated": True} if kind == "transpose" else {}


checkpoint_p = Primitive(
    "checkpoint",
    call_like=True,
    **call_rules("checkpoint", derived=_derived, stablehlo=_stablehlo, linearize=_linearize),
)
