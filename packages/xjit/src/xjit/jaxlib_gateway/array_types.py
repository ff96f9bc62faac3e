"""Types of buffers: dtypes, and the pieces of sharded arrays."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xjit.jaxlib_gateway.runtime import xla_client
from xprim import dtypes
from xprim.errors import message

__all__ = ()


# ----------------------------------------------------------------------------------- array types
# The types of buffers: what jaxlib asks of an abstract value, and which dtypes XLA has.

# What Python's buffer protocol knows, so that NumPy can look at the memory of a CPU buffer.
_PLAIN_DTYPES = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))
SUB_BYTE_DTYPES = frozenset(
    np.dtype(scalar)
    for scalar in (
        ml_dtypes.int2,
        ml_dtypes.int4,
        ml_dtypes.uint2,
        ml_dtypes.uint4,
        ml_dtypes.float4_e2m1fn,
    )
)
_EXTENDED_DTYPES = SUB_BYTE_DTYPES | frozenset(
    np.dtype(scalar)
    for scalar in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e3m4,
        ml_dtypes.float8_e4m3,
        ml_dtypes.float8_e4m3b11fnuz,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
        ml_dtypes.float8_e8m0fnu,
    )
)


_ELEMENT_TYPES = {
    "bool": "i1", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int4": "i4",
    "int2": "i2", "int1": "i1", "uint64": "ui64", "uint32": "ui32", "uint16": "ui16",
    "uint8": "ui8", "uint4": "ui4", "uint2": "ui2", "uint1": "ui1", "float64": "f64",
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "complex<f32>",
    "complex128": "complex<f64>", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN", "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN", dtypes.float0.name: "i1",
}  # fmt: skip


def element_type(dtype: np.dtype[Any]) -> str:
    """Return the name of an element type in programs."""
    try:
        return _ELEMENT_TYPES[dtype.name]
    except KeyError:
        raise TypeError(f"stablehlo: there is no element type for dtype {dtype}.") from None


class ArrayType:
    """The shape and dtype of a buffer: what jaxlib asks of an abstract value, and no more.

    `made_by` names the program whose result the buffer is, for the error of one that failed, and
    `made_at` the user's line in it, for the error that large buffers fill the memory.
    """

    __slots__ = ("dtype", "made_at", "made_by", "ndim", "plain", "shape", "weak_type")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], made_by: str, made_at: str
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.weak_type = False
        self.plain = dtype in _PLAIN_DTYPES
        self.made_by = made_by
        self.made_at = made_at

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@functools.lru_cache(maxsize=8192)
def array_type(
    shape: tuple[int, ...], dtype: np.dtype[Any], made_by: str = "", made_at: str = ""
) -> ArrayType:
    """Return the interned `ArrayType`; raise `TypeError` for a dtype that XLA does not have."""
    if dtype not in _PLAIN_DTYPES and dtype not in _EXTENDED_DTYPES:
        raise TypeError(message(
            "put", f"XLA has no arrays of dtype {dtype}.",
            expected="a boolean, integer, floating or complex dtype of NumPy or ml_dtypes",
        ))  # fmt: skip
    return ArrayType(shape, dtype, made_by, made_at)


# ----------------------------------------------------------------------------------------- tiles
# How an array is cut into pieces for devices, in XLA's words and as indices.
#
# `Tiles` says along each dimension how many pieces there are, and which devices hold each piece.
# What XLA calls a sharding is written from it, and read into it.

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

    def renumber(self, devices: Sequence[Any], order: Sequence[Any]) -> Tiles:
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
