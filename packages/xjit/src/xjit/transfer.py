"""Move arrays: `device_put`, `device_get`, and waiting for results.

Data put on a named device is committed to it; without a device it goes to the default one and
follows later arguments. Nothing here waits but `device_get` and `block_until_ready`.

Neighbours: `placement` has the rules of where things are, `array_methods` the methods of arrays.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.cache_memory import Bounded
from xjit.deleted import DeletedBuffer, give_up, raise_deleted
from xjit.device_put_primitive import UNKNOWN, device_put_p
from xjit.laid_placement import (
    in_order_of_numpy,
    order_if_committed,
    order_of,
    put_in_order,
)
from xjit.layouts import Format, Layout, formats_split, inner_order, order_asked
from xjit.memories import Space
from xjit.mesh_placement import in_own_memory, read
from xjit.named_shardings import sharding_named_by
from xjit.partial_sums import sums_of
from xjit.partition_specs import PartitionSpec
from xjit.placement import (
    OneDevice,
    buffers_at,
    committed_to,
    default_placement,
    moved,
)
from xjit.places_of_calls import with_devices
from xjit.program import Program
from xjit.sharded_arrays import sharding_of, with_sharding
from xjit.sharding_constraint import check_sharding, sharding_constraint_p
from xjit.shardings import Sharding, SingleDeviceSharding, device_named_by
from xjit.transfer_guards import Explicit
from xjit.typed_shardings import typed_as
from xprim import (
    Array,
    ClosedJaxpr,
    ConcreteArray,
    Jaxpr,
    Tracer,
    Var,
    as_array,
    dtypes,
    from_numpy,
    from_stored,
    get_primitive,
)
from xprim.errors import message
from xprim.sharded_types import whole
from xprim.tracebacks import boundary
from xprim.typing import DeviceLike, PyTree

__all__ = ()


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
      device: a device, the name of a platform, a sharding, a partition spec over the mesh that is
        set, for all leaves or as a tree prefix of them; None, and a `Space` of memory, leave arrays
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
      TypeError: a leaf is no array, or a place none.

    Example:
      >>> import numpy as np
      >>> device_put(np.array([1.0, 2.0])).dtype
      dtype('float32')
    """
    if donate and may_alias:
        raise ValueError("device_put: what is donated cannot be shared: leave out may_alias=True.")
    leaves, tree = xtree.flatten(x)
    places = _places(device, x, len(leaves))
    for leaf, place in zip(leaves, _places(src, x, len(leaves)), strict=True):
        _check_source(leaf, place)
    with Explicit():
        results = [
            _put_leaf(leaf, place, may_alias) for leaf, place in zip(leaves, places, strict=True)
        ]
    if donate:
        for old, new in zip(leaves, results, strict=True):
            if type(old) is ConcreteArray and old is not new:
                give_up(old, DeletedBuffer("was donated to device_put"))
    return tree.unflatten(results)


def _places(tree: Any, x: Any, count: int) -> list[Any]:
    """Return a place for each leaf of `x`, from one for all or a tree of them."""
    if tree is None or _is_place(tree):
        return [tree] * count
    try:
        return xtree.broadcast_prefix(tree, x, is_leaf=lambda d: d is None or _is_place(d))
    except xtree.StructureMismatchError as error:
        raise ValueError(message(
            "device_put", "the places are no tree prefix of what is put there.", got=str(error),
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
        host, gateway.spread_over(sharding), may_alias=not np.may_share_memory(host, leaf)
    )
    return ConcreteArray(None, typed_as(x.aval, sharding), buffer)


def _put_in_format(leaf: Any, place: Any, may_alias: bool | None) -> Array:
    """Put what a user passed over devices, in the order of a layout in the memory of each."""
    sharding, layout = formats_split(place, "device_put")
    x = as_array(leaf, what="device_put")
    order = layout and inner_order(order_asked(layout, x.aval, "device_put"), x.aval)
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
            return x if may_alias is not False else _copied(x)
        found = put_in_order(x, sharding, order)
        return ConcreteArray(None, typed_as(x.aval, sharding), found.buffer)
    return in_order_of_numpy(_put_leaf(leaf, sharding, may_alias))  # type: ignore[arg-type]


_KINDS = {Space.Device: "device", Space.Host: "pinned_host"}


def _of_space(leaf: Any, space: Space) -> tuple[Any, Any]:
    """Return a value, and the place for it in a kind of memory; None where it stays as it is."""
    x = as_array(leaf, what="device_put")
    if not isinstance(x, ConcreteArray) or space is Space.Any:  # programs choose memory themselves
        return leaf, None
    here = sharding_of(x)
    if here.memory_kind == _KINDS[space]:
        return leaf, None
    return x, here.with_memory_kind(_KINDS[space])


def put_over(x: Array, sharding: Sharding, may_alias: bool | None) -> Array:
    """Put an array over devices as a sharding says; of a traced one, say that it lies so."""
    if isinstance(x, Tracer):
        check_sharding(x, sharding, "device_put")
        return _said(x, sharding)
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
    found = _exchanged(x, sharding) if _by_exchange(x, sharding) else with_sharding(x, sharding)
    found.aval = typed_as(found.aval, sharding)
    return found if may_alias is not False else _copied(found)


def _said(x: Tracer, sharding: Sharding) -> Array:
    """Return a traced value that is to be at a place; programs choose its memory themselves."""
    sharding = in_own_memory(sharding)
    value = x.concrete()
    source: Any = UNKNOWN if x.aval.spread is None else x.aval.spread
    if isinstance(value, ConcreteArray) and type(value.buffer) is not DeletedBuffer:
        is_loose = value.buffer is None or not gateway.placement_of(value.buffer).committed
        source = None if is_loose else sharding_of(value)
    return device_put_p.bind(x, sharding=sharding, source=source)[0]  # type: ignore[no-any-return]


def placed(x: ConcreteArray, sharding: Sharding | None) -> ConcreteArray:
    """Return an array where `device_put` shall have it; None is where nobody put it."""
    if sharding is None:
        return moved([x], default_placement())[0]
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


def _exchanged(x: ConcreteArray, sharding: Sharding) -> ConcreteArray:
    """Return an array spread otherwise over its devices, by a program that does only this."""
    if sums_of(typed_as(x.aval, sharding)) != sums_of(x.aval):
        return sharding_constraint_p.bind(x, sharding=sharding)[0]  # type: ignore[no-any-return]
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
        return x if device is None else _said(x, SingleDeviceSharding(device))
    assert isinstance(x, ConcreteArray)
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)
    if device is None:
        if x.buffer is None:
            buffers_at(default_placement(), [x])
        return x if may_alias is not False else _copied(x)
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
    return x if may_alias is not False else _copied(x)


def _copied(x: ConcreteArray) -> ConcreteArray:
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
    with Explicit():
        return tree.unflatten([_on_host(v) if isinstance(v, Array) else v for v in leaves])


def _on_host(x: Array) -> Any:
    """Return an array as NumPy's; one of an extended dtype, which has no such, in host memory."""
    if isinstance(x, ConcreteArray) and dtypes.is_extended(x.aval.dtype):
        return from_stored(x.to_stored(), x.aval)
    return np.asarray(x)


def copy_to_host_async(x: PyTree) -> PyTree:
    """Start copying a tree of arrays to the host, where `np.asarray` then finds them; return it.

    What is no array and has a method of this name is asked for the same; all else is left alone.
    """
    with Explicit():
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
