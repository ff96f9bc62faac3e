"""Raw buffers: data on one device, or one program argument spread over several.

What: `put` and `to_numpy`, and all that can be asked of a buffer.
Idea: a buffer is jaxlib's own `ArrayImpl`, held by a stand-in for the two Python objects that
it wants: an `ArrayType` (shape and dtype) and a sharding, one for each device, made once. They
are what makes a buffer self-describing: `buffer.aval.dtype`, `buffer.aval.shape`.
Some of jaxlib's methods import `jax` where it is installed (those that make single-device
arrays: `_arrays`, `unsafe_buffer_pointer`, `_single_device_array_to_np_array_did_copy`), so they
are kept for what nothing else does.
Neighbours: `executables` runs programs on buffers, `dlpack` shares them with other libraries.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from xjit import transfer_guards as guards
from xprim.errors import message

from .array_types import SUB_BYTE_DTYPES, ArrayType, array_type
from .clients import client, default_device
from .dlpack import (
    data_pointer,
    device_of_capsule,
    export_capsule,
    host_array,
    import_capsule,
)
from .forks import check, is_orphan, refuse
from .runtime import RuntimeFailure, XlaError, _jax, fail, xla_client
from .waits import until_ready

__all__ = ()

Buffer: TypeAlias = Any  # opaque: only the functions of this folder look inside
BufferType = _jax.ArrayImpl  # the class of all buffers

_COPY = xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_ALIAS = xla_client.HostBufferSemantics.ZERO_COPY
_REPLICATED = xla_client.HloSharding.replicate()


class OneDevice(_jax.SingleDeviceSharding):  # type: ignore[misc]
    """Placement on one device, with the Python methods that jaxlib 0.10 calls."""

    memory_kind: str | None = None
    committed = True

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return _REPLICATED

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece: that of the whole."""
        return shape


class MemoryOfDevice(OneDevice):
    """Placement in one kind of memory of a device."""

    def __init__(self, device: Any, memory_kind: str) -> None:
        super().__init__(device)
        self.memory_kind = memory_kind


class UncommittedDevice(OneDevice):
    """Placement on one device that nobody asked for: other arguments may draw the data away."""

    committed = False


class ManyDevices(_jax.Sharding):  # type: ignore[misc]
    """Placement of one whole piece on each of several devices."""

    # A slot, since `import jax` gives the base class a property of this name.
    __slots__ = ("_internal_device_list", "devices")
    memory_kind = None
    committed = True

    def __init__(self, devices: tuple[Any, ...]) -> None:
        self._internal_device_list = _jax.DeviceList(devices)
        self.devices = devices

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return _REPLICATED

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece: that of the whole."""
        return shape


class StackedShards(ManyDevices):
    """Placement of an array that is cut along one axis, one piece without that axis on each device.

    The buffer's own type is that of a piece; `to_numpy` stacks the pieces.
    """

    __slots__ = ("axis",)
    committed = False

    def __init__(self, devices: tuple[Any, ...], axis: int) -> None:
        super().__init__(devices)
        self.axis = axis

    def gathered(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the elements of the whole array."""
        return np.stack([to_numpy(piece) for piece in shards(buffer)], self.axis)


@functools.lru_cache(maxsize=4096)
def stacked(devices: tuple[Any, ...], axis: int) -> Any:
    """Return the sharding object of an array whose pieces along `axis` are on these devices."""
    several_devices[0] = True  # also for one device: such a buffer is no whole array
    return StackedShards(devices, axis)


# Whether data may be at more than one place by now; until then calls need not look where it is.
several_devices = [False]
_devices_seen: set[Any] = set()


pieces_lent = [False]
"""Whether anybody may hold the pieces of a spread buffer, and so may delete one of them."""

away_from_host = [False]
"""Whether data was ever placed where NumPy cannot stand for the device: see `is_away`."""


def note_devices(devices: tuple[Any, ...]) -> None:
    """Note that data may be on these devices: see `several_devices` and `away_from_host`."""
    _devices_seen.update(devices)
    if len(_devices_seen) > 1:
        several_devices[0] = True
    if several_devices[0] or devices[0].platform != "cpu" or devices[0] is not default_device():
        away_from_host[0] = True


def is_away(buffer: Buffer) -> bool:
    """Return whether a buffer is on an accelerator, a mesh, or a CPU device that is not default."""
    where = buffer._sharding
    device = getattr(where, "_device", None)
    if device is None:
        return hasattr(where, "spread")
    return bool(device.platform != "cpu" or (where.committed and device is not default_device()))


