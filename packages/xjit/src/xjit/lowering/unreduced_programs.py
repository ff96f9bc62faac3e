"""Programs with values in parts of sums, as programs of stacks of these parts.

XLA knows no such values: what of them it does at all it does for some operations, and its
partitioner gives other numbers for constants. So the step is made here, at the very end, as that of
extended dtypes is: in a program the value `float32[8,4]{U:x}` is the array `float32[8,4,2@x]` of
its parts, the last dimension that of the axes in the order of the mesh. What is linear works on a
stack by its `batch` rule; parts are added up by a sum over the dimension, and come about where a
dimension that is contracted is split by the axes that cut it. Each device holds one part: between
programs the array of a device has the shape of the value, or of its piece.

    passed    a whole program on stacks, whose arguments and results have the parts end to end

Along manual axes members hold the parts themselves, and what is linear works on them as it is. Only
a whole value that is added becomes the part of the first member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import xprim
from xjit.sharding.partial_sums import called_with, linear_operands, sums_of
from xjit.sharding.rules import recast
from xjit.sharding.shardings import NamedSharding, PartitionSpec, axes_of
from xprim import ClosedJaxpr, Equation, Literal, ShapedArray, dtypes, get_primitive, not_mapped
from xprim.calls import BatchDimension, bind_one
from xprim.dimension_names import AS_SAID, Names
from xprim.errors import message
from xprim.jaxpr import interpret, map_programs, programs_inside
from xprim.sharded_types import ShardingTypeError, whole

__all__ = ["passed"]

__dir__ = __all__.copy

_UNCHANGED: Any = object()  # the program itself in its own memo would keep itself alive


def passed(
    closed: ClosedJaxpr, in_shardings: Sequence[Any], out_shardings: Sequence[Any]
) -> tuple[ClosedJaxpr, list[Any], list[Any]]:
    """Return a program on stacks of parts, with the shardings of its arguments and results.

    An argument or result has its parts one behind the other along its first dimension, so that what
    a device has of it is of the shape of its part.
    """
    ins, outs = [[_check_stacked_sharding(s, a) for s, a in zip(shardings, avals, strict=False)]
                 for shardings, avals in ((in_shardings, closed.in_avals),
                                          (out_shardings, closed.out_avals))]  # fmt: skip
    if _on_stacks(closed) is closed:
        return closed, ins, outs
    found: ClosedJaxpr | None = closed.memo.get("passed parts")
    if found is None:
        found = closed.memo["passed parts"] = _with_ends(closed)
    return found, ins, outs


def _check_stacked_sharding(sharding: Any, aval: ShapedArray) -> Any:
    if not isinstance(sharding, NamedSharding):
        return sharding
    if sharding.spec.unreduced != sums_of(aval).unreduced:
        raise ShardingTypeError(message(
            "jit", "an argument is in parts of sums along other axes than it shall be.",
            got=f"{sharding.spec} for {aval.str_long()}", hint="reshard(x, P(...)) brings it there",
        ))  # fmt: skip
    if not sharding.spec.unreduced:
        return sharding
    axes = _in_order(sharding.mesh, sharding.spec.unreduced)
    parts = [*map(axes_of, sharding.spec), *[()] * (max(aval.ndim, 1) - len(sharding.spec))]
    return sharding.update(spec=PartitionSpec((*axes, *parts[0]), *parts[1:]))


def _with_ends(closed: ClosedJaxpr) -> ClosedJaxpr:
    inner = _on_stacks(closed)

    def run(*args: Any) -> list[Any]:
        given = [_stack_argument(x, a) for x, a in zip(args, closed.in_avals, strict=True)]
        results = interpret(inner.jaxpr, inner.consts, given)
        return [_move_stack_in_front(x, a) for x, a in zip(results, closed.out_avals, strict=True)]

    jaxpr, consts = xprim.trace_to_jaxpr(
        run, [_type_with_stack_in_front(a) for a in closed.in_avals], name=closed.jaxpr.name
    )
    return ClosedJaxpr(jaxpr, consts)


def _type_with_stack_in_front(aval: ShapedArray) -> ShapedArray:
    if not _axes(aval):
        return aval
    count = _count(aval)
    shape = (count * aval.shape[0], *aval.shape[1:]) if aval.ndim else (count,)
    return xprim.shaped_array(shape, aval.dtype, aval.weak_type)


def _stack_argument(x: Any, aval: ShapedArray) -> Any:
    if not _axes(aval):
        return x

    def run(x: Any) -> list[Any]:
        parts = _reshape(x, (_count(aval), *aval.shape))
        return [_move(parts, 0, aval.ndim)]

    return _call(run, [x], [_stack_type(aval)])[0]


def _move_stack_in_front(x: Any, aval: ShapedArray) -> Any:
    if not _axes(aval):
        return x
    return _call(
        lambda x: [_reshape(_move(x, aval.ndim, 0), _type_with_stack_in_front(aval).shape)],
        [x], [_type_with_stack_in_front(aval)],
    )[0]  # fmt: skip


# --- programs on stacks ---------------------------------------------------------------------------


def _on_stacks(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program whose values in parts are stacks, arguments and results among them."""
    found = closed.memo.get("stacked parts")
    if found is None:
        found = _convert(closed) if _mentions_parts(closed) else _UNCHANGED
        closed.memo["stacked parts"] = found
    return closed if found is _UNCHANGED else found


