"""The rich form of arrays in notebooks: what they are, some elements in a table, a heat map.

A table shows the elements at the ends of the last two dimensions, of the first matrix where there
are more. A matrix larger than the table is a picture, too: each pixel is the mean of a block, dark
for the least and light for the greatest finite one; blocks without a finite element are red. What
is made has at most some 20 kB, whatever the size of the array.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from xprim import ConcreteArray, dtypes
from xtree.errors import escaped, preformatted

__all__ = ()

_ENDS = 4  # rows and columns at either end of a table
_PIXELS = 64  # the most of a picture, along each side

# From dark blue by green to light yellow: lightness grows all along, as for readers who see no hue.
_COLOURS = np.array([[38, 30, 84], [45, 84, 129], [48, 140, 127], [126, 191, 93], [246, 229, 92]])
_NOT_FINITE = (200, 40, 40)


def array_html(x: ConcreteArray) -> str:
    """Return an array as HTML: its type and place, a table, and a picture of a large matrix."""
    aval = x.aval
    if dtypes.is_extended(aval.dtype) or not aval.shape or not aval.size:
        return preformatted(repr(x))
    host = _numbers(x)
    matrix = host.reshape(-1, *host.shape[-2:])[0] if host.ndim > 1 else host.reshape(1, -1)
    which = f", the first of {host.size // matrix.size} matrices" if host.ndim > 2 else ""
    parts = [f"<div><code>{escaped(aval.str_long() + _places(x))}</code>{which}", _table(matrix)]
    if host.ndim > 1 and max(matrix.shape) > 2 * _ENDS:
        parts.append(_picture(matrix))
    return "".join(parts) + "</div>"


def _numbers(x: ConcreteArray) -> np.ndarray[Any, Any]:
    """Return the elements in a dtype that NumPy computes with."""
    host = x.to_host()
    return host.astype(np.float32) if host.dtype.kind == "V" else host


def _places(x: ConcreteArray) -> str:
    """Say on which devices an array is, where it is not in host memory, and how it is cut."""
    if x.buffer is None:
        return ""
    spec = getattr(x.sharding, "spec", None)
    cut = f" as {spec!r}" if spec is not None and len(x.devices()) > 1 else ""
    return " on " + ", ".join(sorted(str(device) for device in x.devices())) + cut


def _table(matrix: np.ndarray[Any, Any]) -> str:
    rows, columns = [_ends(length) for length in matrix.shape]
    kept = [[i for i in places if i is not None] for places in (rows, columns)]
    shown = matrix[np.ix_(*kept)]
    texts = iter(_texts(shown))
    lines = []
    for i in rows:
        cells = ["&#8230;" if i is None or j is None else escaped(next(texts)) for j in columns]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _ends(length: int) -> list[int | None]:
    """Return the positions that a table shows, None for those that are left out."""
    if length <= 2 * _ENDS:
        return list(range(length))
    return [*range(_ENDS), None, *range(length - _ENDS, length)]


def _texts(values: np.ndarray[Any, Any]) -> list[str]:
    if values.dtype.kind in "fc":
        return [f"{value:.4g}" for value in values.ravel().tolist()]
    return [str(value) for value in values.ravel().tolist()]


def _picture(matrix: np.ndarray[Any, Any]) -> str:
    """Return a heat map of a matrix, as a picture that is part of the text."""
    means = _block_means(np.abs(matrix) if matrix.dtype.kind == "c" else matrix)
    finite = np.isfinite(means)
    low, high = (means[finite].min(), means[finite].max()) if finite.any() else (0.0, 0.0)
    level = np.where(finite, means - low, 0) / ((high - low) or 1)
    place = level * (len(_COLOURS) - 1)
    stops = range(len(_COLOURS))
    channels = [np.interp(place, stops, _COLOURS[:, channel]) for channel in range(3)]
    pixels = np.stack(channels, axis=-1)
    pixels[~finite] = _NOT_FINITE
    data = base64.b64encode(_png(pixels.astype(np.uint8))).decode()
    scale = max(1, 192 // max(means.shape))
    size = f'width="{means.shape[1] * scale}" height="{means.shape[0] * scale}"'
    return (
        f'<img alt="heat map from {low:.4g} to {high:.4g}" title="from {low:.4g} to {high:.4g}" '
        f'{size} style="image-rendering: pixelated" src="data:image/png;base64,{data}">'
    )


def _block_means(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the means of finite elements of at most 64 x 64 blocks; NaN where there is none."""
    for axis in (0, 1):
        count = min(matrix.shape[axis], _PIXELS)
        starts = np.arange(count) * matrix.shape[axis] // count
        if axis == 0:
            finite = np.isfinite(matrix)
            sums = np.where(finite, matrix, 0).astype(np.float64)
            counts = finite.astype(np.float64)
        sums, counts = np.add.reduceat(sums, starts, axis), np.add.reduceat(counts, starts, axis)
    means: np.ndarray[Any, Any] = np.full_like(sums, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    """Return rows of RGB pixels as a PNG file. Source: the PNG specification, sections 5 and 11."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits a channel, RGB
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
