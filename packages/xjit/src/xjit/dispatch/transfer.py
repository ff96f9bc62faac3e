"""Move arrays: `device_put`, `device_get`, waiting; methods of arrays; `live_arrays`."""

from __future__ import annotations

import gc
from typing import Any, overload

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xjit._devices import default_backend
from xjit.cache.memory import Bounded
from xjit.dispatch.fast_path import DeletedBuffer, give_up, raise_deleted
from xjit.dispatch.placement import (
    OneDevice,
    buffers_at,
    committed_to,
    default_placement,
    in_order_of_numpy,
    in_own_memory,
    move_results,
    order_if_committed,
    order_of,
    put_in_order,
    read,
)
from xjit.dispatch.placement_inference import with_devices
from xjit.dispatch.program import Program
from xjit.dispatch.sharded_arrays import (
    Shard,
    addressable_shards,
    find_sharding_over_devices,
    global_shards,
    sharding_of,
    with_sharding,
)
from xjit.jaxlib_gateway.buffers import ExplicitTransfers
from xjit.lowering.operation_metadata import Space
from xjit.sharding import constraints, layouts
from xjit.sharding.layouts import Format, Layout
from xjit.sharding.partial_sums import sums_of
from xjit.sharding.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    device_named_by,
    sharding_named_by,
)
from xjit.sharding.typed import held_value, typed_as
from xprim import (
    LINEAR,
    STRUCTURAL,
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Jaxpr,
    Primitive,
    ShapedArray,
    Tracer,
    Var,
    as_array,
    attach_methods,
    dimension_names,
    dtypes,
    from_numpy,
    from_stored,
    get_primitive,
    not_mapped,
)
from xprim.array import is_shared
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.sharded_types import cotangent, reshard_as, whole
from xprim.tracebacks import boundary, shorten
from xprim.typing import DeviceLike, PyTree

__all__ = ["UNKNOWN", "device_put_p", "live_arrays"]

__dir__ = __all__.copy


# -------------------------------------------------------------------------- device put primitive
# The primitive `device_put`: a traced value, and where it is to be.
#
# Evaluated it moves the array, so a function that is differentiated or batched outside of `jit`
# may go from one device or mesh to another. In a compiled program, which runs on its devices, it
# says how the value lies. Params: `sharding`, and `source`, where the operand is as far as that
# is known: its cotangent goes back there. None for a sharding stands for data that is not
# placed.

UNKNOWN = "unknown"
"""The `source` of a value of which nothing is known but its type."""


def _shape(
    aval: ShapedArray, *, sharding: Sharding | None, source: Any
) -> tuple[ShapedArray, ...]:  # fmt: skip
    kind = "device" if sharding is None else sharding.memory_kind
    space = aval.memory_space if kind is None else constraints.space_of(kind)
    typed = sharding if isinstance(sharding, NamedSharding) else None
    return (aval.update(sharding=typed, memory_space=space),)


def _numpy(x: Any, *, sharding: Sharding | None, source: Any) -> Any:
    return (x,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               sharding: Sharding | None, source: Any) -> Any:  # fmt: skip
    if isinstance(sharding, NamedSharding | TiledSharding):
        return constraints.constraint_text(b, operands, avals_in, avals_out, sharding=sharding)
    typed = avals_in[0].type_sharding
    if typed is None or not typed.mesh.axis_names:
        return operands
    replicated = typed.update(spec=PartitionSpec())
    return constraints.constraint_text(b, operands, avals_in, avals_out, sharding=replicated)


def _transpose(cts: Any, x: Any, *, sharding: Sharding | None, source: Any) -> Any:
    if source is not UNKNOWN:
        return device_put_p.bind(cts[0], sharding=source, source=sharding)
    if cts[0].aval.type_sharding is not None or x.aval.type_sharding is not None:
        return (reshard_as(cts[0], cotangent(x.aval)),)
    if isinstance(sharding, NamedSharding | TiledSharding):  # in a program, on its devices
        return constraints.sharding_constraint_p.bind(cts[0], sharding=sharding)
    return cts


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, sharding: Sharding | None, source: Any
) -> Any:  # fmt: skip
    (x,), (dim,) = operands, dims
    if dim is not not_mapped:
        if isinstance(sharding, TiledSharding) or isinstance(source, TiledSharding):
            x, dim = axis.move(x, dim, x.aval.ndim - 1), x.aval.ndim - 1
        sharding, source = [
            constraints.of_examples(axis, dim, s) if isinstance(s, NamedSharding) else s
            for s in (sharding, source)
        ]
    return device_put_p.bind(x, sharding=sharding, source=source), (dim,)


