"""Placements: one device, replicas, a sharding over a mesh, arrays with layouts."""

from __future__ import annotations

import abc
import contextlib
import functools
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from xjit import jaxlib_gateway as gateway
from xjit.callbacks.primitive import wait_for_callbacks
from xjit.dispatch.fast_path import DeletedBuffer, raise_deleted
from xjit.lowering.modules import NO_LAYOUTS, Layouts, LoweredProgram
from xjit.sharding.layouts import AUTO, Layout, RequestedOrder, layout_as, resolve_order
from xjit.sharding.meshes import Mesh
from xjit.sharding.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    TiledSharding,
    default_device,
    name_tiles,
)
from xprim import ClosedJaxpr, ConcreteArray, ShapedArray, Var, shaped_array
from xprim.errors import message
from xprim.sharded_types import whole
from xtree.interning import forkable_lock

__all__ = [
    "OneDevice", "Placement", "committed_to", "default_placement", "one_device", "Axis",
    "Replicas", "finish_programs", "in_turns", "replicas", "with_axis", "without_axis",
    "OverMesh", "Spreading", "over_mesh", "spread_buffer", "LayoutPlacement", "base_of",
    "check_orders", "in_order_of_numpy", "in_orders_ahead", "in_orders_of", "laid",
    "order_if_committed",
    "order_of", "orders_at", "orders_in", "orders_out", "placement_in_orders", "put_in_order",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------- argument memory
# Memory on several devices for small host arguments of a program, written at each call.
#
# To place pieces on eight devices costs the runtime more than a small program does. So for each
# argument of a program there is memory that its devices read in place, the buffer that shows it,
# and a result of the call that read it last: a call takes these out, and puts them back. Where
# that call is not over yet, the runtime places the pieces.

Written = dict[int, tuple[Any, Any]]
"""By the number of an argument: its memory on each device, and the buffer that shows it."""


class ArgumentMemory:
    """The memory of the arguments of one program.

    Args:
      lowered: the program.
      devices: where it runs.
    """

    __slots__ = ("_devices", "_has_memory", "_known", "_smallest")

    def __init__(self, lowered: LoweredProgram, devices: tuple[Any, ...]) -> None:
        self._devices = devices
        self._known: dict[int, tuple[Any, Any, Any]] = {}
        donated = (*lowered.donated, *lowered.useless)
        here = devices[0].client.process_index()
        is_seen = bool(lowered.out_avals) and all(d.process_index == here for d in devices)
        self._has_memory = [is_seen and i not in donated for i in lowered.kept]
        self._smallest = smallest_result(lowered)

    def write(self, i: int, pieces: Sequence[np.ndarray[Any, Any]], written: Written) -> Any:
        """Return a buffer of an argument's pieces, noted in `written`; None where there is none."""
        free = self._free(i, pieces[0])
        if free is None:
            return None
        written[i] = memory, buffer = free
        for place, piece in zip(memory, pieces, strict=True):
            place[...] = piece
        return buffer

    def noting(self, written: Written) -> Callable[[list[Any]], None] | None:
        """Return what is to see the results of the call that reads this, None for no reader."""
        return functools.partial(self._note_reader, written) if written else None

    def _note_reader(self, written: Written, outs: list[Any]) -> None:
        for i, (memory, buffer) in written.items():
            self._known[i] = memory, buffer, outs[self._smallest]

    def _free(self, i: int, piece: np.ndarray[Any, Any]) -> Any:
        """Return memory that no program reads and its buffer, or None: the pieces are copied."""
        if not self._has_memory[i]:
            return None
        known = self._known.pop(i, None)
        if known is None:
            found = gateway.make_pooled_shards(piece.shape, piece.dtype, self._devices)
            self._has_memory[i] = found is not None
            return found
        memory, buffer, reader = known
        if gateway.is_deleted(reader):  # nobody can tell any more whether the program is over
            self._has_memory[i] = False
        elif gateway.is_ready(reader):
            return memory, buffer
        else:
            self._known[i] = known
        return None


def smallest_result(lowered: LoweredProgram) -> int:
    """Return the number of the smallest result of a program, which is the cheapest to keep."""
    sizes = [a.size for a in lowered.out_avals]
    return sizes.index(min(sizes)) if sizes else 0


# ------------------------------------------------------------------------------------- placement
# Where programs run and data is: one device, several replicas, a sharding over a mesh.
#
# A `Placement` says what a program needs to know of its devices: how it is compiled for them, how
# each argument gets there, and how results are read. There is one object for each, so placements
# are compared by identity, and so are the shardings of buffers that are where they should be.
#
# Data that somebody put on a device (`device_put(x, device)`, `jit(f, device=...)`) is committed:
# a call runs where its committed arguments are, and refuses two places. All other data is on the
# default device and follows.

Bring = Callable[[Sequence[ConcreteArray]], tuple[list[Any], Callable[[list[Any]], None] | None]]
"""From the arguments of a program to their buffers, and what wants to see its results, or None."""


class Placement(abc.ABC):
    """Where a program runs, and how its arguments and results are spread there.

    Attributes:
      devices: replica by replica.
      axis_sizes: the named axes that run over the replicas, row by row.
      num_partitions: over how many devices each replica is split.
      in_shardings: how the arguments of a program that is split lie.
      out_shardings: the shardings of its results.
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

    def settle(self, executable: gateway.Executable, lowered: LoweredProgram) -> Placement:
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
        """Return the sharding of a value in a program.

        Args:
          tiles: of which XLA speaks, in the order in which the program counts its devices; None
            where it does not split the program, each of whose devices has all of the value.
        """
        return SingleDeviceSharding(self.devices[0])

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return the sharding of each of so many arguments, as users see it; None if unknown."""
        return [None] * count

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return the sharding of each result, as users see it; None if unknown."""
        return [None] * len(avals)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return [ConcreteArray(None, a, out) for a, out in zip(avals, outs, strict=True)]


class OneDevice(Placement):
    """A program on one device, or data that is there.

    Attributes:
      device: the device.
      sharding: the sharding object of buffers at this placement.
      committed: whether somebody requested this device.
    """

    __slots__ = ("committed", "device", "sharding")

    def __init__(self, device: Any, committed: bool) -> None:
        self.device = device
        self.committed = committed
        self.sharding = (
            gateway.placement((device,)) if committed else gateway.sharding_of_uncommitted(device)
        )
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
        """Return the sharding of each of so many arguments: on the device."""
        return [SingleDeviceSharding(self.device)] * count

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return the sharding of each of the results: on the device."""
        return self.ways_of_arguments(len(avals))

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        return [self.sharding] * len(avals)


# Not by the sharding: `import jax` gives the class of these an equality that knows no commitment.
one_device = functools.lru_cache(maxsize=None)(OneDevice)


def read_buffer(buffer: Any) -> Any:
    """Return a buffer's elements on the host; the reader of `xprim` arrays."""
    if type(buffer) is DeletedBuffer:
        raise_deleted(buffer.array_text, buffer)
    return gateway.to_numpy(buffer)


def default_placement() -> OneDevice:
    """Return the placement of uncommitted data."""
    return one_device(default_device(), False)


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


def move_results(results: Sequence[ConcreteArray], placement: OneDevice) -> list[ConcreteArray]:
    """Return arrays of the same values at a placement."""
    buffers = buffers_at(placement, results)
    return [ConcreteArray(None, whole(x.aval), b) for x, b in zip(results, buffers, strict=True)]


# -------------------------------------------------------------------------------------- replicas
# The placement of programs that run once on each of several devices, as those of `pmap` do.
#
# Each argument is one buffer sharded over the devices, a piece for each; results stay sharded, so a
# loop of updates never gathers them. A piece of a host array is a view of it; a result of an
# earlier program that is cut along the same axis passes as it is.

Axis = int | None


def with_axis(aval: ShapedArray, axis: Axis, size: int) -> ShapedArray:
    """Return the type of an array whose pieces along `axis` have the type `aval`."""
    if axis is None:
        return aval
    return shaped_array((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype, aval.weak_type)


def without_axis(aval: ShapedArray, axis: Axis) -> ShapedArray:
    """Return the type of a piece of an array along `axis`."""
    if axis is None:
        return aval
    shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    return shaped_array(shape, aval.dtype, aval.weak_type)


class Replicas(Placement):
    """One replica of a program on each device.

    Args:
      axis_name: the name of the axis that runs over the replicas.
      devices: where the replicas run.
      in_axes: for each argument, the axis it is cut along, or None where all get the whole.
      out_axes: for each result, the axis its pieces are stacked along; None takes the first piece.
    """

    __slots__ = ("in_axes", "out_axes")

    def __init__(
        self, axis_name: Hashable, devices: tuple[Any, ...], in_axes: tuple[Axis, ...],
        out_axes: tuple[Axis, ...],
    ) -> None:  # fmt: skip
        super().__init__(devices, {axis_name: len(devices)})
        self.in_axes = in_axes
        self.out_axes = out_axes

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program; on a CPU, those with collectives take turns."""
        if self.platform != "cpu" or not _COLLECTIVE.search(lowered.body):
            return executable.starter
        return in_turns(executable, lowered, self.devices)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the devices."""
        return _Spread(self, lowered)

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments, where all are cut and results stacked."""
        if None in self.in_axes or None in self.out_axes:
            return None
        return [gateway.sharding_of_stack(self.devices, axis or 0) for axis in self.in_axes]

    def with_result(self) -> Placement:
        """Return the placement whose programs have one more result first, a scalar of each."""
        ((axis_name, _),) = self.axis_sizes.items()
        return replicas(axis_name, self.devices, self.in_axes, (0, *self.out_axes))

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what every replica reads."""
        return [gateway.put_replicated(c.to_host(), self.devices) for c in constants]

    def avals(self, of_results: Sequence[ShapedArray]) -> tuple[ShapedArray, ...]:
        """Return the abstract values of whole results, from those of one replica."""
        size = len(self.devices)
        return tuple([
            with_axis(a, axis, size) for a, axis in zip(of_results, self.out_axes, strict=True)
        ])  # fmt: skip

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        return [gateway.sharding_of_stack(self.devices, axis or 0) for axis in self.out_axes]

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return [
            ConcreteArray(None, a, gateway.shards(out)[0] if axis is None else out)
            for out, a, axis in zip(outs, avals, self.out_axes, strict=True)
        ]


# One object for each placement, which look-ups compare by identity.
replicas = functools.lru_cache(maxsize=4096)(Replicas)
"""`Replicas`, one object for each placement of the last 4096."""


class _Spread:
    """Spreads the arguments of one program over the devices of its replicas.

    Small host arrays are written to memory that the devices have already.
    """

    __slots__ = ("_axes", "_devices", "_memory", "_stacked")

    def __init__(self, placement: Replicas, lowered: LoweredProgram) -> None:
        devices = self._devices = placement.devices
        self._axes = [placement.in_axes[i] for i in lowered.kept]
        self._stacked = [
            None if a is None else gateway.sharding_of_stack(devices, a) for a in self._axes
        ]
        self._memory = ArgumentMemory(lowered, devices)

    def __call__(
        self, arrays: Sequence[ConcreteArray]
    ) -> tuple[list[Any], Callable[[list[Any]], None] | None]:
        """Return the buffers of the arguments, and what notes who reads the memory of theirs."""
        written: Written = {}
        buffers = [self._shard_argument(i, x, written) for i, x in enumerate(arrays)]
        return buffers, self._memory.noting(written)

    def _shard_argument(self, i: int, x: ConcreteArray, written: Written) -> Any:
        """Return the buffer of an argument; memory that is written for it is added."""
        buffer, axis = x.buffer, self._axes[i]
        if type(buffer) is DeletedBuffer:
            raise_deleted(x.aval.str_long(), buffer)
        if axis is None:
            return gateway.put_replicated(x.to_stored(), self._devices)
        if buffer is not None and buffer._sharding is self._stacked[i]:
            return buffer
        pieces = list(np.moveaxis(x.to_stored(), axis, 0))
        found = self._memory.write(i, pieces, written)
        return gateway.put_shards(pieces, self._devices) if found is None else found


_COLLECTIVE = re.compile(r"stablehlo\.(all_|collective_|reduce_scatter)")


class _Turns:
    """Has programs with collectives run one after another on the virtual devices of a CPU.

    The runtime has one thread for each device. A replica that waits for the others keeps its
    thread, so two such programs at once can each hold threads that the other needs, for good.
    """

    __slots__ = ("_calls_python", "_last", "_lock")

    def __init__(self) -> None:
        self._lock = forkable_lock()
        self._last: Any = None  # one result of the last program, sharded over all its devices
        self._calls_python = False

    def take(
        self, start: Any, buffers: Any, handlers: Any, kept: int, calls_python: bool
    ) -> list[Any]:
        """Start a program when the last one has ended.

        Args:
          start: starts it.
          buffers: its arguments.
          handlers: of its results.
          kept: the result that the next one waits for.
          calls_python: whether it waits for Python functions.
        """
        with self._lock:
            last = self._last
            if last is not None and (last.is_deleted() or not last.is_ready()):
                if self._calls_python and not last.is_deleted():
                    wait_for_callbacks(last.is_ready)
                with contextlib.suppress(gateway.RuntimeFailure):  # its results raise it
                    gateway.until_ready(last)  # a process that has failed is raised here
            outs: list[Any] = start(buffers).consume_with_handlers(handlers)
            self._last, self._calls_python = (outs[kept] if outs else None), calls_python
        return outs

    def finish(self) -> None:
        """Wait until the last program has ended."""
        with self._lock:
            if self._last is not None and not gateway.is_deleted(self._last):
                with contextlib.suppress(gateway.RuntimeFailure):
                    gateway.until_ready(self._last)


_turns = _Turns()


def finish_programs() -> None:
    """Wait until the programs that exchange values between virtual devices have ended."""
    _turns.finish()


def in_turns(
    executable: gateway.Executable, lowered: LoweredProgram, devices: Sequence[Any]
) -> Callable[..., Any]:
    """Return what starts a program on the virtual devices of a CPU when the one before is over."""
    smallest, calls_python = smallest_result(lowered), bool(lowered.callbacks)
    start = executable.starter
    here = devices[0].client.process_index()
    if len(devices) > 1 == sum([d.process_index == here for d in devices]):
        # the runtime runs it within the call, and waits there for other processes
        start = _watch(start)
    return lambda buffers: _Turn(start, buffers, smallest, calls_python)


def _watch(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return what starts a program and raises where another process fails before it returns."""
    return lambda buffers: gateway.wait_watched(lambda: start(buffers))


class _Turn:
    """A program that starts when it is its turn."""

    __slots__ = ("_buffers", "_calls_python", "_smallest", "_start")

    def __init__(
        self, start: Callable[..., Any], buffers: Sequence[Any], smallest: int, calls_python: bool
    ) -> None:
        self._start = start
        self._buffers = buffers
        self._smallest = smallest
        self._calls_python = calls_python

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        """Start it and return its results.

        The runtime would start it on the devices whose pieces are there: these wait for the others
        for good, and keep their threads from all later programs.
        """
        gateway.check_all_kept(self._buffers)
        return _turns.take(self._start, self._buffers, handlers, self._smallest, self._calls_python)


# -------------------------------------------------------------------------------- mesh placement
# The placement of programs that XLA splits over the devices of a mesh.
#
# One program is written for whole arrays; each argument has its sharding, and XLA puts
# in what the devices must exchange. A result has the requested sharding, or one that XLA chose.


class OverMesh(Placement):
    """A program over several devices, split by XLA.

    Args:
      devices: in the order in which the program counts them.
      mesh: whose names results are described with, or None.
      in_shardings: for each argument, its sharding; None has it whole on each device.
      out_shardings: for each result, its sharding; None leaves that to XLA.
    """

    __slots__ = ("_given", "mesh")
    is_split = True

    def __init__(
        self, devices: tuple[Any, ...], mesh: Mesh | None,
        in_shardings: tuple[Sharding | None, ...], out_shardings: tuple[Sharding | None, ...],
    ) -> None:  # fmt: skip
        super().__init__(devices, num_partitions=len(devices))
        self.mesh = mesh or Mesh(devices, "device")
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        self.in_shardings = tuple([sharding or everywhere for sharding in in_shardings])
        named = [s for s in dict.fromkeys(in_shardings) if isinstance(s, NamedSharding)]
        # Along explicit axes the types say it, in words of their own.
        self._given = [s for s in named if s.mesh == self.mesh and not s.mesh.explicit_axes]
        self.out_shardings = out_shardings

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program; on a CPU, those that exchange values take turns.

        The text does not tell which these are, only what XLA has made of it.
        """
        if self.platform != "cpu" or len(self.devices) == 1:
            return executable.starter
        if lowered.callbacks or executable.exchanges_values():
            return in_turns(executable, lowered, self.devices)
        return _of_kept_buffers(executable.starter)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what spreads the arguments of a program over the mesh."""
        return Spreading(self, lowered)

    def place_of_argument(self, i: int) -> gateway.SpreadOver:
        """Return how the program wants an argument."""
        return gateway.make_sharding_object(self._in_order(self.in_shardings[i]))

    def _in_order(self, sharding: Sharding) -> Sharding:
        """Return a sharding with the devices in the order in which the program counts them."""
        devices = sharding.devices_in_order
        if devices == self.devices:
            return in_own_memory(sharding)
        ndim = len(sharding.spec) if isinstance(sharding, NamedSharding) else 0
        tiles = sharding.tiles(ndim)
        return TiledSharding(self.devices, tiles.renumber(devices, self.devices))

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments; None where results are put in order."""
        if any(s is not None and s is not self._in_order(s) for s in self.out_shardings):
            return None
        return [
            gateway.make_sharding_object(self._in_order(sharding)) for sharding in self.in_shardings
        ]

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return the sharding of each of the arguments."""
        return list(self.in_shardings)

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return the sharding of each result: the requested one, or the one XLA chose."""
        requested = self.out_shardings or (None,) * len(avals)
        chosen = self.shardings(avals, executable)
        return [s or where.spread for s, where in zip(requested, chosen, strict=True)]

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what every device reads."""
        where = gateway.make_sharding_object(NamedSharding(self.mesh, PartitionSpec()))
        return [spread_buffer(c, where) for c in constants]

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results: as requested, or as XLA chose."""
        requested = self.out_shardings or (None,) * len(avals)
        if None not in requested:
            return [
                gateway.make_sharding_object(self._in_order(s)) for s in requested if s is not None
            ]
        return [
            gateway.make_sharding_object(
                self._in_order(s) if s else self._of_result(tiles, aval.ndim)
            )
            for s, tiles, aval in zip(requested, executable.tiles_of_outputs(), avals, strict=True)
        ]

    def _of_result(self, tiles: gateway.Tiles, ndim: int) -> Sharding:
        """Return the sharding of a result: that of an argument with an equal one, if there is such.

        Axes of one device cut nothing, and entries of None say nothing, so XLA knows of neither.
        Where all axes are explicit there is an entry for each dimension, as in types.
        """
        for given in self._given:
            if len(given.spec) <= ndim and given.tiles(len(tiles.counts)) == tiles:
                return given
        found = self.sharding_of(tiles)
        if isinstance(found, NamedSharding) and found.mesh.are_all_axes_explicit:
            parts = [*found.spec, *[None] * (ndim - len(found.spec))]
            return found.update(spec=PartitionSpec(*parts))
        return found

    def sharding_of(self, tiles: gateway.Tiles | None) -> Sharding:
        """Return the sharding of a value in a program, by the names of the mesh."""
        if tiles is None:
            return NamedSharding(self.mesh, PartitionSpec())
        return name_tiles(self.mesh, self.devices, tiles)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays with the requested shardings."""
        requested = self.out_shardings or (None,) * len(outs)
        for i, sharding in enumerate(requested):
            if sharding is None:
                continue
            if sharding.devices_in_order != self.devices:
                order = gateway.order_of(outs[i])
                there = gateway.sharding_with_layouts(in_own_memory(sharding), order)
                outs[i] = gateway.as_spread(outs[i], there)
            if sharding.memory is not None:
                outs[i] = _to_memory_kind(outs[i], gateway.make_sharding_object(sharding))
        return super().results(outs, avals)


def _of_kept_buffers(start: Callable[..., Any]) -> Callable[..., Any]:
    """Return what raises for a buffer that lost a piece: other devices would start, and wait."""
    check = gateway.check_all_kept

    def start_if_kept(buffers: Sequence[Any]) -> Any:
        check(buffers)
        return start(buffers)

    return start_if_kept


def in_own_memory(sharding: Sharding) -> Sharding:
    """Return a sharding in the memory in which its devices compute."""
    return sharding if sharding.memory is None else sharding.with_memory_kind(None)


def _to_memory_kind(buffer: Any, where: gateway.SpreadOver) -> Any:
    """Return a buffer of the same elements in another kind of memory."""
    found = gateway.respread(buffer, where)
    return gateway.put_spread(gateway.to_numpy(buffer), where) if found is None else found


class _OfMesh(Protocol):
    """A placement over a mesh that says how a program wants each argument."""

    devices: tuple[Any, ...]

    def place_of_argument(self, i: int) -> gateway.SpreadOver:
        """Return how the program wants an argument."""


class Spreading:
    """Spreads the arguments of one program over its mesh, small host arrays by way of memory."""

    __slots__ = ("_indices", "_memory", "_wheres")

    def __init__(self, placement: _OfMesh, lowered: LoweredProgram) -> None:
        self._wheres = [placement.place_of_argument(i) for i in lowered.kept]
        self._memory = ArgumentMemory(lowered, placement.devices)
        self._indices: list[Any] = [None] * len(self._wheres)  # the shapes never change

    def __call__(
        self, arrays: Sequence[ConcreteArray]
    ) -> tuple[list[Any], Callable[[list[Any]], None] | None]:
        """Return the buffers of the arguments, and what notes who reads the memory of theirs."""
        written: Written = {}
        buffers = [
            self._from_host(i, x, written) if x.buffer is None else spread_buffer(x, where)
            for i, (x, where) in enumerate(zip(arrays, self._wheres, strict=True))
        ]
        return buffers, self._memory.noting(written)

    def _from_host(self, i: int, x: ConcreteArray, written: Written) -> Any:
        host, where = x.to_stored(), self._wheres[i]
        if where.order is not None:
            return gateway.put_spread(host, where)
        indices = self._indices[i]
        if indices is None:
            indices = self._indices[i] = where.tiles(host.ndim).indices(host.shape)
        found = self._memory.write(i, [host[index] for index in indices], written)
        return gateway.put_spread(host, where) if found is None else found


# One object for each placement, which look-ups compare by identity.
over_mesh = functools.lru_cache(maxsize=4096)(OverMesh)
"""`OverMesh`, one object for each placement of the last 4096."""


def spread_buffer(x: ConcreteArray, where: gateway.SpreadOver) -> Any:
    """Return the buffer of an array in the requested sharding, through the host from elsewhere."""
    buffer = x.buffer
    if buffer is None:
        return gateway.put_spread(x.to_stored(), where)
    if type(buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), buffer)
    if buffer._sharding is where:
        return buffer
    found = gateway.as_spread(buffer, where)
    if found is None and x.host is None:
        found = gateway.respread(buffer, where)
    return found if found is not None else gateway.put_spread(read(x), where)


def read(x: ConcreteArray) -> Any:
    """Return the elements on the host, which the array does not keep."""
    if x.host is not None or x.buffer is None:
        return x.to_stored()
    return gateway.to_numpy(x.buffer)


# -------------------------------------------------------------------------------- laid placement
# The placement of programs whose arguments or results lie in memory in orders of their own.
#
# A program on a device, or over a mesh, takes and gives arrays whose dimensions lie in the order
# of NumPy. `LayoutPlacement` is the same placement for others: its text names the orders,
# arguments in another order are transposed, and the shardings of the results name theirs.
# What the compiler may choose (`AUTO`) is known when it has compiled: then the placement is
# `settled`.


class LayoutPlacement(Placement):
    """A program at another placement, some of whose arguments or results lie in other orders.

    Args:
      base: the placement.
      in_layouts: for each argument, an order or `AUTO`; None for the order of NumPy.
      out_layouts: likewise for each result.
    """

    __slots__ = ("base", "in_layouts", "is_split", "out_layouts")

    def __init__(
        self,
        base: Placement,
        in_layouts: tuple[RequestedOrder, ...],
        out_layouts: tuple[RequestedOrder, ...],
    ) -> None:
        super().__init__(base.devices, base.axis_sizes, base.num_partitions)
        self.base = base
        self.is_split = base.is_split
        self.in_shardings, self.out_shardings = base.in_shardings, base.out_shardings
        self.in_layouts = in_layouts
        self.out_layouts = out_layouts

    def at(self, base: Placement) -> Placement:
        """Return the placement for the same orders at another one."""
        return laid(base, self.in_layouts, self.out_layouts)

    def settle(self, executable: gateway.Executable, lowered: LoweredProgram) -> Placement:
        """Return the placement with the orders that the compiler has chosen."""
        if AUTO not in self.in_layouts and AUTO not in self.out_layouts:
            return self
        ins: list[RequestedOrder] = [None if wish is AUTO else wish for wish in self.in_layouts]
        taken = gateway.orders_of(executable.layouts_of_arguments())
        for i, order in zip(lowered.kept, taken[len(lowered.constants) :], strict=True):
            ins[i] = order
        outs = gateway.orders_of(executable.layouts_of_outputs())
        return laid(self.base, tuple(ins), tuple(outs))

    def starter(self, executable: gateway.Executable, lowered: LoweredProgram) -> Any:
        """Return what starts a program."""
        return self.base.starter(executable, lowered)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what brings the arguments of a program to the devices, in their orders."""
        if self.is_split:
            return Spreading(self, lowered)
        base, wheres = self.base, [self._where(i) for i in lowered.kept]
        assert isinstance(base, OneDevice)

        def bring(
            arrays: Sequence[ConcreteArray],
        ) -> tuple[list[Any], Callable[[list[Any]], None] | None]:
            return [
                buffers_at(base, [x])[0] if where is None else spread_buffer(x, where)
                for x, where in zip(arrays, wheres, strict=True)
            ], None

        return bring

    def place_of_argument(self, i: int) -> gateway.SpreadOver:
        """Return how a program over a mesh wants an argument."""
        assert isinstance(self.base, OverMesh)
        return self._where(i) or self.base.place_of_argument(i)

    def _where(self, i: int) -> gateway.SpreadOver | None:
        """Return how the program wants an argument, None for one in the order of NumPy."""
        order = self.in_layouts[i]
        if order is None:
            return None
        base = self.base
        if isinstance(base, OverMesh):
            return gateway.sharding_with_layouts(base.place_of_argument(i).spread, order)
        assert isinstance(base, OneDevice)
        return gateway.sharding_with_layouts(
            SingleDeviceSharding(base.device), order, base.committed
        )

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what the program captured."""
        return self.base.constants(constants)

    def with_result(self) -> Placement:
        """Return the placement for programs with one more result first, a scalar."""
        return laid(self.base.with_result(), self.in_layouts, (None, *self.out_layouts))

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments."""
        found = self.base.shardings_of_arguments()
        if found is None:
            return None
        count = len(self.in_layouts)
        of_base = found if type(found) is list else [found] * count
        return [self._where(i) or where for i, where in zip(range(count), of_base, strict=True)]

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results."""
        found = self.base.shardings(avals, executable)
        return [_in_order(where, order)
                for where, order in zip(found, self.out_layouts, strict=True)]  # fmt: skip

    def sharding_of(self, tiles: gateway.Tiles | None) -> Sharding:
        """Return the sharding of a value in a program over the devices."""
        return self.base.sharding_of(tiles)

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return the sharding of each of so many arguments over the devices."""
        return self.base.ways_of_arguments(count)

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return the sharding of each of the results over the devices."""
        return self.base.ways_of_results(avals, executable)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays."""
        return self.base.results(outs, avals)


# One object for each placement of the last 4096, which look-ups compare by identity.
_laid = functools.lru_cache(maxsize=4096)(LayoutPlacement)


def laid(
    base: Placement, in_layouts: tuple[RequestedOrder, ...], out_layouts: tuple[RequestedOrder, ...]
) -> Placement:
    """Return the placement for arguments and results in these orders: `base` where all are NumPy's.

    What is not of one device or over a mesh reads every argument in the order of NumPy.
    """
    if not isinstance(base, OneDevice | OverMesh) or not any((*in_layouts, *out_layouts)):
        return base
    return _laid(base, in_layouts, out_layouts)


def base_of(placement: Placement) -> Placement:
    """Return the placement without its orders."""
    return placement.base if isinstance(placement, LayoutPlacement) else placement


def orders_at(placement: Placement) -> Layouts:
    """Return the orders at a placement."""
    if not isinstance(placement, LayoutPlacement):
        return NO_LAYOUTS
    return Layouts(placement.in_layouts, placement.out_layouts)


def in_orders_of(placement: Placement, base: Placement) -> Placement:
    """Return a placement with the orders that another one has."""
    return placement.at(base) if isinstance(placement, LayoutPlacement) else base


def orders_in(placement: Placement, count: int) -> Sequence[Any]:
    """Return the orders of the arguments, which are so many; captured values come before them."""
    if not isinstance(placement, LayoutPlacement):
        return (None,) * count
    return placement.in_layouts[len(placement.in_layouts) - count :]


def orders_out(placement: Placement, count: int) -> Sequence[Any]:
    """Return the orders of the results, which are so many."""
    return placement.out_layouts if isinstance(placement, LayoutPlacement) else (None,) * count


class Compiled(Protocol):
    """A program that was compiled for orders of its arguments."""

    name: str
    placement: Placement

    @property
    def kept(self) -> Sequence[int]:
        """The numbers of the arguments that it takes."""


def check_orders(
    kernel: Compiled, arrays: Sequence[ConcreteArray], names: Callable[[], Sequence[str]]
) -> None:
    """Raise for an argument that was put where it is in another order than it is taken."""
    for i, (x, wish) in enumerate(zip(arrays, orders_in(kernel.placement, len(arrays)),
                                      strict=True)):  # fmt: skip
        given, taken = order_if_committed(x), layout_as(x.aval, wish)
        if i in kernel.kept and given not in (None, taken.major_to_minor):
            raise ValueError(message(
                kernel.name, "it was compiled for arguments in another order.",
                got=f"{names()[i]}: {Layout(given)}", expected=repr(taken),
                hint="compiled.input_formats are for device_put; jit(f) takes every order",
            ))  # fmt: skip


class Asking(Protocol):
    """A program of which somebody requested orders."""

    name: str
    closed: ClosedJaxpr
    arg_names: Callable[[], Sequence[str]]
    in_layouts: Sequence[RequestedOrder]
    out_layouts: Sequence[RequestedOrder]


def placement_in_orders(
    program: Asking, base: Placement, arrays: Sequence[ConcreteArray]
) -> Placement:
    """Return a placement for arguments in the orders in which they lie, or are requested.

    Raises:
      ValueError: an argument was put somewhere in another order than is requested.
    """
    if not isinstance(base, OneDevice | OverMesh):
        return base
    given = [order_if_committed(x) for x in arrays]
    own = [order_of(x) for x in arrays]
    return _placement_for_orders(program, base, given, own)


def in_orders_ahead(program: Asking, base: Placement, orders: Sequence[gateway.Order]) -> Placement:
    """Return a placement for arguments that are described as lying in orders; None lies in any.

    Raises:
      ValueError: an argument is described in another order than is requested.
    """
    avals = program.closed.in_avals
    orders = [*[None] * (len(avals) - len(orders)), *orders]  # captured values come first
    return _placement_for_orders(
        program, base, orders,
        [None if o is None else resolve_order(o, a) for o, a in zip(orders, avals, strict=True)],
    )  # fmt: skip


def _placement_for_orders(
    program: Asking, base: Placement, given: Sequence[gateway.Order], own: Sequence[RequestedOrder]
) -> Placement:
    """Return a placement for what is requested, or for the own order of an argument."""
    avals = program.closed.in_avals
    ins: list[RequestedOrder] = []
    for i, aval in enumerate(avals):
        wish = program.in_layouts[i] if program.in_layouts else None
        if wish is not None and given[i] is not None and given[i] != wish:
            _raise_other_order(program, i, wish, given[i])
        ins.append(own[i] if wish is None else resolve_order(wish, aval))
    outs = [
        resolve_order(wish, aval)
        for wish, aval in zip(
            program.out_layouts, program.closed.out_avals, strict=bool(program.out_layouts)
        )
    ]
    said = orders_of_results(program.closed)
    outs = [a or b for a, b in zip(outs or [None] * len(said), said, strict=True)]
    return laid(base, tuple(ins), tuple(outs))


def _raise_other_order(program: Asking, i: int, wish: RequestedOrder, given: Any) -> NoReturn:
    names = program.arg_names()
    name = names[i] if i < len(names) else f"argument {i}"
    left = wish == AUTO
    raise ValueError(message(
        program.name, f"{name} has another layout than the one requested.",
        got=f"an array that was put somewhere as {Layout(given)}",
        expected="Layout.AUTO" if left else repr(Layout(wish)),  # type: ignore[arg-type]
        hint="the order is left to the compiler, so lower it for ShapeDtypeStruct(x.shape, x.dtype)"
        if left else f"{name} = device_put({name}, Format(layout, sharding))",
    ))  # fmt: skip


def orders_of_results(closed: ClosedJaxpr) -> Sequence[RequestedOrder]:
    """Return in which orders a program itself says that its results lie, None for no word."""
    found: Sequence[RequestedOrder] | None = closed.memo.get("orders of results")
    if found is None:
        said = {
            eqn.outputs[0]: resolve_order(eqn.params["order"], eqn.outputs[0].aval)
            for eqn in closed.jaxpr.eqns if eqn.primitive.name == "layout_constraint"
        }  # fmt: skip
        found = closed.memo["orders of results"] = [
            said.get(x) if isinstance(x, Var) else None for x in closed.jaxpr.outvars
        ]
    return found


def _in_order(where: Any, order: Any) -> Any:
    """Return the sharding object of a result that lies in an order, from that of NumPy's."""
    if order is None:
        return where
    if type(where) is gateway.SpreadOver:
        return gateway.sharding_with_layouts(where.spread, order)
    return gateway.sharding_with_layouts(
        SingleDeviceSharding(where._device), order, where.committed
    )


def order_of(x: ConcreteArray) -> gateway.Order:
    """Return the order in which an array lies on its devices, None for that of NumPy."""
    where = getattr(x.buffer, "_sharding", None)
    return where.order if type(where) is gateway.SpreadOver else None


def order_if_committed(x: ConcreteArray) -> gateway.Order:
    """Return the order in which an array lies that was put where it is, None for one that was not.

    That of NumPy is written out.
    """
    where = getattr(x.buffer, "_sharding", None)
    if where is None or not where.committed:
        return None
    order = order_of(x)
    return tuple(range(x.aval.ndim)) if order is None else order[: x.aval.ndim]


def put_in_order(x: ConcreteArray, sharding: Sharding, order: gateway.Order) -> ConcreteArray:
    """Return an array that is spread so, each piece in this order; None for that of NumPy."""
    if order is None:
        return in_order_of_numpy(x)
    if type(x.buffer) is DeletedBuffer:
        raise_deleted(x.aval.str_long(), x.buffer)
    return ConcreteArray(
        None, x.aval, spread_buffer(x, gateway.sharding_with_layouts(sharding, order))
    )


def in_order_of_numpy(x: ConcreteArray) -> ConcreteArray:
    """Return the same elements in the same place, in the order of NumPy."""
    order = order_of(x)
    if order is None:
        return x
    where = gateway.placement_of(x.buffer)
    there = gateway.make_sharding_object(where.spread)
    if isinstance(where.spread, SingleDeviceSharding):
        there = one_device(where.devices[0], where.committed).sharding
    buffer = gateway.reorder(x.buffer, order, there, None, where.devices)
    return ConcreteArray(None, x.aval, buffer)
