"""Collectives: operations across a named axis that `vmap`, `pmap` or `shard_map` binds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

import xbatch
import xnp
import xtree
from xjit.lowering.stablehlo_text import own_number
from xjit.sharding.meshes import abstract_mesh_now
from xjit.sharding.rules import recast
from xjit.sharding.shardings import with_manual_axes
from xnp.primitives.table import (
    add,
    bind,
    broadcast_to,
    convert,
    div,
    fill,
    iota,
    join,
    move_dim,
    mul,
    reshape,
    scalar_like,
    select,
    slice_dim,
)
from xprim import (
    LINEAR,
    STRUCTURAL,
    ZERO,
    Array,
    ClosedJaxpr,
    Equation,
    ManualAxisType,
    Primitive,
    ShapedArray,
    Sharding,
    Zero,
    as_array,
    axis_size as _size_of,
    axis_size as size_of_axis,
    axis_size as trace_axis_size,
    config,
    dimension_names,
    dtypes,
    not_mapped,
    primitive_maker,
    scalar_array,
    shaped_array,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require
from xprim.sharded_types import ShardingTypeError, vary
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, AxisIndexGroups, AxisName, PyTree

__all__ = ()


# ---------------------------------------------------------------------------------- varying axes
# Along which axes of a mesh values vary: the types of values in a function of `shard_map`.
#
# Along the axes that `checked_axes` names, types say which values differ from member to member
# (`float32[3]{V:x}`, `typeof(x).vma`): the pieces of an operand that an axis cuts, the number of
# a member, and what is computed of these. The results of an operation vary over the axes of all
# of its operands. Collectives change what varies, each by its rule of kind `shard`:
#
#     psum, pmax, pmin                    from values that vary over an axis to one value for all
#     all_gather, all_to_all, ppermute    from values that vary to values that vary
#     pvary                               counts one value as so many, which happen to be equal
#
# `psum` and `pvary` are each other's transpose, so the cotangent of a value that all members
# share is the sum of theirs, and that of a result that they share is a copy for each.
#
# Members may also hold the parts of a sum (`{U:x}`), or all the value whose cotangent is in parts
# (`{R:x}`), so that a sum waits. Types say that, too (rules of kind `sums`):
#
#     pcast                   varying -> unreduced, reduced -> varying, invarying -> reduced
#     psum, psum_scatter      unreduced -> invarying, varying; reduced and unreduced are dual, so
#     all_gather              varying -> reduced       transposes psum_scatter of what is unreduced
#
# Source: the typing rules of `jax.shard_map` with `check_vma=True`.

Axes = frozenset[Any]
_NONE: Axes = frozenset()

checked_axes: config.Option[Axes] = config.define(
    config.Option(
        "checked_axes",
        _NONE,
        "Manual axes of a mesh along which types say what varies; `shard_map` sets it.",
        kind=frozenset,
        in_cache_key=True,
    )
)


def varying_over(x: Array, names: Sequence[Any]) -> Array:
    """Return a value that counts as varying over those of some axes that are checked."""
    axes = checked_axes.value.intersection(names)
    return vary(x, axes, abstract_mesh_now()) if axes else x


def type_of_members(
    aval: ShapedArray, mesh: Any, *, varying: Axes = _NONE, unreduced: Axes = _NONE,
    reduced: Axes = _NONE,
) -> ShapedArray:  # fmt: skip
    """Return a type of what members of manual axes hold, beside what it says already."""
    held = aval.mat
    held = held._replace(
        varying=held.varying | varying, unreduced=held.unreduced | unreduced,
        reduced=held.reduced | reduced,
    )  # fmt: skip
    sharding = with_manual_axes(aval.type_sharding, held, mesh, aval.ndim)
    return shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding)


def varying_type(aval: ShapedArray, axes: Axes, mesh: Any) -> ShapedArray:
    """Return a type whose values vary over some manual axes of a mesh, beside those it names."""
    return type_of_members(aval, mesh, varying=axes)


def _pvary_shape(aval: ShapedArray, *, axes: Any, mesh: Any) -> tuple[ShapedArray, ...]:
    return (varying_type(aval, frozenset(axes), mesh),)


def _pvary_numpy(x: Any, *, axes: Any, mesh: Any) -> Any:
    return (x,)


def _pvary_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any, mesh: Any
) -> Any:
    return operands


def _pvary_transpose(cts: Any, x: Any, *, axes: Any, mesh: Any) -> Any:
    return cts  # which whoever transposes sums over members, once for all uses of a value


def _pvary_batch(axis: BatchAxis, operands: Any, dims: Any, *, axes: Any, mesh: Any) -> Any:
    return pvary_p.bind(*operands, axes=axes, mesh=mesh), dims


def _print_without_mesh(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "mesh"}


pvary_p: Primitive = Primitive(
    "pvary",
    shape=_pvary_shape,
    numpy=_pvary_numpy,
    stablehlo=_pvary_stablehlo,
    jvp=LINEAR,
    transpose=_pvary_transpose,
    batch=_pvary_batch,
    sharding=Sharding(
        dimension_names.alike, varying=lambda varying, *, axes, mesh: (varying.union(axes),)
    ),
    physical=STRUCTURAL,
    print=_print_without_mesh,
)


# --- pcast -------------------------------------------------------------------------------------


def _cast_type(
    aval: ShapedArray, *, axes: Any, mesh: Any, old: str, new: str
) -> tuple[ShapedArray, ...]:
    held = aval.mat._asdict()
    for state, change in ((old, frozenset.difference), (new, frozenset.union)):
        if state != "invarying":
            held[state] = change(held[state], axes)
    sharding = with_manual_axes(aval.type_sharding, ManualAxisType(**held), mesh, aval.ndim)
    return (shaped_array(aval.shape, aval.dtype, aval.weak_type, sharding),)


def _cast_varying(varying: Axes, *, axes: Any, mesh: Any, old: str, new: str) -> tuple[Axes, ...]:
    if old == "varying":
        varying = varying.difference(axes)
    return (varying.union(axes) if new == "varying" else varying,)


def _cast_sums(
    unreduced: Axes, reduced: Axes, *, axes: Any, mesh: Any, old: str, new: str
) -> tuple[Axes, Axes]:
    if old == "reduced":
        reduced = reduced.difference(axes)
    if new == "unreduced":
        unreduced = unreduced.union(axes)
    return unreduced, reduced.union(axes) if new == "reduced" else reduced


def _cast_numpy(x: Any, *, axes: Any, mesh: Any, old: str, new: str) -> Any:
    return (x,)


def _cast_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_params: Any
) -> Any:
    return operands


_DUAL = {"unreduced": "reduced", "reduced": "unreduced"}


def _cast_transpose(cts: Any, x: Any, *, axes: Any, mesh: Any, old: str, new: str) -> Any:
    return (recast(cts[0], axes, _DUAL.get(new, new), _DUAL.get(old, old), mesh),)


def _cast_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    return pcast_p.bind(*operands, **params), dims


pcast_p: Primitive = Primitive(
    "pcast",
    shape=_cast_type,
    numpy=_cast_numpy,
    stablehlo=_cast_stablehlo,
    jvp=LINEAR,
    transpose=_cast_transpose,
    batch=_cast_batch,
    sharding=Sharding(dimension_names.alike, varying=_cast_varying, sums=_cast_sums),
    physical=STRUCTURAL,
    print=_print_without_mesh,
)


def axes_brought(closed: ClosedJaxpr) -> Axes:
    """Return the axes over which some value of a program varies although no argument does."""
    found = _NONE
    for eqn in closed.jaxpr.eqns:
        rule = eqn.primitive.rules.get("shard")
        if rule is not None:
            found = found.union(*rule(*[_NONE] * len(eqn.inputs), **eqn.params))
        for param in eqn.params.values():
            inner = param if type(param) is tuple else (param,)
            found = found.union(*[axes_brought(x) for x in inner if type(x) is ClosedJaxpr])
    return found


def unsaid(
    closed: ClosedJaxpr, said: Sequence[Axes], manual: Sequence[Any]
) -> Iterator[tuple[int, Axes, Equation | None]]:
    """Yield the results that vary over axes that are not said, with these and their equation.

    Args:
      closed: the program of one member.
      said: for each result, the axes over which it may vary.
      manual: the axes in question.
    """
    outvars: Sequence[Any] = closed.jaxpr.outvars
    for i, out in enumerate(outvars):
        axes = out.aval.vma.intersection(manual) - said[i]
        if axes:
            makers = {v: eqn for eqn in closed.jaxpr.eqns for v in eqn.outputs}
            yield i, axes, makers.get(out)


def alike_in_parts(closed: ClosedJaxpr, parts: Sequence[Axes]) -> Iterator[tuple[int, Any]]:
    """Yield the results that count as parts of sums along an axis over which they do not vary.

    Args:
      closed: the program of one member.
      parts: for each result, the axes along which its pieces are added up.
    """
    for i, (out, axes) in enumerate(zip(closed.jaxpr.outvars, parts, strict=True)):
        yield from [(i, axis) for axis in sorted(axes - out.aval.mat.unreduced, key=str)]


# ------------------------------------------------------------------------------------ named axes
# Named axes, as collectives see them: sizes, groups of members, replicas, and the batch rules.
#
# A collective names an axis that an enclosing `vmap` or `pmap` binds. Under `vmap` the members of
# the axis are the positions along a batch dimension, and a collective becomes ordinary operations
# along it. Under `pmap` they are replicas of one program, numbered row by row over all bound
# axes, and a collective becomes the StableHLO operation over groups of replicas.

Groups = tuple[tuple[int, ...], ...] | None


axis_aliases: config.Option[tuple[tuple[Any, tuple[Any, ...]], ...]] = config.define(
    config.Option(
        "axis_aliases",
        (),
        "Names that stand for several axes, the first the slowest; `xmap` sets it.",
        kind=tuple,
        in_cache_key=True,
    )
)


def axis_names(axis_name: Any) -> tuple[Any, ...]:
    """Return one name, or a tuple or list of names, as a tuple of the axes that they stand for."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    if axis_aliases.value:
        members = dict(axis_aliases.value)
        names = tuple([part for name in names for part in members.get(name, (name,))])
    if len(names) > 1 and len(set(names)) < len(names):
        raise ValueError(message(
            "collective", "an axis name occurs twice.", got=repr(axis_name),
            expected="each axis once: members are counted along all of them together",
        ))  # fmt: skip
    return names


