"""Arrays over several devices: their pieces, and how they are made of pieces.

    addressable_shards  global_shards  addressable_data    what each device has
    make_array_from_callback                               ask for each piece
    make_array_from_single_device_arrays                   pieces that are on their devices
    make_array_from_process_local_data                     what this process has of the whole

Neighbours: `array_methods` gives arrays the attributes, `transfer` moves whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.laid_placement import in_order_of_numpy, put_in_order
from xjit.layouts import formats_split, inner_order, order_asked
from xjit.mesh_placement import in_own_memory, spread_buffer
from xjit.named_shardings import resolved
from xjit.placement import buffers_at, default_placement
from xjit.shardings import Index, Sharding, SingleDeviceSharding
from xjit.typed_shardings import typed_as
from xprim import Array, ConcreteArray, Tracer, as_array, shaped_array
from xprim.errors import UnexpectedTracerError, message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike
from xtree.records import Record, set_once

__all__ = [
    "Shard",
    "addressable_shards",
    "global_shards",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "sharding_of",
]

__dir__ = __all__.copy


class Shard(Record):
    """The piece of an array on one device.

    Attributes:
      device: the device.
      sharding: how the whole array lies.
      global_shape: the shape of the whole array.
      data: the piece, an array on the device; None on a device of another process.
    """

    __slots__ = __match_args__ = ("device", "sharding", "global_shape", "data")
    device: Any
    sharding: Sharding
    global_shape: tuple[int, ...]
    data: Array | None

    def __init__(
        self, device: Any, sharding: Sharding, global_shape: tuple[int, ...],
        data: Array | None = None,
    ) -> None:  # fmt: skip
        set_once(self, "device", device)
        set_once(self, "sharding", sharding)
        set_once(self, "global_shape", global_shape)
        set_once(self, "data", data)

    @property
    def index(self) -> Index:
        """The place of the piece in the whole array."""
        return self.sharding.devices_indices_map(self.global_shape)[self.device]

    @property
    def replica_id(self) -> int:
        """Which copy of the piece this is, from 0."""
        places = self.sharding.devices_indices_map(self.global_shape)
        same = [device for device, index in places.items() if index == places[self.device]]
        return same.index(self.device)

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
                f"data={self.data})")  # fmt: skip


def sharding_of(x: ConcreteArray) -> Sharding:
    """Return how an array lies on devices."""
    spread = spread_sharding(x)
    if spread is not None:
        return spread
    buffer = x.buffer
    device = default_placement().device if buffer is None else gateway.device_of(buffer)
    return SingleDeviceSharding(device)


def spread_sharding(x: ConcreteArray) -> Sharding | None:
    """Return how an array lies over several devices, None for one that has a single place."""
    if x.buffer is None:
        return None
    where = gateway.placement_of(x.buffer)
    return where.spread if type(where) is gateway.SpreadOver else None


def global_shards(x: ConcreteArray) -> list[Shard]:
    """Return the pieces of an array on all devices, those of other processes without data."""
    buffer = x.buffer
    if buffer is None:
        (buffer,) = buffers_at(default_placement(), [x])
    sharding = sharding_of(x)
    if type(gateway.placement_of(buffer)) is gateway.SpreadOver:
        pieces = gateway.pieces_by_device(buffer)
    else:
        pieces = {gateway.device_of(buffer): buffer}
    return [
        Shard(device, sharding, x.shape,
              _piece(x, pieces[device], sharding.memory, gateway.order_of(buffer))
              if device in pieces else None)
        for device in sharding.devices_in_order
    ]  # fmt: skip


def addressable_shards(x: ConcreteArray) -> list[Shard]:
    """Return the pieces of an array on the devices of this process."""
    return [shard for shard in global_shards(x) if shard.data is not None]


def _piece(
    x: ConcreteArray, buffer: Any, memory: str | None, order: gateway.Order
) -> ConcreteArray:
    shape = buffer.aval.shape[: x.aval.ndim]
    if memory is not None or order is not None:
        there = SingleDeviceSharding(gateway.device_of(buffer), memory_kind=memory)
        where = gateway.laid_over(there, order)
        buffer = buffer._rewrap_with_aval_and_sharding(buffer.aval, where)
    return ConcreteArray(None, shaped_array(shape, x.aval.dtype, x.aval.weak_type), buffer)


def make_array_from_callback(
    shape: Sequence[int], sharding: ShardingLike, data_callback: Callable[[Index], Any],
    dtype: DTypeLike = None,
) -> Array:  # fmt: skip
    """Make an array over several devices by asking for each piece.

    Args:
      shape: of the whole array.
      sharding: how it lies; a format says it of the memory of each device, too.
      data_callback: from the place of a piece, a tuple of slices, to its elements; it is called
        once for each different piece on the devices of this process.
      dtype: of the array; by default that of the pieces.

    Raises:
      ValueError: the shape does not divide evenly, or a piece has another shape.

    Example:
      >>> from xjit import devices
      >>> place = SingleDeviceSharding(devices("cpu")[0])
      >>> make_array_from_callback((2,), place, lambda index: np.ones(2, np.float32)[index])
      Array([1., 1.], dtype=float32)
    """
    operation = "make_array_from_callback"
    sharding, layout = formats_split(sharding, operation)
    where = _checked_sharding(operation, sharding, tuple(shape))
    if where.tiles(len(shape)).summands > 1:
        raise ValueError(message(
            operation, "it asks for pieces of the whole, and devices shall hold parts of a sum.",
            got=repr(where),
            hint="make_array_from_single_device_arrays takes the parts;\nor reshard what it "
            "makes",
        ))  # fmt: skip
    pieces: dict[str, Any] = {}
    buffers = []
    for device, index in where.addressable_devices_indices_map(tuple(shape)).items():
        key = str(index)
        if key not in pieces:
            piece = as_array(data_callback(index), what=f"{operation}: a piece")
            if isinstance(piece, Tracer):
                raise UnexpectedTracerError(_traced(operation, piece))
            pieces[key] = np.asarray(piece, dtype) if dtype is not None else np.asarray(piece)
        buffers.append(gateway.put(pieces[key], device))
    found = _assembled(operation, tuple(shape), where, buffers)
    if layout is None:
        return found
    order = inner_order(order_asked(layout, found.aval, operation), found.aval)
    return put_in_order(found, where, order)


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: ShardingLike,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Make an array of pieces that are on their devices already, without a copy.

    Args:
      shape: of the whole array.
      sharding: how it lies.
      arrays: one piece for each device of this process, in any order.
      dtype: checked against that of the pieces, where it is given.

    Raises:
      ValueError: a device has no piece or two, or a piece is traced, or has another shape or dtype.
      TypeError: a piece is no array on a device.
    """
    operation = "make_array_from_single_device_arrays"
    where = _checked_sharding(operation, sharding, tuple(shape))
    by_device: dict[Any, Any] = {}
    for x in arrays:
        if not isinstance(x, ConcreteArray):
            raise _no_piece(operation, x)
        (buffer,) = buffers_at(default_placement(), [x]) if x.buffer is None else (
            in_order_of_numpy(x).buffer,)  # fmt: skip
        device = gateway.device_of(buffer)
        if device in by_device:
            raise ValueError(message(operation, "two arrays are on one device.", got=str(device)))
        by_device[device] = buffer
    here = [d for d in where.devices_in_order if d in where.addressable_devices]
    if set(here) != set(by_device):
        raise ValueError(message(
            operation, "there must be one array on each device of the sharding.",
            got=f"arrays on {sorted(map(str, by_device))}", expected=str(sorted(map(str, here))),
        ))  # fmt: skip
    if dtype is not None and np.dtype(dtype) != arrays[0].dtype:
        raise ValueError(message(
            operation, "the arrays have another dtype.", got=str(arrays[0].dtype),
            expected=str(np.dtype(dtype)),
        ))  # fmt: skip
    weak = arrays[0].aval.weak_type
    return _assembled(operation, tuple(shape), where, [by_device[d] for d in here], weak)


