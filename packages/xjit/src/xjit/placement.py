"""Where programs run and data is: one device, several replicas, a sharding over a mesh.

A `Placement` says what a program needs to know of its devices: how it is compiled for them, how
each argument gets there, and how results are read. There is one object for each, so placements are
compared by identity, and so are the shardings of buffers that are where they should be.

Data that somebody put on a device (`device_put(x, device)`, `jit(f, device=...)`) is committed: a
call runs where its committed arguments are, and refuses two places. All other data is on the
default device and follows.

Neighbours: `replicas` and `mesh_placement` have those of several devices, `places_of_calls` finds
the one of a call, `program` compiles for them, `transfer` moves data for users.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.deleted import DeletedBuffer, raise_deleted
from xjit.lowering import LoweredProgram
from xjit.shardings import Sharding, SingleDeviceSharding
from xprim import ConcreteArray, ShapedArray, config
from xprim.sharded_types import whole

__all__ = ["OneDevice", "Placement", "committed_to", "default_placement", "one_device"]

__dir__ = __all__.copy


Bring = Callable[[Sequence[ConcreteArray]], tuple[list[Any], Callable[[list[Any]], None] | None]]
"""From the arguments of a program to their buffers, and what wants to see its results, or None."""


class Placement(abc.ABC):
    """Where a program runs, and how its arguments and results are spread there.

    Attributes:
      devices: replica by replica.
      axis_sizes: the named axes that run over the replicas, row by row.
      num_partitions: over how many devices each replica is split.
      in_shardings: how the arguments of a program that is split lie.
      out_shardings: how its results shall lie.
    """

    __slots__ = ("__weakref__", "axis_sizes", "devices", "in_shardings", "num_partitions",
                 "out_shardings")  # fmt: skip
    is_split = False
    """Whether XLA splits the program over its devices."""

    in_shardings: Sequence[Sharding]
    out_shardings: Sequence[Sharding | None]

    def __init__(
        self, devices: tuple[Any, ...], axis_sizes: Mapping[Any, int] | None = None,
        num_partitions: int = 1,
    ) -> None:  # fmt: skip
        self.devices = devices
        self.axis_sizes = dict(axis_sizes or {})
        self.num_partitions = num_partitions
        self.in_shardings = self.out_shardings = ()

    @property
    def num_replicas(self) -> int:
        """How many copies run the same program."""
        return math.prod(self.axis_sizes.values())

    @property
    def platform(self) -> str:
        """The platform of the devices."""
        return str(self.devices[0].platform)

    def settled(self, executable: gateway.Executable, lowered: LoweredProgram) -> Placement:
        """Return the placement with what was left to the compiler, which has compiled by now."""
        return self

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program: of buffers, to what `consume_with_handlers` asks."""
        return executable.starter

    @abc.abstractmethod
    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the devices."""

    @abc.abstractmethod
    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what every replica reads."""

    def avals(self, of_results: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
        """Return the abstract values of whole results, from those of one replica."""
        return tuple(of_results)

    def with_result(self) -> Placement:
        """Return the placement for programs with one more result first, a scalar."""
        return self

    def shardings_of_arguments(self) -> Any:
        """Return what `is_elsewhere` compares: a sharding object, or a list with one for each.

        None where a program cannot be started on the buffers of its arguments alone.
        """
        return None

    @abc.abstractmethod
    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results of a program, which are of these types."""

    def sharding_of(self, tiles: gateway.Tiles | None) -> Sharding:
        """Return how a value in a program lies.

        Args:
          tiles: of which XLA speaks, in the order in which the program counts its devices; None
            where it does not split the program, each of whose devices has all of the value.
        """
        return SingleDeviceSharding(self.devices[0])

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return how each of so many arguments lies, as users see it; None where that is unsaid."""
        return [None] * count

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return how each of the results lies, as users see it; None where that is unsaid."""
        return [None] * len(avals)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return [ConcreteArray(None, a, out) for a, out in zip(avals, outs, strict=True)]


class OneDevice(Placement):
    """A program on one device, or data that is there.

    Attributes:
      device: the device.
      sharding: the sharding object of buffers at this placement.
      committed: whether somebody asked for this device.
    """

    __slots__ = ("committed", "device", "sharding")

    def __init__(self, device: Any, committed: bool) -> None:
        self.device = device
        self.committed = committed
        self.sharding = gateway.placement((device,)) if committed else gateway.uncommitted(device)
        super().__init__((device,))

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the device."""
        return lambda arrays: (buffers_at(self, arrays), None)

    def shardings_of_arguments(self) -> Any:
        """Return the sharding object of all arguments."""
        return self.sharding

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return the buffers of what the program captured."""
        return buffers_at(self, constants)

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return how each of so many arguments lies: on the device."""
        return [SingleDeviceSharding(self.device)] * count

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return how each of the results lies: on the device."""
        return self.ways_of_arguments(len(avals))

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        return [self.sharding] * len(avals)


# Not by the sharding: `import jax` gives the class of these an equality that knows no commitment.
one_device = functools.lru_cache(maxsize=None)(OneDevice)


def read_buffer(buffer: Any) -> Any:
    """Return a buffer's elements on the host; the reader of `xprim` arrays."""
    if type(buffer) is DeletedBuffer:
        raise_deleted("array", buffer)
    return gateway.to_numpy(buffer)


def default_placement() -> OneDevice:
    """Return the placement of data that nobody has put anywhere."""
    chosen = config.values.default_device
    if chosen is None or isinstance(chosen, str):
        chosen = gateway.default_device(chosen)
    return one_device(chosen, False)


def committed_to(device: Any) -> OneDevice:
    """Return the placement of data that was put on a device."""
    return one_device(device, True)


def buffers_at(placement: OneDevice, arrays: Sequence[ConcreteArray]) -> list[Any]:
    """Return buffers of the arrays on a device, moving or copying what is elsewhere.

    A host array that goes to the default device keeps the buffer for later calls.
    """
    buffers = []
    device, committed = placement.device, placement.committed
    for x in arrays:
        buffer = x.buffer
        if buffer is None:
            buffer = gateway.put(x.to_stored(), device, may_alias=True, committed=committed)
            if not committed:
                x.buffer = buffer
        elif type(buffer) is DeletedBuffer:
            raise_deleted(x.aval.str_long(), buffer)
        elif hasattr(buffer._sharding, "gathered"):  # on several devices
            buffer = gateway.put(x.to_stored(), device, may_alias=True, committed=committed)
        elif gateway.device_of(buffer) is not device:
            buffer = gateway.copy_to_device(buffer, device)
        buffers.append(buffer)
    return buffers


def moved(results: Sequence[ConcreteArray], placement: OneDevice) -> list[ConcreteArray]:
    """Return arrays of the same values at a placement."""
    buffers = buffers_at(placement, results)
    return [ConcreteArray(None, whole(x.aval), b) for x, b in zip(results, buffers, strict=True)]
