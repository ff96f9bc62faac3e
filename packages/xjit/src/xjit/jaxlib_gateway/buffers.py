"""Buffers: data on devices, transfers of host arrays, the guards of transfers, DLPack capsules."""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from xjit.jaxlib_gateway.array_types import SUB_BYTE_DTYPES, ArrayType, Index, Tiles, array_type
from xjit.jaxlib_gateway.clients import (
    check,
    client,
    default_device,
    is_orphan,
    refuse,
    until_ready,
)
from xjit.jaxlib_gateway.runtime import (
    ASKS_SHARDINGS,
    RuntimeFailure,
    XlaError,
    _jax,
    fail,
    xla_client,
)
from xprim import config
from xprim.errors import message

__all__ = ()


# ---------------------------------------------------------------------------------- transfer guards
# Transfer guards: log or refuse copies between the host's memory and that of devices.
#
# The options `transfer_guard_host_to_device`, `..._device_to_host` and `..._device_to_device` (and
# `transfer_guard`, which sets all three) say what is allowed. A transfer is explicit inside
# `device_put`, `device_get` and `copy_to_host_async`, else implicit.
#
#     allow               every transfer
#     log, disallow       log or refuse implicit transfers
#     log_explicit, disallow_explicit    and explicit ones, too
#
# CPU devices compute in the host's memory, so between host and CPU nothing is ever transferred.

logger = logging.getLogger("xjit")

to_device = config.transfer_guard_host_to_device
to_host = config.transfer_guard_device_to_host
between_devices = config.transfer_guard_device_to_device

_TEXT_BY_OPTION = {
    to_device: ("from the host to a device", "device_put"),
    to_host: ("from a device to the host", "device_get"),
    between_devices: ("from one device to another", "device_put"),
}


class TransferError(RuntimeError):
    """A transfer that a transfer guard does not allow."""


class _Thread(threading.local):
    explicit = False


_thread = _Thread()


class ExplicitTransfers:
    """A block of code whose transfers somebody requested."""

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = _thread.explicit
        _thread.explicit = True

    def __exit__(self, *exception: object) -> None:
        _thread.explicit = self._previous


def check_transfer(option: config.Option[str], kind: Any, source: Any, destination: Any) -> None:
    """Log or refuse a transfer as an option says.

    Args:
      option: that of the direction.
      kind: the type of what is moved, as messages show it.
      source: a device, or the text `the host`.
      destination: likewise.

    Raises:
      TransferError: the transfer is not allowed.
    """
    level = option.value
    explicit = _thread.explicit
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    direction, function = _TEXT_BY_OPTION[option]
    what = f"an {'explicit' if explicit else 'implicit'} transfer {direction}"
    if level.startswith("log"):
        logger.warning("%s: %s goes from %s to %s", what, kind, source, destination)
        return
    raise TransferError(message(
        option.name, f"{what} is not allowed here.",
        got=f"{kind} from {source} to {destination}, where the option is {level!r}",
        hint="" if explicit else f"{function} makes a transfer explicit",
    ))  # fmt: skip


# -------------------------------------------------------------------------------- pieces on host
# Pieces of arrays in host memory, cut for devices from other pieces: each element moves once.
#
# The runtime reads the memory of a CPU array in place where it begins at a multiple of 64 bytes
# and nothing lies between the elements, and copies all other. So a piece that is there already,
# as a part of what is given, is passed on as it is; any other is written to memory of its own
# that begins so. What goes where depends on shapes and tiles alone, and is kept.

ALIGNMENT = 64
"""Bytes: a multiple of what any vector instruction wants; less aligned memory is copied."""

# Below, a second copy costs less than to look where each part of each piece goes.
_SMALL_BYTES = 1 << 14


class Part(NamedTuple):
    """What a wanted piece has of one that is given: the places of the same elements in both."""

    given: int
    in_given: Index
    in_wanted: Index


