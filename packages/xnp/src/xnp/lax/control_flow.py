"""Control flow: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`, `associative_scan`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, overload

import xtree
from xnp.lax.control_flow_staging import (
    along_refs,
    as_traced,
    check_carry,
    check_each_ref_once,
    close_over_refs,
    flatten_carry,
    pass_through,
    ref_values,
    results_varying_alike,
    retype_varying,
    same_type,
    settle_carry,
    stage_checked,
    value_without_jit,
    varying_alike_with,
    write_refs,
)
from xnp.primitives import table
from xnp.primitives.checkpointed_loop import Schedule
from xnp.primitives.cond import BATCHINGS, cond_p, operands_of_takers
from xnp.primitives.control_flow import platform_index_p, trace_fun, with_ignored_arguments
from xnp.primitives.scan import scan_p
from xnp.primitives.sort import take_along
from xnp.primitives.table import (
    bind,
    broadcast_to,
    counting,
    fill,
    item,
    join,
    join_chunks,
    move_dim,
    reshape,
    select,
    select_rows,
    slice_dim,
    split_chunks,
    stack_first,
)
from xnp.primitives.while_loop import while_p
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    ShapedArray,
    Tracer,
    Var,
    as_array,
    config,
    dtypes,
    eval_closed,
    get_primitive,
    scalar_array,
)
from xprim.avals import size_of, type_of_by_class
from xprim.errors import TypePromotionError, described, message, place_of
from xprim.kept_programs import Staged
from xprim.key_uses import bind_noting_keys
from xprim.promotion import result_type
from xprim.refs import BaseRef, RefUse
from xprim.requirements import static_int
from xprim.sharded_types import without_dimension
from xprim.tracebacks import boundaries, boundary
from xprim.transformed import find, flat_arrays, paths_of
from xprim.typing import ArrayLike, PyTree
from xtree.namespaces import late_import

__all__ = [
    "cond", "platform_dependent", "switch", "associative_scan", "map", "scan", "fori_loop",
    "while_loop",
]  # fmt: skip

__dir__ = __all__.copy

_high_types = late_import("xprim.high_types", "few programs have types of their own")


# ------------------------------------------------------------------------- control flow branches
# Choosing among functions by a value: `cond`, `switch`, `platform_dependent`.

R = TypeVar("R")
Batching = Literal["select", "loop", "partition", "error"]


class _NoOperand:
    def __repr__(self) -> str:
        return "<no operand>"


_NO_OPERAND = _NoOperand()


@overload
def cond(
    pred: ArrayLike, true_fun: Callable[..., ArrayLike], false_fun: Callable[..., ArrayLike],
    *operands: Any, operand: Any = ..., batching: Batching | None = ...,
) -> Array: ...  # fmt: skip
@overload
def cond(
    pred: ArrayLike, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any,
    operand: Any = ..., batching: Batching | None = ...,
) -> R: ...  # fmt: skip
@overload
def cond(  # the older form
    pred: ArrayLike, true_fun: Any, false_fun: Callable[..., Any], *operands: Any,
    operand: Any = ..., batching: Batching | None = ...,
) -> Any: ...  # fmt: skip
def cond(
    pred: ArrayLike, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any,
    operand: PyTree = _NO_OPERAND, batching: Batching | None = None,
) -> PyTree:  # fmt: skip
    """Apply one of two functions, as a boolean says that may be a traced value.

    Both functions are traced, and one is run: `true_fun(*operands) if pred else
    false_fun(*operands)`. Under `vmap` over `pred` both run, and the results are selected, unless
    `batching` says otherwise.

    Args:
      pred: a boolean scalar, or a number that counts as true unless it is 0.
      true_fun: a function of the operands that returns a pytree of arrays.
      false_fun: likewise; the results are of the same structure, shapes and dtypes.
      *operands: pytrees of arrays.
      operand: the operand, as one keyword argument.
      batching: what happens under `vmap` over the predicate: `"select"` runs all functions for all
        examples and selects the results; `"loop"` runs that of each example, one example after the
        other; `"partition"` sorts the examples by function and runs blocks of them, most of which
        need one function alone; `"error"` raises. None is `"select"`, and warns where
        `"partition"` is expected to be more than twice as fast.

    The older form `cond(pred, x, true_fun, y, false_fun)` gives each function its own operand.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: `pred` is not a scalar, or the results of the functions differ in structure or
        type.

    Differentiable in: the operands, and traced values that the functions use.

    Example:
      >>> from xnp import lax
      >>> print(lax.cond(True, lambda x: x, lambda x: -x, 3))
      3
    """
    operands = _with_operand("cond", operands, operand)
    if _gives_each_its_operand(true_fun, false_fun, operands):
        return _of_own_operands(batching, pred, true_fun, false_fun, *operands)
    predicate = _predicate(pred)
    known = value_without_jit(predicate)
    if known is not None:
        check_each_ref_once(operands, "cond")
        return as_traced((true_fun if known else false_fun)(*as_traced(operands)))
    index = get_primitive("convert_element_type").bind(
        predicate, new_dtype=dtypes.int32, weak_type=False
    )[0]
    return _choose(index, (false_fun, true_fun), ("false_fun", "true_fun"), operands, "cond",
                   batching)  # fmt: skip


def _gives_each_its_operand(second: Any, third: Any, rest: Any) -> bool:
    """Whether the arguments after the predicate are those of the older form of `cond`."""
    return len(rest) == 2 and callable(third) and callable(rest[1]) and not callable(second)


def _of_own_operands(
    batching: Batching | None, pred: Any, x: Any, true_fun: Callable[[Any], Any], y: Any,
    false_fun: Callable[[Any], Any],
) -> Any:  # fmt: skip
    """Apply `true_fun` to `x` or `false_fun` to `y`: the older form of `cond`."""
    return cond(pred, lambda x, _: true_fun(x), lambda _, y: false_fun(y), x, y, batching=batching)


def _predicate(pred: Any) -> Any:
    if callable(pred) and not isinstance(pred, Array):
        raise TypeError(message(
            "cond", "the predicate must be a scalar, got a function.",
            expected="cond(pred, true_fun, false_fun, *operands)",
        ))  # fmt: skip
    array = as_array(pred, what="cond: the predicate")
    if array.ndim:
        raise TypeError(message(
            "cond", "the predicate must be a scalar.", got=array.aval.str_long(),
            hint="vmap maps cond over an array of predicates, where selects elementwise",
        ))  # fmt: skip
    if dtypes.is_bool(array.dtype):
        return array
    if not (dtypes.is_integer(array.dtype) or dtypes.is_floating(array.dtype)):
        raise TypeError(
            f"cond: the predicate must be a boolean or a real number, got {array.dtype.name}."
        )
    return get_primitive("ne").bind(array, scalar_array(0, array.dtype))[0]


@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., ArrayLike]], *operands: Any,
    operand: Any = ..., batching: Batching | None = ...,
) -> Array: ...  # fmt: skip
@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = ...,
    batching: Batching | None = ...,
) -> R: ...  # fmt: skip
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any,
    operand: PyTree = _NO_OPERAND, batching: Batching | None = None,
) -> PyTree:  # fmt: skip
    """Apply one of several functions, as an integer says that may be a traced value.

    Args:
      index: an integer scalar; it is clamped to the range of `branches`.
      branches: functions of the operands that return pytrees of the same structure, shapes and
        dtypes.
      *operands: pytrees of arrays.
      operand: the operand, as one keyword argument.
      batching: what happens under `vmap` over the index: `"select"` runs all functions for all
        examples and selects the results; `"loop"` runs that of each example, one example after the
        other; `"partition"` sorts the examples by function and runs blocks of them, most of which
        need one function alone; `"error"` raises. None is `"select"`, and warns where
        `"partition"` is expected to be more than twice as fast.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: `index` is not an integer scalar, or the results of the functions differ.
      ValueError: there are no branches.

    Differentiable in: the operands, and traced values that the functions use.

    Example:
      >>> from xnp import lax
      >>> print(lax.switch(7, [lambda x: x, lambda x: x + 1, lambda x: x * x], 3))
      9
    """
    operands = _with_operand("switch", operands, operand)
    if callable(branches):
        raise TypeError(message(
            "switch", "the branches must be a sequence of functions.", got=described(branches),
            expected="switch(index, [f, g, ...], *operands)",
        ))  # fmt: skip
    functions = tuple(branches)
    if not functions:
        raise ValueError("switch: there must be at least one branch.")
    array = as_array(index, what="switch: the index")
    if array.ndim or not dtypes.is_integer(array.dtype):
        raise TypeError(message(
            "switch", "the index must be an integer scalar.", got=array.aval.strong().str_long(),
        ))  # fmt: skip
    if len(functions) == 1:
        return functions[0](*operands)
    number = _clamp(array, len(functions))
    known = value_without_jit(number)
    if known is not None:
        check_each_ref_once(operands, "switch")
        return as_traced(functions[int(known)](*as_traced(operands)))
    names = tuple([f"branches[{i}]" for i in range(len(functions))])
    return _choose(number, functions, names, operands, "switch", batching)


def _clamp(index: Any, count: int) -> Any:
    """Clamp an index of any integer dtype to `0 <= index < count` and make it int32."""
    if dtypes.iinfo(index.dtype).max >= count - 1:
        low, high = scalar_array(0, index.dtype), scalar_array(count - 1, index.dtype)
        index = get_primitive("clamp").bind(low, index, high)[0]
    else:
        index = get_primitive("max").bind(index, scalar_array(0, index.dtype))[0]
    return get_primitive("convert_element_type").bind(
        index, new_dtype=dtypes.int32, weak_type=False
    )[0]


def _with_operand(operation: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"{operation}: give the operands by position or as operand=, not both.")
    return (operand,)


def _choose(
    index: Any, functions: Sequence[Callable[..., Any]], names: Sequence[str],
    operands: tuple[Any, ...], operation: str, batching: Batching | None = None,
) -> Any:  # fmt: skip
    options = _batching_options(operation, batching)
    functions, operands = close_over_refs(functions, operands, operation)
    values, in_tree = flat_arrays(operands, operation, "the operands")
    avals = [x.aval for x in values]
    bodies = [
        stage_checked(fun, in_tree, avals, operation=operation, what=name, writes_refs=True)
        for fun, name in zip(functions, names, strict=True)
    ]
    if len({body.out_tree for body in bodies}) == 1:
        bodies = results_varying_alike(bodies)
    check_branches(bodies, names, operation, functions)
    refs = {use.ref: use for body in bodies for use in body.refs}
    if refs:
        bodies = [_add_refs(body, refs) for body in bodies]
    captured, branches = _with_common_captures(bodies)
    given = [*captured, *values, *ref_values(list(refs.values()))]
    branches = list(_with_weak_types_of_first(branches))
    if index.aval.vma:
        given = varying_alike_with(index.aval, given)
        avals = [x.aval for x in given]
        branches = [retype_varying(br, avals, index.aval) for br in branches]
    options["branches"] = tuple(branches)
    outs = bind_noting_keys(cond_p, [index, *given], options)
    count = len(outs) - len(refs)
    write_refs(list(refs.values()), outs[count:])
    return xtree.unflatten(bodies[0].out_tree, outs[:count])


def _batching_options(operation: str, batching: Batching | None) -> dict[str, Any]:
    """Return the params of the equation that say what happens for a batch of predicates."""
    if batching is None:
        return {}
    if batching not in BATCHINGS:
        raise ValueError(message(
            operation, "batching is none of the ways that there are.", got=repr(batching),
            expected=", ".join([repr(way) for way in BATCHINGS]),
        ))  # fmt: skip
    return {"batching": batching}


def _add_refs(body: Staged, refs: dict[BaseRef, RefUse]) -> Staged:
    """Give a branch the references that any branch writes, as last arguments and results."""
    jaxpr, own = body.closed.jaxpr, len(body.refs)
    ins, outs = len(jaxpr.invars) - own, len(jaxpr.outvars) - own
    pairs = zip(jaxpr.invars[ins:], jaxpr.outvars[outs:], strict=True)
    ends: dict[BaseRef, tuple[Any, Any]] = {
        use.ref: pair for use, pair in zip(body.refs, pairs, strict=True)
    }
    for ref in refs:
        unchanged = Var(ref.aval)
        ends.setdefault(ref, (unchanged, unchanged))
    extended = jaxpr.replace(
        invars=[*jaxpr.invars[:ins], *[ends[ref][0] for ref in refs]],
        outvars=[*jaxpr.outvars[:outs], *[ends[ref][1] for ref in refs]],
    )
    closed = ClosedJaxpr(extended, body.closed.consts)
    return Staged(closed, body.captured, body.out_tree, tuple(refs.values()))


def check_branches(
    bodies: Sequence[Staged], names: Sequence[str], operation: str,
    functions: Sequence[Callable[..., Any]],
) -> None:  # fmt: skip
    """Check that all branches give results of the same structure and types."""
    first = bodies[0]
    for body, name, fun in zip(bodies[1:], names[1:], functions[1:], strict=True):
        where = f"{place_of(functions[0])}, {place_of(fun)}"
        if body.out_tree != first.out_tree:
            raise TypeError(message(
                operation, "the branches must return results of the same structure.",
                got=f"{names[0]}: {first.out_tree}, {name}: {body.out_tree}", where=where,
            ))  # fmt: skip
        pairs = list(zip(first.out_avals, body.out_avals, strict=True))
        wrong = [i for i, (a, b) in enumerate(pairs) if not same_type(a, b)]
        if wrong:
            paths = paths_of(first.out_tree)
            shown = "; ".join([
                f"result{paths[i]}: {pairs[i][0].strong().str_long()} in {names[0]}, "
                f"{pairs[i][1].strong().str_long()} in {name}"
                for i in wrong[:3]
            ])  # fmt: skip
            raise TypeError(message(
                operation, "the branches must return results of the same types.", got=shown,
                where=where,
            ))  # fmt: skip


def _with_common_captures(bodies: Sequence[Staged]) -> tuple[list[Any], list[ClosedJaxpr]]:
    """Give all branches all captured values as leading arguments."""
    captured = {id(c): c for body in bodies for c in body.captured}
    if not captured:
        return [], [body.closed for body in bodies]
    branches = []
    for body in bodies:
        own = {id(c): v for c, v in zip(body.captured, body.closed.jaxpr.invars, strict=False)}
        missing = [c.aval for i, c in captured.items() if i not in own]
        extended = with_ignored_arguments(body.closed, missing, at=0)
        invars = extended.jaxpr.invars
        spare = iter(invars[: len(missing)])
        lead = [own[i] if i in own else next(spare) for i in captured]
        rest = invars[len(captured) :]
        branches.append(ClosedJaxpr(extended.jaxpr.replace(invars=[*lead, *rest]), extended.consts))
    return list(captured.values()), branches


def _with_weak_types_of_first(branches: Sequence[ClosedJaxpr]) -> tuple[ClosedJaxpr, ...]:
    """Make the results of all branches weakly typed where those of the first one are.

    As in JAX the first branch, `false_fun` of a `cond`, says the types of the results.
    """
    weak = [a.weak_type for a in branches[0].out_avals]
    return tuple([_with_weak_types(br, weak) for br in branches])


def _with_weak_types(branch: ClosedJaxpr, weak: Sequence[bool]) -> ClosedJaxpr:
    if [a.weak_type for a in branch.out_avals] == list(weak):
        return branch

    def convert_results(*args: Any) -> list[Any]:
        convert = get_primitive("convert_element_type")
        return [
            x if x.aval.weak_type == w
            else convert.bind(x, new_dtype=x.dtype, weak_type=w)[0]
            for x, w in zip(eval_closed(branch, *args), weak, strict=True)
        ]  # fmt: skip

    return trace_fun(convert_results, branch.in_avals, branch.jaxpr.name)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> PyTree:
    """Apply the function that is given for the platform the program is compiled for.

    Evaluated without `jit`, that is the platform of the device on which the arrays of `args` are,
    or of the default device.

    Args:
      *args: pytrees of arrays.
      default: the function for every platform that is not named; without one, running elsewhere
        is an error.
      **per_platform: functions by platform: `cpu`, `cuda`, `rocm`, `tpu`. All must return results
        of the same structure, shapes and dtypes.

    Returns:
      What the function of the platform returns.

    Example:
      >>> from xnp import lax
      >>> print(lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x))
      4
    """
    if not per_platform and default is None:
        raise ValueError("platform_dependent: there must be a function for some platform.")
    names = tuple(per_platform)
    functions = [*per_platform.values(), *([] if default is None else [default])]
    for name, fun in zip((*names, "default"), functions, strict=False):
        if not callable(fun):
            raise TypeError(f"platform_dependent: {name} must be a function, got {described(fun)}.")
    arrays = [x for x in xtree.leaves(args) if isinstance(x, Array)]  # numbers have no place
    (index,) = platform_index_p.bind(*arrays, platforms=names, has_default=default is not None)
    if not names:
        return functions[0](*args)
    known = value_without_jit(index)
    if known is not None:
        check_each_ref_once(args, "platform_dependent")
        return as_traced(functions[int(known)](*as_traced(args)))
    called = [*names, *([] if default is None else ["default"])]
    if len(functions) == 1:  # the index of a single branch would not be requested
        functions, called = functions * 2, called * 2
    return _choose(index, functions, called, args, "platform_dependent")


# ----------------------------------------------------------------------------- control flow scan
# Going along arrays: `scan`, `map`, `associative_scan`.

Unroll = int | bool | Literal["auto"]
Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, Y]], init: ArrayLike, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: Unroll = ...,
    _split_transpose: bool = ..., *, checkpoint_every: int | None = ...,
    until: Callable[[Array], ArrayLike] | None = ..., lengths: ArrayLike | None = ...,
) -> tuple[Array, Y]: ...  # fmt: skip
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]], init: Carry, xs: X | None = ...,
    length: int | None = ..., reverse: bool = ..., unroll: Unroll = ...,
    _split_transpose: bool = ..., *, checkpoint_every: int | None = ...,
    until: Callable[[Carry], ArrayLike] | None = ..., lengths: ArrayLike | None = ...,
) -> tuple[Carry, Y]: ...  # fmt: skip
@boundary
def scan(
    f: Callable[[Any, Any], Any], init: PyTree, xs: PyTree = None, length: int | None = None,
    reverse: bool = False, unroll: Unroll = 1, _split_transpose: bool = False, *,
    checkpoint_every: int | None = None, until: Callable[[Any], Any] | None = None,
    lengths: ArrayLike | None = None,
) -> PyTree:  # fmt: skip
    """Go along the leading axes of arrays, passing a carry from step to step.

    The meaning of::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    `f` is traced once, however long the arrays are, and differentiates in both modes.

    Args:
      f: from the carry and a slice of `xs` to a pair: the next carry (of the same structure, shapes
        and dtypes) and any pytree of arrays.
      init: the first carry.
      xs: a pytree of arrays with one leading dimension, or None. A reference among them is written
        element by element, as the reference to an element that `f` gets is.
      length: how many steps; needed where `xs` has no arrays.
      reverse: whether to go from the last element to the first; ys keep the places of their xs.
      unroll: how many steps one turn of the compiled loop holds; True or 0 for all, `"auto"` for
        as many as make it fast: on a CPU 4 where a step computes scalars, 2 where it computes small
        arrays, otherwise 1. The scans of derivatives choose for themselves then.
      _split_transpose: a hint of JAX's about the way back, from which nothing follows here.
      checkpoint_every: reverse mode stores the carry before each so many steps, and the residuals
        of that many steps at a time, which it computes again; None stores the residuals of all
        steps. For n steps the memory is least near `sqrt(n)`.
      until: from the carry to a boolean scalar. Where it holds after a step, the later steps are
        left out: the carry stays, and their ys are zeros. Under `vmap` each example stops by
        itself, and the steps are run until the last.
      lengths: how many leading elements of `xs` count, the others being padding: an integer scalar,
        or an array of integers, one for each sequence of a batch. Then every array of the carry, of
        the elements of `xs` and of the ys has the dimensions of `lengths` in front, so that `xs`
        has `(steps, *lengths.shape, ...)`. A sequence that is over (with `reverse`, that has not
        begun) keeps its carry, and its ys are zeros. Padding reaches neither values nor
        derivatives, whatever it holds, as long as sequences do not mix in `f`. Steps at or after
        the largest length do not call `f`. A traced length that is negative acts as 0, one beyond
        the number of steps as that number.

    Returns:
      The last carry, and the pytree of stacked ys.

    Raises:
      TypeError: `f` does not return a pair, or not a carry of the types that it gets, or `lengths`
        has no integers.
      ValueError: the leading dimensions of `xs` or `length` differ, an array lacks the dimensions
        of `lengths`, or a length that is known is negative or larger than the number of steps.

    Differentiable in: `init`, `xs` and traced values that `f` uses.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 5))
      >>> print(total, np.asarray(sums))
      10 [ 1  3  6 10]
      >>> total, sums = lax.scan(
      ...     lambda c, x: (c + x, c + x), 0, np.arange(1, 5), until=lambda c: c > 2
      ... )
      >>> print(total, np.asarray(sums))
      3 [1 3 0 0]
      >>> padded = np.array([[1, 2, 3], [4, 5, np.nan]]).T  # (steps, sequences)
      >>> total, _ = lax.scan(
      ...     lambda c, x: (c + x, None), np.zeros(2), padded, lengths=np.array([3, 2])
      ... )
      >>> print(total)
      [6. 9.]
    """
    if not callable(f):
        raise TypeError(message("scan", "the body must be a function.", got=described(f)))
    if any(isinstance(x, BaseRef) for x in xtree.leaves(xs)):
        one = None if until is None else ()
        skips = one if lengths is None else as_array(lengths, what="scan: lengths").shape
        return along_refs(f, xs, lambda f, xs: scan(
            f, init, xs, length, reverse, unroll, checkpoint_every=checkpoint_every, until=until,
            lengths=lengths,
        ), skips)  # fmt: skip
    stacked_values = None
    if type_of_by_class:
        f, xs, stacked_values = _high_types.along_leading_axes(f, xs, length)
    x_leaves, x_tree = flat_arrays(xs, "scan", "xs")
    steps = _length(x_leaves, x_tree, length)
    unroll_count(unroll, steps, "scan")  # raises for what is not a number of steps
    block = _block_size(checkpoint_every)
    stop = None if lengths is None else _check_lengths(lengths, steps)
    if stop is not None and stop.ndim:
        f, stop = _in_rows(f, stop)
        x_leaves = [counting(steps, dtypes.int32), *x_leaves]
        x_tree = xtree.treedef_tuple((_LEAF, x_tree))
    known = _steps_in_python(steps, stop)
    how = _How(steps, bool(reverse), unroll, stop)
    if known:
        last, ys = _in_python(f, init, x_leaves, x_tree, steps, reverse, until, min(known, steps))
    elif until is None:
        last, ys = _along(f, init, x_leaves, x_tree, how, block)
    else:
        last, ys = _to_an_end(f, init, x_leaves, x_tree, how, block, until)
    return last, ys if stacked_values is None else stacked_values(ys)


def _steps_in_python(steps: int, stop: Array | None) -> int:
    """Return how many steps are known and called by Python, where `disable_jit` says so."""
    if not config.values.disable_jit:
        return 0
    return steps if stop is None else value_without_jit(stop) or 0


def _block_size(checkpoint_every: Any) -> int | None:
    """Return how many steps are computed again together, where any are."""
    if checkpoint_every is None:
        return None
    block = static_int(checkpoint_every, "scan", "checkpoint_every")
    if block < 1:
        raise ValueError(f"scan: checkpoint_every must be positive, got {block}.")
    return block


@dataclass(frozen=True, slots=True)
class _How:
    """How a scan goes along its arrays.

    Attributes:
      steps: how many elements there are.
      reverse: whether it goes from the last to the first.
      unroll: how many steps one turn of the compiled loop holds, as the user says it.
      stop: how many leading elements have a step, or None for all.
    """

    steps: int
    reverse: bool
    unroll: Unroll
    stop: Array | None


def _along(f: Any, init: Any, xs: list[Array], tree: Any, how: _How, block: int | None) -> Any:
    """Run a scan, in blocks of steps whose residuals are computed again where that is wanted."""
    if block is not None and how.steps > 1:
        return _in_blocks(f, init, xs, tree, how, block)
    carry, carry_tree, body, y_tree = _stage_body(f, init, xs, tree)
    count, unrolled = len(carry), unroll_count(how.unroll, how.steps, "scan")
    options = {"length": how.steps, "reverse": how.reverse, "unroll": unrolled}
    outs = run_scan(body, carry, xs, options, how.stop)
    return xtree.unflatten(carry_tree, outs[:count]), xtree.unflatten(y_tree, outs[count:])


def _in_blocks(f: Any, init: Any, xs: list[Array], tree: Any, how: _How, block: int) -> Any:
    """Run a scan as one of scans of `block` steps, whose residuals are computed again."""
    checkpoint = find("checkpoint")
    whole = how.steps // block * block
    parts = []

    def recompute(length: int) -> Any:
        def step(carry: Any, x: Any) -> Any:
            elements, stop = x
            return _along(f, carry, elements, tree, replace(how, steps=length, stop=stop), None)

        return step if checkpoint is None else checkpoint(step, prevent_cse=False)

    def stop_within(stop: Array, starts: Array, length: int) -> Array:
        """Return how many of `length` steps from each start on are before the stop."""
        zero, last = [scalar_array(n, dtypes.int32) for n in (0, length)]
        from_start = bind("sub", broadcast_to(stop, starts.shape), starts)
        return bind("clamp", zero, from_start, last)

    def go_along_blocks(carry: Any) -> Any:
        count = whole // block
        blocks = [reshape(slice_dim(x, 0, 0, whole), (count, block, *x.shape[1:])) for x in xs]
        stops = stop = None
        if how.stop is not None:
            numbers = counting(count, dtypes.int32)
            starts = bind("mul", numbers, fill((count,), block, dtypes.int32))
            stops = stop_within(how.stop, starts, block)
            begun = bind("min", stops, fill((count,), 1, dtypes.int32))
            stop = bind("reduce_sum", begun, axes=(0,))
        pieces, pieces_tree = xtree.flatten((blocks, stops))
        outer = _How(count, how.reverse, 1, stop)
        carry, ys = _along(recompute(block), carry, pieces, pieces_tree, outer, None)
        parts.append(xtree.map(lambda y: reshape(y, (whole, *y.shape[2:])), ys))
        return carry

    def go_along_rest(carry: Any) -> Any:
        length = how.steps - whole
        rest = [slice_dim(x, 0, whole, how.steps) for x in xs]
        stop = how.stop
        if stop is not None:
            stop = stop_within(stop, scalar_array(whole, dtypes.int32), length)
        carry, ys = recompute(length)(carry, (rest, stop))
        parts.append(ys)
        return carry

    todo = [go_along_blocks] * (whole > 0) + [go_along_rest] * (whole < how.steps)
    carry = init
    for go in reversed(todo) if how.reverse else todo:
        carry = go(carry)
    if how.reverse:
        parts.reverse()
    return carry, xtree.map(lambda *ys: join(list(ys), 0), *parts)


def _to_an_end(
    f: Any, init: Any, xs: list[Array], tree: Any, how: _How, block: int | None, until: Any
) -> Any:
    """Run a scan whose carry also says whether `until` held."""
    carry, carry_tree, body, y_tree = _stage_body(f, init, xs, tree)
    step = _ending_step(f, until, body.out_avals[len(carry) :], y_tree)
    first = (as_array(False), xtree.unflatten(carry_tree, carry))
    (_, last), ys = _along(step, first, xs, tree, how, block)
    return last, ys


def _ending_step(f: Any, until: Any, y_avals: Sequence[ShapedArray], y_tree: Any) -> Any:
    """Return the step of a carry `(done, carry)` that does nothing once it is done."""

    def stay(done: Any, carry: Any, x: Any) -> Any:
        zeros = [fill(a.shape, 0, a.dtype) for a in y_avals]
        return (done, carry), xtree.unflatten(y_tree, zeros)

    def move(done: Any, carry: Any, x: Any) -> Any:
        carry, y = f(carry, x)
        return (_is_over(until, carry), carry), y

    @functools.wraps(f)
    def step(state: Any, x: Any) -> Any:
        done, carry = state
        return cond(done, stay, move, done, carry, x, batching="select")

    return step


def _check_lengths(lengths: Any, steps: Any) -> Array:
    """Return the numbers of elements that count as int32."""
    counts = as_array(lengths, what="scan: lengths")
    if not dtypes.is_integer(counts.dtype):
        raise TypeError(message(
            "scan", "lengths must be integers.", got=counts.aval.strong().str_long(),
        ))  # fmt: skip
    if type(counts) is ConcreteArray:
        host = counts.to_host()
        wrong = (host < 0) | (host > steps) if isinstance(steps, int) else host < 0
        if wrong.any():
            raise ValueError(message(
                "scan", "every length must be at least 0 and at most the number of steps.",
                got=f"a length of {host[wrong].flat[0]}", expected=f"0 to {steps}",
            ))  # fmt: skip
    elif dtypes.iinfo(counts.dtype).max > dtypes.iinfo(dtypes.int32).max:
        most = steps if isinstance(steps, int) else int(dtypes.iinfo(dtypes.int32).max)
        bounds = [scalar_array(n, counts.dtype) for n in (0, most)]
        counts = bind("clamp", bounds[0], counts, bounds[1])
    return table.convert(counts, dtypes.int32)


def _in_rows(f: Any, counts: Array) -> tuple[Any, Array]:
    """Return a step that gets `(i, x)`, and changes only sequences longer than i; and the longest.

    Derivatives of `f` see, in place of those that are over, one that is not: 0 times a derivative
    at what a padded element holds may be NaN.
    """
    shape = counts.shape

    def rows(tree: Any, what: str) -> tuple[list[Any], Any]:
        leaves, structure = flat_arrays(tree, "scan", what)
        for x, path in zip(leaves, paths_of(structure), strict=True):
            if x.shape[: len(shape)] != shape:
                raise ValueError(message(
                    "scan", "every array needs the dimensions of lengths in front.",
                    got=f"{what}{path}: {x.aval.strong().str_long()}",
                    expected=f"[{', '.join([*[str(n) for n in shape], '...'])}]",
                    where=place_of(f),
                    hint="vmap over scan takes sequences along any axis",
                ))  # fmt: skip
        return leaves, structure

    @functools.wraps(f)
    def step(carry: Any, numbered: Any) -> Any:
        before, _ = rows(carry, "the carry")
        given = [*before, *rows(numbered[1], "an element of xs")[0]]
        runs = bind("lt", broadcast_to(numbered[0], shape), counts)
        index, leading = table.convert(runs, dtypes.int32), [len(shape)] * len(given)
        seen = operands_of_takers(1, index, given, leading)
        result = f(*xtree.unflatten(xtree.structure((carry, numbered[1])), seen))
        if not isinstance(result, tuple | list) or len(result) != 2:
            return result  # which raises
        after, tree = rows(result[0], "the next carry")
        if [x.aval.strong() for x in after] != [x.aval.strong() for x in before]:
            return result  # raises, or the step is traced again from a carry of these types
        ys, y_tree = rows(result[1], "the y")
        stayed = [select_rows(runs, a, b) for a, b in zip(after, before, strict=True)]
        zeroed = [select_rows(runs, y, fill(y.shape, 0, y.dtype)) for y in ys]
        return xtree.unflatten(tree, stayed), xtree.unflatten(y_tree, zeroed)

    if not counts.size:
        return step, scalar_array(0, dtypes.int32)
    return step, bind("reduce_max", counts, axes=tuple(range(len(shape))))


def _is_over(until: Any, carry: Any) -> Any:
    """Return what `until` says of a carry."""
    if not callable(until):
        raise TypeError(message("scan", "until must be a function.", got=described(until)))
    over = as_array(until(carry), what="scan: the result of until")
    if over.ndim or not dtypes.is_bool(over.dtype):
        raise TypeError(message(
            "scan", "until must return a boolean scalar.", got=over.aval.strong().str_long(),
            where=place_of(until),
        ))  # fmt: skip
    return over


def run_scan(
    body: Staged, carry: Sequence[Any], xs: Sequence[Any], options: dict[str, Any],
    stop: Array | None = None,
) -> Sequence[Any]:  # fmt: skip
    """Run a staged body along arrays, the references that it writes as part of the carry.

    Args:
      body: from the carry and elements of `xs` to the next carry and ys.
      carry: the first one.
      xs: the arrays.
      options: other params of the equation.
      stop: how many leading elements have a step, or None for all.
    """
    closed, refs, first = body.closed, body.refs, len(body.captured) + len(carry)
    if refs:
        closed = _refs_in_carry(closed, first, len(carry), len(refs))
    given = [*body.captured, *carry, *ref_values(refs), *xs]
    if stop is not None:
        options = options | {"num_stops": 1}
        if stop.aval.vma:  # members stop after steps of their own
            given = varying_alike_with(stop.aval, given)
            lead = len(given) - len(xs)
            elements = [without_dimension(x.aval, 0) for x in given[lead:]]
            closed = retype_varying(closed, [*[x.aval for x in given[:lead]], *elements], stop.aval)
    outs = bind_noting_keys(scan_p, [*(() if stop is None else (stop,)), *given], options | {
        "jaxpr": closed, "num_consts": len(body.captured), "num_carry": len(carry) + len(refs),
    })  # fmt: skip
    end = len(carry) + len(refs)
    if refs:
        write_refs(refs, outs[len(carry) : end])
    return (*pass_through(body, carry, outs), *outs[end:])


def _refs_in_carry(closed: ClosedJaxpr, first: int, count: int, refs: int) -> ClosedJaxpr:
    """Bring the last arguments and results, those of references, behind the carry.

    Args:
      closed: the body.
      first: the number of the first argument that is an element.
      count: how many results are the carry.
      refs: how many are of references.
    """
    ins, outs = closed.jaxpr.invars, closed.jaxpr.outvars
    return ClosedJaxpr(
        closed.jaxpr.replace(
            invars=[*ins[:first], *ins[-refs:], *ins[first:-refs]],
            outvars=[*outs[:count], *outs[-refs:], *outs[count:-refs]],
        ),
        closed.consts,
    )


def _stage_body(
    f: Any, init: Any, xs: list[Array], x_tree: Any
) -> tuple[list[Array], Any, Staged, Any]:
    """Return the carry, promoted where it was weakly typed, its structure, the body, that of ys."""
    carry, tree = flatten_carry(init, "scan", "the carry")
    elements = [without_dimension(x.aval, 0) for x in xs]
    in_tree = xtree.treedef_tuple((tree, x_tree))
    users = f.body if type_of_by_class and isinstance(f, _high_types.StepOfArrays) else None

    def stage(carry: list[Array]) -> Staged:
        avals = [*[x.aval for x in carry], *elements]
        return stage_checked(f, in_tree, avals, operation="scan", what="the body", writes_refs=True,
                      users=users)  # fmt: skip

    carry, body = settle_carry(stage, carry, 0, lambda body: _pair_of(body, f)[0] == tree)
    carry_tree, y_tree = _pair_of(body, f)
    count = carry_tree.num_leaves
    check_carry(tree, carry_tree, [x.aval for x in carry], body.out_avals[:count], "scan",
                "the body", f)  # fmt: skip
    return carry, tree, body, y_tree


def _pair_of(body: Staged, f: Any) -> tuple[Any, Any]:
    """Return the structures of the carry and the ys that a body returned."""
    result = body.result_leaves()
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(message(
            "scan", "the body must return a pair (carry, y).", got=f"{body.out_tree}",
            where=place_of(f), hint="return carry, None if there is no y",
        ))  # fmt: skip
    return xtree.structure(result[0]), xtree.structure(result[1])


def _length(xs: list[Array], tree: Any, length: int | None) -> int:
    """Return how many steps there are."""
    given = set() if length is None else {static_int(length, "scan", "length")}
    paths = xtree.leaves_with_path(xtree.unflatten(tree, range(len(xs))))
    named = [(f"xs{xtree.keystr(path)}", xs[i]) for path, i in paths]
    for name, x in named:
        if not x.ndim:
            raise ValueError(message(
                "scan", "every array of xs needs a leading dimension to go along.",
                got=f"{name}: {x.aval.str_long()}",
            ))  # fmt: skip
    sizes = given.union([x.shape[0] for x in xs])
    if len(sizes) > 1:
        shown = ", ".join([f"{name}: {x.aval.str_long()}" for name, x in named[:4]])
        raise ValueError(message(
            "scan", "the leading dimensions of xs and length must be equal.",
            got=shown + ("" if length is None else f", length={length}"),
        ))  # fmt: skip
    if not sizes:
        raise ValueError(message(
            "scan", "how many steps there are must be said by xs or length.",
            got="no arrays in xs, and length=None",
        ))  # fmt: skip
    return sizes.pop()


def unroll_count(unroll: Any, length: int, operation: str) -> int | Literal["auto"]:
    """Return how many steps to write into one turn of a loop, "auto" where the lowering chooses."""
    if unroll is False:
        return 1
    if unroll == "auto":
        return "auto"
    if isinstance(unroll, Tracer):
        unroll = static_int(unroll, operation, "unroll")
    try:
        count = length if unroll is True else size_of(unroll) or length
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(message(
            operation, "unroll must be 'auto', a bool or an integer that is not negative.",
            got=f"{unroll!r}",
        ))  # fmt: skip
    return max(1, min(count, length))


def _in_python(
    f: Any, init: Any, xs: list[Array], tree: Any, steps: int, reverse: bool, until: Any,
    stop: int,
) -> Any:  # fmt: skip
    """Run the steps before `stop` as a Python loop, as `config.disable_jit` asks for."""
    carry, ys = as_traced(init), {}
    for i in range(stop - 1, -1, -1) if reverse else range(stop):
        carry, y = as_traced(f(carry, xtree.unflatten(tree, [item(x, i) for x in xs])))
        ys[i] = y
        if until is not None and bool(_is_over(until, carry)):
            break
    zeros = xtree.map(lambda y: fill(as_array(y).shape, 0, as_array(y).dtype), y)
    rows = [ys.get(i, zeros) for i in range(steps)]
    return carry, xtree.map(lambda *rows: stack_first(_of_one_type(rows)), *rows)


def _of_one_type(rows: Sequence[Any]) -> list[Any]:
    """Return rows whose first ones may be of a weak carry that a later step gave its dtype."""
    arrays = [as_array(r) for r in rows]
    strong = {x.dtype for x in arrays if not x.aval.weak_type}
    if len(strong) != 1 or strong == {x.dtype for x in arrays}:
        return arrays
    return [table.convert(x, result_type(*arrays)) for x in arrays]


@boundary
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply a function to each element along the leading axes of arrays, one after the other.

    As `vmap(f)(xs)`, but in the memory of one element (or of `batch_size` of them).

    Args:
      f: from a slice of `xs` to a pytree of arrays.
      xs: a pytree of arrays with one leading dimension.
      batch_size: how many elements to do at once with `vmap`; None or 0 does them one by one.

    Returns:
      The pytree of stacked results.

    Differentiable in: `xs` and traced values that `f` uses.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> print(np.asarray(lax.map(lambda x: x + 1, np.arange(3))))
      [1 2 3]
    """
    if not callable(f):
        raise TypeError(f"map: f must be a function, got {described(f)}.")
    size = 0 if batch_size is None else size_of(batch_size)
    if size < 0:
        raise ValueError(f"map: batch_size must not be negative, got {batch_size}.")
    if not size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    vmap = find("vmap")
    if vmap is None:
        raise ImportError(message(
            "map", "batch_size needs the package that batches.", hint="install xstack-xbatch",
        ))  # fmt: skip
    leaves, tree = flat_arrays(xs, "map", "xs")
    length = _length(leaves, tree, None)
    batched = vmap(f)
    if not length:
        return batched(xs)  # type: ignore[no-any-return]

    def run(parts: list[Any]) -> Any:
        return batched(xtree.unflatten(tree, parts))

    chunks, rest = split_chunks(leaves, length, min(size, length))
    pieces = [scan(lambda _, parts: ((), run(parts)), (), chunks)[1], *[run(x) for x in rest]]
    return xtree.map(join_chunks, *pieces)  # type: ignore[no-any-return]