device_put_p: Primitive = Primitive(
    "device_put",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    eager=constraints.asked_for_always,
    sharding=dimension_names.AS_SAID,
)


# -------------------------------------------------------------------------------------- transfer
# Move arrays: `device_put`, `device_get`, and waiting for results.
#
# Data put on a named device is committed to it; without a device it goes to the default one and
# follows later arguments. Nothing here waits but `device_get` and `block_until_ready`.


@overload
def device_put(
    x: Array | np.ndarray[Any, Any] | float | complex, device: DeviceLike = ..., *,
    src: DeviceLike = ..., donate: bool = ..., may_alias: bool | None = ...,
) -> Array: ...  # fmt: skip


@overload
def device_put(
    x: PyTree, device: DeviceLike = ..., *, src: DeviceLike = ..., donate: bool = ...,
    may_alias: bool | None = ...,
) -> PyTree: ...  # fmt: skip


@boundary
def device_put(
    x: PyTree, device: DeviceLike = None, *, src: DeviceLike = None, donate: bool = False,
    may_alias: bool | None = None,
) -> PyTree:  # fmt: skip
    """Put a tree of arrays on a device, or over the devices of a mesh.

    Args:
      x: a tree of arrays, NumPy arrays and numbers (64-bit values become 32-bit ones unless
        `enable_x64` is set).
      device: a device, the name of a platform, a sharding, a partition spec over the context
        mesh, for all leaves or as a tree prefix; None, and a `Space` of memory, leave arrays
        where they are and put the rest on the default device.
      src: where the arrays are now, as for `device`; an array that is elsewhere is an error. None
        takes them wherever they are.
      donate: whether the arrays of `x` may be used up; they cannot be used afterwards.
      may_alias: whether the result may share memory with `x`; the default shares what is there.
        It cannot share memory that is given up by `donate`.

    Returns:
      The tree of arrays on their devices. Of traced values it says how they lie on a mesh; other
      places do nothing.

    Raises:
      ValueError: a value cannot be cut as a sharding says, or is not where `src` says; with both
        `donate` and `may_alias`.
      TypeError: a leaf is not an array, or a place none.

    Example:
      >>> import numpy as np
      >>> device_put(np.array([1.0, 2.0])).dtype
      dtype('float32')
    """
    if donate and may_alias:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    leaves, tree = xtree.flatten(x)
    places = _places(device, x, len(leaves))
    for leaf, place in zip(leaves, _places(src, x, len(leaves)), strict=True):
        _check_source(leaf, place)
    with ExplicitTransfers():
        results = [
            _put_leaf(leaf, place, may_alias) for leaf, place in zip(leaves, places, strict=True)
        ]
    if donate:
        for old, new in zip(leaves, results, strict=True):
            if type(old) is ConcreteArray and old is not new:
                give_up(old, DeletedBuffer("was donated to device_put", old.aval.str_long()))
    return tree.unflatten(results)


def _places(tree: Any, x: Any, count: int) -> list[Any]:
    """Return a place for each leaf of `x`, from one for all or a tree of them."""
    if tree is None or _is_place(tree):
        return [tree] * count
    try:
        return xtree.broadcast_prefix(tree, x, is_leaf=lambda d: d is None or _is_place(d))
    except xtree.StructureMismatchError as error:
        raise ValueError(message(
            "device_put", "the placements are not a tree prefix of the values.", got=str(error),
            expected="one place for all, or a tree of places like the tree of arrays",
        )) from None  # fmt: skip


