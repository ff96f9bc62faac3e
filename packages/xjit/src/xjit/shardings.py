"""Shardings of one device: where an array is, in the words users know.

`Sharding` is the base that packages with more devices extend; `SingleDeviceSharding` says that an
array is wholly on one device. `device_named_by` reads what users pass where a place is asked for.

Neighbours: `placement` is the inner form, `transfer` and `jit` take these.
"""

from __future__ import annotations

from typing import Any

import xtree
from xjit import jaxlib_gateway as gateway


class Sharding:
    """How the elements of an array are spread over devices."""

    __slots__ = ()

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold pieces of the array."""
        raise TypeError(f"{type(self).__name__}: must say its device_set.")

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return len(self.device_set)


class SingleDeviceSharding(Sharding):
    """The whole array is on one device.

    Example:
      >>> from xjit import devices
      >>> SingleDeviceSharding(devices("cpu")[0]).num_devices
      1
    """

    __slots__ = ("_device",)

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        if memory_kind not in (None, "device", "unpinned_host"):
            raise ValueError(
                f"SingleDeviceSharding: there is no memory of kind {memory_kind!r} here."
                "\n  expected  'device', or None"
            )
        self._device = device

    @property
    def device_set(self) -> set[Any]:
        """The one device."""
        return {self._device}

    @property
    def is_fully_replicated(self) -> bool:
        """True: the one device has all elements."""
        return True

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the piece on each device: that of the whole."""
        return tuple(global_shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return bool(self._device == other._device)

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r})"


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
        raise TypeError(
            f"{operation}: {value!r} is not a place."
            "\n  expected  a device, the name of a platform, or a SingleDeviceSharding"
        )
    if len(devices) != 1:
        raise ValueError(
            f"{operation}: a sharding over {len(devices)} devices cannot be used here."
            "\n  expected  a device or a sharding of one device"
            "\n  hint      the package xpar spreads arrays over several devices"
        )
    return next(iter(devices))


def _device_of_platform(name: str, operation: str) -> Any:
    try:
        return gateway.default_device(name)
    except gateway.XlaError:  # says itself why no device can be used
        raise
    except RuntimeError as error:
        there = [platform for platform in gateway.platforms() if platform != name]
        raise RuntimeError(
            f"{operation}: there is no platform {name!r} here."
            f"\n  expected  {' or '.join(map(repr, there))}, a device, or a SingleDeviceSharding"
            f"\n  hint      {str(error).splitlines()[0]}"
        ) from None


def one_device_in(tree: Any, operation: str) -> Any:
    """Return the one device that all leaves of a tree of places name, or None."""
    found = [device_named_by(leaf, operation) for leaf in xtree.leaves(tree)]
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 1:
        raise ValueError(
            f"{operation}: a program runs on one device."
            f"\n  got       {', '.join(map(str, distinct))}"
            "\n  hint      the package xpar spreads programs over several devices"
        )
    return distinct[0] if distinct else None
