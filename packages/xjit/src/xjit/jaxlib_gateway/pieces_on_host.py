"""Pieces of arrays in host memory, cut for devices from other pieces: each element moves once.

The runtime reads the memory of a CPU array in place where it begins at a multiple of 64 bytes and
nothing lies between the elements, and copies all other. So a piece that is there already, as a part
of what is given, is handed on as it is; any other is written to memory of its own that begins so.
What goes where depends on shapes and tiles alone, and is kept.

Neighbours: `spread_buffers` makes buffers of the pieces, `tiles` says which device has what.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .tiles import Index, Tiles

__all__ = ()

ALIGNMENT = 64
"""Bytes: a multiple of what any vector instruction wants; less aligned memory is copied."""

# Below, a second copy costs less than to look where each part of each piece goes.
_SMALL_BYTES = 1 << 14


class Part(NamedTuple):
    """What a wanted piece has of one that is given: the places of the same elements in both."""

    given: int
    in_given: Index
    in_wanted: Index


def pieces_for(
    given: Sequence[np.ndarray[Any, Any]], tiles: Tiles, wanted: Tiles, shape: tuple[int, ...],
    *, lent: bool,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Return the piece of each device, by their numbers; those with the same piece share it.

    Args:
      given: the pieces of an array, in the order of `tiles.pieces`.
      tiles: how the array is cut into these.
      wanted: how it shall be cut.
      shape: of the array.
      lent: whether somebody may write to what is given, so that it must be copied.
    """
    dtype = given[0].dtype
    if math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
        return _small_pieces(given, shape, *_places(shape, tiles, wanted), lent=lent)
    found: dict[int, np.ndarray[Any, Any]] = {}
    for numbers, piece_shape, parts in _cuts(shape, tiles, wanted):
        found.update(dict.fromkeys(numbers, _piece(given, piece_shape, parts, lent)))
    return [found[number] for number in range(wanted.devices.size)]


def _small_pieces(
    given: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], places_given: Sequence[Index],
    places: Sequence[Index], piece_shape: tuple[int, ...], order: Sequence[int], *, lent: bool,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Return the piece of each device, by way of the whole array, in one block of memory."""
    whole = given[0]
    if len(given) > 1:
        whole = aligned_memory(shape, whole.dtype)
        for place, piece in zip(places_given, given, strict=True):
            whole[place] = piece
    elif lent or (len(places) == 1 and not _is_read_in_place(whole)):
        whole = _aligned_copy(whole)
    if len(places) == 1:
        return [whole] * len(order)
    pieces = _block(len(places), piece_shape, whole.dtype)
    for place, piece in zip(places, pieces, strict=True):
        piece[...] = whole[place]
    return [pieces[k] for k in order]


def _block(count: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """Return memory for so many arrays, which the runtime reads in place."""
    step = -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    raw = np.empty(count * step + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return [np.ndarray(shape, dtype, raw, start + k * step) for k in range(count)]


def _aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = aligned_memory(array.shape, array.dtype)
    copy[...] = array
    return copy


@functools.lru_cache(maxsize=1024)
def _places(
    shape: tuple[int, ...], given: Tiles, wanted: Tiles
) -> tuple[list[Index], list[Index], tuple[int, ...], list[int]]:
    """Return the places of the pieces that are given and wanted, the shape of the latter.

    And for each device the number of its piece.
    """
    order: dict[int, int] = {}
    pieces = list(wanted.pieces(shape))
    for k, (_, numbers) in enumerate(pieces):
        order.update(dict.fromkeys(numbers, k))
    in_order = [order[number] for number in range(wanted.devices.size)]
    places_given = [index for index, _ in given.pieces(shape)]
    return places_given, [index for index, _ in pieces], wanted.piece_shape(shape), in_order


def _piece(
    given: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], parts: Sequence[Part], lent: bool
) -> np.ndarray[Any, Any]:
    if len(parts) == 1 and not lent:
        source = given[parts[0].given]
        view = source if source.shape == shape else source[parts[0].in_given]
        if _is_read_in_place(view):
            return view
    piece = aligned_memory(shape, given[0].dtype)
    for k, in_given, in_wanted in parts:
        piece[in_wanted] = given[k][in_given]
    return piece


def _is_read_in_place(array: np.ndarray[Any, Any]) -> bool:
    return array.flags.c_contiguous and array.__array_interface__["data"][0] % ALIGNMENT == 0


def aligned_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return memory for an array that the runtime reads in place."""
    nbytes = math.prod(shape) * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


@functools.lru_cache(maxsize=1024)
def _cuts(
    shape: tuple[int, ...], given: Tiles, wanted: Tiles
) -> list[tuple[list[int], tuple[int, ...], list[Part]]]:
    """Return for each wanted piece the numbers of its devices, its shape, and its parts."""
    sources = [_bounds(index, shape) for index, _ in given.pieces(shape)]
    piece_shape = wanted.piece_shape(shape)
    cuts = []
    for index, numbers in wanted.pieces(shape):
        bounds = _bounds(index, shape)
        overlaps = [_overlap(k, source, bounds) for k, source in enumerate(sources)]
        cuts.append((numbers, piece_shape, [part for part in overlaps if part is not None]))
    return cuts


def _bounds(index: Index, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    return [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]


def _overlap(
    k: int, given: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]
) -> Part | None:
    """Return what two pieces have in common, None for nothing."""
    in_given, in_wanted = [], []
    for (a, a_end), (b, b_end) in zip(given, wanted, strict=True):
        start, end = max(a, b), min(a_end, b_end)
        if start >= end:
            return None
        in_given.append(slice(start - a, end - a))
        in_wanted.append(slice(start - b, end - b))
    return Part(k, tuple(in_given), tuple(in_wanted))