@boundary
def associative_scan(fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0) -> X:
    """Combine each element with all before it, by an associative function, in parallel.

    Args:
      fn: an associative function of two pytrees like `elems`, each with any size along `axis`; it
        combines them element by element along that axis.
      elems: a pytree of arrays of one size along `axis`.
      reverse: whether to combine each element with all after it.
      axis: the axis to go along.

    Returns:
      A pytree like `elems`: along `axis`, `e0, fn(e0, e1), fn(fn(e0, e1), e2), ...`.

    Differentiable in: `elems`.

    Source: Blelloch, "Prefix sums and their applications", 1990; for a symbolic size Hillis and
    Steele, "Data parallel algorithms", 1986, which takes `log2(n)` rounds over all elements.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> print(np.asarray(lax.associative_scan(lax.add, np.arange(1, 5))))
      [ 1  3  6 10]
    """
    if not callable(fn):
        raise TypeError(f"associative_scan: fn must be a function, got {described(fn)}.")
    leaves, tree = flat_arrays(elems, "associative_scan", "elems")
    if not leaves:
        return elems
    axis = _common_axis(leaves, axis)

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        result = fn(xtree.unflatten(tree, a), xtree.unflatten(tree, b))
        arrays, given = flat_arrays(result, "associative_scan", "the result of fn")
        if given != tree or [x.shape for x in arrays] != [x.shape for x in a]:
            raise ValueError(message(
                "associative_scan", "fn must return a tree like its arguments, of the same shapes.",
                got=f"{given} of {', '.join([x.aval.str_long() for x in arrays])}",
                expected=f"{tree} of {', '.join([x.aval.str_long() for x in a])}",
                where=place_of(fn),
            ))  # fmt: skip
        return arrays

    if reverse:
        leaves = [_reverse(x, axis) for x in leaves]
    prefixes = _prefixes if isinstance(leaves[0].shape[axis], int) else _prefixes_of_any_size
    results = prefixes(combine, leaves, axis)
    if reverse:
        results = [_reverse(x, axis) for x in results]
    return xtree.unflatten(tree, results)  # type: ignore[no-any-return]


