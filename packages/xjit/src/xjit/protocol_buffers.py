"""Fields of messages of Protocol Buffers: a number, which says how the bytes are read, and these.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct

__all__ = ()

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5


def _varint(value: int) -> bytes:
    """Return an integer in groups of seven bits, the lowest first; a negative one has 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """Return a field of a message that is an integer or a boolean."""
    return _varint(number << 3 | _VARINT) + _varint(value)


def float_field(number: int, value: float) -> bytes:
    """Return a field of a message that is a float32."""
    return _varint(number << 3 | _FOUR_BYTES) + struct.pack("<f", value)


def bytes_field(number: int, data: bytes) -> bytes:
    """Return a field of a message that is bytes, a text or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data