def _no_piece(operation: str, x: Any) -> ValueError | TypeError:
    if isinstance(x, Tracer):
        return ValueError(_traced(operation, x))
    return TypeError(message(
        operation, "a piece is no array on a device.", got=f"a {type(x).__name__}",
        expected="arrays", hint="device_put(x, device) brings it there",
    ))  # fmt: skip


def _traced(operation: str, x: Array) -> str:
    return message(
        operation, "a piece is traced, and has no place on a device.", got=x.aval.str_long(),
        hint="call it outside of jit; inside, with_sharding_constraint says how a value lies",
    )  # fmt: skip


def make_array_from_process_local_data(
    sharding: ShardingLike, local_data: ArrayLike, global_shape: Sequence[int] | None = None
) -> Array:
    """Make an array of what this process has of it.

    Args:
      sharding: how the whole array lies.
      local_data: the elements on the devices of this process.
      global_shape: of the whole array; by default what the local data of all processes make up.

    Raises:
      ValueError: the local data has not the shape of what the devices of this process hold.
    """
    operation = "make_array_from_process_local_data"
    host = np.asarray(as_array(local_data, what=operation))
    where = resolved(sharding, operation)
    shape = host.shape if global_shape is None else tuple(global_shape)
    if global_shape is None and not where.is_fully_addressable:
        shape = _global_shape(where, host.shape)
    where = _checked_sharding(operation, where, shape)
    indices = where.addressable_devices_indices_map(shape)
    starts, stops = _bounds(indices.values(), shape)
    local = tuple([stop - start for start, stop in zip(starts, stops, strict=True)])
    if host.shape == shape:
        starts = (0,) * len(shape)
    elif host.shape != local:
        raise ValueError(message(
            operation, "the data is not what the devices of this process hold.",
            got=f"shape {host.shape}", expected=f"{local}, or the whole array: {shape}",
        ))  # fmt: skip
    return make_array_from_callback(shape, where, lambda index: host[tuple([
        slice((s.start or 0) - start, (n if s.stop is None else s.stop) - start)
        for s, n, start in zip(index, shape, starts, strict=True)
    ])])  # fmt: skip