def total_size(names: Sequence[Any], operation: str = "collective") -> int:
    """Return the number of members of several axes together; `NameError` for an unbound one."""
    return math.prod([trace_axis_size(name, operation) for name in names])


def check_groups(
    operation: str, groups: Any, names: Sequence[Any], *, over_several: bool = False,
    of_one_size: bool = True,
) -> Groups:  # fmt: skip
    """Return `axis_index_groups` as tuples, or raise a ValueError.

    The groups must hold each index of the axis exactly once, and be equally large where results
    have a dimension of the group's size. Over several axes, where that is possible, members are
    counted row by row.
    """
    total_size(names, operation)  # the names are bound
    if groups is None:
        return None
    rows = tuple([tuple([int(i) for i in row]) for row in groups])
    if len(names) != 1 and not over_several:
        raise ValueError(message(
            operation, "axis_index_groups needs one axis name.", got=f"{tuple(names)}",
        ))  # fmt: skip
    size = total_size(names)
    members = sorted([i for row in rows for i in row])
    sizes = {len(row) for row in rows}
    if members != list(range(size)) or 0 in sizes or (of_one_size and len(sizes) != 1):
        axes = " and ".join(map(repr, names))
        into = "groups of one size" if of_one_size else "groups"
        raise ValueError(message(
            operation, f"axis_index_groups must split the axis {axes} of size {size} into {into}.",
            got=f"{groups}", expected=f"each index from 0 to {size - 1} once",
        ))  # fmt: skip
    return rows


def are_unequal(groups: Groups) -> bool:
    """Return whether some groups have more members than others."""
    return groups is not None and len({len(row) for row in groups}) > 1


def group_size(names: Sequence[Any], groups: Groups) -> int:
    """Return how many members take part in one collective."""
    return total_size(names) if groups is None else len(groups[0])


def raise_unbound(names: Sequence[Any]) -> NoReturn:
    """Raise the error for a collective that is evaluated outside its axis."""
    for name in names:
        trace_axis_size(name)
    raise NameError(message(
        "collective",
        f"the axis name {names[0]!r} is bound, but not around the values given to it.",
        expected="a call inside the vmap, pmap or shard_map that binds the name",
    ))  # fmt: skip


# --- under vmap --------------------------------------------------------------------------------


def collective_batch(
    primitive: Callable[[], Primitive],
    on_axis: Callable[..., tuple[Any, Any]],
    dimension_params: Sequence[str] = (),
    *,
    ordered: bool = False,
) -> Callable[..., Any]:
    """Return the batch rule of a collective of one operand.

    Args:
      primitive: gives the primitive.
      on_axis: `(axis, x, dim, params) -> (result, dim)`, what it does along the batch dimension
        when this `vmap` binds its axis.
      dimension_params: the params that number dimensions of the operand, and are shifted when
        another `vmap` than this one binds the axis.
      ordered: whether over several axes it is more than one after the other.
    """

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        (x,), (dim,) = operands, dims
        name_param = primitive().axis_param
        names = params[name_param]
        if axis.name is None or axis.name not in names:
            shifted = {p: params[p] + (params[p] >= dim) for p in dimension_params}
            return primitive().bind(x, **(params | shifted)), (dim,)
        rest = tuple([n for n in names if n != axis.name])
        if rest and (ordered or params.get("axis_index_groups") is not None):
            raise ValueError(message(
                f"{primitive().name}",
                f"over several axes it needs members on devices, and vmap binds {axis.name!r}.",
                got=f"{names}", expected="axes of pmap or shard_map, or one name",
            ))  # fmt: skip
        y, y_dim = _by_groups(on_axis, axis, x, dim, params)
        if rest:
            (y,) = primitive().bind(y, **(params | {name_param: rest}))
        return (y,), (y_dim,)

    return batch_rule


def _by_groups(
    on_axis: Callable[..., tuple[Any, Any]],
    axis: BatchAxis,
    x: Any,
    dim: Any,
    params: dict[str, Any],
) -> tuple[Any, Any]:
    groups: Groups = params.get("axis_index_groups")
    if groups is None:
        return on_axis(axis, x, dim, params)
    x = axis.to_front(x, dim)
    axes = [xbatch.BatchAxis(len(g)) for g in groups]
    parts = [
        part.to_front(*on_axis(part, pick_rows(x, g), 0, params))
        for part, g in zip(axes, groups, strict=True)
    ]
    members = [i for g in groups for i in g]
    return pick_rows(join(parts, 0), np.argsort(members).tolist()), 0


def pick_rows(x: Any, rows: Sequence[int]) -> Any:
    """Return the given rows along dimension 0, zeros where a row is -1; runs move as one piece."""
    pieces, start = [], 0
    for i in range(1, len(rows) + 1):
        if i < len(rows) and rows[i] == (-1 if rows[i - 1] < 0 else rows[i - 1] + 1):
            continue
        if rows[start] < 0:
            pieces.append(fill((i - start, *x.aval.shape[1:]), 0, x.aval.dtype))
        else:
            pieces.append(slice_dim(x, 0, rows[start], rows[i - 1] + 1))
        start = i
    return join(pieces, 0)


def is_mapped(dim: Any) -> bool:
    """Return whether a value differs from member to member."""
    return dim is not not_mapped


# --- over which axes values vary ---------------------------------------------------------------


def gathers_members(name_param: str) -> Callable[..., tuple[frozenset[Any], ...]]:
    """Return the shard rule of a collective that gives all members of its axes one value."""

    def shard_rule(varying: frozenset[Any], **params: Any) -> tuple[frozenset[Any], ...]:
        if params.get("axis_index_groups") is not None:  # one value for each group
            return (varying,)
        return (varying - frozenset(params[name_param]),)

    return shard_rule


