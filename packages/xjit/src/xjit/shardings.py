"""Shardings: how the elements of an array are spread over devices, in the words users know.

`Sharding` is the base; `SingleDeviceSharding` says that an array is wholly on one device.
`device_named_by` reads what users pass where one device is asked for.

Neighbours: `named_shardings` has those over a mesh, `placement` the inner form, `transfer` and
`jit` take these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import xtree
from xjit import jaxlib_gateway as gateway
from xjit.of_this_process import OfThisProcess
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import DeviceLike

__all__ = ["Sharding", "SingleDeviceSharding", "make_single_device_sharding"]

__dir__ = __all__.copy

Index = tuple[slice, ...]
_MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class Sharding:
    """How the elements of an array are spread over devices.

    A kind of sharding says its `devices_in_order` and its `tiles`; the rest follows.
    """

    __slots__ = ()
    memory: str | None = None
    """The kind of memory, None for that in which the devices compute."""

    def __copy__(self) -> Self:
        return self  # nothing in it changes

    def __deepcopy__(self, _memo: Any) -> Self:
        return self  # devices are those of this process

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""
        raise TypeError(f"{type(self).__name__}: must say its devices_in_order.")

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device holds which piece of an array of so many dimensions."""
        raise TypeError(f"{type(self).__name__}: must say its tiles.")

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold pieces of the array."""
        return set(self.devices_in_order)

    @property
    def has_devices(self) -> bool:
        """Whether it says on which devices arrays are."""
        return True

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        devices = self.devices_in_order
        here = devices[0].client.process_index()
        return {device for device in devices if device.process_index == here}

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        """The devices in order, by the name that libraries written for JAX read."""
        return self.devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """Return XLA's own description, for an array of so many dimensions; likewise."""
        return gateway.hlo_sharding(self.tiles(num_dimensions))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return len(self.addressable_devices) == self.num_devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        raise TypeError(f"{type(self).__name__}: must say whether it is_fully_replicated.")

    @property
    def memory_kind(self) -> str:
        """The kind of memory: that of the devices, or of their host."""
        return self.memory or _OWN_MEMORY

    @boundary
    def with_memory_kind(self, kind: str | None) -> Sharding:
        """Return the same sharding in another kind of memory.

        Raises:
          ValueError: the devices have no such memory.
        """
        if kind is not None and kind != self.memory_kind:
            raise ValueError(message(
                type(self).__name__, f"pieces without names have no memory of kind {kind!r}.",
                hint="device_put(x, NamedSharding(mesh, spec, memory_kind=...))",
            ))  # fmt: skip
        return self

    def check_rank(self, shape: tuple[int, ...], operation: str) -> None:
        """Raise where no array of so many dimensions can be spread so."""

    def check_shape(self, shape: tuple[int, ...], operation: str = "sharding") -> None:
        """Raise where an array of this shape cannot be spread so."""

    @boundary
    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the piece on each device of an array of a shape.

        Raises:
          ValueError: the shape cannot be cut so.
        """
        shape = tuple(global_shape)
        self.check_shape(shape)
        return self.tiles(len(shape)).piece_shape(shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Return for each device the place of its piece in an array of a shape.

        Raises:
          ValueError: the shape cannot be cut so.
        """
        shape = tuple(global_shape)
        self.check_shape(shape)
        indices = self.tiles(len(shape)).indices(shape)
        return dict(zip(self.devices_in_order, indices, strict=True))

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Return what `devices_indices_map` does, for the devices of this process."""
        here = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in here}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether arrays of so many dimensions lie in the same way under both.

        Of two over abstract meshes, whether the pieces have the same places, whatever the axes are
        called. One that has devices is not equivalent to one that has none.
        """
        if self.has_devices != other.has_devices:
            return False
        if self.has_devices and self.devices_in_order != other.devices_in_order:
            return False
        return self.memory == other.memory and self.tiles(ndim) == other.tiles(ndim)


