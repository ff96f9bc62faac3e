"""How an array is cut into pieces for devices, in XLA's words and as indices.

`Tiles` says along each dimension how many pieces there are, and which devices hold each piece. What
XLA calls a sharding is written from it, and read into it.

Neighbours: `spread_buffers` has the buffers, `executables` reads what a program returns.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .runtime import xla_client

__all__ = ()

Index = tuple[slice, ...]


class Tiles:
    """The pieces of an array, and the numbers of the devices that hold each.

    Args:
      counts: how many pieces there are along each dimension.
      devices: numbers of devices, of shape `counts` and one more dimension: the copies of a piece.
      summands: how many parts each piece is the sum of; its devices are those of the first part,
        of the second, and so on.
    """

    __slots__ = ("counts", "devices", "key", "summands")

    def __init__(
        self, counts: tuple[int, ...], devices: np.ndarray[Any, Any], summands: int = 1
    ) -> None:
        self.counts = counts
        self.devices = devices.reshape(*counts, -1)
        self.summands = summands
        alike = self.devices.reshape(*counts, summands, -1)
        self.key = (counts, summands, np.sort(alike, axis=-1).tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tiles) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def renumbered(self, devices: Sequence[Any], order: Sequence[Any]) -> Tiles:
        """Return the same tiles for the same devices in another order."""
        numbers = np.array([order.index(device) for device in devices])
        return Tiles(self.counts, numbers[self.devices], self.summands)

    def piece_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a piece of an array."""
        return tuple([size // count for size, count in zip(shape, self.counts, strict=True)])

    def pieces(self, shape: tuple[int, ...]) -> Iterator[tuple[Index, list[int]]]:
        """Yield where each piece of an array stands, and the numbers of the devices with it."""
        sizes = self.piece_shape(shape)
        for place in itertools.product(*map(range, self.counts)):
            index = tuple([
                slice(k * size, (k + 1) * size) if count > 1 else slice(None)
                for k, size, count in zip(place, sizes, self.counts, strict=True)
            ])  # fmt: skip
            yield index, self.devices[place].tolist()

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        """Return the place of the piece of each device, by their numbers."""
        found: dict[int, Index] = {}
        for index, numbers in self.pieces(shape):
            found.update(dict.fromkeys(numbers, index))
        return [found[number] for number in range(self.devices.size)]


def whole(count: int, ndim: int) -> Tiles:
    """Return the tiles of an array that so many devices hold as a whole."""
    return Tiles((1,) * ndim, np.arange(count))


@functools.lru_cache(maxsize=4096)
def hlo_sharding(tiles: Tiles) -> Any:
    """Return XLA's own description of tiles."""
    if math.prod(tiles.counts) * tiles.summands == 1:
        return xla_client.HloSharding.replicate()
    kinds = xla_client.OpSharding.Type
    proto = xla_client.OpSharding()
    proto.type = kinds.OTHER
    if tiles.summands > 1:  # called replicated, the first part would be put on all devices
        copies = tiles.devices.shape[-1] // tiles.summands
        proto.tile_assignment_dimensions = [*tiles.counts, tiles.summands, copies]
        proto.tile_assignment_devices = tiles.devices.reshape(-1).tolist()
        proto.last_tile_dims = [kinds.UNREDUCED, kinds.REPLICATED]
        return xla_client.HloSharding.from_proto(proto)
    copies = tiles.devices.shape[-1]
    proto.tile_assignment_dimensions = [*tiles.counts, *([copies] if copies > 1 else [])]
    proto.tile_assignment_devices = tiles.devices.reshape(-1).tolist()
    proto.replicate_on_last_tile_dim = copies > 1
    return xla_client.HloSharding.from_proto(proto)


def tiles_of(proto: Any, count: int, ndim: int) -> Tiles:
    """Return the tiles of an array of so many dimensions that XLA describes.

    Args:
      proto: its description of one array over `count` devices.
      count: the number of devices.
      ndim: the number of dimensions of the array.
    """
    kinds = xla_client.OpSharding.Type
    if proto.type != kinds.OTHER:  # replicated; one on a single device has no other copy
        return whole(count, ndim)
    shape = list(proto.tile_assignment_dimensions)
    if proto.iota_reshape_dims:
        numbers = np.arange(count).reshape(proto.iota_reshape_dims)
        devices = numbers.transpose(proto.iota_transpose_perm).reshape(shape)
    else:
        devices = np.array(proto.tile_assignment_devices).reshape(shape)
    return Tiles(tuple(shape[:ndim]), devices)