def scatters_members(
    varying: frozenset[Any], *, axis_name: Any, **_params: Any
) -> tuple[frozenset[Any], ...]:
    """Say over which axes the result of a collective varies that gives each member its own."""
    return (varying | frozenset(axis_name),)


# --- under pmap and shard_map -------------------------------------------------------------------


def collective_attributes(
    builder: Builder, names: Sequence[Any], groups: Groups = None, *, global_ids: bool = True
) -> str:
    """Return the attributes that say who takes part in a collective over these axes.

    Args:
      builder: writes the program.
      names: of the axes.
      groups: their members, in groups.
      global_ids: whether the operation has `use_global_device_ids`.
    """
    rows = groups_attribute(replica_groups(builder, names, groups))
    channel = builder.channel()
    return f"replica_groups = {rows}{channel}" + (
        ", use_global_device_ids" if channel and global_ids else "")  # fmt: skip


def replica_groups(
    builder: Builder, names: Sequence[Any], groups: Groups = None
) -> list[list[int]]:
    """Return the groups of replicas, or of devices of a mesh, that a collective joins.

    They are numbered row by row over `builder.axis_sizes`, in its order, but for devices that a
    mesh has in another order.
    """
    sizes = builder.axis_sizes
    _require_replicas(names, sizes)
    bound = list(sizes)
    members = builder.members
    replicas = np.arange(math.prod(sizes.values())) if members is None else members.numbers
    replicas = replicas.reshape([sizes[n] for n in bound])
    order = [i for i, n in enumerate(bound) if n not in names]
    order += [bound.index(n) for n in names]
    rows = replicas.transpose(order).reshape(-1, math.prod([sizes[n] for n in names])).tolist()
    if groups is None:
        return rows
    return [[row[i] for i in group] for row in rows for group in groups]


def _require_replicas(names: Sequence[Any], sizes: Mapping[Any, int]) -> None:
    for name in names:
        if name not in sizes:
            known = ", ".join([repr(n) for n in sizes]) or "none"
            raise NameError(message(
                "Found an unbound axis name", f"{name}, in a collective.",
                got=f"the axis name {name!r} is not bound here; in scope: {known}",
                expected="a name given as axis_name= by an enclosing pmap, or an axis of shard_map",
            ))  # fmt: skip


def groups_attribute(rows: Sequence[Sequence[int]]) -> str:
    """Return groups of replicas, or pairs of them, as the text of an attribute.

    Groups of fewer members than the largest are filled up by -1 (StableHLO, all_reduce).
    """
    width = max([len(row) for row in rows], default=2)
    filled_up = [[*row, *[-1] * (width - len(row))] for row in rows]
    inside = ", ".join([f"[{', '.join(map(str, row))}]" for row in filled_up])
    return f"dense<[{inside}]> : tensor<{len(rows)}x{width}xi64>" if rows else (
        "dense<> : tensor<0x2xi64>")  # fmt: skip


# ------------------------------------------------------------------------- reduction collectives
# The collectives that combine values: psum, pmax, pmin, reduce_scatter.
#
#     psum            every member gets the sum over the members of the axes
#     pmax, pmin      ... the largest, the smallest
#     reduce_scatter  the sum is cut along a dimension, and every member gets its piece
#
# Each member's tangent is its own, so the transpose of `psum` is `psum`: all results depend on
# every operand. Semantics: StableHLO specification, sections all_reduce and reduce_scatter.


def _all_reduce(op: str) -> Callable[..., Any]:
    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any,
                       axis_index_groups: Any) -> Any:  # fmt: skip
        return b.op("stablehlo.all_reduce", operands, avals_in, avals_out,
                    collective_attributes(b, axes, axis_index_groups),
                    b.reducer(op, avals_in[0].dtype))  # fmt: skip

    return stablehlo_rule


def _reduce_numpy(x: Any, *, axes: Any, axis_index_groups: Any) -> Any:
    raise_unbound(axes)


# --- psum --------------------------------------------------------------------------------------


def _sum_shape(aval: ShapedArray, *, axes: Any, axis_index_groups: Any) -> tuple[ShapedArray, ...]:
    require(
        not dtypes.is_bool(aval.dtype), "psum", "does not accept dtype bool.",
        error=TypeError,
    )  # fmt: skip
    return (aval,)


def _sum_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    if is_mapped(dim):
        return bind("reduce_sum", x, axes=(dim,)), not_mapped
    return mul(x, scalar_like(x, axis.size)), not_mapped


def _sum_transpose(cts: Any, x: Any, *, axes: Any, axis_index_groups: Any) -> Any:
    """Give each member the cotangent of the sum: as it is, where types say that all share it."""
    parts = tuple([name for name in axes if name in x.aval.mat.unreduced])
    if parts:  # each member has the cotangent of its part
        ct = recast(cts[0], parts, "invarying", "reduced", x.aval.type_sharding.mesh)
        return (varying_over(ct, [name for name in axes if name not in parts]),)
    ct = varying_over(cts[0], axes)
    shared = x.aval.vma.intersection(axes) if axis_index_groups is None else frozenset()
    rest = tuple([name for name in axes if name not in shared])
    return psum_p.bind(ct, axes=rest, axis_index_groups=axis_index_groups) if rest else (ct,)


def _sum_of_parts(
    unreduced: Axes, reduced: Axes, *, axes: Any, axis_index_groups: Any
) -> tuple[Axes, Axes]:
    return unreduced.difference(axes), reduced


psum_p: Primitive = Primitive(
    "psum",
    shape=_sum_shape,
    numpy=_reduce_numpy,
    stablehlo=_all_reduce("stablehlo.add"),
    jvp=LINEAR,
    transpose=_sum_transpose,
    batch=collective_batch(lambda: psum_p, _sum_on_axis),
    sharding=Sharding(dimension_names.alike, varying=gathers_members("axes"), sums=_sum_of_parts),
    axis_param="axes",
)


# --- pmax, pmin --------------------------------------------------------------------------------


@primitive_maker
def _chooser(name: str, op: str, reduce: str) -> Primitive:
    """Define the primitive that chooses one of the members' values."""

    def shape_rule(aval: ShapedArray, *, axes: Any, axis_index_groups: Any) -> Any:
        require(
            not dtypes.is_complex(aval.dtype), name, "complex numbers have no order.",
            error=TypeError,
        )  # fmt: skip
        return (aval,)

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        (y,) = primitive.bind(x, **params)
        chosen = convert(bind("eq", x, y), x.aval.dtype)
        # members that tie share the derivative, as in reduce_max
        (total,) = psum_p.bind(mul(chosen, x_dot), **params)
        (count,) = psum_p.bind(chosen, **params)
        return (y,), (div(total, count),)

    def on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
        return (bind(reduce, x, axes=(dim,)) if is_mapped(dim) else x), not_mapped

    primitive = Primitive(
        name,
        shape=shape_rule,
        numpy=_reduce_numpy,
        stablehlo=_all_reduce(op),
        jvp=jvp_rule,
        transpose=undefined("it is not linear"),
        batch=collective_batch(lambda: primitive, on_axis),
        sharding=Sharding(dimension_names.alike, varying=gathers_members("axes")),
        axis_param="axes",
    )
    return primitive


pmax_p = _chooser("pmax", "stablehlo.maximum", "reduce_max")
pmin_p = _chooser("pmin", "stablehlo.minimum", "reduce_min")


# --- reduce_scatter ----------------------------------------------------------------------------


def _scatter_shape(
    aval: ShapedArray, *, axis_name: Any, axis_size: int, scatter_dimension: int,
    axis_index_groups: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    shape = list(aval.shape)
    if not 0 <= scatter_dimension < len(shape) or shape[scatter_dimension] % axis_size:
        raise ValueError(message(
            "psum_scatter", "the scattered dimension must be a multiple of the number of members.",
            got=f"dimension {scatter_dimension} of {aval.str_long()}, {axis_size} members",
        ))  # fmt: skip
    shape[scatter_dimension] //= axis_size
    return (shaped_array(tuple(shape), aval.dtype, aval.weak_type),)


def _scatter_numpy(x: Any, *, axis_name: Any, **_params: Any) -> Any:
    raise_unbound(axis_name)


def _scatter_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis_name: Any,
                       axis_size: int, scatter_dimension: int,
                       axis_index_groups: Any) -> Any:  # fmt: skip
    members = collective_attributes(b, axis_name, axis_index_groups)
    return b.op("stablehlo.reduce_scatter", operands, avals_in, avals_out,
                f"{members}, scatter_dimension = {scatter_dimension} : i64",
                b.reducer("stablehlo.add", avals_in[0].dtype))  # fmt: skip