def _check_source(leaf: Any, place: Any) -> None:
    """Refuse an array that is on another device than was said."""
    buffer = leaf.buffer if isinstance(leaf, ConcreteArray) else None
    if place is None or buffer is None or type(buffer) is DeletedBuffer:
        return
    here, sharding = sharding_of(leaf), sharding_named_by(place, "device_put")
    device = place if sharding else device_named_by(place, "device_put")
    if here.device_set != (sharding.device_set if sharding else {device}) or (
        sharding and not here.is_equivalent_to(sharding, leaf.ndim)
    ):  # fmt: skip
        where = here if len(here.device_set) > 1 else next(iter(here.device_set))
        raise ValueError(message(
            "device_put", "an array is not where src says.",
            got=f"an array on {where}, src: {device}",
        ))  # fmt: skip


def _is_place(value: Any) -> bool:
    places = gateway.Device | str | PartitionSpec | Space | Format | Layout
    return isinstance(value, places) or hasattr(value, "tiles")


def _put_leaf(leaf: Any, place: Any, may_alias: bool | None) -> Array:
    """Put what a user passed where a user says; None leaves it, or puts it on the default device.

    Each element of a NumPy array that is spread is copied once, into the memory of its piece.
    """
    if isinstance(place, Space):
        leaf, place = _of_space(leaf, place)
    elif isinstance(place, Format | Layout):
        return _put_in_format(leaf, place, may_alias)
    sharding = sharding_named_by(place, "device_put")
    if sharding is None:
        x = as_array(leaf, what="device_put")
        if isinstance(leaf, bool | int | float | complex):  # whose array others may have, too
            x = ConcreteArray(x.to_host(), x.aval)  # type: ignore[attr-defined]
        return put(x, device_named_by(place, "device_put"), may_alias)
    if not isinstance(leaf, np.ndarray):
        return put_over(as_array(leaf, what="device_put"), sharding, may_alias)
    x = from_numpy(leaf, copy=False, what="device_put")
    sharding.check_shape(x.shape, "device_put")
    host = x.to_stored()
    buffer = gateway.put_spread(
        host, gateway.make_sharding_object(sharding), may_alias=not np.may_share_memory(host, leaf)
    )
    return ConcreteArray(None, typed_as(x.aval, sharding), buffer)


def _put_in_format(leaf: Any, place: Any, may_alias: bool | None) -> Array:
    """Put what a user passed over devices, in the order of a layout in the memory of each."""
    sharding, layout = layouts.split_formats(place, "device_put")
    x = as_array(leaf, what="device_put")
    order = layout and layouts.physical_order(
        layouts.check_order(layout, x.aval, "device_put"), x.aval
    )
    if isinstance(x, Tracer):
        there = _put_leaf(x, sharding, may_alias)
        if layout is None:
            return there
        constraint = get_primitive("layout_constraint")
        turned: Array = constraint.bind(there, order=layout.major_to_minor)[0]
        return turned
    assert isinstance(x, ConcreteArray)
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)
    if sharding is not None and order is not None:
        sharding.check_shape(x.shape, "device_put")
        sharding = with_devices(sharding)
        if (order_of(x), sharding_of(x)) == (order, sharding) and order_if_committed(x):
            return x if may_alias is not False else copy_there(x)
        found = put_in_order(x, sharding, order)
        return ConcreteArray(None, typed_as(x.aval, sharding), found.buffer)
    return in_order_of_numpy(_put_leaf(leaf, sharding, may_alias))  # type: ignore[arg-type]


def _of_space(leaf: Any, space: Space) -> tuple[Any, Any]:
    """Return a value, and the place for it in a kind of memory; None where it stays as it is."""
    x = as_array(leaf, what="device_put")
    if space is Space.Any:
        return leaf, None
    if not isinstance(x, ConcreteArray):
        return constraints.in_space(x, space), None
    here, kind = sharding_of(x), constraints.kind_of(space)
    return (leaf, None) if here.memory_kind == kind else (x, here.with_memory_kind(kind))


