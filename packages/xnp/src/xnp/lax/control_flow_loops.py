"""Loops: `while_loop` and `fori_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import xtree
from xnp.lax.control_flow_scan import run_scan, unroll_count
from xnp.lax.control_flow_staging import (
    cell_values,
    check_carry,
    handed_on,
    known_without_jit,
    settled_carry,
    staged,
    write_cells,
)
from xnp.primitives.while_loop import while_p
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Var,
    as_array,
    config,
    dtypes,
    get_primitive,
    scalar_array,
)
from xprim.cells import CellUse
from xprim.descriptions import place_of
from xprim.errors import message
from xprim.kept_programs import Staged
from xprim.leaves import flat_arrays, unchangeable
from xprim.promotion import result_type
from xprim.sharded_types import vary
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, PyTree

__all__ = ["fori_loop", "while_loop"]

__dir__ = __all__.copy

Carry = TypeVar("Carry")


@overload
def while_loop(
    cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike],
    init_val: ArrayLike,
) -> Array: ...  # fmt: skip
@overload
def while_loop(
    cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: Carry
) -> Carry: ...
@boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree
) -> PyTree:
    """Repeat a function while a condition on its result holds.

    The meaning of::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)

    Args:
      cond_fun: from the carry to a boolean scalar.
      body_fun: from the carry to the next one, of the same structure, shapes and dtypes.
      init_val: the first carry, a pytree of arrays.

    Returns:
      The last carry.

    Raises:
      TypeError: `cond_fun` does not return a boolean scalar, or `body_fun` not a carry.

    Differentiable in: `init_val` and traced values that the functions use, in forward mode. Reverse
    mode would need the values of every step: `scan`, or `fori_loop` with bounds known in advance.

    Example:
      >>> from xnp import lax
      >>> print(lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1))
      128
    """
    val = init_val
    if config.values.disable_jit:
        val = unchangeable(val)
        while known := known_without_jit(as_array(cond_fun(val))):
            val = body_fun(val)
        if known is not None:
            return val
    return _repeated(cond_fun, body_fun, val, "while_loop", body_fun)


def _repeated(
    cond_fun: Any, body_fun: Any, init_val: Any, operation: str, users: Any, own: int = 0
) -> Any:
    """Run a loop; `users` is the user's function, `own` how many leading carries are not theirs."""
    carry, tree = flat_arrays(init_val, operation, "the carry")
    in_tree = xtree.treedef_tuple((tree,))

    def stage(carry: list[Array]) -> Staged:
        return staged(
            body_fun,
            in_tree,
            [x.aval for x in carry],
            operation=operation,
            what="body_fun",
            writes_cells=True,
            users=users,
        )

    carry, body = settled_carry(stage, carry, 0, lambda body: body.out_tree == tree)
    theirs, returned = [xtree.treedef_children(t)[own] if own else t for t in (tree, body.out_tree)]
    check_carry(theirs, returned, [x.aval for x in carry[own:]], body.out_avals[own:], operation,
                "body_fun", users)  # fmt: skip
    test = staged(cond_fun, in_tree, [x.aval for x in carry], operation=operation, what="cond_fun")
    _check_test(test, cond_fun)
    (goes_on,) = test.out_avals
    if any(goes_on.vma - x.aval.vma for x in carry):  # members end after steps of their own
        varying = [vary(x, goes_on.vma, goes_on.spread.mesh) for x in carry]
        return _repeated(cond_fun, body_fun, xtree.unflatten(tree, varying), operation, users, own)
    captured, tested = _reading_carried_cells(test, body.cells, len(carry))
    operands = [*captured, *body.captured, *carry, *cell_values(body.cells)]
    outs = while_p.bind(
        *operands, cond_jaxpr=tested, body_jaxpr=body.closed, cond_nconsts=len(captured),
        body_nconsts=len(body.captured),
    )  # fmt: skip
    write_cells(body.cells, outs[len(carry) :])
    return xtree.unflatten(tree, handed_on(body, carry, outs))