def _scatter_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    total, _ = _sum_on_axis(axis, x, dim, params)
    place = params["scatter_dimension"]
    shape = total.aval.shape
    pieces = (axis.size, shape[place] // axis.size)
    return reshape(total, (*shape[:place], *pieces, *shape[place + 1 :])), place


def _scatter_transpose(cts: Any, x: Any, *, scatter_dimension: int, **params: Any) -> Any:
    ct, names = varying_over(cts[0], params["axis_name"]), params["axis_name"]
    back = "all_gather_reduced" if x.aval.mat.unreduced.issuperset(names) else "all_gather"
    return (bind(back, ct, all_gather_dimension=scatter_dimension, **params),)


def _scatter_sums(
    unreduced: Axes, reduced: Axes, *, axis_name: Any, **_params: Any
) -> tuple[Axes, Axes]:
    return unreduced.difference(axis_name), reduced


reduce_scatter_p: Primitive = Primitive(
    "reduce_scatter",
    shape=_scatter_shape,
    numpy=_scatter_numpy,
    stablehlo=_scatter_stablehlo,
    jvp=LINEAR,
    transpose=_scatter_transpose,
    batch=collective_batch(lambda: reduce_scatter_p, _scatter_on_axis, ("scatter_dimension",)),
    sharding=Sharding(
        dimension_names.whole_along("scatter_dimension"),
        varying=scatters_members,
        sums=_scatter_sums,
    ),
    axis_param="axis_name",
)


# -------------------------------------------------------------------------- exchange collectives
# The collectives that move values: all_gather, all_to_all, ppermute, pbroadcast, axis_index.
#
#     all_gather   every member gets the values of all, joined along a dimension
#     all_to_all   each member cuts its value in pieces and sends the k-th to member k
#     ppermute     each member sends its value to at most one other; who gets none has zeros
#     pbroadcast   every member gets the value of one
#     axis_index   every member gets its own number
#
# Semantics: StableHLO specification, sections all_gather, all_to_all, collective_permute,
# replica_id.


def _numpy(x: Any, *, axis_name: Any, **_params: Any) -> Any:
    raise_unbound(axis_name)


def _resize(aval: ShapedArray, dim: int, size: int) -> ShapedArray:
    shape = aval.shape
    return shaped_array((*shape[:dim], size, *shape[dim + 1 :]), aval.dtype, aval.weak_type)


# --- all_gather --------------------------------------------------------------------------------


def _gather_shape(
    aval: ShapedArray, *, all_gather_dimension: int, axis_name: Any, axis_size: int,
    axis_index_groups: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    dim = all_gather_dimension
    require(0 <= dim < aval.ndim, "all_gather", "{} has no dimension {} to join along.", aval, dim)
    return (_resize(aval, dim, aval.shape[dim] * axis_size),)


def _gather_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                      all_gather_dimension: int, axis_name: Any, axis_size: int,
                      axis_index_groups: Any) -> Any:  # fmt: skip
    members = collective_attributes(b, axis_name, axis_index_groups)
    attributes = f"all_gather_dim = {all_gather_dimension} : i64, {members}"
    return b.op("stablehlo.all_gather", operands, avals_in, avals_out, attributes)


def _gather_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    place = params["all_gather_dimension"]
    x = axis.move(x, dim, place) if is_mapped(dim) else axis.broadcast(x, place)
    return _merge(x, place), not_mapped


def _merge(x: Any, dim: int) -> Any:
    """Join dimension `dim` with the next one."""
    shape = x.aval.shape
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _gather_transpose(cts: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    ct, names = cts[0], params["axis_name"]
    if not ct.aval.mat.unreduced.issuperset(names):
        ct = varying_over(ct, names)
    return (bind("reduce_scatter", ct, scatter_dimension=all_gather_dimension, **params),)


def _gather_sums(
    unreduced: Axes, reduced: Axes, *, axis_name: Any, **_params: Any
) -> tuple[Axes, Axes]:
    return unreduced, reduced.union(axis_name)


def _own_piece(cts: Any, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_size: int,
               axis_index_groups: Any) -> Any:  # fmt: skip
    """Return a member's piece of the cotangent of what all members share."""
    place: Any = scalar_array(0, dtypes.int32)
    for name in axis_name:
        (one,) = axis_index_p.bind(axis_name=(name,))
        one = varying_over(one, (name,))
        place = add(mul(place, scalar_like(one, size_of_axis(name))), one)
    size = x.aval.shape[all_gather_dimension]
    zero = scalar_array(0, dtypes.int32)
    starts: list[Any] = [zero] * x.aval.ndim
    starts[all_gather_dimension] = mul(place, scalar_like(place, size))
    return (bind("dynamic_slice", cts[0], *starts, slice_sizes=x.aval.shape),)


@primitive_maker
def _all_gather(name: str, transpose: Any, shard: Any, **sums: Any) -> Primitive:
    primitive: Primitive = Primitive(
        name,
        shape=_gather_shape,
        numpy=_numpy,
        stablehlo=_gather_stablehlo,
        jvp=LINEAR,
        transpose=transpose,
        batch=collective_batch(lambda: primitive, _gather_on_axis, ("all_gather_dimension",)),
        sharding=Sharding(dimension_names.whole_along("all_gather_dimension"), varying=shard),
        physical=STRUCTURAL,
        axis_param="axis_name",
        **sums,
    )
    return primitive


all_gather_p = _all_gather("all_gather", _gather_transpose, scatters_members)
# the result counts as one value for all members, of which each gives its piece a cotangent
all_gather_invariant_p = _all_gather(
    "all_gather_invariant", _own_piece, gathers_members("axis_name")
)
# as before, and the cotangent of each member is a part of the sum that is scattered
all_gather_reduced_p = _all_gather(
    "all_gather_reduced", _gather_transpose, gathers_members("axis_name"), sums=_gather_sums
)


# --- all_to_all --------------------------------------------------------------------------------


def _exchange_shape(
    aval: ShapedArray, *, split_axis: int, concat_axis: int, axis_name: Any, axis_size: int,
    axis_index_groups: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    if not (0 <= split_axis < aval.ndim and 0 <= concat_axis < aval.ndim):
        raise ValueError(message(
            "all_to_all", "split_axis and concat_axis must be dimensions of the operand.",
            got=f"{split_axis} and {concat_axis} for {aval.str_long()}",
        ))  # fmt: skip
    if aval.shape[split_axis] % axis_size:
        raise ValueError(message(
            "all_to_all", "the dimension to split must be a multiple of the number of members.",
            got=f"dimension {split_axis} of {aval.str_long()}, {axis_size} members",
        ))  # fmt: skip
    out = _resize(aval, split_axis, aval.shape[split_axis] // axis_size)
    return (_resize(out, concat_axis, out.shape[concat_axis] * axis_size),)


def _exchange_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                        split_axis: int, concat_axis: int, axis_name: Any, axis_size: int,
                        axis_index_groups: Any) -> Any:  # fmt: skip
    members = collective_attributes(b, axis_name, axis_index_groups, global_ids=False)
    return b.op(
        "stablehlo.all_to_all", operands, avals_in, avals_out,
        f"split_dimension = {split_axis} : i64, concat_dimension = {concat_axis} : i64, "
        f"split_count = {axis_size} : i64, {members}",
    )  # fmt: skip


def _exchange_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    split, concat = params["split_axis"], params["concat_axis"]
    x = axis.to_front(x, dim)  # [sender, ...]
    shape = x.aval.shape
    cut = (axis.size, shape[split + 1] // axis.size)
    x = reshape(x, (*shape[: split + 1], *cut, *shape[split + 2 :]))
    x = move_dim(x, split + 1, 0)  # [receiver, sender, ...]
    return _merge(move_dim(x, 1, concat + 1), concat + 1), 0


def _exchange_transpose(cts: Any, x: Any, *, split_axis: int, concat_axis: int,
                        **params: Any) -> Any:  # fmt: skip
    ct = varying_over(cts[0], params["axis_name"])
    return all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)


def _exchange_dimensions(avals: Any, out: Any, params: dict[str, Any]) -> Any:
    """What is cut in pieces or joined of them must be whole."""
    along = {"dims": (params["split_axis"], params["concat_axis"])}
    return dimension_names.whole_along("dims")(avals, out, along)


all_to_all_p: Primitive = Primitive(
    "all_to_all",
    shape=_exchange_shape,
    numpy=_numpy,
    stablehlo=_exchange_stablehlo,
    jvp=LINEAR,
    transpose=_exchange_transpose,
    batch=collective_batch(lambda: all_to_all_p, _exchange_on_axis, ("split_axis", "concat_axis")),
    sharding=Sharding(_exchange_dimensions, varying=scatters_members),
    physical=STRUCTURAL,
    axis_param="axis_name",
)


# --- ppermute ----------------------------------------------------------------------------------


def _same_shape(aval: ShapedArray, **_params: Any) -> tuple[ShapedArray, ...]:
    return (aval,)


def _permute_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis_name: Any,
                       perm: Any) -> Any:  # fmt: skip
    rows = replica_groups(b, axis_name)
    pairs = [[row[source], row[target]] for row in rows for source, target in perm]
    return b.op("stablehlo.collective_permute", operands, avals_in, avals_out,
                f"source_target_pairs = {groups_attribute(pairs)}{b.channel()}")  # fmt: skip


def _permute_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    sources = [-1] * axis.size
    for source, target in params["perm"]:
        sources[target] = source
    return pick_rows(axis.to_front(x, dim), sources), 0


def _permute_transpose(cts: Any, x: Any, *, axis_name: Any, perm: Any) -> Any:
    inverse = tuple([(target, source) for source, target in perm])
    return ppermute_p.bind(varying_over(cts[0], axis_name), axis_name=axis_name, perm=inverse)


ppermute_p: Primitive = Primitive(
    "ppermute",
    shape=_same_shape,
    numpy=_numpy,
    stablehlo=_permute_stablehlo,
    jvp=LINEAR,
    transpose=_permute_transpose,
    batch=collective_batch(lambda: ppermute_p, _permute_on_axis, ordered=True),
    sharding=Sharding(dimension_names.alike, varying=scatters_members),
    physical=STRUCTURAL,
    axis_param="axis_name",
)


# --- pbroadcast --------------------------------------------------------------------------------


def _broadcast_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                         axis_name: Any, source: int) -> Any:  # fmt: skip
    """Gather and take one: not every platform has a collective broadcast."""
    (aval,), size = avals_in, b.axis_sizes.get(axis_name[0], 1)
    members = collective_attributes(b, axis_name)
    one = shaped_array((1, *aval.shape), aval.dtype)
    everything = shaped_array((size, *aval.shape), aval.dtype)
    (x,) = b.op("stablehlo.reshape", operands, avals_in, [one])
    (x,) = b.op("stablehlo.all_gather", [x], [one], [everything],
                f"all_gather_dim = 0 : i64, {members}")  # fmt: skip
    starts = ", ".join(map(str, (source, *[0] * aval.ndim)))
    limits = ", ".join(map(str, (source + 1, *aval.shape)))
    steps = ", ".join(["1"] * (aval.ndim + 1))
    (x,) = b.op("stablehlo.slice", [x], [everything], [one],
                f"start_indices = array<i64: {starts}>, limit_indices = array<i64: {limits}>, "
                f"strides = array<i64: {steps}>")  # fmt: skip
    return b.op("stablehlo.reshape", [x], [one], avals_out)


def _broadcast_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    if not is_mapped(dim):
        return x, not_mapped
    source = params["source"]
    shape = x.aval.shape
    part = slice_dim(x, dim, source, source + 1)
    return reshape(part, shape[:dim] + shape[dim + 1 :]), not_mapped


def _broadcast_transpose(cts: Any, x: Any, *, axis_name: Any, source: int) -> Any:
    (total,) = psum_p.bind(varying_over(cts[0], axis_name), axes=axis_name, axis_index_groups=None)
    (index,) = axis_index_p.bind(axis_name=axis_name)
    index = varying_over(index, axis_name)
    is_source = bind("eq", index, scalar_array(source, dtypes.int32))
    shape = total.aval.shape
    zeros = fill(shape, 0, total.aval.dtype)
    return (select(broadcast_to(is_source, shape), total, zeros),)


pbroadcast_p: Primitive = Primitive(
    "pbroadcast",
    shape=_same_shape,
    numpy=_numpy,
    stablehlo=_broadcast_stablehlo,
    jvp=LINEAR,
    transpose=_broadcast_transpose,
    batch=collective_batch(lambda: pbroadcast_p, _broadcast_on_axis),
    sharding=Sharding(dimension_names.alike, varying=scatters_members),
    physical=STRUCTURAL,
    axis_param="axis_name",
)


# --- axis_index --------------------------------------------------------------------------------


def _index_shape(*, axis_name: Any) -> tuple[ShapedArray, ...]:
    return (shaped_array((), dtypes.int32),)


def _index_numpy(*, axis_name: Any) -> Any:
    raise_unbound(axis_name)


def _index_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                     axis_name: Any) -> Any:  # fmt: skip
    replica_groups(b, axis_name)  # raises for an unbound name
    sizes = b.axis_sizes
    names = list(sizes)
    stride = math.prod([sizes[n] for n in names[names.index(axis_name[0]) + 1 :]])
    unsigned = shaped_array((), dtypes.uint32)
    if b.members is not None:
        index = own_number(b)
    else:
        (index,) = b.op("stablehlo.replica_id", [], [], [unsigned])
    if stride != 1:
        index = b.same_type_op(
            "stablehlo.divide", [index, b.scalar(stride, dtypes.uint32)], unsigned
        )
    index = b.same_type_op(
        "stablehlo.remainder", [index, b.scalar(sizes[axis_name[0]], dtypes.uint32)], unsigned
    )
    return [b.convert(index, unsigned, dtypes.int32)]