def pieces_for(
    given: Sequence[np.ndarray[Any, Any]], tiles: Tiles, wanted: Tiles, shape: tuple[int, ...],
    *, lent: bool,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Return the piece of each device, by their numbers; those with the same piece share it.

    Args:
      given: the pieces of an array, in the order of `tiles.pieces`.
      tiles: how the array is cut into these.
      wanted: how it shall be cut.
      shape: of the array.
      lent: whether somebody may write to what is given, so that it must be copied.
    """
    dtype = given[0].dtype
    if math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
        return _small_pieces(given, shape, *_places(shape, tiles, wanted), lent=lent)
    found: dict[int, np.ndarray[Any, Any]] = {}
    for numbers, piece_shape, parts in _cuts(shape, tiles, wanted):
        found.update(dict.fromkeys(numbers, _piece(given, piece_shape, parts, lent)))
    return [found[number] for number in range(wanted.devices.size)]


def _small_pieces(
    given: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], places_given: Sequence[Index],
    places: Sequence[Index], piece_shape: tuple[int, ...], order: Sequence[int], *, lent: bool,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Return the piece of each device, by way of the whole array, in one block of memory."""
    whole = given[0]
    if len(given) > 1:
        whole = allocate_aligned(shape, whole.dtype)
        for place, piece in zip(places_given, given, strict=True):
            whole[place] = piece
    elif lent or (len(places) == 1 and not _is_read_in_place(whole)):
        whole = _copy_aligned(whole)
    if len(places) == 1:
        return [whole] * len(order)
    pieces = _block(len(places), piece_shape, whole.dtype)
    for place, piece in zip(places, pieces, strict=True):
        piece[...] = whole[place]
    return [pieces[k] for k in order]


def _block(count: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """Return memory for so many arrays, which the runtime reads in place."""
    step = -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    raw = np.empty(count * step + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return [np.ndarray(shape, dtype, raw, start + k * step) for k in range(count)]


def _copy_aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = allocate_aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


@functools.lru_cache(maxsize=1024)
def _places(
    shape: tuple[int, ...], given: Tiles, wanted: Tiles
) -> tuple[list[Index], list[Index], tuple[int, ...], list[int]]:
    """Return the places of the pieces that are given and wanted, the shape of the latter.

    And for each device the number of its piece.
    """
    order: dict[int, int] = {}
    pieces = list(wanted.pieces(shape))
    for k, (_, numbers) in enumerate(pieces):
        order.update(dict.fromkeys(numbers, k))
    in_order = [order[number] for number in range(wanted.devices.size)]
    places_given = [index for index, _ in given.pieces(shape)]
    return places_given, [index for index, _ in pieces], wanted.piece_shape(shape), in_order


def _piece(
    given: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], parts: Sequence[Part], lent: bool
) -> np.ndarray[Any, Any]:
    if len(parts) == 1 and not lent:
        source = given[parts[0].given]
        view = source if source.shape == shape else source[parts[0].in_given]
        if _is_read_in_place(view):
            return view
    piece = allocate_aligned(shape, given[0].dtype)
    for k, in_given, in_wanted in parts:
        piece[in_wanted] = given[k][in_given]
    return piece


def _is_read_in_place(array: np.ndarray[Any, Any]) -> bool:
    return array.flags.c_contiguous and array.__array_interface__["data"][0] % ALIGNMENT == 0


def allocate_aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return memory for an array that the runtime reads in place."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


@functools.lru_cache(maxsize=1024)
def _cuts(
    shape: tuple[int, ...], given: Tiles, wanted: Tiles
) -> list[tuple[list[int], tuple[int, ...], list[Part]]]:
    """Return for each wanted piece the numbers of its devices, its shape, and its parts."""
    sources = [_bounds(index, shape) for index, _ in given.pieces(shape)]
    piece_shape = wanted.piece_shape(shape)
    cuts = []
    for index, numbers in wanted.pieces(shape):
        bounds = _bounds(index, shape)
        overlaps = [_overlap(k, source, bounds) for k, source in enumerate(sources)]
        cuts.append((numbers, piece_shape, [part for part in overlaps if part is not None]))
    return cuts


def _bounds(index: Index, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    return [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]


def _overlap(
    k: int, given: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]
) -> Part | None:
    """Return what two pieces have in common, None for nothing."""
    in_given, in_wanted = [], []
    for (a, a_end), (b, b_end) in zip(given, wanted, strict=True):
        start, end = max(a, b), min(a_end, b_end)
        if start >= end:
            return None
        in_given.append(slice(start - a, end - a))
        in_wanted.append(slice(start - b, end - b))
    return Part(k, tuple(in_given), tuple(in_wanted))


# --------------------------------------------------------------------------------------- buffers
# Raw buffers: data on one device, or one program argument sharded over several.
#
# What: `put` and `to_numpy`, and the queries of a buffer. Idea: a buffer is jaxlib's
# own `ArrayImpl`, held by a stand-in for the two Python objects that it wants: an `ArrayType`
# (shape and dtype) and a sharding, one for each device, made once. They are what makes a buffer
# self-describing: `buffer.aval.dtype`, `buffer.aval.shape`. Some of jaxlib's methods import `jax`
# where it is installed (those that make single-device arrays: `_arrays`, `unsafe_buffer_pointer`,
# `_single_device_array_to_np_array_did_copy`), so they are kept for what nothing else does.

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
    """Placement on one device by default: other arguments may draw the data away."""

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
def sharding_of_stack(devices: tuple[Any, ...], axis: int) -> Any:
    """Return the sharding object of an array whose pieces along `axis` are on these devices."""
    several_devices[0] = True  # also for one device: such a buffer is not a whole array
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
def sharding_of_uncommitted(device: Any) -> Any:
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
        committed: whether somebody requested this device (see `sharding_of_uncommitted`).

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
    if to_device.used and not in_host_memory(device):
        check_transfer(to_device, kind, "the host", device)
    alias = may_alias and (array.flags.owndata or not array.flags.writeable)
    try:
        return _jax.batched_device_put(
            kind, placement((device,)) if committed else sharding_of_uncommitted(device),
            [array], [device], True, False, _ALIAS if alias else _COPY, True,
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
        ValueError: the buffer is sharded over several devices (see `shards`).

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
    if to_host.used:
        check_transfer(to_host, buffer.aval, device_of(buffer), "the host")
    try:
        buffer._copy_single_device_array_to_host_async()
    except RuntimeFailure as error:
        fail("copy_to_host_async", "the buffer could not be copied", error)


_naming_pieces = threading.Lock()


def pieces_of(buffer: Buffer) -> list[Buffer]:
    """Return the pieces of a buffer over several devices, as jaxlib describes them.

    jaxlib lists them when they are first read, and up to 0.11 leaves the interpreter to other
    threads meanwhile: what two threads list at once has each piece twice, or holes.
    """
    with _naming_pieces:
        return buffer._arrays  # type: ignore[no-any-return]


def is_deleted(buffer: Buffer) -> bool:
    """Say whether the buffer's memory, or that of a piece, was given up: deleted or donated."""
    if buffer.is_deleted():  # jaxlib looks at the first piece alone
        return True
    if not pieces_lent[0] or len(getattr(buffer._sharding, "devices", ())) < 2:
        return False
    return True in [piece.is_deleted() for piece in pieces_of(buffer)]


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
    if between_devices.used:
        check_transfer(between_devices, buffer.aval, here, device)
    if here.client is not device.client:  # from one platform to another: through the host
        with ExplicitTransfers():
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
    """Return the pieces of a buffer that is sharded over devices, one for each device that is ours.

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
        for piece, device in zip(pieces_of(buffer), devices, strict=True)
    ]


def assemble(pieces: Sequence[Buffer], devices: Sequence[Any] | None = None) -> Buffer:
    """Return one buffer sharded over the devices of `pieces`, sharing their memory.

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
    _mark_shared(buffer)
    return capsule


def _mark_shared(buffer: Buffer) -> None:
    """Remember that others read the memory."""
    buffer._is_shared = True


def dlpack_device_of_capsule(buffer: Buffer) -> tuple[int, int]:
    """Return what `__dlpack_device__` has to answer: what the capsule of the buffer says."""
    if in_host_memory(device_of(buffer)):
        return 1, 0
    block_until_ready(buffer)
    return device_of_capsule(export_capsule(buffer))


def cuda_array_interface(buffer: Buffer) -> dict[str, Any] | None:
    """Return the attribute of this name for the memory of a GPU, None for other memory.

    The elements are computed when it is there, so no stream is named. It does not say that the
    memory is read-only, as PyTorch refuses that; it must not be written to all the same.
    Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3
    """
    kind = buffer.aval
    if in_host_memory(device_of(buffer)) or kind.dtype.kind not in "biufc":
        return None
    _mark_shared(buffer)
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
            "to_numpy", f"the buffer is sharded over {len(devices)} devices.",
            hint="to_numpy(piece) for each piece of shards(buffer)",
        ))  # fmt: skip
    check_kept(buffer)
    if to_host.used and not in_host_memory(devices[0]):
        check_transfer(to_host, kind, devices[0], "the host")
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


# ---------------------------------------------------------------------------------- buffer pools
# Small host values for programs that start at once: NumPy arrays and Python numbers.
#
# What: `buffer_pool`, which makes the functions that bring values of one type to one placement.
# Idea: where a program is called with host values, making buffers of them costs as much as
# starting it. A CPU program reads its arguments where they are, so a few buffers whose memory the
# runtime was given once are written anew for each call. Such a buffer is written by one call at a
# time, and only when the program that read it last is over; a call that finds none in the pool
# makes one. Whoever adds programs that hand their arguments to Python must copy them there: the
# next call overwrites a pooled buffer.

_IN_PLACE = xla_client.HostBufferSemantics.ZERO_COPY

PassingSharding = _jax.SingleDeviceSharding
"""The class of the shardings of buffers from a `buffer_pool`, which no array keeps."""

# Above it, copying costs more than the runtime's call, and the memory is better given back.
_MAX_BYTES = 1 << 16

PooledBuffer = tuple[Any, Buffer]
"""What is written to (an array of NumPy, or its memory), and the buffer that shows it."""

BufferPool = tuple[Callable[[Any], PooledBuffer], Callable[[PooledBuffer], None]]


def buffer_pool(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any, *, kept: bool = False
) -> BufferPool:
    """Return two functions: from a host value to a pooled buffer, and one that takes it back.

    A buffer that is taken back is written again by a later call, so it may be given back only when
    the program that read it is over; it need not be given back at all. A value that does not fit
    is the runtime's or NumPy's error.

    Args:
        shape: of the values.
        dtype: of NumPy arrays among the values, in the machine's byte order; Python numbers, which
            cost less than arrays of rank 0, are brought to it.
        where: the placement, on one device.
        kept: whether the program may keep the memory, so that each value needs its own.

    Example:
        >>> from xjit.jaxlib_gateway import default_device, placement, to_numpy
        >>> fill, release = buffer_pool((2,), np.dtype("float32"), placement((default_device(),)))
        >>> pooled = fill(np.float32([1, 2]))
        >>> to_numpy(pooled[1])
        array([1., 2.], dtype=float32)
        >>> release(pooled)
    """
    found = None if kept else make_pooled_buffers(shape, dtype, where)
    if found is None:
        place = _placer(shape, dtype, where)
        return lambda value: (None, place(value)), _drop
    new, free = found
    take = free.pop

    def fill(value: Any) -> PooledBuffer:
        try:
            pooled = take()
        except IndexError:  # several threads, or a program that takes its time
            pooled = new()
        pooled[0][...] = value
        return pooled

    return fill, free.append


def _drop(pooled: PooledBuffer) -> None:
    """Take back a buffer that is not used again."""


def make_pooled_buffers(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any
) -> tuple[Callable[[], PooledBuffer], list[PooledBuffer]] | None:
    """Return what makes such buffers, and the first; None where the runtime would copy."""
    device = where._device
    nbytes = dtype.itemsize
    for n in shape:
        nbytes *= n
    if device.platform != "cpu" or not 0 < nbytes <= _MAX_BYTES or dtype in SUB_BYTE_DTYPES:
        return None
    kind, devices, sharding = array_type(shape, dtype), [device], _sharding(where)

    def make() -> PooledBuffer:
        host = allocate_aligned(shape, dtype)
        buffer = _jax.batched_device_put(
            kind, sharding, [host], devices, True, False, _IN_PLACE, True
        )
        # Python's own writing of a float32 is quicker, and makes infinity of 1e300 without a word.
        return host.data if not shape and dtype.char in "fd" else host, buffer

    written, buffer = first = make()
    try:
        in_place = unsafe_pointer(buffer) == np.asarray(written).ctypes.data
    except RuntimeFailure:
        return None
    return (make, [first]) if in_place else None


def _placer(
    shape: tuple[int, ...], dtype: np.dtype[Any], where: Any
) -> Callable[[np.ndarray[Any, Any] | complex], Buffer]:
    """Return a function from a host value of this type to a buffer with a copy of it."""
    kind, device = array_type(shape, dtype), where._device
    put_all, copy, devices, sharding = _jax.batched_device_put, _COPY, [device], _sharding(where)
    # Without this the runtime makes 64-bit elements narrow, with it all Python numbers wide.
    keeps_64_bits = dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8

    def place(value: Any) -> Buffer:
        return put_all(kind, sharding, [value], devices, True, False, copy, keeps_64_bits)

    def ask_and_place(value: Any) -> Buffer:
        if to_device.used:
            check_transfer(to_device, kind, "the host", device)
        return place(value)

    return place if device.platform == "cpu" else ask_and_place


def _sharding(where: Any) -> Any:
    return _passing_sharding(where._device) or where


@functools.lru_cache(maxsize=4096)
def _passing_sharding(device: Any) -> Any:
    """Return a sharding of jaxlib's own class, or None where jaxlib asks it for Python methods.

    Without those a buffer costs 0.3 us less than with a class of ours.
    """
    return None if ASKS_SHARDINGS else PassingSharding(device)


# ------------------------------------------------------------------------------ sharded transfer
# Host arrays on several devices at once, for programs that run on all of them.
#
# One call of the runtime places all pieces. It takes pieces of an array for its rows, so the type
# of such a buffer is that of all pieces in a row: the program reads it, and no array keeps it.
# Small pieces are written to memory that the devices have already (`make_pooled_shards`).


class RowShards(ManyDevices):
    """Placement of an array that is cut along its first axis, one piece on each device."""

    __slots__ = ()
    committed = False

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        tiles = [len(self.devices), *[1] * (ndim - 1)]
        return xla_client.HloSharding.iota_tile(tiles, tiles, list(range(ndim)))

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece."""
        return (shape[0] // len(self.devices), *shape[1:])


# One object for each row of devices.
_in_a_row = functools.lru_cache(maxsize=4096)(RowShards)


def put_shards(arrays: Sequence[np.ndarray[Any, Any]], devices: tuple[Any, ...]) -> Buffer:
    """Return one buffer with a host array on each device, for a program that runs on all of them.

    The arrays must be equal in shape and dtype, in native byte order; their memory may be used by
    the runtime, on the caller's promise that nothing writes to it any more.
    """
    first = arrays[0]
    if not first.ndim or not first.size:  # nothing to lie along in a row
        return assemble([put(a, d, may_alias=True) for a, d in zip(arrays, devices, strict=True)])
    shape = (len(arrays) * first.shape[0], *first.shape[1:])
    return _put_at_once("put_shards", shape, arrays, _in_a_row(devices), devices)


def make_pooled_shards(
    shape: tuple[int, ...], dtype: np.dtype[Any], devices: tuple[Any, ...]
) -> PooledBuffer | None:
    """Return memory for a piece on each device, and one buffer that shows it to a program.

    Whoever writes to it must know that the program that read it last is over.

    Args:
        shape: of a piece.
        dtype: of a piece, in the machine's byte order.
        devices: each holds one piece.

    Returns:
        A list of what is written to, one for each device, and the buffer; None where the runtime
        would not read in place (accelerators, large pieces).
    """
    found = [make_pooled_buffers(shape, dtype, placement((device,))) for device in devices]
    if None in found:
        return None
    firsts = [first for one in found if one is not None for first in one[1]]
    return [memory for memory, _ in firsts], assemble([buffer for _, buffer in firsts], devices)


def put_replicated(array: np.ndarray[Any, Any], devices: tuple[Any, ...]) -> Buffer:
    """Return one buffer with the whole host array on each device; otherwise as `put_shards`."""
    arrays = [array] * len(devices)
    return _put_at_once("put_replicated", array.shape, arrays, placement(devices), devices)


def _put_at_once(
    operation: str, shape: tuple[int, ...], arrays: Sequence[np.ndarray[Any, Any]], where: Any,
    devices: tuple[Any, ...],
) -> Buffer:  # fmt: skip
    kind = array_type(shape, arrays[0].dtype)
    if to_device.used and devices[0].platform != "cpu":
        check_transfer(to_device, kind, "the host", devices[0])
    alias = all(a.flags.owndata or not a.flags.writeable for a in arrays)
    try:
        return _jax.batched_device_put(
            kind, where, arrays, devices, True, False, _ALIAS if alias else _COPY, True
        )
    except RuntimeFailure as error:
        fail(operation, f"{kind} could not be placed on {len(devices)} devices", error)


# ---------------------------------------------------------------------------------------- DLPack
# DLPack capsules: their header, and the memory behind them.
#
# A capsule holds a C struct whose first fields say where the data is and what it is. It is also a
# counted reference: while it lives, the buffer's memory is neither freed nor donated, which makes
# it the safe way to a raw address.
#
# Source: the DLPack specification, `dlpack.h` (`DLManagedTensor`, `DLDataTypeCode`).

_BITS_NAME_BY_CODE = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_DTYPE_BY_CODE_BITS = {
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (6, 8): np.dtype(bool),
    (7, 8): np.dtype(ml_dtypes.float8_e3m4),
    (8, 8): np.dtype(ml_dtypes.float8_e4m3),
    (9, 8): np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (11, 8): np.dtype(ml_dtypes.float8_e4m3fnuz),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
    (13, 8): np.dtype(ml_dtypes.float8_e5m2fnuz),
    (14, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
}
_CPU_DEVICE, _CUDA_DEVICE = 1, 2


class _Header(ctypes.Structure):
    """`DLTensor`: what an unversioned capsule points to begins with it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype = ctypes.c_void_p
_pointer_of_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)

