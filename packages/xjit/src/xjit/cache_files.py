"""Files of a private cache: written at once, read with suspicion.

An entry is one file: a header with a digest of the rest, the key it was stored under, facts about
it as JSON, and the content. A reader takes it only if all of that fits, and only from a file and a
directory of the user's own that nobody else can write to.

Neighbour: `cache_disk` says what is stored, and what becomes of a bad entry.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import os
import stat
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xtree.records import Record, set_once

__all__ = [
    "BadEntryError", "Entry", "compressed", "expanded", "pack", "private_directory",
    "read_private", "remove", "touch", "unpack", "write_atomically",
]  # fmt: skip

__dir__ = __all__.copy

_MARK = b"xstack program 1\n"
_HEADER = struct.Struct(f"<{len(_MARK)}s32s64sI")  # mark, digest of what follows, key, facts
_DIGEST_FROM = len(_MARK) + 32
_MOST_BYTES = 1 << 31  # a larger file is no entry: nothing of that size is read into memory
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class BadEntryError(Exception):
    """A file that is no whole entry of this user's."""


class Entry(Record):
    """What is stored under a key.

    Attributes:
      content: the bytes to find again.
      facts: what people want to know of it: text and numbers by name.
    """

    __slots__ = __match_args__ = ("content", "facts")
    content: bytes
    facts: Mapping[str, Any]

    def __init__(
        self, content: bytes, facts: Mapping[str, Any],
    ) -> None:  # fmt: skip
        set_once(self, "content", content)
        set_once(self, "facts", facts)


def pack(key: str, entry: Entry) -> bytes:
    """Return an entry as the bytes of its file.

    Example:
      >>> key = "0" * 64
      >>> unpack(pack(key, Entry(b"code", {"name": "f"})), key)
      Entry(content=b'code', facts={'name': 'f'})
    """
    facts = json.dumps(dict(entry.facts)).encode()
    tail = _HEADER.pack(b"", b"", key.encode(), len(facts))[_DIGEST_FROM:] + facts + entry.content
    return _MARK + hashlib.sha256(tail).digest() + tail


def unpack(data: bytes, key: str | None = None) -> Entry:
    """Return the entry in the bytes of a file.

    Args:
      data: the whole file.
      key: what it was asked for by; None takes any.

    Raises:
      BadEntryError: they are cut off, changed, of another version, or stored under another key.
    """
    if len(data) < _HEADER.size or not data.startswith(_MARK):
        raise BadEntryError("it is no entry of this version")
    _, digest, stored_key, size = _HEADER.unpack_from(data)
    if hashlib.sha256(memoryview(data)[_DIGEST_FROM:]).digest() != digest:
        raise BadEntryError("it was cut off or changed")
    if key is not None and stored_key != key.encode():
        raise BadEntryError("it was stored under another key")
    start = _HEADER.size + size
    return Entry(data[start:], json.loads(data[_HEADER.size : start]))


def compressed(text: str) -> str:
    """Return a text in a form that is short, and quick to make."""
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def expanded(text: str) -> str:
    """Return the text of which `compressed` made this."""
    return zlib.decompress(base64.b64decode(text)).decode()


def private_directory(path: Path, *, make: bool) -> str:
    """Return what is wrong with a directory for code that will be run; nothing if it is private.

    Args:
      path: of the directory.
      make: whether to make it where it is missing.
    """
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
        found = path.lstat()
    except FileNotFoundError:
        return "it is not there"
    except OSError as error:
        return str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "it is no directory"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & _OTHERS_WRITE:
        return "other users can write to it (chmod 700 mends that)"
    return ""


def read_private(path: Path) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
      BadEntryError: it is of another user, can be written by others, or is no plain file.
      OSError: it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise BadEntryError("it is no plain file of a program's size")
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise BadEntryError("it belongs to another user")
        if found.st_mode & _OTHERS_WRITE:
            raise BadEntryError("other users can write to it")
        return file.readall()


_counter = itertools.count()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file that readers see whole or not at all.

    Raises:
      OSError: it cannot be written; nothing of it is left.
    """
    temporary = path.with_name(f"{os.getpid()}-{next(_counter)}-{path.name[:16]}.part")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def remove(path: Path) -> None:
    """Remove a file, if that can be done."""
    with contextlib.suppress(OSError):
        path.unlink()


def touch(path: Path) -> None:
    """Note that a file was used now, if that can be done."""
    with contextlib.suppress(OSError):
        os.utime(path)
