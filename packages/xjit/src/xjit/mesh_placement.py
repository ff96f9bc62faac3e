"""The placement of programs that XLA splits over the devices of a mesh.

One program is written for whole arrays; each argument lies as its sharding says, and XLA puts in
what the devices must exchange. A result lies as was asked, or as XLA chose.

Neighbours: `placement` says what a placement is, `places_of_calls` asks for this one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xjit import jaxlib_gateway as gateway
from xjit.argument_memory import ArgumentMemory, Written
from xjit.deleted import DeletedBuffer, raise_deleted
from xjit.lowering import LoweredProgram
from xjit.meshes import Mesh
from xjit.named_shardings import NamedSharding, named_as
from xjit.partition_specs import PartitionSpec
from xjit.placement import Bring, Placement
from xjit.replicas import in_turns
from xjit.shardings import Sharding, TiledSharding
from xprim import ConcreteArray, ShapedArray

__all__ = ["OverMesh", "Spreading", "over_mesh", "spread_buffer"]

__dir__ = __all__.copy


class OverMesh(Placement):
    """A program over several devices, split by XLA.

    Args:
      devices: in the order in which the program counts them.
      mesh: whose names results are described with, or None.
      in_shardings: for each argument, how it lies; None has it whole on each device.
      out_shardings: for each result, how it shall lie; None leaves that to XLA.
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
            return in_turns(executable.starter, lowered)
        return _of_kept_buffers(executable.starter)

    def bring(self, lowered: LoweredProgram) -> Bring:
        """Return what spreads the arguments of a program over the mesh."""
        return Spreading(self, lowered)

    def place_of_argument(self, i: int) -> gateway.SpreadOver:
        """Return how the program wants an argument."""
        return gateway.spread_over(self._in_order(self.in_shardings[i]))

    def _in_order(self, sharding: Sharding) -> Sharding:
        """Return a sharding with the devices in the order in which the program counts them."""
        devices = sharding.devices_in_order
        if devices == self.devices:
            return in_own_memory(sharding)
        ndim = len(sharding.spec) if isinstance(sharding, NamedSharding) else 0
        tiles = sharding.tiles(ndim)
        return TiledSharding(self.devices, tiles.renumbered(devices, self.devices))

    def shardings_of_arguments(self) -> Any:
        """Return the sharding objects of the arguments; None where results are put in order."""
        if any(s is not None and s is not self._in_order(s) for s in self.out_shardings):
            return None
        return [gateway.spread_over(self._in_order(sharding)) for sharding in self.in_shardings]

    def ways_of_arguments(self, count: int) -> list[Sharding | None]:
        """Return how each of the arguments lies."""
        return list(self.in_shardings)

    def ways_of_results(
        self, avals: Sequence[ShapedArray], executable: gateway.Executable
    ) -> list[Sharding | None]:
        """Return how each of the results lies: as asked, or as XLA chose."""
        asked = self.out_shardings or (None,) * len(avals)
        chosen = self.shardings(avals, executable)
        return [s or where.spread for s, where in zip(asked, chosen, strict=True)]

    def constants(self, constants: Sequence[ConcreteArray]) -> list[Any]:
        """Return buffers of what every device reads."""
        where = gateway.spread_over(NamedSharding(self.mesh, PartitionSpec()))
        return [spread_buffer(c, where) for c in constants]

    def shardings(self, avals: Sequence[ShapedArray], executable: gateway.Executable) -> list[Any]:
        """Return the sharding objects of the results: as asked, or as XLA chose."""
        asked = self.out_shardings or (None,) * len(avals)
        if None not in asked:
            return [gateway.spread_over(self._in_order(s)) for s in asked if s is not None]
        return [
            gateway.spread_over(self._in_order(s) if s else self._of_result(tiles, aval.ndim))
            for s, tiles, aval in zip(asked, executable.tiles_of_outputs(), avals, strict=True)
        ]

    def _of_result(self, tiles: gateway.Tiles, ndim: int) -> Sharding:
        """Return how a result lies: in the words of an argument that lies so, too, if there is one.

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
        """Return how a value in a program lies, by the names of the mesh."""
        if tiles is None:
            return NamedSharding(self.mesh, PartitionSpec())
        return named_as(self.mesh, self.devices, tiles)

    def results(self, outs: list[Any], avals: Sequence[ShapedArray]) -> list[ConcreteArray]:
        """Return the results of a program as arrays that lie as was asked."""
        asked = self.out_shardings or (None,) * len(outs)
        for i, sharding in enumerate(asked):
            if sharding is None:
                continue
            if sharding.devices_in_order != self.devices:
                order = gateway.order_of(outs[i])
                there = gateway.laid_over(in_own_memory(sharding), order)
                outs[i] = gateway.as_spread(outs[i], there)
            if sharding.memory is not None:
                outs[i] = _brought(outs[i], gateway.spread_over(sharding))
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


def _brought(buffer: Any, where: gateway.SpreadOver) -> Any:
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
    """Return the buffer of an array, spread as asked; what is elsewhere comes through the host."""
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
