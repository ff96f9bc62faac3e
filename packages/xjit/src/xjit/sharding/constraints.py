"""The primitive `sharding_constraint`: a value, and its sharding on a mesh.

The value stays what it is; in a compiled program the partitioner reads it. A program with one in it
runs on the mesh that it names. Params: `sharding`.
"""

from __future__ import annotations

from typing import Any

import xprim
import xtree
from xjit.dispatch.placement import committed_to, move_results
from xjit.lowering.stablehlo_text import explicit_text, sharding_text
from xjit.sharding.layouts import split_formats
from xjit.sharding.meshes import AbstractMesh, abstract_mesh_now
from xjit.sharding.partial_sums import check_parts
from xjit.sharding.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    check_same_axes,
    resolve,
)
from xprim import EAGER, Array, Primitive, ShapedArray, as_array, get_primitive, not_mapped, state
from xprim.avals import PINNED_HOST, MemorySpace
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require
from xprim.sharded_types import cotangent, reshard_as
from xprim.tracebacks import boundaries
from xprim.typing import PyTree
from xtree.namespaces import late_import

__all__ = [
    "along_explicit_axes_only", "asked_for_always", "check_sharding", "constrained",
    "constraint_text", "has_mixed_axes", "in_space", "is_place", "of_examples",
    "reshard_traced", "sharding_constraint_p", "space_of", "with_sharding_constraint",
]  # fmt: skip

__dir__ = __all__.copy

_layouts = late_import("xjit.lowering.annotations", "what few programs write")

_ALWAYS = 1e18  # nanoseconds: NumPy has no devices, so eager evaluation always compiles it