class SingleDeviceSharding(Sharding, OfThisProcess):
    """The whole array is on one device.

    Example:
      >>> from xjit import devices
      >>> SingleDeviceSharding(devices("cpu")[0]).num_devices
      1
    """

    __slots__ = ("_device", "memory")
    _holds = "a device"
    _instead = "pickle the number of the device, device.id"

    def __init__(self, device: DeviceLike, *, memory_kind: str | None = None) -> None:
        self.memory = checked_memory("SingleDeviceSharding", memory_kind, device)
        self._device = device

    @boundary
    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """Return the same sharding in another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The one device."""
        return (self._device,)

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return one piece, the whole."""
        return gateway.whole(1, ndim)

    @property
    def is_fully_replicated(self) -> bool:
        """True: the one device has all elements."""
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return bool(self._device == other._device) and self.memory == other.memory

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device, self.memory))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}{memory_text(self)})"


def make_single_device_sharding(
    device: DeviceLike, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the sharding of arrays that are wholly on one device.

    Args:
      device: the device.
      memory_kind: the kind of memory: `"device"`, as None, or `"pinned_host"` and
        `"unpinned_host"` where the device has them.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class TiledSharding(Sharding, OfThisProcess):
    """Pieces on devices in a way that no partition spec over a mesh names.

    A compiled program may choose such a one for a result: half of an axis for one dimension.

    Args:
      devices: in order.
      tiles: which device holds which piece.
    """

    __slots__ = ("_devices", "_tiles")
    _holds = "devices"
    _instead = "pickle a partition spec, and mesh.abstract_mesh"

    def __init__(self, devices: tuple[Any, ...], tiles: gateway.Tiles) -> None:
        self._devices = devices
        self._tiles = tiles

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""
        return self._devices

    def tiles(self, ndim: int) -> gateway.Tiles:
        """Return which device holds which piece; dimensions at the end are whole."""
        counts = self._tiles.counts
        more = (1,) * (ndim - len(counts))
        own = self._tiles
        return gateway.Tiles(counts + more, own.devices, own.summands) if more else own

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        return math.prod(self._tiles.counts) * self._tiles.summands == 1

    def check_shape(self, shape: tuple[int, ...], operation: str = "sharding") -> None:
        """Raise where an array of this shape cannot be spread so."""
        counts = self._tiles.counts
        if len(shape) < len(counts) or any(n % c for n, c in zip(shape, counts, strict=False)):
            raise ValueError(message(
                operation, "an array of this shape cannot be cut so.", got=f"shape {shape}",
                expected=f"multiples of {counts}",
            ))  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TiledSharding):
            return NotImplemented
        return self._devices == other._devices and self._tiles == other._tiles

    def __hash__(self) -> int:
        return hash((self._devices, self._tiles))

    def __repr__(self) -> str:
        return f"TiledSharding(pieces={self._tiles.counts}, devices={self._tiles.devices.tolist()})"


_OWN_MEMORY = "device"


def checked_memory(operation: str, kind: str | None, device: Any = None) -> str | None:
    """Return what a sharding keeps of a kind of memory: None for that of the devices.

    Args:
      operation: what errors call the public function.
      kind: the kind that is asked for.
      device: one of the devices; without it all kinds are known that any device has.

    Raises:
      ValueError: the device has no such memory.
    """
    if kind is None or kind == _OWN_MEMORY:
        return None
    known: Any = _MEMORY_KINDS
    if isinstance(device, gateway.Device):
        known = sorted({memory.kind for memory in device.addressable_memories()})
    if kind not in known:
        *most, last = map(repr, known)
        raise ValueError(message(
            operation, f"there is no memory of kind {kind!r} here.",
            expected=f"{', '.join(most)} or {last}" if most else last,
        ))  # fmt: skip
    return kind


def memory_text(sharding: Sharding) -> str:
    """Return what representations say of the memory, nothing for that of the devices."""
    return "" if sharding.memory is None else f", memory_kind={sharding.memory!r}"


def device_named_by(value: Any, operation: str) -> Any:
    """Return the device that a user's argument names, or None for None.

    Args:
      value: a device, the name of a platform, a sharding of one device, or None.
      operation: what errors call the public function.

    Raises:
      RuntimeError: there is no such platform.
      ValueError: a sharding over several devices.
      TypeError: anything else.
    """
    if value is None or isinstance(value, gateway.Device):
        return value
    if isinstance(value, str):
        return _device_of_platform(value, operation)
    devices = getattr(value, "device_set", None)
    if devices is None:
        raise TypeError(message(
            operation, f"{value!r} is not a place.",
            expected="a device, the name of a platform, or a SingleDeviceSharding",
        ))  # fmt: skip
    if len(devices) != 1:
        raise ValueError(message(
            operation, f"a sharding over {len(devices)} devices cannot be used here.",
            expected="a device or a sharding of one device",
            hint="the package xpar spreads arrays over several devices",
        ))  # fmt: skip
    return next(iter(devices))


def _device_of_platform(name: str, operation: str) -> Any:
    try:
        return gateway.default_device(name)
    except gateway.XlaError:  # says itself why no device can be used
        raise
    except RuntimeError as error:
        there = [platform for platform in gateway.platforms() if platform != name]
        raise RuntimeError(message(
            operation, f"there is no platform {name!r} here.",
            expected=f"{' or '.join(map(repr, there))}, a device, or a SingleDeviceSharding",
            hint=f"{str(error).splitlines()[0]}",
        )) from None  # fmt: skip


def one_device_in(tree: Any, operation: str) -> Any:
    """Return the one device that all leaves of a tree of places name, or None."""
    found = [device_named_by(leaf, operation) for leaf in xtree.leaves(tree)]
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 1:
        raise ValueError(message(
            operation, "a program runs on one device.", got=", ".join(map(str, distinct)),
            hint="the package xpar spreads programs over several devices",
        ))  # fmt: skip
    return distinct[0] if distinct else None