def _bounds(indices: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where the box of several pieces starts and stops."""
    pairs = [[(s.start or 0, n if s.stop is None else s.stop)
              for s, n in zip(index, shape, strict=True)] for index in indices]  # fmt: skip
    columns = list(zip(*pairs, strict=True))
    return (tuple([min(a for a, _ in column) for column in columns]),
            tuple([max(b for _, b in column) for column in columns]))  # fmt: skip


def _global_shape(sharding: Sharding, local: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape whose part for this process is `local`."""
    counts = sharding.tiles(len(local)).counts
    own = sharding.addressable_devices_indices_map(counts)
    starts, stops = _bounds(own.values(), counts)
    return tuple([
        n * count // (stop - start)
        for n, count, start, stop in zip(local, counts, starts, stops, strict=True)
    ])  # fmt: skip


def _checked_sharding(operation: str, sharding: Any, shape: tuple[int, ...]) -> Sharding:
    found = resolved(sharding, operation)
    if not isinstance(found, Sharding):
        raise TypeError(message(operation, "this is no sharding.", got=repr(sharding)))
    found.check_shape(shape, operation)
    return found


def _assembled(
    operation: str, shape: tuple[int, ...], sharding: Sharding, buffers: list[Any],
    weak_type: bool = False,
) -> ConcreteArray:  # fmt: skip
    piece = sharding.shard_shape(shape)
    dtype = buffers[0].aval.dtype
    for buffer in buffers:
        kind = buffer.aval
        if kind.shape != piece or kind.dtype != dtype:
            raise ValueError(message(
                operation, "a piece has another type than its sharding asks for.",
                got=f"{kind.dtype.name}{list(kind.shape)}", expected=f"{dtype.name}{list(piece)}",
            ))  # fmt: skip
    aval = typed_as(shaped_array(shape, dtype, weak_type), sharding)
    if sharding.memory is not None:
        own = _assembled(operation, shape, in_own_memory(sharding), buffers, weak_type)
        return with_sharding(own, sharding)
    if isinstance(sharding, SingleDeviceSharding):
        return ConcreteArray(None, aval, buffers[0])
    return ConcreteArray(
        None, aval, gateway.assemble_spread(shape, buffers, gateway.spread_over(sharding))
    )


def with_sharding(x: ConcreteArray, sharding: Sharding) -> ConcreteArray:
    """Return the array, spread as asked."""
    host = x.host if x.buffer is not None else None
    return ConcreteArray(host, x.aval, spread_buffer(x, gateway.spread_over(sharding)))


boundaries(globals())