def with_sharding_constraint(x: PyTree, shardings: PyTree) -> PyTree:
    """Say the shardings of values on a mesh, for the compiler to obey.

    Inside `jit` it decides where an intermediate value is computed; outside it moves arrays.

    Args:
      x: a tree of arrays.
      shardings: for all leaves, or a tree prefix of `x` with one for each: a sharding, a partition
        spec over the context mesh, a `Format`, which says how a value lies in memory, too, or
        None to leave a value alone. A dimension whose entry is
        `PartitionSpec.UNCONSTRAINED` is left to the compiler.

    Returns:
      A tree like `x`.

    Raises:
      ValueError: a spec has more entries than a value has dimensions, a spec is given where no mesh
        is set, or a dimension is not a multiple of its number of pieces: that of an array, or of a
        traced value along explicit axes. Others are filled up by the compiler.

    Differentiable: a cotangent has the sharding of its value.

    Example:
      >>> import numpy as np
      >>> from xjit import devices, jit
      >>> from xjit.sharding.meshes import Mesh
      >>> s = NamedSharding(Mesh(np.array(devices("cpu")[:1]), "x"), PartitionSpec("x"))
      >>> y = jit(lambda x: with_sharding_constraint(x + x, s))(np.ones(2, np.float32))
      >>> y.sharding.is_equivalent_to(s, 1)
      True
    """
    leaves, tree = xtree.flatten(x)
    shardings, layouts = split_formats(shardings, "with_sharding_constraint")
    places = xtree.broadcast_prefix(shardings, x, is_leaf=is_place)
    outs = [
        constrained(as_array(leaf, what="with_sharding_constraint"), place)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    if layouts is not None:
        orders = xtree.broadcast_prefix(layouts, x, is_leaf=lambda v: v is None)
        outs = [
            out if order is None else _layouts.with_layout_constraint(out, order)
            for out, order in zip(outs, orders, strict=True)
        ]
    return tree.unflatten(outs)


def reshard_traced(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """Change shardings along the explicit axes of the mesh; the compiler chooses along others."""
    leaves, tree = xtree.flatten(xs)
    places = xtree.broadcast_prefix(out_shardings, xs, is_leaf=is_place)
    outs = [
        constrained(as_array(leaf, what="reshard"), place, "reshard", is_open=True)
        for leaf, place in zip(leaves, places, strict=True)
    ]
    return tree.unflatten(outs)


def has_mixed_axes(mesh: Any) -> bool:
    """Return whether types say of some axes how values are sharded, and the compiler of others."""
    return bool(mesh.explicit_axes and mesh.auto_axes)


def along_explicit_axes_only(x: Array, sharding: Sharding) -> Array:
    """Constrain a value along the explicit axes of a mesh; the compiler chooses along others."""
    is_open = isinstance(sharding, NamedSharding) and has_mixed_axes(sharding.mesh)
    more = {"is_open": True} if is_open else {}
    return sharding_constraint_p.bind(x, sharding=sharding, **more)[0]  # type: ignore[no-any-return]


def constrained(
    x: Array, place: Any, operation: str = "with_sharding_constraint", *, is_open: bool = False
) -> Array:
    """Return a value with a sharding; None constrains nothing."""
    if place is None or _is_of_no_mesh(place):
        return x
    sharding = resolve(place, operation)
    if isinstance(sharding, SingleDeviceSharding):
        if state.trace is EAGER and isinstance(x, xprim.ConcreteArray):
            x = move_results([x], committed_to(sharding.devices_in_order[0]))[0]
        elif sharding.memory is None:  # with a memory, dispatch places the result
            x = sharding_constraint_p.bind(x, sharding=sharding)[0]
        return _where_said(x, sharding)
    require(
        isinstance(sharding, Sharding), operation, "this is not a sharding.", got=place,
        expected="a NamedSharding, or a PartitionSpec where a mesh is set", error=TypeError,
    )  # fmt: skip
    check_sharding(x, sharding, operation)
    own = sharding if sharding.memory is None else sharding.with_memory_kind(None)
    if is_open:
        return _where_said(along_explicit_axes_only(x, own), sharding)
    return _where_said(sharding_constraint_p.bind(x, sharding=own)[0], sharding)


def _where_said(x: Array, sharding: Sharding) -> Array:
    """Return a value in the kind of memory of a sharding; one without devices may say none."""
    kind = sharding.memory_kind
    return x if kind is None else in_space(x, space_of(kind))


def space_of(kind: str) -> MemorySpace:
    """Return the space of a kind of memory in types."""
    return MemorySpace.Host if kind == PINNED_HOST else MemorySpace.Device


def kind_of(space: MemorySpace) -> str:
    """Return the kind of memory of a space in types."""
    return PINNED_HOST if space is MemorySpace.Host else "device"


def in_space(x: Array, space: MemorySpace) -> Array:
    """Return a value in the memory of the device, or of the host: itself, where it is there."""
    if x.aval.memory_space is space:
        return x
    return get_primitive("in_memory").bind(x, kind=kind_of(space))[0]  # type: ignore[no-any-return]


def _is_of_no_mesh(sharding: Any) -> bool:
    """Return whether a sharding is that of a type outside of all meshes, which asks nothing."""
    return (
        isinstance(sharding, NamedSharding)
        and isinstance(sharding.mesh, AbstractMesh)
        and not sharding.mesh.axis_names
    )


def check_sharding(x: Array, sharding: Sharding, operation: str) -> None:
    """Raise where a value cannot lie so."""
    _check_no_member(sharding, operation)
    is_traced = isinstance(x, xprim.Tracer) or state.trace is not EAGER
    in_type = isinstance(sharding, NamedSharding) and bool(sharding.mesh.explicit_axes)
    if is_traced and not in_type and not isinstance(sharding, TiledSharding):
        sharding.check_rank(x.shape, operation)  # the compiler fills up what does not divide
    else:
        sharding.check_shape(x.shape, operation)
        if isinstance(sharding, NamedSharding) and not is_traced:
            check_same_axes(operation, sharding.mesh, x.sharding)


def _check_no_member(sharding: Sharding, operation: str) -> None:
    """Raise for an axis along which the function is one member: XLA would end the process."""
    mesh = abstract_mesh_now()
    if mesh is None or not isinstance(sharding, NamedSharding):
        return
    for name in (*sharding.spec.names(), *sharding.spec.sums):
        if name in mesh.manual_axes:
            raise ValueError(message(
                operation, f"the axis {name!r} is of type Manual inside of shard_map.",
                got=repr(sharding.spec),
                expected="other axes of the mesh: each member has its own piece",
            ))  # fmt: skip


def is_place(value: Any) -> bool:
    """Return whether a value in a tree of places is a leaf."""
    return value is None or isinstance(value, Sharding | PartitionSpec)


def _shape(
    aval: ShapedArray, *, sharding: Sharding, is_open: bool = False
) -> tuple[ShapedArray, ...]:
    if isinstance(sharding, NamedSharding):
        check_parts(aval, sharding)
    return (aval.update(sharding=sharding if isinstance(sharding, NamedSharding) else None),)


def _numpy(x: Any, *, sharding: Sharding, is_open: bool = False) -> Any:
    return (x,)


def constraint_text(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
                    sharding: Sharding, is_open: bool = False) -> Any:  # fmt: skip
    """Write that a value lies so, and return its name: the `stablehlo` rule."""
    module = b.module  # type: ignore[attr-defined]
    _check_fits(sharding, len(module.devices) or 1)
    if not module.devices and (not sharding.has_devices or sharding.num_devices == 1):
        return operands  # the program is of one device, and may become part of one of several
    if is_open and isinstance(sharding, NamedSharding):
        text = explicit_text(module, sharding, avals_in[0].ndim)
    else:
        text = sharding_text(module, sharding, avals_in[0].ndim)
    return b.op("sdy.sharding_constraint", operands, avals_in, avals_out,
                f"sharding = #sdy.sharding{text}")  # fmt: skip


def _check_fits(sharding: Sharding, num_devices: int) -> None:
    """Raise for a mesh without devices that is of another size than the program's."""
    if sharding.has_devices or not isinstance(sharding, NamedSharding):
        return
    mesh = sharding.mesh
    require(
        mesh.size == num_devices, "with_sharding_constraint",
        "an abstract mesh has the devices of an argument, and none has as many as it names.",
        got={"sharding": sharding, "program": f"on {num_devices} devices"},
        expected=f"an argument over a mesh of {mesh.size} devices",
        hint="make the sharding of a Mesh, or bring an argument there with device_put(x, sharding)",
    )  # fmt: skip


def _transpose(cts: Any, x: Any, *, sharding: Sharding, is_open: bool = False) -> Any:
    """Have the cotangent lie as the result, where types do not say otherwise."""
    if cts[0].aval.type_sharding is not None or x.aval.type_sharding is not None:
        return (reshard_as(cts[0], cotangent(x.aval)),)
    return sharding_constraint_p.bind(cts[0], sharding=sharding)


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, sharding: Sharding, is_open: bool = False
) -> Any:
    (x,), (dim,) = operands, dims
    if dim is not not_mapped and isinstance(sharding, NamedSharding):
        sharding = of_examples(axis, dim, sharding)
    elif dim is not not_mapped:
        x, dim = axis.move(x, dim, x.aval.ndim - 1), x.aval.ndim - 1
    more = {"is_open": True} if is_open else {}
    return sharding_constraint_p.bind(x, sharding=sharding, **more), (dim,)


def of_examples(axis: BatchAxis, dim: int, sharding: NamedSharding) -> NamedSharding:
    """Return how a batch lies along dimension `dim`, each of whose examples lies so."""
    is_open = not sharding.mesh.are_all_axes_explicit
    examples = axis.mesh_axes or (UNCONSTRAINED if is_open else None)
    _check_examples(axis, sharding)
    parts = [*sharding.spec, *[None] * (dim - len(sharding.spec))]
    return sharding.update(spec=(*parts[:dim], examples, *parts[dim:]))


def _check_examples(axis: BatchAxis, sharding: NamedSharding) -> None:
    """Raise where `spmd_axis_name` names an axis that cuts a dimension of the examples."""
    for name in axis.mesh_axes:
        if name in sharding.spec.names():
            raise ValueError(message(
                "vmap", f"spmd_axis_name {name!r} cuts the examples already.",
                got=f"a sharding constraint {sharding.spec}",
                expected="axes of the mesh that the function under vmap does not use",
            ))  # fmt: skip


def asked_for_always(avals_in: Any, avals_out: Any, **_params: Any) -> float:
    """Cost so much by NumPy, which has no devices, that eager evaluation asks the back end."""
    return _ALWAYS


sharding_constraint_p: Primitive = Primitive(
    "sharding_constraint",
    shape=_shape,
    numpy=_numpy,
    stablehlo=constraint_text,
    jvp=xprim.LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=xprim.STRUCTURAL,
    eager=asked_for_always,
    sharding=xprim.dimension_names.AS_SAID,
)


boundaries(globals())
