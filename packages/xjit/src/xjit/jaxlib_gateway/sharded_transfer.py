"""Host arrays on several devices at once, for programs that run on all of them.

One call of the runtime places all pieces. It takes pieces of an array for its rows, so the type of
such a buffer is that of all pieces in a row: the program reads it, and no array keeps it. Small
pieces are written to memory that the devices have already (`pooled_shards`).

Neighbours: `buffers` has buffers that arrays keep, `stacked` among them for results; `buffer_pools`
has pooled buffers for programs on one device.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xjit import transfer_guards as guards

from .array_types import array_type
from .buffer_pools import PooledBuffer, pooled_buffers
from .buffers import _ALIAS, _COPY, Buffer, ManyDevices, assemble, placement, put
from .runtime import RuntimeFailure, _jax, fail, xla_client

__all__ = ()


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


def pooled_shards(
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
    found = [pooled_buffers(shape, dtype, placement((device,))) for device in devices]
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
    if guards.to_device.used and devices[0].platform != "cpu":
        guards.check(guards.to_device, kind, "the host", devices[0])
    alias = all(a.flags.owndata or not a.flags.writeable for a in arrays)
    try:
        return _jax.batched_device_put(
            kind, where, arrays, devices, True, False, _ALIAS if alias else _COPY, True
        )
    except RuntimeFailure as error:
        fail(operation, f"{kind} could not be placed on {len(devices)} devices", error)