_VERSIONED = b"dltensor_versioned"
_VERSIONED_PREFIX = 32  # bytes: the version, the owner, its deleter, flags


def export_capsule(buffer: Any, stream: int | None = None) -> Any:
    """Return an unversioned DLPack capsule that shares and keeps the buffer's memory.

    The protocol has no read-only mark in this version: whoever takes the capsule must not write.
    """
    try:
        return _jax.buffer_to_dlpack_managed_tensor(buffer, stream)
    except RuntimeFailure as error:
        fail("to_dlpack", f"{buffer.aval} cannot be shared", error)


def dlpack_device(device: Any) -> tuple[int, int]:
    """Return what `__dlpack_device__` has to answer for a buffer on `device`."""
    if device.platform == "cpu":
        return _CPU_DEVICE, 0
    return _CUDA_DEVICE, int(device.local_hardware_id)


def device_of_capsule(capsule: Any) -> tuple[int, int]:
    """Return the type and number of the device whose memory a capsule has."""
    header = _header(capsule)
    return int(header.device_type), int(header.device_id)


def data_pointer(capsule: Any) -> int:
    """Return the address of the first element of a capsule."""
    header = _header(capsule)
    return int(header.data or 0) + int(header.byte_offset)


def host_array(source: Any) -> np.ndarray[Any, Any]:
    """Return a view of the CPU memory that `source` offers through `__dlpack__`.

    Raises:
        ValueError: the capsule says that its memory is on another device, or has none.
    """
    try:
        capsule = source.__dlpack__(max_version=(1, 0))  # which read-only memory needs
    except TypeError:  # older than the argument
        capsule = source.__dlpack__()
    header = _check_header(capsule, _CPU_DEVICE)
    try:
        return np.from_dlpack(_Offered(capsule))
    except (RuntimeError, TypeError, BufferError):  # NumPy knows only its own dtypes
        dtype, shape = dtype_of(header), tuple(header.shape[: header.ndim])
        strides = tuple(header.strides[: header.ndim]) if header.strides else None
        memory = _ForeignMemory(capsule, shape, strides, dtype.itemsize)
        return np.asarray(memory).view(dtype)


