"""The collectives that move values: all_gather, all_to_all, ppermute, pbroadcast, axis_index.

    all_gather   every member gets the values of all, joined along a dimension
    all_to_all   each member cuts its value in pieces and sends the k-th to member k
    ppermute     each member sends its value to at most one other; who gets none has zeros
    pbroadcast   every member gets the value of one
    axis_index   every member gets its own number

Semantics: StableHLO specification, sections all_gather, all_to_all, collective_permute, replica_id.
"""

from __future__ import annotations

import math
from typing import Any

from xjit.manual_text import own_number
from xnp.primitives.operations import (
    add,
    bind,
    broadcasted,
    filled,
    iota,
    moved,
    mul,
    reshaped,
    scalar_like,
    selected,
    sliced,
)
from xpar.named_axes import (
    collective_attributes,
    collective_batch,
    gathers_members,
    groups_attribute,
    is_mapped,
    picked,
    replica_groups,
    scatters_members,
    unbound,
)
from xpar.reduction_collectives import psum_p
from xpar.varying_axes import varying_over
from xprim import (
    LINEAR,
    STRUCTURAL,
    ZERO,
    Primitive,
    ShapedArray,
    axis_size as size_of_axis,
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

__all__ = ()


def _numpy(x: Any, *, axis_name: Any, **_params: Any) -> Any:
    unbound(axis_name)


def _resized(aval: ShapedArray, dim: int, size: int) -> ShapedArray:
    shape = aval.shape
    return shaped_array((*shape[:dim], size, *shape[dim + 1 :]), aval.dtype, aval.weak_type)


# --- all_gather --------------------------------------------------------------------------------


def _gather_shape(
    aval: ShapedArray, *, all_gather_dimension: int, axis_name: Any, axis_size: int,
    axis_index_groups: Any,
) -> tuple[ShapedArray, ...]:  # fmt: skip
    dim = all_gather_dimension
    if not 0 <= dim < aval.ndim:
        raise ValueError(f"all_gather: {aval.str_long()} has no dimension {dim} to join along.")
    return (_resized(aval, dim, aval.shape[dim] * axis_size),)


def _gather_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                      all_gather_dimension: int, axis_name: Any, axis_size: int,
                      axis_index_groups: Any) -> Any:  # fmt: skip
    members = collective_attributes(b, axis_name, axis_index_groups)
    attributes = f"all_gather_dim = {all_gather_dimension} : i64, {members}"
    return b.op("stablehlo.all_gather", operands, avals_in, avals_out, attributes)


def _gather_on_axis(axis: BatchAxis, x: Any, dim: Any, params: Any) -> tuple[Any, Any]:
    place = params["all_gather_dimension"]
    x = axis.move(x, dim, place) if is_mapped(dim) else axis.broadcast(x, place)
    return _merged(x, place), not_mapped


def _merged(x: Any, dim: int) -> Any:
    """Join dimension `dim` with the next one."""
    shape = x.aval.shape
    return reshaped(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _gather_transpose(cts: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> Any:
    ct = varying_over(cts[0], params["axis_name"])
    return (bind("reduce_scatter", ct, scatter_dimension=all_gather_dimension, **params),)


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
def _all_gather(name: str, transpose: Any, shard: Any) -> Primitive:
    primitive: Primitive = Primitive(
        name,
        shape=_gather_shape,
        numpy=_numpy,
        stablehlo=_gather_stablehlo,
        jvp=LINEAR,
        transpose=transpose,
        batch=collective_batch(lambda: primitive, _gather_on_axis, ("all_gather_dimension",)),
        dimensions=dimension_names.whole_along("all_gather_dimension"),
        shard=shard,
        physical=STRUCTURAL,
        axis_param="axis_name",
    )
    return primitive


all_gather_p = _all_gather("all_gather", _gather_transpose, scatters_members)
# the result counts as one value for all members, of which each gives its piece a cotangent
all_gather_invariant_p = _all_gather(
    "all_gather_invariant", _own_piece, gathers_members("axis_name")
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
    out = _resized(aval, split_axis, aval.shape[split_axis] // axis_size)
    return (_resized(out, concat_axis, out.shape[concat_axis] * axis_size),)


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
    x = reshaped(x, (*shape[: split + 1], *cut, *shape[split + 2 :]))
    x = moved(x, split + 1, 0)  # [receiver, sender, ...]
    return _merged(moved(x, 1, concat + 1), concat + 1), 0


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
    dimensions=_exchange_dimensions,
    shard=scatters_members,
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
    return picked(axis.to_front(x, dim), sources), 0


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
    dimensions=dimension_names.alike,
    shard=scatters_members,
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
    return reshaped(sliced(x, dim, source, source + 1), shape[:dim] + shape[dim + 1 :]), not_mapped


def _broadcast_transpose(cts: Any, x: Any, *, axis_name: Any, source: int) -> Any:
    (total,) = psum_p.bind(varying_over(cts[0], axis_name), axes=axis_name, axis_index_groups=None)
    (index,) = axis_index_p.bind(axis_name=axis_name)
    index = varying_over(index, axis_name)
    is_source = bind("eq", index, scalar_array(source, dtypes.int32))
    shape = total.aval.shape
    zeros = filled(shape, 0, total.aval.dtype)
    return (selected(broadcasted(is_source, shape), total, zeros),)


pbroadcast_p: Primitive = Primitive(
    "pbroadcast",
    shape=_same_shape,
    numpy=_numpy,
    stablehlo=_broadcast_stablehlo,
    jvp=LINEAR,
    transpose=_broadcast_transpose,
    batch=collective_batch(lambda: pbroadcast_p, _broadcast_on_axis),
    dimensions=dimension_names.alike,
    shard=scatters_members,
    physical=STRUCTURAL,
    axis_param="axis_name",
)


# --- axis_index --------------------------------------------------------------------------------


def _index_shape(*, axis_name: Any) -> tuple[ShapedArray, ...]:
    return (shaped_array((), dtypes.int32),)


def _index_numpy(*, axis_name: Any) -> Any:
    unbound(axis_name)


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
    shard=lambda *, axis_name: (frozenset(axis_name),),
    axis_param="axis_name",
)