def _index_batch(axis: BatchAxis, operands: Any, dims: Any, *, axis_name: Any) -> Any:
    return (iota((axis.size,), 0),), (0,)


axis_index_p: Primitive = Primitive(
    "axis_index",
    shape=_index_shape,
    numpy=_index_numpy,
    stablehlo=_index_stablehlo,
    jvp=ZERO,
    transpose=undefined("it has no operands"),
    batch=_index_batch,
    sharding=Sharding(varying=lambda *, axis_name: (frozenset(axis_name),)),
    axis_param="axis_name",
)


# ----------------------------------------------------------------------------------- collectives
# Collectives: operations across a named axis that an enclosing `vmap` or `pmap` binds.
#
# Each function takes a tree of arrays, the values of one member, and the name of the axis (or
# several names, where the docstring says so). They work the same under `vmap(...,
# axis_name="i")`, eagerly on NumPy, and under `pmap`; outside of any such axis they raise a
# `NameError`.

_PYTHON_NUMBERS = (bool, int, float, complex)


@boundary
def psum(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Sum over a named axis; every member gets the sum.

    Args:
      x: a tree of arrays. A Python number is the same for all members, so its sum is a Python
        number too: `psum(1, "i")` is the size of the axis.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of members; each list is summed by itself.

    Returns:
      A tree like `x`; booleans are summed as int32.

    Raises:
      NameError: when the name is not bound.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.float32([1, 1, 2])))
      [0.25 0.25 0.5 ]

    Differentiable, its transpose is itself. The order in which floats are added is not specified.
    """
    names = axis_names(axis_name)
    groups = check_groups(
        "psum", axis_index_groups, names, over_several=True, of_one_size=False
    )  # fmt: skip
    count = group_size(names, groups)

    def add_up(leaf: Any) -> Any:
        if type(leaf) in _PYTHON_NUMBERS and not are_unequal(groups):
            return leaf * count
        value = _array("psum", leaf, names, adds_up=True)
        if dtypes.is_bool(value.dtype):
            value = convert(value, dtypes.int32)
        return psum_p.bind(value, axes=names, axis_index_groups=groups)[0] if names else value

    return xtree.map(add_up, x)


@boundary
def pmean(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Average over a named axis; every member gets the mean.

    Args:
      x: a tree of arrays; integers are averaged as floats.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of members; each list is averaged by itself.

    Returns:
      A tree like `x`, of floats.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.float32([1, 5, 3])))
      [-2.  2.  0.]
    """
    names = axis_names(axis_name)
    groups = check_groups(
        "pmean", axis_index_groups, names, over_several=True, of_one_size=False
    )  # fmt: skip
    count = psum(1, names, axis_index_groups=groups)

    def mean(leaf: Any) -> Any:
        total = as_array(psum(leaf, names, axis_index_groups=axis_index_groups))
        if not dtypes.is_inexact(total.dtype):
            total = convert(total, dtypes.python_scalar_dtype(float))
        if are_unequal(groups):
            return div(total, broadcast_to(convert(count, total.dtype), total.shape))
        return div(total, scalar_like(total, count))

    return xtree.map(mean, x)