def _common_axis(xs: list[Array], axis: int) -> int:
    """Return the axis counted from the front, along which all arrays have one size."""
    ndim = xs[0].ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"associative_scan: axis {axis} is out of range for arrays of {ndim} dimensions."
        )
    axis %= ndim
    sizes = {x.shape[axis] if x.ndim > axis else -1 for x in xs}
    if len(sizes) > 1:
        raise ValueError(message(
            "associative_scan", "all arrays must have one size along the axis.",
            got=f"{', '.join([x.aval.str_long() for x in xs])}, axis={axis}",
        ))  # fmt: skip
    return axis


def _prefixes(combine: Callable[..., list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """Combine pairs of neighbours, take the prefixes of those, and fill in the ones between."""
    size = xs[0].shape[axis]
    if size < 2:
        return xs

    def part(values: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        return [slice_dim(x, axis, start, stop, step) for x in values]

    odd = _prefixes(combine, combine(part(xs, 0, size - 1, 2), part(xs, 1, size, 2)), axis)
    later = part(xs, 2, size, 2)
    before = odd if size % 2 else part(odd, 0, size // 2 - 1)
    even = combine(before, later) if size > 2 else later
    even = [join([a, b], axis) for a, b in zip(part(xs, 0, 1), even, strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _prefixes_of_any_size(combine: Callable[..., list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """Combine all elements with those 1, 2, 4, ... places before, for a size that is a symbol."""
    size = xs[0].shape[axis]
    places, zeros = counting(size, dtypes.int32), fill((size,), 0, dtypes.int32)

    def step(ys: list[Any], doublings: Any) -> tuple[list[Any], None]:
        distance = bind("shift_left", scalar_array(1, dtypes.int32), doublings)
        from_start = bind("sub", places, broadcast_to(distance, (size,), ()))
        sources = bind("max", from_start, zeros)
        befores = [take_along(y, broadcast_to(sources, y.shape, (axis,)), axis) for y in ys]
        has_before = bind("ge", from_start, zeros)
        masks = [broadcast_to(has_before, y.shape, (axis,)) for y in ys]
        both = combine(befores, ys)
        return [select(*found) for found in zip(masks, both, ys, strict=True)], None

    last = table.convert(as_array(size - 1), dtypes.int32)
    rounds = bind("sub", scalar_array(32, dtypes.int32), bind("clz", last))
    how = _How(31, False, 1, rounds)
    doublings, tree = flat_arrays(counting(31, dtypes.int32), "associative_scan", "the rounds")
    results: list[Any] = _along(step, xs, doublings, tree, how, None)[0]
    return results


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    count = odd.shape[axis]
    paired = [move_dim(_unit(x, axis, count), x.ndim, axis + 1) for x in (even, odd)]
    shape = list(odd.shape)
    shape[axis] = 2 * count
    woven = reshape(join(paired, axis + 1), shape)
    if even.shape[axis] == count:
        return woven
    return join([woven, slice_dim(even, axis, count, count + 1)], axis)


def _unit(x: Any, axis: int, count: int) -> Any:
    """Return the first `count` elements along an axis, with a new last dimension of size 1."""
    part = slice_dim(x, axis, 0, count)
    return reshape(part, (*part.shape, 1))


def _reverse(x: Any, axis: int) -> Any:
    return get_primitive("rev").bind(x, dimensions=(axis,))[0]


# ---------------------------------------------------------------------------- control flow loops
# Loops: `while_loop` and `fori_loop`.

Checkpoints = int | str


@overload
def while_loop(
    cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike],
    init_val: ArrayLike, *, max_steps: int | None = ..., checkpoints: Checkpoints = ...,
) -> Array: ...  # fmt: skip
@overload
def while_loop(
    cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: Carry,
    *, max_steps: int | None = ..., checkpoints: Checkpoints = ...,
) -> Carry: ...  # fmt: skip
@boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree, *,
    max_steps: int | None = None, checkpoints: Checkpoints = "sqrt",
) -> PyTree:  # fmt: skip
    """Repeat a function while a condition on its result holds.

    The meaning of::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)

    Args:
      cond_fun: from the carry to a boolean scalar.
      body_fun: from the carry to the next one, of the same structure, shapes and dtypes.
      init_val: the first carry, a pytree of arrays.
      max_steps: the loop stops after so many steps, whatever `cond_fun` says. With this bound the
        loop is differentiable in reverse mode.
      checkpoints: how many carries reverse mode stores: a number, `"sqrt"` (about
        `sqrt(2 max_steps)`, and each step is computed twice more at most), or `"log"`
        (`log2(max_steps)`, about half as many times more). The memory is that of so many carries
        and of one step, the time that of the steps that were taken, not of `max_steps`.

    Returns:
      The last carry.

    Raises:
      TypeError: `cond_fun` does not return a boolean scalar, or `body_fun` not a carry.
      ValueError: `max_steps` is negative, or `checkpoints` is not positive.

    Differentiable in: `init_val` and traced values that the functions use: in forward mode, and
    with `max_steps` in every mode and order. Derivatives of second and higher order store
    `2 sqrt(max_steps)` carries, whatever `checkpoints` says.

    Source: binomial checkpointing, Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26,
    2000.

    Example:
      >>> from xnp import lax
      >>> print(lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1))
      128
      >>> print(lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1, max_steps=3))
      8
    """
    if max_steps is not None:
        return _run_bounded_while_loop(cond_fun, body_fun, init_val, max_steps, checkpoints)
    val = init_val
    if config.values.disable_jit:
        val = as_traced(val)
        while known := value_without_jit(as_array(cond_fun(val))):
            val = as_traced(body_fun(val))
        if known is not None:
            return val
    return _repeat(cond_fun, body_fun, val, "while_loop", body_fun)


def _run_bounded_while_loop(
    cond_fun: Any, body_fun: Any, init_val: Any, max_steps: Any, checkpoints: Checkpoints
) -> Any:
    """Run a `while_loop` that counts its steps, up to a bound."""
    schedule = _schedule("while_loop", max_steps, checkpoints)

    if config.values.disable_jit:
        val = as_traced(init_val)
        for _ in range(schedule.max_steps):
            known = value_without_jit(as_array(cond_fun(val)))
            if known is None:
                break
            if not known:
                return val
            val = as_traced(body_fun(val))
        else:
            return val

    def step(state: Any) -> Any:
        return _next(state[0]), body_fun(state[1])

    def test(state: Any) -> Any:
        goes_on = cond_fun(state[1])
        return _and_few(goes_on, state[0], schedule)

    first = (scalar_array(0, dtypes.int32), init_val)
    return _repeat(
        functools.wraps(cond_fun)(test) if callable(cond_fun) else cond_fun, step, first,
        "while_loop", body_fun, 1, schedule,
    )[1]  # fmt: skip


def _next(n: Any) -> Any:
    """Return the integer after one of any dtype."""
    one = scalar_array(1, n.dtype)
    aval = n.aval
    (after,) = get_primitive("add").bind(n, one if not aval.weak_type else as_array(1))
    return after


def _and_few(goes_on: Any, steps: Any, schedule: Schedule) -> Any:
    """Return whether a loop goes on and has taken fewer steps than it may."""
    if not xtree.treedef_is_leaf(xtree.structure(goes_on)):
        return goes_on  # _check_test raises
    array = as_array(goes_on, what="while_loop: the result of cond_fun")
    if array.ndim or not dtypes.is_bool(array.dtype):
        return array
    few = get_primitive("lt").bind(steps, scalar_array(schedule.max_steps, dtypes.int32))[0]
    return get_primitive("and").bind(few, array)[0]


def _schedule(operation: str, max_steps: Any, checkpoints: Checkpoints) -> Schedule:
    """Return the bound on a loop's steps, and how many carries reverse mode stores.

    With s checkpoints, steps that are computed at most t times more reach (s + t)! / (s! t!): for
    t = 2 that is about s^2 / 2.
    """
    steps = static_int(max_steps, operation, "max_steps")
    if steps < 0:
        raise ValueError(f"{operation}: max_steps must not be negative, got {steps}.")
    if checkpoints == "sqrt":
        count = math.isqrt(2 * steps) + 1
    elif checkpoints == "log":
        count = max(steps, 1).bit_length()
    elif isinstance(checkpoints, str):
        count = 0
    else:
        count = static_int(checkpoints, operation, "checkpoints")
    if count < 1:
        raise ValueError(message(
            operation, "checkpoints must be a positive number, 'sqrt' or 'log'.",
            got=repr(checkpoints),
        ))  # fmt: skip
    return Schedule(steps, min(count, max(steps, 1)))


def _repeat(
    cond_fun: Any, body_fun: Any, init_val: Any, operation: str, users: Any, own: int = 0,
    schedule: Schedule | None = None,
) -> Any:  # fmt: skip
    """Run a loop; `users` is the user's function, `own` how many leading carries are not theirs."""
    carry, tree = flatten_carry(init_val, operation, "the carry")
    in_tree = xtree.treedef_tuple((tree,))

    def stage(carry: list[Array]) -> Staged:
        return stage_checked(
            body_fun,
            in_tree,
            [x.aval for x in carry],
            operation=operation,
            what="body_fun",
            writes_refs=True,
            users=users,
        )

    carry, body = settle_carry(stage, carry, 0, lambda body: body.out_tree == tree)
    theirs, returned = [xtree.treedef_children(t)[own] if own else t for t in (tree, body.out_tree)]
    check_carry(theirs, returned, [x.aval for x in carry[own:]], body.out_avals[own:], operation,
                "body_fun", users)  # fmt: skip
    test = stage_checked(
        cond_fun, in_tree, [x.aval for x in carry], operation=operation, what="cond_fun"
    )
    _check_test(test, cond_fun)
    (goes_on,) = test.out_avals
    if any(goes_on.vma - x.aval.vma for x in carry):  # members end after steps of their own
        varied = xtree.unflatten(tree, varying_alike_with(goes_on, carry))
        return _repeat(cond_fun, body_fun, varied, operation, users, own, schedule)
    captured, tested = _reading_carried_refs(test, body.refs, len(carry))
    given, step = [*body.captured, *carry, *ref_values(body.refs)], body.closed
    if any(goes_on.vma - x.aval.vma for x in given):
        given = varying_alike_with(goes_on, given)
        step = retype_varying(step, [x.aval for x in given], goes_on)
    options = {} if schedule is None else {"schedule": schedule}
    outs = bind_noting_keys(while_p, [*captured, *given], options | {
        "cond_jaxpr": tested, "body_jaxpr": step, "cond_nconsts": len(captured),
        "body_nconsts": len(body.captured),
    })  # fmt: skip
    write_refs(body.refs, outs[len(carry) :])
    return xtree.unflatten(tree, pass_through(body, carry, outs))


def _reading_carried_refs(
    test: Staged, refs: Sequence[RefUse], count: int
) -> tuple[Sequence[Any], ClosedJaxpr]:
    """Return what a condition captures, and the condition with the references of the body's carry.

    Args:
      test: the condition.
      refs: those that the body writes.
      count: how many values of the carry are not references.
    """
    if not refs:
        return test.captured, test.closed
    jaxpr = test.closed.jaxpr
    read = {use.ref: v for use, v in zip(test.read, jaxpr.invars, strict=False)}
    carried = [read.get(use.ref) or Var(use.ref.aval) for use in refs]
    lead = len(test.captured)
    kept = [(x, v) for x, v in zip(test.captured, jaxpr.invars, strict=False) if v not in carried]
    invars = [*[v for _, v in kept], *jaxpr.invars[lead : lead + count], *carried]
    return [x for x, _ in kept], ClosedJaxpr(jaxpr.replace(invars=invars), test.closed.consts)


def _check_test(test: Staged, cond_fun: Any) -> None:
    if len(test.out_avals) != 1 or not xtree.treedef_is_leaf(test.out_tree):
        raise TypeError(message(
            "while_loop", "cond_fun must return a boolean scalar.",
            got=f"the structure {test.out_tree}", where=place_of(cond_fun),
        ))  # fmt: skip
    (aval,) = test.out_avals
    if aval.shape or not dtypes.is_bool(aval.dtype):
        raise TypeError(message(
            "while_loop", "cond_fun must return a boolean scalar.", got=aval.strong().str_long(),
            where=place_of(cond_fun), hint="compare with 0, or reduce with all() or any()",
        ))  # fmt: skip


@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, Array], ArrayLike],
    init_val: ArrayLike, *, unroll: Unroll | None = ..., max_steps: int | None = ...,
    checkpoints: Checkpoints = ...,
) -> Array: ...  # fmt: skip
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, Carry], Carry],
    init_val: Carry, *, unroll: Unroll | None = ..., max_steps: int | None = ...,
    checkpoints: Checkpoints = ...,
) -> Carry: ...  # fmt: skip
@boundary
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Any], init_val: PyTree, *,
    unroll: Unroll | None = None, max_steps: int | None = None,
    checkpoints: Checkpoints = "sqrt",
) -> PyTree:  # fmt: skip
    """Repeat a function for each integer of a range.

    The meaning of::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)

    Args:
      lower: the first integer.
      upper: the integer before which to stop.
      body_fun: from the integer and the carry to the next carry, of the same structure, shapes and
        dtypes.
      init_val: the first carry, a pytree of arrays.
      unroll: how many steps one turn of the compiled loop holds (True for all, `"auto"` for as many
        as make it fast, as `scan` says); only for bounds that are known, and without `max_steps`.
      max_steps: the loop stops after so many steps; with this bound a loop with traced bounds is
        differentiable in reverse mode.
      checkpoints: how many carries reverse mode stores then: a number, `"sqrt"` or `"log"`, as
        `while_loop` says.

    Returns:
      The last carry; `init_val` when `upper <= lower`.

    Raises:
      TypeError: the bounds are not integer scalars, or `body_fun` does not return a carry.

    Differentiable in: `init_val` and traced values that `body_fun` uses. With bounds that are known
    (not traced), or with `max_steps`, in both modes, otherwise in forward mode.

    Example:
      >>> from xnp import lax
      >>> print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
      10
    """
    low, high, number = _bounds(lower, upper)
    schedule = None if max_steps is None else _schedule("fori_loop", max_steps, checkpoints)
    if schedule is not None and isinstance(low, int) and isinstance(high, int):
        high = min(high, low + schedule.max_steps)
        if not config.values.disable_jit:
            low, high = number(low), number(high)
    if isinstance(low, int) and isinstance(high, int):
        if config.values.disable_jit:
            val = as_traced(init_val)
            for i in range(low, high):
                val = as_traced(body_fun(number(i), val))
            return val
        return _count(low, high, number, body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(message(
            "fori_loop", "its number of steps is not known. Can only use `unroll` with bounds that "
            "are known while tracing.",
            got=f"unroll={unroll!r} with "
            + ("a traced bound" if schedule is None else "max_steps"),
        ))  # fmt: skip
    counted = () if schedule is None else (scalar_array(0, dtypes.int32),)
    first = (*counted, number(low), number(high), init_val)

    def test(state: Any) -> Any:
        *steps, i, stop, _ = state
        goes_on = get_primitive("lt").bind(i, stop)[0]
        return _and_few(goes_on, steps[0], schedule) if schedule else goes_on

    def step(state: Any) -> Any:
        *steps, i, stop, val = state
        return *[_next(n) for n in steps], _next(i), stop, body_fun(i, val)

    return _repeat(test, step, first, "fori_loop", body_fun, len(first) - 1, schedule)[-1]


def _count(low: int, high: int, number: _Number, body_fun: Any, init_val: Any, unroll: Any) -> Any:
    """Run a loop of known length as a scan that counts in its carry."""
    length = max(high - low, 0)
    carry, tree = flatten_carry(init_val, "fori_loop", "the carry")
    counter = number(low)
    in_tree = xtree.treedef_tuple((_LEAF, tree))

    def step(i: Any, val: Any) -> Any:
        return get_primitive("add").bind(i, number(1))[0], body_fun(i, val)

    def stage(carry: list[Array]) -> Staged:
        avals = [counter.aval, *[x.aval for x in carry]]
        return stage_checked(
            step, in_tree, avals, operation="fori_loop", what="body_fun", writes_refs=True,
            users=body_fun,
        )  # fmt: skip

    def result_trees(body: Staged) -> Any:
        return xtree.treedef_children(body.out_tree)[1]

    carry, body = settle_carry(stage, carry, 1, lambda body: result_trees(body) == tree)
    out_tree = result_trees(body)
    check_carry(tree, out_tree, [x.aval for x in carry], body.out_avals[1:], "fori_loop",
                "body_fun", body_fun)  # fmt: skip
    unrolled = unroll_count(1 if unroll is None else unroll, length, "fori_loop")
    options = {"length": length, "reverse": False, "unroll": unrolled}
    outs = run_scan(body, [counter, *carry], (), options)
    return xtree.unflatten(tree, outs[1:])


_LEAF = xtree.structure(0)
_Number = Callable[[Any], Array]


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any, _Number]:
    """Return the bounds, as ints where they are known, and what gives them the counter's type.

    It is weak where `lower` is: from a Python number the counter leaves the dtypes of others alone.
    """
    arrays = [as_array(x, what=f"fori_loop: {name}")
              for x, name in ((lower, "lower"), (upper, "upper"))]  # fmt: skip
    for x, name in zip(arrays, ("lower", "upper"), strict=True):
        if x.ndim or not dtypes.is_integer(x.dtype):
            raise TypeError(message(
                "fori_loop", f"{name} must be an integer scalar.", got=x.aval.strong().str_long(),
            ))  # fmt: skip
    try:
        dtype = result_type(*arrays)
    except TypePromotionError as error:
        raise TypePromotionError(message(
            "fori_loop", "lower and upper arguments to fori_loop must have equal types.",
            got=", ".join([x.aval.strong().str_long() for x in arrays]),
            hint="convert one of them, lower.astype(upper.dtype)",
        )) from error  # fmt: skip
    weak = arrays[0].aval.weak_type and arrays[0].dtype == dtype

    def number(x: Any) -> Array:
        if not isinstance(x, Array):
            return as_array(x) if weak else scalar_array(x, dtype)
        convert: Any = get_primitive("convert_element_type")
        return convert.bind(x, new_dtype=dtype, weak_type=weak)[0]  # type: ignore[no-any-return]

    low, high = [int(x.to_host()) if type(x) is ConcreteArray else x for x in arrays]
    return low, high, number


boundaries(globals(), names=["cond", "platform_dependent", "switch"])
