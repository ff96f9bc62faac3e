"""Bytes: fields of messages of Protocol Buffers, and digests.

A field is a number, which says how the bytes are read, and these.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from xtree.namespaces import late_import

if TYPE_CHECKING:
    from hashlib import _Hash

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


# ------------------------------------------------------------------------------------------ digests
# SHA-256 by Python's own module, for OpenSSL takes longer to load than ten modules of ours.

try:  # as the standard library's `random` does
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found]
except ImportError:
    try:  # before Python 3.12
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]
    except ImportError:  # an interpreter that has OpenSSL alone
        from hashlib import sha256 as _sha256


_hashlib = late_import("hashlib", "OpenSSL takes 7 ms to load")

_LARGE = 1 << 21  # bytes, which OpenSSL hashes in 1 ms and Python in 6


def sha256(data: Any) -> _Hash:
    """Return the SHA-256 hash of bytes, an object of `hashlib`'s interface."""
    large = memoryview(data).nbytes > _LARGE
    found: _Hash = _hashlib.sha256(data) if large else _sha256(data)
    return found
