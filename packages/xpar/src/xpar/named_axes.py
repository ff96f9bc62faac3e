"""Named axes, as collectives see them: sizes, groups of members, replicas, and the batch rules.

A collective names an axis that an enclosing `vmap` or `pmap` binds. Under `vmap` the members of the
axis are the positions along a batch dimension, and a collective becomes ordinary operations along
it. Under `pmap` they are replicas of one program, numbered row by row over all bound axes, and a
collective becomes the StableHLO operation over groups of replicas.

Neighbours: `reduction_collectives` and `exchange_collectives` define the primitives with these,
`collectives` holds the public functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

import xbatch
from xnp.primitives.operations import concatenated, filled, sliced
from xprim import Primitive, axis_size, config, not_mapped
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()

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
    if not axis_aliases.value:
        return names
    members = dict(axis_aliases.value)
    return tuple([part for name in names for part in members.get(name, (name,))])


def total_size(names: Sequence[Any], operation: str = "collective") -> int:
    """Return the number of members of several axes together; `NameError` for an unbound one."""
    return math.prod([axis_size(name, operation) for name in names])


def checked_groups(
    operation: str, groups: Any, names: Sequence[Any], *, over_several: bool = False
) -> Groups:
    """Return `axis_index_groups` as tuples, or raise a ValueError.

    The groups must be equally large and hold each index of the axis exactly once. Over several
    axes, where that is possible, members are counted row by row.
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
    if members != list(range(size)) or len({len(row) for row in rows}) != 1:
        axes = " and ".join(map(repr, names))
        raise ValueError(message(
            operation,
            f"axis_index_groups must split the axis {axes} of size {size} into groups of one size.",
            got=f"{groups}", expected=f"each index from 0 to {size - 1} once",
        ))  # fmt: skip
    return rows


def group_size(names: Sequence[Any], groups: Groups) -> int:
    """Return how many members take part in one collective."""
    return total_size(names) if groups is None else len(groups[0])


def unbound(names: Sequence[Any]) -> NoReturn:
    """Raise the error for a collective that is evaluated outside its axis."""
    for name in names:
        axis_size(name)
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
    part = xbatch.BatchAxis(len(groups[0]))
    parts = [part.to_front(*on_axis(part, picked(x, g), 0, params)) for g in groups]
    members = [i for g in groups for i in g]
    return picked(concatenated(parts, 0), np.argsort(members).tolist()), 0


def picked(x: Any, rows: Sequence[int]) -> Any:
    """Return the given rows along dimension 0, zeros where a row is -1; runs move as one piece."""
    pieces, start = [], 0
    for i in range(1, len(rows) + 1):
        if i < len(rows) and rows[i] == (-1 if rows[i - 1] < 0 else rows[i - 1] + 1):
            continue
        if rows[start] < 0:
            pieces.append(filled((i - start, *x.aval.shape[1:]), 0, x.aval.dtype))
        else:
            pieces.append(sliced(x, 0, rows[start], rows[i - 1] + 1))
        start = i
    return concatenated(pieces, 0)


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
                "collective", f"the axis name {name!r} is not bound here.",
                got=f"axis names in scope: {known}",
                expected="a name given as axis_name= by an enclosing pmap, or an axis of shard_map",
            ))  # fmt: skip


def groups_attribute(rows: Sequence[Sequence[int]]) -> str:
    """Return groups of replicas, or pairs of them, as the text of an attribute."""
    inside = ", ".join([f"[{', '.join(map(str, row))}]" for row in rows])
    width = len(rows[0]) if rows else 2
    return f"dense<[{inside}]> : tensor<{len(rows)}x{width}xi64>" if rows else (
        "dense<> : tensor<0x2xi64>")  # fmt: skip