def import_capsule(source: Any, device: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
    """Return jaxlib's buffer over the device memory that `source` offers, its shape and dtype."""
    stream = device.get_stream_for_external_ready_events()
    capsule = source.__dlpack__(stream=stream)
    header = _check_header(capsule, _CUDA_DEVICE)
    shape, dtype = tuple(header.shape[: header.ndim]), dtype_of(header)
    try:
        return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream), shape, dtype
    except RuntimeFailure as error:
        fail("from_dlpack", "the memory cannot be shared", error)


def dtype_of(header: _Header) -> np.dtype[Any]:
    """Return the dtype of a capsule's elements."""
    found: np.dtype[Any] | None = _DTYPE_BY_CODE_BITS.get((header.code, header.bits))
    if found is not None and header.lanes == 1:
        return found
    name = _BITS_NAME_BY_CODE.get(header.code)
    if name is None or header.lanes != 1 or header.bits < 8:
        raise TypeError(message(
            "from_dlpack", "the elements have no dtype here.",
            got=f"type code {header.code}, {header.bits} bits, {header.lanes} lanes",
        ))  # fmt: skip
    return np.dtype(f"{name}{int(header.bits)}")


class _Offered:
    """A capsule of CPU memory that was looked at already, as NumPy takes it."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU_DEVICE, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule


class _ForeignMemory:
    """Memory of another library, kept alive by the capsule that shares it."""

    __slots__ = ("__array_interface__", "_capsule")

    def __init__(
        self, capsule: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int
    ) -> None:
        self._capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": None if strides is None else tuple(s * itemsize for s in strides),
            "typestr": f"|V{itemsize}",
            "data": (data_pointer(capsule), True),
        }


def _header(capsule: Any) -> _Header:
    if _is_capsule(capsule, _VERSIONED):
        address = int(_pointer_of_capsule(capsule, _VERSIONED) or 0) + _VERSIONED_PREFIX
    else:
        address = int(_pointer_of_capsule(capsule, b"dltensor") or 0)
    return _Header.from_address(address)


def _check_header(capsule: Any, device_type: int) -> _Header:
    """Return the header of a foreign capsule, after comparing it with what its object said."""
    header = _header(capsule)
    shape = tuple(header.shape[: header.ndim])
    if header.device_type != device_type:
        raise ValueError(message(
            "from_dlpack", "the object and its capsule name different devices.",
            got=f"__dlpack_device__ of type {device_type}, a capsule of type {header.device_type}",
            expected="one device type: 1 is a CPU, 2 a CUDA device",
        ))  # fmt: skip
    if any(n < 0 for n in shape):
        raise ValueError(f"from_dlpack: the capsule has negative dimensions: {shape}.")
    if not header.data and 0 not in shape:
        raise ValueError(f"from_dlpack: the capsule of shape {shape} has no memory: null.")
    return header
