"""Choosing among functions by a value: `cond`, `switch`, `platform_dependent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import xtree
from xnp.lax.control_flow_cells import closing_over_cells
from xnp.lax.control_flow_staging import (
    cell_values,
    known_without_jit,
    results_varying_alike,
    retyped_varying,
    same_type,
    staged,
    varying_alike_with,
    write_cells,
)
from xnp.primitives.cond import cond_p
from xnp.primitives.inner_programs import traced, with_ignored_arguments
from xnp.primitives.platform_index import platform_index_p
from xprim import (
    Array,
    ClosedJaxpr,
    Var,
    as_array,
    dtypes,
    eval_closed,
    get_primitive,
    scalar_array,
)
from xprim.cells import Cell, CellUse
from xprim.descriptions import described, place_of
from xprim.errors import message
from xprim.kept_programs import Staged
from xprim.leaves import flat_arrays, paths_of, unchangeable
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, PyTree

__all__ = ["cond", "platform_dependent", "switch"]

__dir__ = __all__.copy

R = TypeVar("R")


class _NoOperand:
    def __repr__(self) -> str:
        return "<no operand>"


_NO_OPERAND = _NoOperand()


@overload
def cond(
    pred: ArrayLike, true_fun: Callable[..., ArrayLike], false_fun: Callable[..., ArrayLike],
    *operands: Any, operand: Any = ...,
) -> Array: ...  # fmt: skip
@overload
def cond(
    pred: ArrayLike, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any,
    operand: Any = ...,
) -> R: ...  # fmt: skip
@overload
def cond(  # the older form
    pred: ArrayLike, true_fun: Any, false_fun: Callable[..., Any], *operands: Any,
    operand: Any = ...,
) -> Any: ...  # fmt: skip
def cond(
    pred: ArrayLike, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any,
    operand: PyTree = _NO_OPERAND,
) -> PyTree:  # fmt: skip
    """Apply one of two functions, as a boolean says that may be a traced value.

    Both functions are traced, and one is run: `true_fun(*operands) if pred else
    false_fun(*operands)`. Under `vmap` over `pred` both run, and the results are selected.

    Args:
      pred: a boolean scalar, or a number that counts as true unless it is 0.
      true_fun: a function of the operands that returns a pytree of arrays.
      false_fun: likewise; the results are of the same structure, shapes and dtypes.
      *operands: pytrees of arrays.
      operand: the operand, as one keyword argument.

    The older form `cond(pred, x, true_fun, y, false_fun)` gives each function its own operand.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: `pred` is no scalar, or the results of the functions differ in structure or type.

    Differentiable in: the operands, and traced values that the functions use.

    Example:
      >>> from xnp import lax
      >>> print(lax.cond(True, lambda x: x, lambda x: -x, 3))
      3
    """
    operands = _with_operand("cond", operands, operand)
    if _gives_each_its_operand(true_fun, false_fun, operands):
        return _of_own_operands(pred, true_fun, false_fun, *operands)
    predicate = _predicate(pred)
    known = known_without_jit(predicate)
    if known is not None:
        return (true_fun if known else false_fun)(*unchangeable(operands))
    index = get_primitive("convert_element_type").bind(
        predicate, new_dtype=dtypes.int32, weak_type=False
    )[0]
    return _chosen(index, (false_fun, true_fun), ("false_fun", "true_fun"), operands, "cond")


def _gives_each_its_operand(second: Any, third: Any, rest: Any) -> bool:
    """Whether the arguments after the predicate are those of the older form of `cond`."""
    return len(rest) == 2 and callable(third) and callable(rest[1]) and not callable(second)


def _of_own_operands(
    pred: Any, x: Any, true_fun: Callable[[Any], Any], y: Any, false_fun: Callable[[Any], Any]
) -> Any:
    """Apply `true_fun` to `x` or `false_fun` to `y`: the older form of `cond`."""
    return cond(pred, lambda x, _: true_fun(x), lambda _, y: false_fun(y), x, y)


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
    operand: Any = ...,
) -> Array: ...  # fmt: skip
@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = ...
) -> R: ...
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any,
    operand: PyTree = _NO_OPERAND,
) -> PyTree:  # fmt: skip
    """Apply one of several functions, as an integer says that may be a traced value.

    Args:
      index: an integer scalar; it is clamped to the range of `branches`.
      branches: functions of the operands that return pytrees of the same structure, shapes and
        dtypes.
      *operands: pytrees of arrays.
      operand: the operand, as one keyword argument.

    Returns:
      The result of the function that was chosen.

    Raises:
      TypeError: `index` is no integer scalar, or the results of the functions differ.
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
    number = _clamped(array, len(functions))
    known = known_without_jit(number)
    if known is not None:
        return functions[int(known)](*unchangeable(operands))
    names = tuple([f"branches[{i}]" for i in range(len(functions))])
    return _chosen(number, functions, names, operands, "switch")