def _mentions_parts(closed: ClosedJaxpr) -> bool:
    jaxpr = closed.jaxpr
    avals = {v.aval for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)}
    kinds: set[Any] = {eqn.signature or eqn for eqn in jaxpr.eqns}
    for kind in kinds:  # few, as most equations repeat one of theirs
        avals.update([v.aval for v in kind.outputs] if type(kind) is Equation else kind.avals_out)
    return any(_axes(a) or _axes_of_members(a) for a in avals) or any(
        _on_stacks(p) is not p for p in programs_inside(closed)
    )  # fmt: skip


def _convert(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr, found = xprim.trace_to_jaxpr(
        lambda *args: interpret(closed.jaxpr, [_constant(c) for c in closed.consts], args, _run),
        [_stack_type(a) for a in closed.in_avals],
        name=closed.jaxpr.name,
    )
    return ClosedJaxpr(jaxpr, found)


def _constant(x: Any) -> Any:
    """Return what a program captures, which each device gets whole, as a stack."""
    if not _axes(x.aval):
        return x
    added = xprim.ConcreteArray(None, whole(x.aval), x.buffer)
    return _change_axes(added, whole(x.aval), x.aval)


def _run(eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    primitive = eqn.primitive
    avals, out = [x.aval for x in eqn.inputs], [v.aval for v in eqn.outputs]
    if primitive.call_like:
        params = map_programs(eqn.params, _on_stacks)
        params |= primitive.rules.get("stacked", _nothing)(**eqn.params)
        return primitive.evaluate(operands, params)
    if any(map(_axes_of_members, out)):
        operands = _as_parts_of_members(eqn, operands, avals, out)
    if not any(map(_axes, (*avals, *out))):
        return primitive.evaluate(operands, eqn.params)
    if primitive.rules.get("dimensions") is not AS_SAID:
        return _apply(eqn, operands, avals, out)
    if "sharding" not in eqn.params:  # each result is an operand
        return primitive.evaluate(operands, eqn.params)
    if avals == out:
        return operands
    result = _change_axes(operands[0], avals[0], out[0])
    return (result,) if _axes(out[0]) else primitive.bind(result, **eqn.params)


def _as_parts_of_members(
    eqn: Equation, operands: Sequence[Any], avals: Sequence[ShapedArray],
    out: Sequence[ShapedArray],
) -> list[Any]:  # fmt: skip
    """Return the operands of what is linear in all together: a whole one as the first part."""
    argnums, together = linear_operands(eqn.primitive, avals, eqn.params)
    if not together or eqn.primitive.name == "pcast":
        return list(operands)
    mesh, axes, found = out[0].type_sharding.mesh, _axes_of_members(out[0]), list(operands)
    for i in argnums:
        given = eqn.inputs[i]
        if type(given) is Literal and not np.any(given.value.to_host()):
            continue  # zeros are zeros in parts, too
        for axis in axes:
            old = avals[i].mat.state(axis)
            found[i] = recast(found[i], (axis,), old, "unreduced", mesh)
    return found


def _nothing(**_params: Any) -> dict[str, Any]:
    """Change nothing: only who says how whole values lie says how stacks do."""
    return {}


def _change_axes(x: Any, before: ShapedArray, after: ShapedArray) -> Any:
    """Return a value that is in parts along other axes: added up, or the first part of new sums."""
    mesh = (after.type_sharding or before.type_sharding).mesh
    old, new = set(_axes(before)), set(_axes(after))

    def run(x: Any) -> list[Any]:
        apart = _Apart(x, before.shape, mesh, old)
        apart.add_up(old - new)
        apart.grow(new - old, is_sum=True)
        return [apart.stack(new)]

    return _call(run, [x], [_stack_type(after)])[0]


def _apply(
    eqn: Equation, operands: Sequence[Any], avals: Sequence[ShapedArray],
    out: Sequence[ShapedArray],
) -> Sequence[Any]:  # fmt: skip
    """Apply a linear operation to stacks, by its batch rule."""
    primitive, params = eqn.primitive, eqn.params
    argnums, together = linear_operands(primitive, avals, params)
    mesh, axes = out[0].type_sharding.mesh, set(_axes(out[0]))
    given = set().union(*map(_axes, avals))
    splits = _splits(eqn, avals, out, axes - given) if axes - given else {}

    def run(*arrays: Any) -> list[Any]:
        stacks: list[Any] = []
        for i, (x, a) in enumerate(zip(arrays, avals, strict=True)):
            apart = _Apart(x, a.shape, mesh, set(_axes(a)))
            if together and i in argnums:
                apart.grow(given - apart.axes, is_sum=True)
            for dim, part in splits.get(i, ()):
                apart.split(dim, part, axes - given)
            if apart.axes:
                apart.grow(axes - apart.axes, is_sum=False)
                stacks.append(apart.stack(axes))
            else:
                stacks.append(not_mapped)
        return _batch(primitive, arrays, stacks, avals, out, params)

    return _call(run, operands, [_stack_type(a) for a in out])


def _splits(
    eqn: Equation, avals: Sequence[ShapedArray], out: Sequence[ShapedArray], axes: set[Any]
) -> dict[int, list[tuple[int, tuple[Any, ...]]]]:
    """Return for each operand the contracted dimensions that axes cut, and all that cuts them."""
    names = eqn.primitive.rules["dimensions"](avals, out, eqn.params)
    assert isinstance(names, Names)
    typed = [(dims, a.type_sharding) for dims, a in zip(names.operands, avals, strict=True)]
    cut = [pair for dims, sharding in typed if sharding is not None
           for pair in zip(dims, map(axes_of, sharding.spec), strict=True)]  # fmt: skip
    parts = {name: part for name, part in cut if axes.intersection(part)}
    return {
        i: [(dim, parts[name]) for dim, name in enumerate(dims) if name in parts]
        for i, dims in enumerate(names.operands)
    }


def _batch(
    primitive: Any, arrays: Sequence[Any], stacks: Sequence[Any], avals: Sequence[ShapedArray],
    out: Sequence[ShapedArray], params: dict[str, Any],
) -> list[Any]:  # fmt: skip
    """Apply a primitive by its batch rule, along the last dimension of stacks."""
    axis = BatchDimension(_count(out[0]))
    values = [x if s is not_mapped else s for x, s in zip(arrays, stacks, strict=True)]
    if primitive.rules["batch"] is xprim.ELEMENTWISE:
        shape = max([a.shape for a in avals], key=len)
        values = [_repeat(x, s is not not_mapped, a.ndim, (*shape, axis.size))
                  for x, s, a in zip(values, stacks, avals, strict=True)]  # fmt: skip
        return list(primitive.bind(*values, **params))
    dims = [s if s is not_mapped else x.aval.ndim - 1 for s, x in zip(stacks, values, strict=True)]
    results, found = primitive.rule("batch")(axis, values, dims, **params)
    return [axis.to_back(r, d) for r, d in zip(results, found, strict=True)]


def _repeat(x: Any, is_stack: bool, ndim: int, shape: tuple[int, ...]) -> Any:
    """Repeat an operand of an elementwise operation to the shape of its result."""
    if x.aval.shape == shape or not x.aval.ndim:
        return x
    dims = (*range(ndim), *([len(shape) - 1] if is_stack else []))
    return bind_one("broadcast_in_dim", x, shape=shape, broadcast_dimensions=dims)


class _Apart:
    """A value while parts are made of it, or added up: a dimension behind its own for each axis.

    Args:
      x: the array: the value, or its stack.
      shape: of the value.
      mesh: the mesh.
      axes: those along which it is in parts.

    Attributes:
      axes: likewise, as they are now.
    """

    __slots__ = ("_mesh", "_ndim", "_x", "axes")

    def __init__(self, x: Any, shape: tuple[int, ...], mesh: Any, axes: set[Any]) -> None:
        self._mesh, self._ndim, self.axes = mesh, len(shape), set(axes)
        self._x = _reshape(x, (*shape, *self._sizes(axes)))

    def _sizes(self, axes: Iterable[Any]) -> list[int]:
        return [self._mesh.shape[name] for name in _in_order(self._mesh, axes)]

    def _place(self, axis: Any) -> int:
        return self._ndim + _in_order(self._mesh, self.axes | {axis}).index(axis)

    def add_up(self, axes: set[Any]) -> None:
        """Add up the parts along axes."""
        dims = tuple(sorted([self._place(axis) for axis in axes]))
        if dims:
            self._x = bind_one("reduce_sum", self._x, axes=dims)
            self.axes -= axes

    def grow(self, axes: set[Any], *, is_sum: bool) -> None:
        """Have parts along more axes: of a sum the first and zeros, of other values copies."""
        for axis in _in_order(self._mesh, axes):
            place, size = self._place(axis), self._mesh.shape[axis]
            shape = (*self._x.aval.shape[:place], size, *self._x.aval.shape[place:])
            kept = tuple([d for d in range(len(shape)) if d != place])
            self._x = bind_one(
                "broadcast_in_dim", self._x, shape=shape, broadcast_dimensions=kept)  # fmt: skip
            if is_sum:
                self._x = _first_along(self._x, place)
            self.axes.add(axis)

    def split(self, dim: int, part: tuple[Any, ...], axes: set[Any]) -> None:
        """Split a dimension that axes of the mesh cut: by some of them it is in parts then."""
        own, sizes = self._x.aval.shape, [self._mesh.shape[name] for name in part]
        rest = own[dim] // math.prod(sizes)
        self._x = _reshape(self._x, (*own[:dim], *sizes, rest, *own[dim + 1 :]))
        for k, name in reversed(list(enumerate(part))):
            if name in axes:
                part = (*part[:k], *part[k + 1 :])
                self._x = _move(self._x, dim + k, self._place(name) + len(part))
                self.axes.add(name)
        now = self._x.aval.shape
        merged = math.prod(now[dim : dim + len(part) + 1])
        self._x = _reshape(self._x, (*now[:dim], merged, *now[dim + len(part) + 1 :]))

    def stack(self, axes: set[Any]) -> Any:
        """Return the stack of the parts; the value where there are none."""
        shape = self._x.aval.shape[: self._ndim]
        return _reshape(self._x, (*shape, math.prod(self._sizes(axes))) if axes else shape)


def _first_along(x: Any, dim: int) -> Any:
    """Return an array that has zeros along a dimension but for its first index."""
    (number,) = get_primitive("iota").bind(dtype=dtypes.int32, shape=x.aval.shape, dimension=dim)
    (is_first,) = get_primitive("eq").bind(number, xprim.scalar_array(0, dtypes.int32))
    zeros = bind_one("broadcast_in_dim", xprim.scalar_array(0, x.aval.dtype), shape=x.aval.shape,
                     broadcast_dimensions=())  # fmt: skip
    return get_primitive("select_n").bind(is_first, zeros, x)[0]


def _call(
    fun: Callable[..., Any], operands: Sequence[Any], out: Sequence[ShapedArray]
) -> Sequence[Any]:
    """Apply a function of arrays of which types say nothing; its results lie as types say."""
    return called_with(
        fun, operands, [whole(x.aval) for x in operands], [a.type_sharding for a in out], "parts"
    )


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.aval.shape == shape else bind_one("reshape", x, new_sizes=shape, dimensions=None)


def _move(x: Any, source: int, destination: int) -> Any:
    return BatchDimension(0).move(x, source, destination)


# --- types ----------------------------------------------------------------------------------------


def _stack_type(aval: ShapedArray) -> ShapedArray:
    """Return the type of the stack of the parts of a value; that of others is their own."""
    axes = _axes(aval)
    if not axes:
        return aval
    sharding = aval.type_sharding.update(spec=PartitionSpec(*aval.type_sharding.spec, axes))
    return xprim.shaped_array((*aval.shape, _count(aval)), aval.dtype, aval.weak_type, sharding)


def _axes(aval: ShapedArray) -> tuple[Any, ...]:
    """Return the axes along which a value is in parts, in the order of the mesh."""
    unreduced = sums_of(aval).unreduced
    if not unreduced:
        return ()
    return _in_order(
        aval.type_sharding.mesh, unreduced.difference(aval.type_sharding.mesh.manual_axes)
    )


def _axes_of_members(aval: ShapedArray) -> tuple[Any, ...]:
    """Return the manual axes along which members hold the parts of a value."""
    unreduced = sums_of(aval).unreduced
    if not unreduced:
        return ()
    return _in_order(
        aval.type_sharding.mesh, unreduced.intersection(aval.type_sharding.mesh.manual_axes)
    )


def _count(aval: ShapedArray) -> int:
    return math.prod([aval.type_sharding.mesh.shape[name] for name in _axes(aval)])


def _in_order(mesh: Any, axes: Iterable[Any]) -> tuple[Any, ...]:
    some = frozenset(axes)
    return tuple([name for name in mesh.axis_names if name in some])