@functools.lru_cache(maxsize=4096)
def placement(devices: tuple[Any, ...]) -> Any:
    """Return the sharding object of one device or of several, one piece each."""
    note_devices(devices)
    return OneDevice(devices[0]) if len(devices) == 1 else ManyDevices(devices)


@functools.lru_cache(maxsize=4096)
def uncommitted(device: Any) -> Any:
    """Return the sharding object of data that is on a device by default, not by request."""
    note_devices((device,))
    return UncommittedDevice(device)


def placement_of(buffer: Buffer) -> Any:
    """Return the sharding object of a buffer, one object for each placement (`placement`)."""
    return buffer._sharding


def put(
    array: np.ndarray[Any, Any],
    device: Any = None,
    *,
    may_alias: bool = False,
    committed: bool = True,
) -> Buffer:
    """Return a buffer on `device` that holds the elements of `array`.

    Args:
        array: any layout and byte order; 64-bit elements stay 64 bits wide.
        device: by default the first of the default backend.
        may_alias: the caller promises that nothing writes to `array` any more, so that a CPU
            buffer may use its memory instead of a copy. Without effect where the array is a
            view of memory that can be written.
        committed: whether somebody asked for this device (see `uncommitted`).

    Raises:
        TypeError: XLA has no such dtype (object, text, datetime, long double).

    Example:
        >>> to_numpy(put(np.arange(3.0)))
        array([0., 1., 2.])
    """
    if array.__class__ is not np.ndarray:
        array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if device is None:
        device = default_device()
    check()
    kind = array_type(array.shape, array.dtype)
    if guards.to_device.used and not in_host_memory(device):
        guards.check(guards.to_device, kind, "the host", device)
    alias = may_alias and (array.flags.owndata or not array.flags.writeable)
    try:
        return _jax.batched_device_put(
            kind, placement((device,)) if committed else uncommitted(device), [array], [device],
            True, False, _ALIAS if alias else _COPY, True,
        )  # fmt: skip
    except RuntimeFailure as error:
        fail("put", f"{kind} could not be placed on {device}", error)