def put_over(x: Array, sharding: Sharding, may_alias: bool | None) -> Array:
    """Put an array over devices as a sharding says; of a traced one, say that it lies so."""
    if isinstance(x, Tracer):
        constraints.check_sharding(x, sharding, "device_put")
        return _constrain_traced(x, sharding)
    assert isinstance(x, ConcreteArray)
    sharding.check_shape(x.shape, "device_put")
    lies = x.buffer is not None and type(x.buffer) is not DeletedBuffer
    if (
        lies
        and sharding_of(x) == sharding
        and may_alias is not False
        and x.aval is typed_as(x.aval, sharding)
    ):
        return x
    found = _exchange(x, sharding) if _by_exchange(x, sharding) else with_sharding(x, sharding)
    found.aval = typed_as(found.aval, sharding)
    return found if may_alias is not False else copy_there(found)


def _constrain_traced(x: Tracer, sharding: Sharding) -> Array:
    """Return a traced value that is to be at a place, in a kind of memory."""
    kind, sharding = sharding.memory_kind, in_own_memory(sharding)
    value = held_value(x)  # of a batch, too
    source: Any = UNKNOWN if x.aval.type_sharding is None else x.aval.type_sharding
    if isinstance(value, ConcreteArray) and type(value.buffer) is not DeletedBuffer:
        if value.buffer is None or not gateway.placement_of(value.buffer).committed:
            source = None
        elif x.concrete() is value:
            source = sharding_of(value)
    (there,) = device_put_p.bind(x, sharding=sharding, source=source)
    return there if kind is None else constraints.in_space(there, constraints.space_of(kind))


def move_to_sharding(x: ConcreteArray, sharding: Sharding | None) -> ConcreteArray:
    """Return an array where `device_put` shall have it; None for one that is not placed."""
    if sharding is None:
        return move_results([x], default_placement())[0]
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory is None:
        found = put(x, sharding.devices_in_order[0])
    else:
        found = put_over(x, with_devices(sharding), None)
    assert isinstance(found, ConcreteArray)
    return found


def _by_exchange(x: ConcreteArray, sharding: Sharding) -> bool:
    """Return whether the devices bring the pieces about, rather than the host.

    On a CPU the host's memory is theirs, and a copy there needs no program.
    """
    where = getattr(x.buffer, "_sharding", None)
    if type(where) is not gateway.SpreadOver:
        return False
    if where.devices[0].platform == "cpu" and sharding.is_fully_addressable:
        return False
    return set(where.devices) == sharding.device_set


def _exchange(x: ConcreteArray, sharding: Sharding) -> ConcreteArray:
    """Return an array spread otherwise over its devices, by a program that does only this."""
    if sums_of(typed_as(x.aval, sharding)) != sums_of(x.aval):
        return constraints.sharding_constraint_p.bind(x, sharding=sharding)[0]  # type: ignore[no-any-return]
    key = ("device_put", x.aval, sharding)
    program = _exchanges.get(key)
    if program is None:
        v = Var(x.aval)
        closed = ClosedJaxpr(Jaxpr([], [v], [v], [], "device_put"))
        program = Program(closed, "device_put", out_shardings=(sharding,), keep_unused=True)
        _exchanges.put(key, program)
    return program.call([x])[0]


# Programs that bring arrays from one sharding to another.
_exchanges: Bounded[Program] = Bounded(256)


def put(x: Array, device: Any, may_alias: bool | None = None) -> Array:
    """Put an array on a device, or on the default one; of a traced one, say that it is there."""
    if isinstance(x, Tracer):
        return x if device is None else _constrain_traced(x, SingleDeviceSharding(device))
    assert isinstance(x, ConcreteArray)
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)
    if device is None:
        if _keep_buffer(x) is None:
            buffers_at(default_placement(), [x])
        return x if may_alias is not False else copy_there(x)
    if order_of(x) is not None:
        return _put_in_its_order(x, device, may_alias)
    return _put_on(x, committed_to(device), may_alias)


