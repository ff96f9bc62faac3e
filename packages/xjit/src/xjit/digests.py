"""SHA-256 by Python's own module, for OpenSSL takes longer to load than ten modules of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xtree.namespaces import late_import

try:  # as the standard library's `random` does
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found]
except ImportError:
    try:  # before Python 3.12
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]
    except ImportError:  # an interpreter that has OpenSSL alone
        from hashlib import sha256 as _sha256

if TYPE_CHECKING:
    from hashlib import _Hash

__all__ = ()

_hashlib = late_import("hashlib", "OpenSSL takes 7 ms to load")

_LARGE = 1 << 21  # bytes, which OpenSSL hashes in 1 ms and Python in 6


def sha256(data: Any) -> _Hash:
    """Return the SHA-256 hash of bytes, an object of `hashlib`'s interface."""
    large = memoryview(data).nbytes > _LARGE
    found: _Hash = _hashlib.sha256(data) if large else _sha256(data)
    return found