def to_numpy(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Return the elements as a read-only array, waiting for them if need be.

    On a CPU the array shows the buffer's own memory, which lives as long as the array does. It is
    a copy for dtypes narrower than a byte, for other devices, and with jaxlib before 0.12 for the
    dtypes of `ml_dtypes`.

    Raises:
        XlaError: the program that was to compute the buffer failed, or it is deleted or donated.
        ValueError: the buffer is spread over several devices (see `shards`).

    Example:
        >>> to_numpy(put(np.array([True, False]))).flags.writeable
        False
    """
    kind = buffer.aval
    gathered = getattr(buffer._sharding, "gathered", None)
    if gathered is not None:
        return gathered(buffer)  # type: ignore[no-any-return]
    if kind.plain:
        try:
            if is_orphan[0]:
                return _to_numpy_slowly(buffer)
            until_ready(buffer)  # to look at one that failed would end the process
            # Not `asarray(buffer)`, which asks `__array__` of `jax` where the protocol fails.
            return np.asarray(memoryview(buffer))
        except (BufferError, RuntimeFailure):
            return _to_numpy_slowly(buffer)
    return _to_numpy_slowly(buffer)


def in_host_memory(device: Any) -> bool:
    """Return whether the memory of a device is that of the host."""
    return bool(device.platform == "cpu")


def is_ready(buffer: Buffer) -> bool:
    """Say whether the elements are computed, without waiting; a failure counts as ready."""
    if buffer.is_deleted():
        raise XlaError("is_ready: the buffer has been deleted or donated.")
    return bool(buffer.is_ready())


def check_kept(buffer: Buffer) -> None:
    """Raise for a buffer whose memory, or that of a piece of it, is another's by now."""
    if is_deleted(buffer):
        raise XlaError(message(
            "Array", f"memory of this {buffer.aval} was deleted or donated.",
            hint="pieces (addressable_shards) share the memory of their array: copy one,\n"
            "xnp.array(piece), before either is deleted or donated",
        ))  # fmt: skip


def check_all_kept(buffers: Sequence[Buffer]) -> None:
    """Raise for the first of these buffers of which `check_kept` would."""
    if pieces_lent[0] or True in map(_is_first_deleted, buffers):
        for buffer in buffers:
            check_kept(buffer)


_is_first_deleted = BufferType.is_deleted


def block_until_ready(buffer: Buffer) -> Buffer:
    """Wait until the elements are computed and return the buffer."""
    if is_orphan[0] and not buffer.is_ready():
        refuse()
    try:
        until_ready(buffer)
    except RuntimeFailure as error:
        check_kept(buffer)
        made_by = buffer.aval.made_by or "block_until_ready"
        fail(made_by, "its result was not computed", error)
    return buffer


def copy_to_host_async(buffer: Buffer) -> None:
    """Start a copy to the host, which `to_numpy` then waits for; nothing to do on a CPU."""
    if in_host_memory(device_of(buffer)):
        return
    if guards.to_host.used:
        guards.check(guards.to_host, buffer.aval, device_of(buffer), "the host")
    try:
        buffer._copy_single_device_array_to_host_async()
    except RuntimeFailure as error:
        fail("copy_to_host_async", "the buffer could not be copied", error)


def is_deleted(buffer: Buffer) -> bool:
    """Say whether the buffer's memory, or that of a piece, was given up: deleted or donated."""
    if buffer.is_deleted():  # jaxlib looks at the first piece alone
        return True
    if not pieces_lent[0] or len(getattr(buffer._sharding, "devices", ())) < 2:
        return False
    return True in [piece.is_deleted() for piece in buffer._arrays]


def delete(buffer: Buffer) -> None:
    """Give up the buffer's memory, as soon as no array from `to_numpy` shows it any more.

    Raises:
        RuntimeError: the memory was given to another library with `to_dlpack`, which may use it.
    """
    if getattr(buffer, "_is_shared", False):  # the runtime would end the process
        raise RuntimeError("delete: the buffer's memory is shared through DLPack.")
    buffer.delete()


def device_of(buffer: Buffer) -> Any:
    """Return the device that holds the buffer; the first where there are several."""
    return devices_of(buffer)[0]


def devices_of(buffer: Buffer) -> tuple[Any, ...]:
    """Return the devices that hold the buffer's pieces, in order."""
    where = buffer._sharding
    return where.devices if isinstance(where, ManyDevices) else (where._device,)


def nbytes_on_device(buffer: Buffer) -> int:
    """Return the bytes that the buffer (one piece of it) takes on its device, padding included."""
    return int(buffer.on_device_size_in_bytes())


def copy_to_device(buffer: Buffer, device: Any) -> Buffer:
    """Return the buffer on `device`: the same object where it is there already."""
    if hasattr(buffer._sharding, "gathered"):
        return put(to_numpy(buffer), device, may_alias=True)
    here = device_of(buffer)
    if here is device or here == device:
        return buffer
    check()
    if guards.between_devices.used:
        guards.check(guards.between_devices, buffer.aval, here, device)
    if here.client is not device.client:  # from one platform to another: through the host
        with guards.Explicit():
            return put(to_numpy(buffer), device, may_alias=True)
    try:
        return _jax.batched_device_put(
            buffer.aval, placement((device,)), [buffer], [device], True, False, _COPY, True
        )
    except RuntimeFailure as error:
        fail("copy_to_device", f"{buffer.aval} could not be copied to {device}", error)


def unsafe_pointer(buffer: Buffer) -> int:
    """Return the address of the buffer's memory on its device, which may vanish with the buffer."""
    block_until_ready(buffer)
    if buffer.aval.dtype in SUB_BYTE_DTYPES:
        return int(buffer.unsafe_buffer_pointer())  # DLPack has no such elements
    return data_pointer(export_capsule(buffer))


def shards(buffer: Buffer) -> list[Buffer]:
    """Return the pieces of a buffer that is spread over devices, one for each device that is ours.

    Devices of other processes are left out. The pieces share memory with the buffer. Where the
    `jax` distribution is installed this imports it: jaxlib describes the pieces by its class
    before they can be described by ours.
    """
    everywhere = devices_of(buffer)
    if len(everywhere) == 1:
        if type(buffer._sharding) is not StackedShards:
            return [buffer]
        one = placement(everywhere)
        return [buffer._rewrap_with_aval_and_sharding(buffer.aval, one)]
    here = everywhere[0].client.process_index()
    devices = [device for device in everywhere if device.process_index == here]
    kind = buffer.aval
    check_kept(buffer)
    pieces_lent[0] = True
    return [
        piece._rewrap_with_aval_and_sharding(kind, placement((device,)))
        for piece, device in zip(buffer._arrays, devices, strict=True)
    ]


def assemble(pieces: Sequence[Buffer], devices: Sequence[Any] | None = None) -> Buffer:
    """Return one buffer spread over the devices of `pieces`, sharing their memory.

    Args:
        pieces: equal in shape and dtype, each on another device, in the order of the program's
            devices.
        devices: all devices of the program; to be given when some belong to other processes, which
            hold the other pieces.
    """
    spread = tuple(map(device_of, pieces)) if devices is None else tuple(devices)
    if len(spread) == 1:
        return pieces[0]
    kind = pieces[0].aval
    for number, piece in enumerate(pieces):
        if piece.aval.shape != kind.shape or piece.aval.dtype != kind.dtype:
            raise ValueError(message(
                "assemble", "the pieces for different devices differ.",
                got=f"piece 0: {kind}, piece {number}: {piece.aval}",
            ))  # fmt: skip
    try:
        return _jax.ArrayImpl(kind, placement(spread), list(pieces), True, _skip_checks=True)
    except RuntimeFailure as error:
        fail("assemble", "the pieces do not make one buffer", error)


def to_dlpack(buffer: Buffer, stream: int | None = None) -> Any:
    """Return a DLPack capsule of the buffer, for an object's `__dlpack__` method to give."""
    block_until_ready(buffer)
    capsule = export_capsule(buffer, stream)
    buffer._is_shared = True
    return capsule


def lent_device(buffer: Buffer) -> tuple[int, int]:
    """Return what `__dlpack_device__` has to answer: what the capsule of the buffer says."""
    if in_host_memory(device_of(buffer)):
        return 1, 0
    block_until_ready(buffer)
    return device_of_capsule(export_capsule(buffer))


def cuda_array_interface(buffer: Buffer) -> dict[str, Any] | None:
    """Return the attribute of this name for the memory of a GPU, None for other memory.

    The elements are computed when it is there, so no stream is named. It does not say that the
    memory is read-only, as PyTorch refuses that; nobody must write to it all the same.
    Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3
    """
    kind = buffer.aval
    if in_host_memory(device_of(buffer)) or kind.dtype.kind not in "biufc":
        return None
    buffer._is_shared = True
    return {
        "shape": tuple(kind.shape), "typestr": kind.dtype.str, "strides": None, "version": 3,
        "data": (unsafe_pointer(buffer) if 0 not in kind.shape else 0, False), "stream": None,
    }  # fmt: skip


def from_dlpack(source: Any, device: Any = None, *, may_alias: bool = False) -> Buffer:
    """Return a buffer of the elements of an object with `__dlpack__` and `__dlpack_device__`.

    Args:
        source: an array of any library, on a CPU or a CUDA device.
        device: where the buffer shall be; by default where the data is.
        may_alias: share CPU memory instead of copying it, on the caller's promise that nothing
            writes to it any more. Memory of a GPU is shared always.
    """
    kind, number = source.__dlpack_device__()
    if int(kind) == 1:
        host = host_array(source)
        if may_alias:
            host.flags.writeable = False
        return put(host, device or default_device("cpu"), may_alias=may_alias)
    here = next(d for d in client("gpu").local_devices() if d.local_hardware_id == number)
    shared, shape, dtype = import_capsule(source, here)
    buffer = shared._rewrap_with_aval_and_sharding(array_type(shape, dtype), placement((here,)))
    return buffer if device is None else copy_to_device(buffer, device)


def _to_numpy_slowly(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Return what the buffer protocol does not give, or raise the reason why it does not."""
    kind = buffer.aval
    devices = devices_of(buffer)
    if len(devices) > 1:
        raise ValueError(message(
            "to_numpy", f"the buffer is spread over {len(devices)} devices.",
            hint="to_numpy(piece) for each piece of shards(buffer)",
        ))  # fmt: skip
    check_kept(buffer)
    if guards.to_host.used and not in_host_memory(devices[0]):
        guards.check(guards.to_host, kind, devices[0], "the host")
    block_until_ready(buffer)
    try:
        if hasattr(buffer, "_to_np_array_did_copy"):  # since 0.12, and it imports nothing
            host: np.ndarray[Any, Any] = buffer._to_np_array_did_copy()[0]
        elif buffer.platform() == "cpu" and kind.dtype not in SUB_BYTE_DTYPES:
            host = _copy_of_memory(buffer)
        else:
            host = buffer._single_device_array_to_np_array_did_copy()[0]
    except RuntimeFailure as error:
        fail("to_numpy", f"{kind} could not be read", error)
    host.flags.writeable = False
    return host


class _Memory:
    """Memory of a buffer as NumPy takes it; the capsule keeps it while NumPy looks."""

    __slots__ = ("__array_interface__", "_capsule")

    def __init__(self, capsule: Any, kind: ArrayType) -> None:
        self._capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "shape": kind.shape,
            "typestr": f"|V{kind.dtype.itemsize}",
            "data": (data_pointer(capsule), True),
        }


def _copy_of_memory(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Return a copy of a CPU buffer whose dtype Python's buffer protocol lacks.

    A view would have to hold the capsule, and deleting a buffer while there is one is fatal.
    """
    kind = buffer.aval
    if 0 in kind.shape:
        return np.empty(kind.shape, kind.dtype)
    return np.array(_Memory(export_capsule(buffer), kind)).view(kind.dtype)