@boundary
def pmax(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Return the largest value along a named axis to every member.

    Args:
        x: a tree of real arrays.
        axis_name: a name, or a tuple of names.
        axis_index_groups: lists of members; each is taken by itself.

    Returns:
        A tree like `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pmax(x, "i"), axis_name="i")(np.int32([1, 5, 3])))
      [5 5 5]

    Differentiable: members that tie share the derivative equally.
    """
    return _choose("pmax", pmax_p, x, axis_name, axis_index_groups)


@boundary
def pmin(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Return the smallest value along a named axis to every member; see `pmax`.

    Args:
        x: a tree of real arrays.
        axis_name: a name, or a tuple of names.
        axis_index_groups: lists of members; each is taken by itself.

    Returns:
        A tree like `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pmin(x, "i"), axis_name="i")(np.int32([4, 5, 3])))
      [3 3 3]
    """
    return _choose("pmin", pmin_p, x, axis_name, axis_index_groups)


@boundary
def psum_scatter(
    x: PyTree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Sum over a named axis, and give each member its piece of the sum.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, the first the slowest.
      scatter_dimension: the dimension that is cut: member k gets the k-th piece.
      axis_index_groups: lists of members of equal length; each list is summed by itself.
      tiled: whether the dimension stays, cut to a fraction; otherwise it must be as large as the
        axis and is removed.

    Returns:
      A tree like `x`, of arrays without the dimension, or with `tiled` of arrays that are smaller
      along it.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(np.int32([[1, 2], [3, 4]])))
      [4 6]
    """
    names = axis_names(axis_name)
    groups = check_groups("psum_scatter", axis_index_groups, names, over_several=True)
    count = group_size(names, groups)

    def scatter(leaf: Any) -> Any:
        value = _array("psum_scatter", leaf, names, adds_up=True)
        dim = _dimension("psum_scatter", "scatter_dimension", scatter_dimension, value.ndim)
        if not tiled and value.shape[dim] != count:
            raise ValueError(message(
                "psum_scatter",
                "without tiled=True the scattered dimension must have the size of the axis.",
                got=f"dimension {dim} of {value.aval.str_long()}, size {count}",
            ))  # fmt: skip
        for together in [names] if groups else [(name,) for name in names]:
            size = group_size(together, groups)
            (value,) = reduce_scatter_p.bind(
                value, axis_name=together, axis_size=size, scatter_dimension=dim,
                axis_index_groups=groups,
            )  # fmt: skip
        return value if tiled else reshape(value, value.shape[:dim] + value.shape[dim + 1 :])

    return xtree.map(scatter, x)


