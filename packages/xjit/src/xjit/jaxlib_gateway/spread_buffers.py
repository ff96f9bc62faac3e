"""Buffers of arrays that are spread over the devices of a mesh.

The buffer's type is that of the whole array; its sharding object holds what users call its
sharding, and there is one object for each, so that programs compare identities.

Neighbours: `tiles` says which device has what, `buffers` has all other buffers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xjit import transfer_guards as guards

from .buffers import (
    _ALIAS,
    Buffer,
    ManyDevices,
    array_type,
    device_of,
    note_devices,
    placement,
    to_numpy,
)
from .forks import check
from .runtime import RuntimeFailure, XlaError, _jax, fail
from .tiles import Tiles, hlo_sharding

__all__ = ()


class Spread(Protocol):
    """What is asked of a sharding: its devices in order, and which of them has what."""

    @property
    def devices_in_order(self) -> tuple[Any, ...]:
        """The devices, by their numbers."""

    def tiles(self, ndim: int) -> Tiles:
        """Return how an array of so many dimensions is cut."""

    def __hash__(self) -> int: ...


class SpreadOver(ManyDevices):
    """Placement of an array that is spread over several devices as a sharding says."""

    __slots__ = ("spread",)

    def __init__(self, spread: Any) -> None:
        super().__init__(spread.devices_in_order)
        self.spread = spread

    def tiles(self, ndim: int) -> Tiles:
        """Return how an array of so many dimensions is cut."""
        found: Tiles = self.spread.tiles(ndim)
        return found

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return hlo_sharding(self.tiles(ndim))

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece."""
        return self.tiles(len(shape)).piece_shape(shape)

    def gathered(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """Return the elements of a whole array."""
        if buffer.is_deleted():
            raise XlaError("to_numpy: the buffer has been deleted or donated.")
        kind = buffer.aval
        pieces = pieces_by_device(buffer)
        host: np.ndarray[Any, Any] | None = None
        for index, numbers in self.tiles(kind.ndim).pieces(kind.shape):
            here = next((d for d in map(self.devices.__getitem__, numbers) if d in pieces), None)
            if here is None:
                raise _elsewhere(len(pieces), len(self.devices))
            piece = to_numpy(pieces[here])
            if piece.shape == kind.shape:
                return piece
            if host is None:
                host = np.empty(kind.shape, kind.dtype)
            host[index] = piece
        assert host is not None
        host.flags.writeable = False
        return host


def _elsewhere(count_here: int, count: int) -> ValueError:
    return ValueError(
        "np.asarray: some pieces of the array are on devices of other processes."
        f"\n  got       an array of {count} pieces, {count_here} of them here"
        "\n  hint      x.addressable_shards are the pieces of this process;"
        "\n            multihost_utils.process_allgather(x, tiled=True) brings every process all"
    )


@functools.lru_cache(maxsize=4096)
def spread_over(spread: Spread) -> SpreadOver:
    """Return the sharding object of arrays that are spread so."""
    note_devices(spread.devices_in_order)
    return SpreadOver(spread)


def pieces_by_device(buffer: Buffer) -> dict[Any, Buffer]:
    """Return the pieces of a spread buffer on the devices of this process."""
    where = buffer._sharding
    here = where.devices[0].client.process_index()
    devices = [device for device in where.devices if device.process_index == here]
    kind = buffer.aval
    piece = array_type(where.shard_shape(kind.shape), kind.dtype, kind.made_by)
    arrays = buffer._arrays if len(where.devices) > 1 else [buffer]
    return {
        device: array._rewrap_with_aval_and_sharding(piece, placement((device,)))
        for array, device in zip(arrays, devices, strict=True)
    }


def put_spread(array: np.ndarray[Any, Any], where: SpreadOver) -> Buffer:
    """Return a buffer of a host array, spread over devices.

    Args:
      array: in native byte order; nobody writes to its memory any more.
      where: how it is spread; each dimension is a multiple of its number of pieces.
    """
    check()
    here = where.devices[0].client.process_index()
    indices = where.tiles(array.ndim).indices(array.shape)
    own = [(d, i) for d, i in zip(where.devices, indices, strict=True) if d.process_index == here]
    kind = array_type(array.shape, array.dtype)
    if guards.to_device.used and where.devices[0].platform != "cpu":
        guards.check(guards.to_device, kind, "the host", where.devices[0])
    try:
        return _jax.batched_device_put(
            kind, where, [array[i] for _, i in own], [d for d, _ in own], True, False, _ALIAS, True
        )
    except RuntimeFailure as error:
        fail("put", f"{kind} could not be placed on {len(own)} devices", error)


def assemble_spread(shape: tuple[int, ...], pieces: Sequence[Buffer], where: SpreadOver) -> Buffer:
    """Return the buffer of an array of this shape, of the pieces on the devices of this process.

    The pieces are in the order of the devices of `where`, and their memory is shared.
    """
    kind = array_type(shape, pieces[0].aval.dtype)
    if len(where.devices) == 1:
        return pieces[0]._rewrap_with_aval_and_sharding(kind, where)
    try:
        return _jax.ArrayImpl(kind, where, list(pieces), True, _skip_checks=True)
    except RuntimeFailure as error:
        fail("assemble", "the pieces do not make one buffer", error)


def as_spread(buffer: Buffer, where: SpreadOver) -> Buffer | None:
    """Return a buffer whose pieces are all where another placement has them, or None."""
    kind, here = buffer.aval, buffer._sharding
    if type(here) is SpreadOver:
        tiles, wanted = here.tiles(kind.ndim), where.tiles(kind.ndim)
        if here.devices == where.devices:
            same = tiles == wanted
            return buffer._rewrap_with_aval_and_sharding(kind, where) if same else None
        if set(here.devices) == set(where.devices) and (
            tiles.renumbered(here.devices, where.devices) == wanted
        ):  # fmt: skip
            pieces = pieces_by_device(buffer)
            return assemble_spread(
                kind.shape, [pieces[d] for d in where.devices if d in pieces], where
            )
        return None
    if len(where.devices) == 1 and device_of(buffer) is where.devices[0]:
        return buffer._rewrap_with_aval_and_sharding(kind, where)
    return None