def _clamped(index: Any, count: int) -> Any:
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


def _chosen(
    index: Any, functions: Sequence[Callable[..., Any]], names: Sequence[str],
    operands: tuple[Any, ...], operation: str,
) -> Any:  # fmt: skip
    functions, operands = closing_over_cells(functions, operands, operation)
    values, in_tree = flat_arrays(operands, operation, "the operands")
    avals = [x.aval for x in values]
    bodies = [
        staged(fun, in_tree, avals, operation=operation, what=name, writes_cells=True)
        for fun, name in zip(functions, names, strict=True)
    ]
    if len({body.out_tree for body in bodies}) == 1:
        bodies = results_varying_alike(bodies)
    check_branches(bodies, names, operation, functions)
    cells = {use.cell: use for body in bodies for use in body.cells}
    if cells:
        bodies = [_with_cells(body, cells) for body in bodies]
    captured, branches = _with_common_captures(bodies)
    given = [*captured, *values, *cell_values(list(cells.values()))]
    branches = list(_weak_types_joined(branches))
    if index.aval.vma:
        given = varying_alike_with(index, given)
        branches = [retyped_varying(br, given, index) for br in branches]
    outs = cond_p.bind(index, *given, branches=tuple(branches))
    count = len(outs) - len(cells)
    write_cells(list(cells.values()), outs[count:])
    return xtree.unflatten(bodies[0].out_tree, outs[:count])


def _with_cells(body: Staged, cells: dict[Cell, CellUse]) -> Staged:
    """Give a branch all cells that some branch writes as last arguments and results, in order."""
    jaxpr, own = body.closed.jaxpr, len(body.cells)
    ins, outs = len(jaxpr.invars) - own, len(jaxpr.outvars) - own
    pairs = zip(jaxpr.invars[ins:], jaxpr.outvars[outs:], strict=True)
    ends: dict[Cell, tuple[Any, Any]] = {
        use.cell: pair for use, pair in zip(body.cells, pairs, strict=True)
    }
    for cell in cells:
        unchanged = Var(cell.aval)
        ends.setdefault(cell, (unchanged, unchanged))
    extended = jaxpr.replace(
        invars=[*jaxpr.invars[:ins], *[ends[cell][0] for cell in cells]],
        outvars=[*jaxpr.outvars[:outs], *[ends[cell][1] for cell in cells]],
    )
    closed = ClosedJaxpr(extended, body.closed.consts)
    return Staged(closed, body.captured, body.out_tree, tuple(cells.values()))


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


def _weak_types_joined(branches: Sequence[ClosedJaxpr]) -> tuple[ClosedJaxpr, ...]:
    """Make a result strongly typed in all branches when it is in some."""
    joint = [all(a.weak_type for a in avals)
             for avals in zip(*[br.out_avals for br in branches], strict=True)]  # fmt: skip
    return tuple([_with_weak_types(br, joint) for br in branches])


def _with_weak_types(branch: ClosedJaxpr, weak: Sequence[bool]) -> ClosedJaxpr:
    if [a.weak_type for a in branch.out_avals] == list(weak):
        return branch

    def strengthened(*args: Any) -> list[Any]:
        convert = get_primitive("convert_element_type")
        return [
            x if x.aval.weak_type == w
            else convert.bind(x, new_dtype=x.dtype, weak_type=False)[0]
            for x, w in zip(eval_closed(branch, *args), weak, strict=True)
        ]  # fmt: skip

    return traced(strengthened, branch.in_avals, branch.jaxpr.name)


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
    known = known_without_jit(index)
    if known is not None:
        return functions[int(known)](*unchangeable(args))
    called = [*names, *([] if default is None else ["default"])]
    if len(functions) == 1:  # the index of a single branch would not be asked for
        functions, called = functions * 2, called * 2
    return _chosen(index, functions, called, args, "platform_dependent")


boundaries(globals())