@boundary
def all_gather(
    x: PyTree,
    axis_name: AxisName,
    *,
    axis_index_groups: AxisIndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> PyTree:
    """Collect the values of all members of a named axis; every member gets them all.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, the first the slowest.
      axis_index_groups: lists of members of equal length; each list is collected by itself.
      axis: the dimension of the result along which the members stand.
      tiled: whether to join along the existing dimension `axis` instead of making a new one.
      to: whether in a function of `shard_map` the result counts as a value of each member
        (`"varying"`) or as one for all (`"invarying"`), as `out_specs` that do not name the axis
        want it. The cotangent of the latter is not summed over members. `"reduced"` is one for
        all, too, whose cotangent is unreduced: the transpose scatters the sum.

    Returns:
      A tree like `x`: arrays with a dimension more, of the size of the axis, or with `tiled` one
      that is as many times larger.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.int32([1, 2])))
      [[1 2]
       [1 2]]

    Differentiable; the transpose is `psum_scatter`.
    """
    if to not in _GATHERED:
        raise ValueError(message(
            "all_gather", f"there are no values of type {to!r} here.",
            expected=", ".join(map(repr, _GATHERED)),
        ))  # fmt: skip
    names = axis_names(axis_name)
    groups = check_groups("all_gather", axis_index_groups, names, over_several=True)
    total_size(names)
    primitive: Primitive = all_gather_p
    if groups is None and checked_axes.value.issuperset(names):
        primitive = _GATHERED[to]

    def gather(leaf: Any) -> Any:
        value = _array("all_gather", leaf, names)
        dim = _dimension("all_gather", "axis", axis, value.ndim + (not tiled))
        if not tiled:
            value = reshape(value, (*value.shape[:dim], 1, *value.shape[dim:]))
        for together in [names] if groups else [(name,) for name in reversed(names)]:
            size = group_size(together, groups)
            (value,) = primitive.bind(
                value, all_gather_dimension=dim, axis_name=together, axis_size=size,
                axis_index_groups=groups,
            )  # fmt: skip
        return value

    return xtree.map(gather, x)


_GATHERED = {"varying": all_gather_p, "invarying": all_gather_invariant_p,
             "reduced": all_gather_reduced_p}  # fmt: skip


@boundary
def all_to_all(
    x: PyTree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: AxisIndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Cut the value of each member in pieces and send the k-th piece to member k.

    Args:
      x: a tree of arrays.
      axis_name: one name, or several: their members are numbered row by row.
      split_axis: the dimension that is cut.
      concat_axis: the dimension along which the pieces received stand.
      axis_index_groups: lists of members of equal length that exchange among themselves.
      tiled: whether pieces are joined along the existing dimension; otherwise the dimension that
        is cut must be as large as the axis, is removed, and `concat_axis` is a new one.

    Returns:
      A tree like `x`, of the dtypes of its arrays.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> exchange = vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")
      >>> print(exchange(np.int32([[1, 2], [3, 4]])))
      [[1 3]
       [2 4]]

    Differentiable; the transpose is the exchange back.
    """
    names = axis_names(axis_name)
    if axis_index_groups is not None:
        names = _one_name("all_to_all", axis_name)
    groups = check_groups("all_to_all", axis_index_groups, names)
    count = group_size(names, groups)

    def exchange(leaf: Any) -> Any:
        value = _array("all_to_all", leaf, names)
        split = _dimension("all_to_all", "split_axis", split_axis, value.ndim)
        concat = _dimension("all_to_all", "concat_axis", concat_axis, value.ndim)
        if not tiled:
            if value.shape[split] != count:
                raise ValueError(message(
                    "all_to_all",
                    "without tiled=True the dimension to split must have the size of the axis.",
                    got=f"dimension {split} of {value.aval.str_long()}, size {count}",
                ))  # fmt: skip
            value = move_dim(value, split, concat)
            split = concat
        if len(names) != 1:
            return _exchange_over(names, value, split, concat)
        return all_to_all_p.bind(
            value, split_axis=split, concat_axis=concat, axis_name=names, axis_size=count,
            axis_index_groups=groups,
        )[0]  # fmt: skip

    return xtree.map(exchange, x)


def _exchange_over(names: tuple[Any, ...], x: Array, split: int, concat: int) -> Array:
    """Exchange pieces over several axes: over one after the other, a dimension of `x` for each."""
    sizes = [_size_of(name, "all_to_all") for name in names]
    shape, total = x.aval.shape, math.prod(sizes)
    if shape[split] % total:
        raise ValueError(message(
            "all_to_all", "the dimension to split must be a multiple of the number of members.",
            got=f"dimension {split} of {x.aval.str_long()}, {total} members",
        ))  # fmt: skip
    x = reshape(x, (*shape[:split], *sizes, shape[split] // total, *shape[split + 1 :]))
    for k, (name, size) in enumerate(zip(names, sizes, strict=True), split):
        (x,) = all_to_all_p.bind(
            x, split_axis=k, concat_axis=k, axis_name=(name,), axis_size=size,
            axis_index_groups=None,
        )  # fmt: skip
    for k in range(len(sizes)):  # the senders, row by row, stand before the pieces
        x = move_dim(x, split + k, concat + k) if concat < split else move_dim(
            x, split, concat + len(sizes) - 1)  # fmt: skip
    shape = x.aval.shape
    end = concat + len(sizes) + 1
    return reshape(x, (*shape[:concat], math.prod(shape[concat:end]), *shape[end:]))


@boundary
def ppermute(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Send the value of each member to another one.

    Args:
      x: a tree of arrays.
      axis_name: a name, or of axes of `pmap` and `shard_map` a tuple of names, whose members are
        counted row by row.
      perm: pairs (source, target). No source and no target may occur twice; a member that is no
        target gets zeros.

    Returns:
      A tree like `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> shift = vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")
      >>> print(shift(np.int32([1, 2, 3])))
      [0 1 2]

    Differentiable; the transpose sends back.
    """
    name = axis_names(axis_name)
    size = total_size(name, "ppermute")
    pairs = tuple([(int(source), int(target)) for source, target in perm])
    for what, members in (
        ("source", [s for s, _ in pairs]),
        ("destination", [t for _, t in pairs]),
    ):
        if len(set(members)) != len(members):
            raise ValueError(message(
                "ppermute", "ppermute sources and destinations must be unique.",
                got=f"{what}s {members}",
            ))  # fmt: skip
        if any(not 0 <= m < size for m in members):
            raise ValueError(message(
                "ppermute", f"each {what} must be within the axis of size {size}.",
                got=f"{what}s {members}",
            ))  # fmt: skip

    def permute(leaf: Any) -> Any:
        return ppermute_p.bind(_array("ppermute", leaf, name), axis_name=name, perm=pairs)[0]

    return xtree.map(permute, x)


@boundary
def pshuffle(x: PyTree, axis_name: AxisName, perm: Sequence[int]) -> PyTree:
    """Rearrange the members of a named axis: member k gets the value of member `perm[k]`.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      perm: a permutation of all members.

    Returns:
      A tree like `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pshuffle(x, "i", [1, 2, 0]), axis_name="i")(np.int32([1, 2, 3])))
      [2 3 1]
    """
    size = total_size(_one_name("pshuffle", axis_name), "pshuffle")
    if sorted(perm) != list(range(size)):
        raise ValueError(message(
            "pshuffle", f"perm must be a permutation of the numbers from 0 to {size - 1}.",
            got=f"{list(perm)}",
        ))  # fmt: skip
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


@boundary
def pswapaxes(
    x: PyTree, axis_name: AxisName, axis: int, *, axis_index_groups: AxisIndexGroups = None
) -> PyTree:
    """Exchange a named axis and a dimension of the same size.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      axis: the dimension.
      axis_index_groups: lists of members of equal length that exchange among themselves.

    Returns:
      A tree like `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> swap = vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")
      >>> print(swap(np.int32([[1, 2], [3, 4]])))
      [[1 3]
       [2 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: PyTree, axis_name: AxisName, source: int) -> PyTree:
    """Give every member the value of one.

    Args:
      x: a tree of arrays.
      axis_name: one name.
      source: the number of the member whose value it is.

    Returns:
      A tree like `x`.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(np.int32([1, 2, 3])))
      [2 2 2]
    """
    name = _one_name("pbroadcast", axis_name)
    size = total_size(name, "pbroadcast")
    require(
        0 <= source < size, "pbroadcast", "the source must be within the axis of size {}.", size,
        got=source,
    )  # fmt: skip
    return xtree.map(
        lambda leaf: pbroadcast_p.bind(
            _array("pbroadcast", leaf, name), axis_name=name, source=int(source)
        )[0],
        x,
    )


@boundary
def axis_index(axis_name: AxisName) -> Array:
    """Return the number of this member along a named axis, a 0-d int32.

    Args:
      axis_name: a name, or a tuple of names, the first the slowest.

    Returns:
      A 0-d int32, from 0 to the size of the axis, without it.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x + axis_index("i"), axis_name="i")(np.int32([10, 10])))
      [10 11]
    """
    names = axis_names(axis_name)
    total_size(names, "axis_index")
    index: Any = None
    for name in names:
        (one,) = axis_index_p.bind(axis_name=(name,))
        one = varying_over(one, (name,))
        index = one if index is None else add(mul(index, scalar_like(one, _size_of(name))), one)
    return as_array(0) if index is None else index


@boundary
def axis_size(axis_name: AxisName) -> int:
    """Return the number of members of a named axis, or of several together, as a Python int.

    Args:
      axis_name: a name, or a tuple of names.

    Returns:
      A Python int.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> print(vmap(lambda x: x * axis_size("i"), axis_name="i")(np.int32([1, 2, 3])))
      [3 6 9]
    """
    return math.prod([_size_of(name) for name in axis_names(axis_name)])


def _choose(
    operation: str, primitive: Primitive, x: Any, axis_name: Any, axis_index_groups: Any
) -> Any:
    names = axis_names(axis_name)
    groups = check_groups(
        operation, axis_index_groups, names, over_several=True, of_one_size=False
    )  # fmt: skip
    bind: Callable[..., Any] = primitive.bind

    def choose(leaf: Any) -> Any:
        value = _array(operation, leaf, names)
        return bind(value, axes=names, axis_index_groups=groups)[0] if names else value

    return xtree.map(choose, x)


def _array(operation: str, value: Any, names: Sequence[Any], *, adds_up: bool = False) -> Array:
    """Return an operand, which counts as one value for each member of the axes.

    Args:
      operation: the collective.
      value: the operand.
      names: of the axes.
      adds_up: whether members may hold parts of a sum.
    """
    x = as_array(value, what=f"{operation}: an operand")
    parts = x.aval.mat.unreduced.intersection(names)
    if parts and not adds_up:
        raise ShardingTypeError(message(
            operation, f"the operand is unreduced along {min(parts, key=str)!r}.",
            got=x.aval.str_long(), hint="psum or psum_scatter adds the parts up",
        ))  # fmt: skip
    return varying_over(x, [name for name in names if name not in parts])


def _one_name(operation: str, axis_name: Any) -> tuple[Any, ...]:
    names = axis_names(axis_name)
    require(len(names) == 1, operation, "takes one axis name.", got=axis_name)
    return names


def _dimension(operation: str, what: str, dim: int, ndim: int) -> int:
    require(
        -ndim <= dim < ndim, operation, "{}={} is out of range for {} dimensions.", what, dim, ndim
    )
    return dim % ndim


# ------------------------------------------------------------------------------- ragged exchange
# `ragged_all_to_all`: members send each other slices of different sizes.
#
# Programs for accelerators call XLA's own exchange (`ragged_exchange`). Elsewhere, and for
# derivatives and batches, what members exchange must have a shape: they tell each other where
# slices begin and send blocks of rows, as many times as the longest slice takes. A slot of the
# output picks its row by a gather, whose derivative puts the cotangents back, and adds up those of
# rows that several slices have.


@boundary
def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: AxisIndexGroups = None,
) -> Array:
    """Send slices of rows to the members of a named axis, each of a size of its own.

    With K slices and N members the first K / N slices go to member 0, the next to member 1, and so
    on. Slice `i` are the rows of `operand` from `input_offsets[i]` on, `send_sizes[i]` of them; the
    member that gets them writes them over the rows of its `output` from `output_offsets[i]` on.

    Args:
      operand: of shape (rows, ...): what is sent.
      output: of shape (other rows, ...): what stands where nothing is received.
      input_offsets: of shape (K,), integers: where the slices begin in `operand`.
      send_sizes: of shape (K,), integers: the number of rows of each.
      output_offsets: of shape (K,), integers: where each begins in the `output` of its receiver.
      recv_sizes: of shape (K,), integers: the number of rows of what is received, sender by sender;
        the `send_sizes` of the senders.
      axis_name: the name of the axis.
      axis_index_groups: lists of members of equal length that exchange among themselves.

    Returns:
      An array like `output`. Of slices that overlap in it the later one counts.

    Raises:
      NameError: when the name is not bound.
      ValueError: the rows of `operand` and `output` differ in shape, the offsets and sizes in
        length, or K is not a multiple of the number of members.
      TypeError: offsets or sizes are not integers.

    Example:
      >>> import numpy as np
      >>> from xbatch import vmap
      >>> i32 = np.int32
      >>> print(vmap(
      ...     lambda *xs: ragged_all_to_all(*xs, axis_name="i"), axis_name="i"
      ... )(i32([[1, 2, 2], [3, 4, 0]]), i32(np.zeros((2, 4))), i32([[0, 1], [0, 1]]),
      ...   i32([[1, 2], [1, 1]]), i32([[0, 0], [1, 2]]), i32([[1, 1], [2, 1]])))
      [[1 3 0 0]
       [2 2 4 0]]

    Differentiable in `operand` and `output`.
    """
    names = axis_names(axis_name)
    groups = check_groups("ragged_all_to_all", axis_index_groups, names)
    count = group_size(names, groups)
    rows, kept = [as_array(x, what="ragged_all_to_all") for x in (operand, output)]
    tables = [as_array(x, what="ragged_all_to_all")
              for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]  # fmt: skip
    _check(rows, kept, tables, count)
    if not rows.shape[0]:  # no member has anything to send
        return kept
    params: dict[str, Any] = {"axis_name": names, "axis_index_groups": groups}
    found: Array = xnp.lax.platform_dependent(
        rows, kept, *tables, cpu=partial(_send_in_blocks, **params),
        default=lambda *xs: ragged_exchange_p.bind(*xs, **params)[0],
    )  # fmt: skip
    return found


def _send_in_blocks(
    rows: Array, kept: Array, begin: Array, _sent: Array, begin_there: Array, sizes: Array, *,
    axis_name: tuple[Any, ...], axis_index_groups: Groups,
) -> Array:  # fmt: skip
    """Exchange slices by collectives of one shape."""
    exchange: dict[str, Any] = {"axis_index_groups": axis_index_groups, "tiled": True}
    begin_here = all_to_all(begin_there, axis_name, 0, 0, **exchange)
    # For each row of the output: the slice that it is of, the last one where several are, and its
    # place in that.
    places = xnp.arange(kept.shape[0])[:, None] - begin_here[None, :]
    is_in = (places >= 0) & (places < sizes[None, :])
    chosen = sizes.shape[0] - 1 - xnp.argmax(is_in[:, ::-1], axis=1)
    place = xnp.take_along_axis(places, chosen[:, None], 1)[:, 0]
    is_received = is_in.any(1)

    block = _rows_of_a_block(rows.shape[0], kept.shape[0], sizes.shape[0])
    most = pmax(xnp.max(sizes), axis_name)  # of all groups, so all members go the same way

    def send_blocks(found: Array, number: Array) -> Array:
        """Send block `number` of each slice, and write what has come over the rows it is for."""
        within = number * block + xnp.arange(block)
        index = xnp.clip(begin[:, None] + within[None, :], 0, rows.shape[0] - 1)
        received = all_to_all(rows[index], axis_name, 0, 0, **exchange)
        is_new = is_received & (place // block == number)
        new = received[chosen, xnp.clip(place - number * block, 0, block - 1)].astype(kept.dtype)
        return xnp.where(is_new.reshape(-1, *[1] * (kept.ndim - 1)), new, found)

    def step(found: Array, number: Array) -> tuple[Array, None]:
        is_needed = number * block < most
        return xnp.lax.cond(is_needed, send_blocks, lambda found, _: found, found, number), None

    rounds = -(-min(rows.shape[0], kept.shape[0]) // block)
    numbers = xnp.arange(rounds, dtype=sizes.dtype)
    found: Array = xnp.lax.scan(step, kept, numbers)[0]
    return found


def _ragged_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis_name: Any,
                      axis_index_groups: Groups) -> Any:  # fmt: skip
    groups = groups_attribute(replica_groups(b, axis_name, axis_index_groups))
    channel = b.channel_number()
    number = "" if channel is None else f"channel_id = {channel} : i64, "
    return b.op("stablehlo.custom_call", operands, avals_in, avals_out,
                'call_target_name = "ragged_all_to_all", api_version = 4 : i32, '
                f"backend_config = {{{number}replica_groups = {groups}}}")  # fmt: skip


def _ragged_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    outs = ragged_exchange_p.bind(*primals, **params)
    dots = tangents[:2]
    if all(type(dot) is Zero for dot in dots):
        return outs, (Zero(outs[0].aval),)
    dots = [fill(x.aval.shape, 0, x.aval.dtype) if type(dot) is Zero else dot
            for x, dot in zip(primals, dots, strict=False)]  # fmt: skip
    return outs, (_send_in_blocks(*dots, *primals[2:], **params),)


def _ragged_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    mapped = xbatch.vmap(
        partial(_send_in_blocks, **params), tuple([None if d is not_mapped else d for d in dims]),
        axis_name=axis.name, axis_size=axis.size, spmd_axis_name=axis.mesh_axes or None,
    )  # fmt: skip
    return (mapped(*operands),), (0,)


def _ragged_varies(*varying: frozenset[Any], **params: Any) -> tuple[frozenset[Any], ...]:
    return scatters_members(frozenset().union(*varying), **params)


def _ragged_dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    """Rows are exchanged, and their dimensions correspond."""
    names = [(None, *range(1, aval.ndim)) for aval in avals]
    return dimension_names.Names(names, [names[1]])


def _ragged_numpy(*_operands: Any, axis_name: Any, axis_index_groups: Groups) -> Any:
    raise_unbound(axis_name)


ragged_exchange_p: Primitive = Primitive(
    "ragged_exchange",
    shape=lambda rows, kept, *tables, axis_name, axis_index_groups: (kept,),
    numpy=_ragged_numpy,
    stablehlo=_ragged_stablehlo,
    jvp=_ragged_jvp,
    transpose=undefined("its derivatives send blocks"),
    batch=_ragged_batch,
    sharding=Sharding(_ragged_dimensions, varying=_ragged_varies),
    physical=STRUCTURAL,
    axis_param="axis_name",
)


def _rows_of_a_block(num_rows: int, room: int, num_slices: int) -> int:
    """Return how many rows of each slice are sent at once.

    As many as all slices have where they are equally long; so one round is enough there, and rounds
    for the longest slice send at most what sending everything to each member would.
    """
    return max(-(-min(num_rows, room) // num_slices), 1)


def _check(rows: Array, kept: Array, tables: list[Array], count: int) -> None:
    require(
        rows.ndim and rows.shape[1:] == kept.shape[1:] and rows.dtype == kept.dtype,
        "ragged_all_to_all", "operand and output must have rows of one type.", got=(rows, kept),
    )  # fmt: skip
    shapes = [table.shape for table in tables]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0][0] % count or not shapes[0][0]:
        raise ValueError(message(
            "ragged_all_to_all", "offsets and sizes must have one length, so many for each member.",
            got=f"shapes {', '.join(map(str, shapes))}",
            expected=f"(K,), K a multiple of {count}",
        ))  # fmt: skip
    for table in tables:
        require(
            table.dtype.kind in "iu", "ragged_all_to_all", "offsets and sizes are integers.",
            got=table, error=TypeError,
        )  # fmt: skip
