"""Buffers of arrays that are sharded over the devices of a mesh.

The buffer's type is that of the whole array; its sharding object holds what users call its
sharding, and there is one object for each, so that programs compare identities.

The elements of each piece lie in the order of NumPy, or in one that `sharding_with_layouts` names:
there is one object for each order, too, so what compares the objects never takes one order for
another.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xjit.jaxlib_gateway import buffers
from xjit.jaxlib_gateway.array_types import ArrayType, Tiles, array_type, hlo_sharding, whole
from xjit.jaxlib_gateway.buffers import (
    _ALIAS,
    Buffer,
    ManyDevices,
    MemoryOfDevice,
    away_from_host,
    check_kept,
    device_of,
    note_devices,
    pieces_for,
    pieces_lent,
    pieces_of,
    placement,
    several_devices,
    to_numpy,
)
from xjit.jaxlib_gateway.clients import check
from xjit.jaxlib_gateway.executables import Order, lies_in, orders_used, reorder
from xjit.jaxlib_gateway.runtime import RuntimeFailure, _jax, fail
from xprim.errors import message

__all__ = ()


class Spread(Protocol):
    """What a sharding says: its devices in order, and which of them has what."""

    memory: str | None

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, by their numbers."""

    def tiles(self, ndim: int) -> Tiles:
        """Return how an array of so many dimensions is cut."""

    def __hash__(self) -> int: ...


class SpreadOver(ManyDevices):
    """Placement of an array that is sharded over several devices.

    Attributes:
      spread: the sharding.
      order: the dimensions of each piece, the slowest first; None for the order of NumPy.
      committed: whether somebody requested these devices.
    """

    __slots__ = ("_tiles_by_ndim", "committed", "memory_kind", "order", "spread")

    def __init__(self, spread: Any, order: Order = None, committed: bool = True) -> None:
        super().__init__(spread.devices_in_order)
        self.spread = spread
        self.memory_kind = spread.memory
        if spread.memory is not None:  # of one device, too: its data may be at two places
            several_devices[0] = away_from_host[0] = True
        self.order = order
        self.committed = committed
        self._tiles_by_ndim: dict[int, Tiles] = {}  # one for each number of dimensions in use

    def tiles(self, ndim: int) -> Tiles:
        """Return how an array of so many dimensions is cut."""
        found = self._tiles_by_ndim.get(ndim)
        if found is None:
            found = self._tiles_by_ndim[ndim] = self.spread.tiles(ndim)
        return found

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return hlo_sharding(self.tiles(ndim))

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece."""
        return self.tiles(len(shape)).piece_shape(shape)

    def gathered(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the elements of a whole array; parts of sums are added up."""
        check_kept(buffer)
        kind = buffer.aval
        pieces = pieces_by_device(buffer, lent=False)
        tiles = self.tiles(kind.ndim)
        host: np.ndarray[Any, Any] | None = None
        for index, numbers in tiles.pieces(kind.shape):
            parts = []
            for copies in np.reshape(numbers, (tiles.summands, -1)).tolist():
                here = next((d for d in map(self.devices.__getitem__, copies) if d in pieces), None)
                if here is None:
                    raise _elsewhere(len(pieces), len(self.devices))
                part = to_numpy(pieces[here])
                parts.append(lies_in(self.order, part, self.devices[0].platform))
            piece = parts[0] if len(parts) == 1 else _add_up(parts, kind.shape)
            if piece.shape == kind.shape:
                return piece
            if host is None:
                host = np.empty(kind.shape, kind.dtype)
            host[index] = piece
        assert host is not None
        host.flags.writeable = False
        return host


