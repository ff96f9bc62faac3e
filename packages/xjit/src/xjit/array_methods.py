"""Methods of arrays that concern devices and buffers, given to arrays when `xjit` is imported.

    block_until_ready  is_ready  copy_to_host_async     waiting
    device  devices  sharding  format  committed        where
    addressable_shards  global_shards  addressable_data  is_fully_addressable  is_fully_replicated
    delete  is_deleted  on_device_size_in_bytes  unsafe_buffer_pointer   memory
    _committed  _value                                  as libraries written for JAX ask for them

Neighbours: `transfer` has the functions of trees, `placement` the rules of where things are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.deleted import DeletedBuffer, give_up, raise_deleted
from xjit.laid_placement import order_of
from xjit.layouts import Format, format_of
from xjit.placement import (
    buffers_at,
    default_placement,
)
from xjit.sharded_arrays import (
    Shard,
    addressable_shards,
    global_shards,
    sharding_of,
    spread_sharding,
)
from xjit.shardings import SingleDeviceSharding
from xjit.transfer import copy_to_host_async
from xprim import ConcreteArray, attach_methods, dtypes
from xprim.errors import message
from xprim.tracebacks import shorten

__all__ = ()


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
            "committed": property(_committed),
            "_committed": property(_committed),
            "_value": property(_value),
            "delete": _delete,
            "is_deleted": _is_deleted,
            "on_device_size_in_bytes": _on_device_size_in_bytes,
            "unsafe_buffer_pointer": _unsafe_buffer_pointer,
            "__cuda_array_interface__": property(_cuda_array_interface),
        },
        to=ConcreteArray,
    )


def _buffer_of(x: ConcreteArray) -> Any:
    """Return the buffer of an array, put on the default device when it has none."""
    buffer = x.buffer
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
            try:
                self.buffer.block_until_ready()
            except (AttributeError, gateway.RuntimeFailure):  # none, gone, or failed: says so
                gateway.block_until_ready(_buffer_of(self))
        except Exception as error:
            shorten(error)
            raise
    return self


def _copy_to_host_async(self: ConcreteArray) -> None:
    """Start copying the elements to the host."""
    copy_to_host_async(self)


def _is_ready(self: ConcreteArray) -> bool:
    """Whether the elements are computed."""
    return self.host is not None or gateway.is_ready(_buffer_of(self))


def _device(self: ConcreteArray) -> Any:
    """The device that holds the array, or the sharding of one that several devices hold.

    An array that is on the host will be on the default device.
    """
    buffer = self.buffer
    if buffer is None:
        return default_placement().device
    if type(getattr(buffer, "_sharding", None)) is gateway.SpreadOver:
        where = sharding_of(self)
        alone = isinstance(where, SingleDeviceSharding)  # in the memory of its host
        return where.devices_in_order[0] if alone else where
    return gateway.device_of(_buffer_of(self))


def _devices(self: ConcreteArray) -> set[Any]:
    """Return the set of devices that hold the array."""
    if self.buffer is None:
        return {default_placement().device}
    return set(gateway.devices_of(_buffer_of(self)))


def _platform(self: ConcreteArray) -> str:
    """Return the platform of its devices: "cpu" or "gpu"."""
    return str(next(iter(_devices(self))).platform)


def _sharding(self: ConcreteArray) -> Any:
    """How the array is spread over devices."""
    _check_kept(self)
    return sharding_of(self)


def _format(self: ConcreteArray) -> Format:
    """How the array is spread over devices, and lies in the memory of each."""
    return format_of(self.aval, _sharding(self), order_of(self))


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
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)


def _committed(self: ConcreteArray) -> bool:
    """Whether the array was put on its device by request."""
    buffer = self.buffer
    return buffer is not None and bool(gateway.placement_of(_buffer_of(self)).committed)


def _value(self: ConcreteArray) -> Any:
    """The elements, as a NumPy array that cannot be written."""
    return np.asarray(self)


def _delete(self: ConcreteArray) -> None:
    """Give up the memory; using the array afterwards is an error."""
    buffer = self.buffer
    give_up(self, DeletedBuffer("was deleted"))
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
    sharding = sharding_of(self)
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
    if spread_sharding(x) is not None:
        return None
    found: dict[str, Any] | None = gateway.cuda_array_interface(_buffer_of(x))
    return found