def _put_on(x: ConcreteArray, where: OneDevice, may_alias: bool | None) -> ConcreteArray:
    """Put an array on a device."""
    buffer, device = x.buffer, where.device
    if (
        buffer is not None
        and gateway.placement_of(buffer) is where.sharding
        and may_alias is not False
    ):
        return x
    if buffer is None or gateway.device_of(buffer) is device:
        host = x.to_stored()  # on the same device: a CPU buffer shares the memory
        alias = may_alias is not False
        return ConcreteArray(x.host, whole(x.aval), gateway.put(host, device, may_alias=alias))
    return ConcreteArray(x.host, whole(x.aval), gateway.copy_to_device(buffer, device))


def _put_in_its_order(x: ConcreteArray, device: Any, may_alias: bool | None) -> ConcreteArray:
    """Put an array on a device in the order in which it lies, which is not that of NumPy."""
    sharding, order = SingleDeviceSharding(device), order_of(x)
    if sharding_of(x) != sharding or not order_if_committed(x):
        return put_in_order(x, sharding, order)
    return x if may_alias is not False else copy_there(x)


def copy_there(x: ConcreteArray) -> ConcreteArray:
    """Return a copy of an array in the memory in which it lies."""
    assert x.buffer is not None
    where = gateway.placement_of(x.buffer)
    if type(where) is gateway.SpreadOver:
        return ConcreteArray(None, x.aval, gateway.put_spread(read(x), where, may_alias=False))
    host = np.array(x.to_stored())
    buffer = gateway.put(host, gateway.device_of(x.buffer), committed=where.committed)
    return ConcreteArray(None, x.aval, buffer)


@boundary
def device_get(x: PyTree) -> PyTree:
    """Return a tree with the arrays of `x` as NumPy arrays; other leaves stay as they are.

    Arrays of an extended dtype, such as random keys, stay arrays, and come to host memory.

    Copies from several devices run side by side. The NumPy arrays are read-only views where the
    data is in host memory already.
    """
    leaves, tree = xtree.flatten(x)
    copy_to_host_async(leaves)
    with ExplicitTransfers():
        return tree.unflatten([_on_host(v) if isinstance(v, Array) else v for v in leaves])


def _on_host(x: Array) -> Any:
    """Return an array as NumPy's; one of an extended dtype, which has no such, in host memory."""
    if isinstance(x, ConcreteArray) and dtypes.is_extended(x.aval.dtype):
        return from_stored(x.to_stored(), x.aval)
    return np.asarray(x)


def copy_to_host_async(x: PyTree) -> PyTree:
    """Start copying a tree of arrays to the host, where `np.asarray` then finds them; return it.

    A leaf that is not an array and has a method of this name does the same; others are left alone.
    """
    with ExplicitTransfers():
        for leaf in xtree.leaves(x):
            if not isinstance(leaf, Array) and hasattr(leaf, "copy_to_host_async"):
                leaf.copy_to_host_async()
            buffer = leaf.buffer if isinstance(leaf, ConcreteArray) else None
            if buffer is not None and leaf.host is None and type(buffer) is not DeletedBuffer:
                gateway.copy_to_host_async(buffer)
    return x


def block_until_ready(x: PyTree) -> PyTree:
    """Wait until all arrays in a tree are computed, and return the tree.

    Raises:
      XlaError: a computation failed.
    """
    for leaf in xtree.leaves(x):
        buffer = leaf.buffer if isinstance(leaf, ConcreteArray) else None
        if buffer is not None and leaf.host is None:
            if type(buffer) is DeletedBuffer:
                raise_deleted(leaf.aval.str_long(), buffer)
            gateway.block_until_ready(buffer)
    return x