def _add_up(parts: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return a sum; of scalars programs make parts of one element (`stacked_parts`)."""
    total = np.asarray(functools.reduce(np.add, parts))
    total = total if shape else total.reshape(())
    total.flags.writeable = False
    return total


def _elsewhere(count_here: int, count: int) -> ValueError:
    return ValueError(message(
        "np.asarray", "some pieces of the array are on devices of other processes.",
        got=f"an array of {count} pieces, {count_here} of them here",
        hint="x.addressable_shards are the pieces of this "
        "process;\nmultihost_utils.process_allgather(x, tiled=True) brings every process all",
    ))  # fmt: skip


@functools.lru_cache(maxsize=4096)
def make_sharding_object(spread: Spread) -> SpreadOver:
    """Return the sharding object of arrays that are spread so."""
    note_devices(spread.devices_in_order)
    return SpreadOver(spread)


@functools.lru_cache(maxsize=4096)
def sharding_with_layouts(spread: Spread, order: Order, committed: bool = True) -> SpreadOver:
    """Return the sharding object of arrays that are spread so, each piece in an order of its own.

    Args:
      spread: how they are spread.
      order: the dimensions, the slowest first; None for that of NumPy.
      committed: whether somebody requested these devices.
    """
    if order is None and committed:
        return make_sharding_object(spread)
    several_devices[0] = True  # also on one device: such a buffer is not what others there are
    orders_used[0] = orders_used[0] or order is not None
    note_devices(spread.devices_in_order)
    return SpreadOver(spread, order, committed)


@functools.lru_cache(maxsize=4096)
def alike(one: SpreadOver, other: SpreadOver, ndim: int) -> bool:
    """Return whether arrays of so many dimensions lie in the same way under both, in that order."""
    return (one.devices == other.devices and one.memory_kind == other.memory_kind
            and one.order == other.order and one.tiles(ndim) == other.tiles(ndim))  # fmt: skip


def pieces_by_device(buffer: Buffer, *, lent: bool = True) -> dict[Any, Buffer]:
    """Return the pieces of a spread buffer on the devices of this process.

    Args:
      buffer: the buffer.
      lent: whether somebody may delete or donate them.
    """
    check_kept(buffer)
    if lent:
        pieces_lent[0] = True
    where = buffer._sharding
    here = where.devices[0].client.process_index()
    devices = [device for device in where.devices if device.process_index == here]
    arrays = zip(devices, pieces_of(buffer) if len(where.devices) > 1 else [buffer], strict=True)
    kind = buffer.aval
    piece = array_type(where.shard_shape(kind.shape), kind.dtype, kind.made_by, kind.made_at)
    return {
        device: array._rewrap_with_aval_and_sharding(piece, _of_piece(device, where.memory_kind))
        for device, array in arrays
    }


@functools.lru_cache(maxsize=4096)
def _of_piece(device: Any, memory_kind: str | None) -> Any:
    """Return the sharding object of a piece, on a device or in a memory of it."""
    return placement((device,)) if memory_kind is None else MemoryOfDevice(device, memory_kind)


def put_spread(array: np.ndarray[Any, Any], where: SpreadOver, *, may_alias: bool = True) -> Buffer:
    """Return a buffer of a host array, sharded over devices.

    Args:
      array: in native byte order.
      where: how it is spread; each dimension is a multiple of its number of pieces.
      may_alias: the caller promises that the array's memory is not written to any more; what is not
        promised is copied before this returns.
    """
    check()
    kind = array_type(array.shape, array.dtype)
    if buffers.to_device.used and where.devices[0].platform != "cpu":
        buffers.check_transfer(buffers.to_device, kind, "the host", where.devices[0])
    return _put_pieces(kind, [array], whole(1, array.ndim), where, lent=not may_alias)


def _put_pieces(
    kind: ArrayType, given: Sequence[np.ndarray[Any, Any]], tiles: Tiles, where: SpreadOver,
    *, lent: bool,
) -> Buffer:  # fmt: skip
    """Return a buffer of an array whose pieces on the host are given."""
    if where.order is not None:
        found = _put_pieces(kind, given, tiles, make_sharding_object(where.spread), lent=lent)
        return reorder(found, None, where, where.order, where.devices)
    wanted = where.tiles(kind.ndim)
    pieces = pieces_for(given, tiles, wanted, kind.shape, lent=lent)
    if wanted.summands > 1:
        pieces = _first_part_alone(pieces, wanted)
    here = where.devices[0].client.process_index()
    own = [(d, x) for d, x in zip(where.devices, pieces, strict=True) if d.process_index == here]
    try:
        return _jax.batched_device_put(
            kind, where, [x for _, x in own], [d for d, _ in own], True, False, _ALIAS, True
        )
    except RuntimeFailure as error:
        fail("put", f"{kind} could not be placed on {len(own)} devices", error)


def _first_part_alone(
    pieces: Sequence[np.ndarray[Any, Any]], wanted: Tiles
) -> list[np.ndarray[Any, Any]]:
    """Return the pieces of devices with a sum in parts: the first has it, the others have zeros."""
    parts = wanted.devices.reshape(*wanted.counts, wanted.summands, -1)
    first = set(parts[..., 0, :].reshape(-1).tolist())
    return [piece if i in first else np.zeros_like(piece) for i, piece in enumerate(pieces)]


def respread(buffer: Buffer, where: SpreadOver) -> Buffer | None:
    """Return a buffer of the same elements that is spread otherwise, by copies of pieces.

    None where this process cannot see all elements in its own memory: that of the devices of a CPU.
    """
    here = buffer._sharding
    if type(here) is not SpreadOver or here.devices[0].platform != "cpu":
        return None
    check()
    given = buffer.aval
    copies = _first_copies(here, given.ndim)
    if copies is None:
        return None
    check_kept(buffer)
    tiles = here.tiles(given.ndim)
    piece = array_type(tiles.piece_shape(given.shape), given.dtype, given.made_by, given.made_at)
    arrays = pieces_of(buffer) if len(here.devices) > 1 else [buffer]
    pieces = [
        lies_in(here.order, to_numpy(arrays[number]._rewrap_with_aval_and_sharding(piece, there)),
                "cpu")
        for number, there in copies
    ]  # fmt: skip
    return _put_pieces(array_type(given.shape, given.dtype), pieces, tiles, where, lent=False)


@functools.lru_cache(maxsize=4096)
def _first_copies(where: SpreadOver, ndim: int) -> list[tuple[int, Any]] | None:
    """Return for each piece the first of its copies in this process; None where one has none.

    None, too, where a piece is a sum of several parts.
    That is its number among the arrays of this process, and the sharding object of the piece.
    """
    here = where.devices[0].client.process_index()
    own = [i for i, device in enumerate(where.devices) if device.process_index == here]
    tiles, found = where.tiles(ndim), []
    if tiles.summands > 1:
        return None
    for place in np.ndindex(*tiles.counts):
        copies = [i for i in tiles.devices[place].tolist() if i in own]
        if not copies:
            return None
        there = _of_piece(where.devices[copies[0]], where.memory_kind)
        found.append((own.index(copies[0]), there))
    return found


def assemble_spread(shape: tuple[int, ...], pieces: Sequence[Buffer], where: SpreadOver) -> Buffer:
    """Return the buffer of an array of this shape, of the pieces on the devices of this process.

    The pieces are in the order of the devices of `where`, and their memory is shared.
    """
    kind = array_type(shape, pieces[0].aval.dtype)
    pieces_lent[0] = True
    if len(where.devices) == 1:
        return pieces[0]._rewrap_with_aval_and_sharding(kind, where)
    try:
        return _jax.ArrayImpl(kind, where, list(pieces), True, _skip_checks=True)
    except RuntimeFailure as error:
        fail("assemble", "the pieces do not make one buffer", error)


def order_of(buffer: Buffer) -> Order:
    """Return the order in which the dimensions of a buffer lie, None for that of NumPy."""
    where = buffer._sharding
    return where.order if type(where) is SpreadOver else None


def as_spread(buffer: Buffer, where: SpreadOver) -> Buffer | None:
    """Return a buffer whose pieces are all where another placement has them, or None."""
    check_kept(buffer)
    kind, here = buffer.aval, buffer._sharding
    if here.memory_kind != where.memory_kind:
        return None
    if order_of(buffer) != where.order:
        before = order_of(buffer)
        found = as_spread(buffer, sharding_with_layouts(where.spread, before))
        if found is None:
            return None
        return reorder(found, before, where, where.order, where.devices)
    if type(here) is SpreadOver:
        tiles, wanted = here.tiles(kind.ndim), where.tiles(kind.ndim)
        if here.devices == where.devices:
            same = tiles == wanted
            return buffer._rewrap_with_aval_and_sharding(kind, where) if same else None
        if set(here.devices) == set(where.devices) and (
            tiles.renumber(here.devices, where.devices) == wanted
        ):  # fmt: skip
            pieces = pieces_by_device(buffer)
            return assemble_spread(
                kind.shape, [pieces[d] for d in where.devices if d in pieces], where
            )
        return None
    if len(where.devices) == 1 and device_of(buffer) is where.devices[0]:
        return buffer._rewrap_with_aval_and_sharding(kind, where)
    return None