def _reading_carried_cells(
    test: Staged, cells: Sequence[CellUse], count: int
) -> tuple[Sequence[Any], ClosedJaxpr]:
    """Return what a condition captures, and the condition with the cells of the body's carry.

    Args:
      test: the condition.
      cells: those that the body writes.
      count: how many values of the carry are no cells.
    """
    if not cells:
        return test.captured, test.closed
    jaxpr = test.closed.jaxpr
    read = {use.cell: v for use, v in zip(test.read, jaxpr.invars, strict=False)}
    carried = [read.get(use.cell) or Var(use.cell.aval) for use in cells]
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
    init_val: ArrayLike, *, unroll: int | bool | None = ...,
) -> Array: ...  # fmt: skip
@overload
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, Carry], Carry],
    init_val: Carry, *, unroll: int | bool | None = ...,
) -> Carry: ...  # fmt: skip
@boundary
def fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Any, Any], Any], init_val: PyTree, *,
    unroll: int | bool | None = None,
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
      unroll: how many steps one turn of the compiled loop holds (True for all); only for bounds
        that are known.

    Returns:
      The last carry; `init_val` when `upper <= lower`.

    Raises:
      TypeError: the bounds are no integer scalars, or `body_fun` does not return a carry.

    Differentiable in: `init_val` and traced values that `body_fun` uses. With bounds that are known
    (not traced) in both modes, otherwise in forward mode.

    Example:
      >>> from xnp import lax
      >>> print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
      10
    """
    low, high, number = _bounds(lower, upper)
    if isinstance(low, int) and isinstance(high, int):
        if config.values.disable_jit:
            val = unchangeable(init_val)
            for i in range(low, high):
                val = body_fun(number(i), val)
            return val
        return _counted(low, high, number, body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(message(
            "fori_loop", "unroll needs bounds that are known while tracing.",
            got=f"unroll={unroll!r} with a traced bound",
        ))  # fmt: skip
    low, high = [number(x) for x in (low, high)]

    def test(state: Any) -> Any:
        return get_primitive("lt").bind(state[0], state[1])[0]

    def step(state: Any) -> Any:
        i, stop, val = state
        return get_primitive("add").bind(i, number(1))[0], stop, body_fun(i, val)

    return _repeated(test, step, (low, high, init_val), "fori_loop", body_fun, own=2)[2]


def _counted(
    low: int, high: int, number: _Number, body_fun: Any, init_val: Any, unroll: Any
) -> Any:
    """Run a loop of known length as a scan that counts in its carry."""
    length = max(high - low, 0)
    carry, tree = flat_arrays(init_val, "fori_loop", "the carry")
    counter = number(low)
    in_tree = xtree.treedef_tuple((_LEAF, tree))

    def step(i: Any, val: Any) -> Any:
        return get_primitive("add").bind(i, number(1))[0], body_fun(i, val)

    def stage(carry: list[Array]) -> Staged:
        avals = [counter.aval, *[x.aval for x in carry]]
        return staged(
            step, in_tree, avals, operation="fori_loop", what="body_fun", writes_cells=True,
            users=body_fun,
        )  # fmt: skip

    def returned(body: Staged) -> Any:
        return xtree.treedef_children(body.out_tree)[1]

    carry, body = settled_carry(stage, carry, 1, lambda body: returned(body) == tree)
    out_tree = returned(body)
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
    dtype = result_type(*arrays)
    weak = arrays[0].aval.weak_type and arrays[0].dtype == dtype

    def number(x: Any) -> Array:
        if not isinstance(x, Array):
            return as_array(x) if weak else scalar_array(x, dtype)
        convert: Any = get_primitive("convert_element_type")
        return convert.bind(x, new_dtype=dtype, weak_type=weak)[0]  # type: ignore[no-any-return]

    low, high = [int(x.to_host()) if type(x) is ConcreteArray else x for x in arrays]
    return low, high, number