# ------------------------------------------------------------------------------------------ live
# Which arrays exist.


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays that exist and have elements, those of this library's own left out.

    It looks at all objects of Python, which takes milliseconds.

    Args:
      platform: where they are: "cpu" or "gpu"; None for the default one.

    Raises:
      RuntimeError: there is no platform of that name.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> x = jit(lambda x: x + 1)(np.zeros(3, np.float32))
      >>> any(x is y for y in live_arrays())
      True
    """
    name = gateway.canonical_platform(default_backend() if platform is None else platform)
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray and not is_shared(x)]
    return [
        x for x in arrays
        if type(x.buffer) is not DeletedBuffer and not dtypes.is_extended(x.dtype)
        and x.platform() == name
    ]  # fmt: skip


# --------------------------------------------------------------------------------- array methods
# Methods of arrays that concern devices and buffers, given to arrays when `xjit` is imported.
#
#     block_until_ready  is_ready  copy_to_host_async     waiting
#     device  devices  sharding  format  committed        where
#     addressable_shards  global_shards  addressable_data  is_fully_addressable
#     is_fully_replicated
#     delete  is_deleted  on_device_size_in_bytes  unsafe_buffer_pointer   memory
#     _committed  _value                                  as libraries written for JAX ask for them


def attach() -> None:
    """Give concrete arrays the methods of this module."""
    attach_methods(
        {
            "block_until_ready": _block_until_ready,
            "copy_to_host_async": _copy_to_host_async,
            "is_ready": _is_ready,
            "device": property(_device),
            "devices": _devices,
            "platform": _platform,
            "sharding": property(_sharding),
            "format": property(_format),
            "addressable_shards": property(_addressable_shards),
            "global_shards": property(_global_shards),
            "addressable_data": _addressable_data,
            "is_fully_addressable": property(_is_fully_addressable),
            "is_fully_replicated": property(_is_fully_replicated),
            "committed": property(_is_committed),
            "_committed": property(_is_committed),
            "_value": property(_value),
            "delete": _delete,
            "is_deleted": _is_deleted,
            "on_device_size_in_bytes": _on_device_size_in_bytes,
            "unsafe_buffer_pointer": _unsafe_buffer_pointer,
            "__cuda_array_interface__": property(_cuda_array_interface),
        },
        to=ConcreteArray,
    )


def _keep_buffer(x: ConcreteArray) -> Any:
    """Return the buffer of an array, None for one that is on the host alone.

    An array that stands for a Python number wherever that occurs belongs to the default device of
    the caller: a copy for another one, which a program under `default_device` left, is dropped.
    """
    buffer = x.buffer
    if buffer is None or x.aval.shape or not is_shared(x):
        return buffer
    if gateway.device_of(buffer) is not default_placement().device:
        x.buffer = None
    return x.buffer


def _buffer_of(x: ConcreteArray) -> Any:
    """Return the buffer of an array, put on the default device when it has none."""
    buffer = _keep_buffer(x)
    if buffer is None:
        (buffer,) = buffers_at(default_placement(), [x])
    elif type(buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), buffer)
    return buffer


def _block_until_ready(self: ConcreteArray) -> ConcreteArray:
    """Wait until the elements are computed and return the array."""
    # A program's results are waited for in turn, so this asks the buffer itself.
    if self.host is None:
        try:
            if gateway.is_orphan[0] or gateway.watch[0] is not None:
                gateway.block_until_ready(_buffer_of(self))
            buffer = self.buffer
            if buffer is None or type(buffer) is DeletedBuffer:
                buffer = _buffer_of(self)
            try:
                buffer.block_until_ready()
            except gateway.RuntimeFailure:  # says which program failed
                gateway.block_until_ready(buffer)
        except Exception as error:
            shorten(error)
            raise
    return self


def _copy_to_host_async(self: ConcreteArray) -> None:
    """Start copying the elements to the host."""
    _check_kept(self)
    copy_to_host_async(self)


def _is_ready(self: ConcreteArray) -> bool:
    """Whether the elements are computed."""
    return self.host is not None or gateway.is_ready(_buffer_of(self))


def _device(self: ConcreteArray) -> Any:
    """The device that holds the array, or the sharding of one that several devices hold.

    An array that is on the host will be on the default device.
    """
    buffer = _keep_buffer(self)
    if buffer is None:
        return default_placement().device
    if type(getattr(buffer, "_sharding", None)) is gateway.SpreadOver:
        where = sharding_of(self)
        alone = isinstance(where, SingleDeviceSharding)  # in the memory of its host
        return where.devices_in_order[0] if alone else where
    return gateway.device_of(_buffer_of(self))


def _devices(self: ConcreteArray) -> set[Any]:
    """Return the set of devices that hold the array."""
    if _keep_buffer(self) is None:
        return {default_placement().device}
    return set(gateway.devices_of(_buffer_of(self)))


def _platform(self: ConcreteArray) -> str:
    """Return the platform of its devices: "cpu" or "gpu"."""
    return str(next(iter(_devices(self))).platform)


def _sharding(self: ConcreteArray) -> Any:
    """The sharding of the array."""
    _check_kept(self)
    return sharding_of(self)


def _format(self: ConcreteArray) -> Format:
    """The sharding of the array, and its layout in the memory of each device."""
    return layouts.format_of(self.aval, _sharding(self), order_of(self))


def _addressable_shards(self: ConcreteArray) -> list[Shard]:
    """The pieces on the devices of this process."""
    _check_kept(self)
    return addressable_shards(self)


def _global_shards(self: ConcreteArray) -> list[Shard]:
    """The pieces on all devices; those of other processes have no data."""
    _check_kept(self)
    return global_shards(self)


def _addressable_data(self: ConcreteArray, index: int) -> Any:
    """Return the piece on a device of this process, by its number."""
    return _addressable_shards(self)[index].data


def _is_fully_addressable(self: ConcreteArray) -> bool:
    """Whether all pieces are on devices of this process."""
    return bool(_sharding(self).is_fully_addressable)


def _is_fully_replicated(self: ConcreteArray) -> bool:
    """Whether each device has all elements."""
    return bool(_sharding(self).is_fully_replicated)


def _check_kept(x: ConcreteArray) -> None:
    if type(_keep_buffer(x)) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)


def _is_committed(self: ConcreteArray) -> bool:
    """Whether the array was put on its device by request."""
    buffer = self.buffer
    return buffer is not None and bool(gateway.placement_of(_buffer_of(self)).committed)


def _value(self: ConcreteArray) -> Any:
    """The elements, as a NumPy array that cannot be written."""
    return np.asarray(self)


def _delete(self: ConcreteArray) -> None:
    """Give up the memory; using the array afterwards is an error."""
    buffer = self.buffer
    give_up(self, DeletedBuffer("was deleted by x.delete()", self.aval.str_long()))
    if buffer is not None and type(buffer) is not DeletedBuffer:
        gateway.delete(buffer)


def _is_deleted(self: ConcreteArray) -> bool:
    """Whether the array, or a piece of it, was deleted or donated."""
    buffer = self.buffer
    if buffer is None or type(buffer) is DeletedBuffer:
        return buffer is not None
    return self.host is None and gateway.is_deleted(buffer)


def _on_device_size_in_bytes(self: ConcreteArray) -> int:
    """Return the bytes the array takes on its device."""
    return gateway.nbytes_on_device(_buffer_of(self))


def _unsafe_buffer_pointer(self: ConcreteArray) -> int:
    """Return the address of the elements on the device; ValueError where there are several."""
    sharding = _sharding(self)
    if sharding.num_devices > 1:
        raise ValueError(message(
            "unsafe_buffer_pointer", "an array over several devices has an address on each.",
            got=f"{self.aval.str_long()} with {sharding!r}",
            hint="x.addressable_shards[0].data.unsafe_buffer_pointer()",
        ))  # fmt: skip
    return gateway.unsafe_pointer(_buffer_of(self))


def _cuda_array_interface(self: ConcreteArray) -> dict[str, Any]:
    """The memory of a GPU, as libraries for CUDA ask for it; other arrays do not have it."""
    found = None if dtypes.is_extended(self.dtype) else _interface_of(self)
    if found is None:
        raise AttributeError(
            "this array has no attribute '__cuda_array_interface__': it is not on a GPU, or CUDA "
            "libraries have no name for its dtype"
        )
    return found


def _interface_of(x: ConcreteArray) -> dict[str, Any] | None:
    buffer = x.buffer
    if buffer is None and gateway.in_host_memory(default_placement().device):
        return None
    if find_sharding_over_devices(x) is not None:
        return None
    found: dict[str, Any] | None = gateway.cuda_array_interface(_buffer_of(x))
    return found
