"""Learn how XLA has spread a value inside a program that it splits.

What: `ShardingProbe`, which is told while the program is compiled.
Idea: XLA's partitioner calls back at a custom call of a target of its own, whose `backend_config`
is the address of a function. The address is written just before the program is compiled, so texts
stay equal from process to process.
Neighbours: `tiles` reads what the partitioner says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .runtime import xla_client
from .tiles import Tiles, tiles_of

__all__ = ()


class ShardingProbe:
    """What one custom call of a program learns; it must live until the program is compiled."""

    __slots__ = ("_found", "_heard")

    target = "InspectSharding"
    """The name that XLA knows of the custom call, which returns its operand."""

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._heard = self._found.append  # the address is of this object

    def config(self) -> str:
        """Return the `backend_config` of the custom call, as MLIR writes a string of bytes."""
        address: bytes = xla_client.encode_inspect_sharding_callback(self._heard)
        return "".join([f"\\{byte:02X}" for byte in address])

    def tiles(self, members: np.ndarray[Any, Any], ndim: int) -> Tiles | None:
        """Return how the value is spread over devices; None where XLA left the call out.

        Args:
          members: the numbers of the devices: a row for each of those that XLA splits the value
            over, with a column for each of those that run the code by themselves.
          ndim: the number of dimensions of the value.
        """
        if not self._found:
            return None
        proto = self._found[-1].to_proto()
        counted = math.prod(proto.tile_assignment_dimensions)
        if len(members) < counted:  # XLA counts all of them
            return tiles_of(proto, counted, ndim)
        tiles = tiles_of(proto, len(members), ndim)
        return Tiles(tiles.counts, members[tiles.devices])
