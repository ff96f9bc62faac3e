"""Executables on disk, for the next process: keyed by content, private, checksummed."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import logging
import os
import stat
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from xjit import jaxlib_gateway as gateway
from xjit.byte_formats import sha256
from xprim import runtime_options
from xprim.errors import XStackRuntimeError, message
from xtree.namespaces import late_import
from xtree.records import Record

__all__ = [
    "BadEntryError", "Entry", "compressed", "expanded", "pack", "private_directory",
    "read_private", "remove", "touch", "unpack", "write_atomically", "DiskCache", "SUFFIX",
    "default_directory", "disk_cache", "facts_of", "key_of", "options_of_xla",
]  # fmt: skip

__dir__ = __all__.copy

_base64 = late_import("base64", "programs that are loaded need no text")
_zlib = late_import("zlib", "programs that are loaded need no text")


# ----------------------------------------------------------------------------------- cache files
# Files of a private cache: written at once, read with suspicion.
#
# An entry is one file: a header with a digest of the rest, the key it was stored under, facts
# about it as JSON, and the content. A reader takes it only if all of that fits, and only from a
# file and a directory of the user's own that nobody else can write to.

_MARK = b"xstack program 1\n"
_HEADER = struct.Struct(f"<{len(_MARK)}s32s64sI")  # mark, digest of what follows, key, facts
_DIGEST_FROM = len(_MARK) + 32
_MOST_BYTES = 1 << 31  # a larger file is not an entry: nothing of that size is read into memory
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class BadEntryError(Exception):
    """A file that is not a whole entry of this user's."""


class Entry(Record):
    """What is stored under a key.

    Attributes:
      content: the bytes to find again.
      facts: what people want to know of it: text and numbers by name.
    """

    content: bytes
    facts: Mapping[str, Any]


def pack(key: str, entry: Entry) -> bytes:
    """Return an entry as the bytes of its file.

    Example:
      >>> key = "0" * 64
      >>> unpack(pack(key, Entry(b"code", {"name": "f"})), key)
      Entry(content=b'code', facts={'name': 'f'})
    """
    facts = json.dumps(dict(entry.facts)).encode()
    tail = _HEADER.pack(b"", b"", key.encode(), len(facts))[_DIGEST_FROM:] + facts + entry.content
    return _MARK + sha256(tail).digest() + tail


def unpack(data: bytes, key: str | None = None) -> Entry:
    """Return the entry in the bytes of a file.

    Args:
      data: the whole file.
      key: the key it was stored under; None takes any.

    Raises:
      BadEntryError: they are cut off, changed, of another version, or stored under another key.
    """
    if len(data) < _HEADER.size or not data.startswith(_MARK):
        raise BadEntryError("it is not an entry of this version")
    _, digest, stored_key, size = _HEADER.unpack_from(data)
    if sha256(memoryview(data)[_DIGEST_FROM:]).digest() != digest:
        raise BadEntryError("it was truncated or changed")
    if key is not None and stored_key != key.encode():
        raise BadEntryError("it was stored under another key")
    start = _HEADER.size + size
    return Entry(data[start:], json.loads(data[_HEADER.size : start]))


def compressed(text: str) -> str:
    """Return a text in a form that is short, and quick to make."""
    packed: bytes = _base64.b64encode(_zlib.compress(text.encode(), 1))
    return packed.decode()


def expanded(text: str) -> str:
    """Return the text of which `compressed` made this."""
    unpacked: bytes = _zlib.decompress(_base64.b64decode(text))
    return unpacked.decode()


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
        return "it is not a directory"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & _OTHERS_WRITE:
        return "other users can write to it (chmod 700 mends that)"
    return ""


def read_private(path: Path) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
      BadEntryError: it is of another user, can be written by others, or is not a plain file.
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
            raise BadEntryError("it is not a plain file of a program's size")
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


# ------------------------------------------------------------------------------------ cache disk
# Executables on disk, for the next process: found by all that determined them.
#
# What: `DiskCache`, which loads and stores entries in one directory; `disk_cache`, the one that
# the options ask for. Idea: the key is a digest of the program's text and of everything else that
# its code depends on. What is wrong with an entry (cut off, changed, of somebody else) makes it a
# miss: it is removed, and told once. Serialised code is run, so the directory is private to the
# user, or it is not used. A process that ends while it loads an entry leaves a mark, and the next
# one removes the entry.

logger = logging.getLogger("xjit.cache")

T = TypeVar("T")
SUFFIX = ".program"
_LOADING, _PART = ".loading", ".part"
_ENVIRONMENT = ("XLA_FLAGS", "TF_XLA_FLAGS")  # what XLA reads beside the options it is given
_STALE_SECONDS = 3600.0  # after it, a mark or a part of a file was left by a process that is gone


def facts_of(devices: Sequence[Any], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what the code of a program depends on beside its text, by name.

    Args:
      devices: where it runs.
      settings: the compiler settings; those of XLA, under `options`, in any order.
    """
    told = {name: str(value) for name, value in settings.items()}
    return told | {
        "runtime": _fingerprint(str(devices[0].platform)),
        "processors": str(_processors()),
        "devices": str([d.id for d in devices]),
        "options": str(sorted((settings.get("options") or {}).items())),
        **{name: os.environ.get(name, "") for name in _ENVIRONMENT},
    }


def key_of(digest: bytes, facts: Mapping[str, str]) -> str:
    """Return the key of a program: a digest of all that its code depends on, in hexadecimal.

    Args:
      digest: of the program's text.
      facts: as `facts_of` gives them.
    """
    return sha256(digest + repr(sorted(facts.items())).encode()).hexdigest()


_fingerprint = functools.cache(gateway.device_fingerprint)
forget_devices = _fingerprint.cache_clear


def _processors() -> int:
    """Return how many processors this process may use: loops are cut into so many pieces."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class DiskCache:
    """The entries of one directory.

    Args:
      directory: holds nothing else; it is made when it is first written to.
      max_bytes: of all entries; the least recently used ones go first. None bounds nothing.

    Attributes:
      hits: entries that this process loaded.
      misses: programs that it requested and that were not there.
      stored: entries that it wrote.
      seconds_saved: what their compilation had taken, less what loading took.
    """

    def __init__(self, directory: Path, max_bytes: int | None = None) -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        self.hits = self.misses = self.stored = 0
        self.seconds_saved = 0.0
        self._problem: str | None = None  # of the directory: None before it was looked at
        self._is_writable = True
        self._told: set[str] = set()
        self._tried: set[str] = set()  # runtimes that take their own code

    def load(self, key: str, use: Callable[[bytes], T]) -> T | None:
        """Return what `use` makes of an entry, or None; a bad entry is a miss, and is removed.

        Args:
          key: of the program.
          use: makes an executable of serialised code.
        """
        start = time.perf_counter()
        path = self.path(key)
        try:
            data = read_private(path) if self._usable() else None
            if data is None:
                self.misses += 1
                return None
            entry = unpack(data, key)
            with _note(path):
                found = use(entry.content)
        except (BadEntryError, OSError, ValueError, gateway.XlaError) as error:
            remove(path)
            self.misses += 1
            self._tell("an entry was removed", f"{path}: {_first_line(error)}")
            return None
        touch(path)
        self.hits += 1
        spent = float(entry.facts.get("seconds", 0.0))
        self.seconds_saved += max(0.0, spent - (time.perf_counter() - start))
        return found

    def store(self, key: str, entry: Callable[[], Entry], use: Callable[[bytes], Any]) -> None:
        """Write an entry; a failure is logged once.

        Args:
          key: of the program.
          entry: returns what to write; called only where it can be written.
          use: as in `load`: the first entry of a directory is loaded once, to see that it can be.
        """
        if not self._is_writable or not self._usable(make=True):
            return
        try:
            new = entry()
            data = pack(key, new)
            if len(data) < runtime_options.persistent_cache_min_entry_size_bytes.value:
                return
            if self.max_bytes is not None and len(data) > self.max_bytes:
                return
            self._try_once(new, use)
            write_atomically(self.path(key), data)
            self.stored += 1
            self._collect_now_and_then(key, len(data))
        except (OSError, ValueError, gateway.XlaError) as error:
            self._is_writable = runtime_options.raise_persistent_cache_errors.value
            self._tell("nothing more is stored", f"{self.directory}: {_first_line(error)}")

    def _try_once(self, entry: Entry, use: Callable[[bytes], Any]) -> None:
        """Raise where this machine does not take the code that it made; looked at once."""
        runtime = str(entry.facts.get("runtime", ""))
        if runtime in self._tried:
            return
        mark = self.directory / f"{sha256(runtime.encode()).hexdigest()[:16]}.tried"
        if not mark.exists():
            use(entry.content)
            write_atomically(mark, runtime.encode())
        self._tried.add(runtime)

    def path(self, key: str) -> Path:
        """Return the file of an entry."""
        return self.directory / f"{key}{SUFFIX}"

    def entries(self) -> list[tuple[Path, int, float]]:
        """Return file, bytes and time of last use of all entries, the oldest first."""
        found = [
            (path, s.st_size, s.st_mtime) for path, s in self._files() if path.suffix == SUFFIX
        ]
        return sorted(found, key=lambda item: (item[2], item[0]))

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            names = os.listdir(self.directory)
        except OSError:
            return
        for name in names:
            path = self.directory / name
            with contextlib.suppress(OSError):  # removed by another process meanwhile
                yield path, path.lstat()

    def collect(self) -> int:
        """Remove entries beyond the bound, and what ended processes left; return the bytes."""
        entries, freed = self.entries(), 0
        too_many = sum(size for _, size, _ in entries) - (self.max_bytes or 0)
        if self.max_bytes is not None and too_many > 0:
            too_many += self.max_bytes // 10  # so that it is not requested again at once
            for path, size, _ in entries:
                if freed >= too_many:
                    break
                remove(path)
                freed += size
        now = time.time()
        for path, status in self._files():
            is_old = abs(now - status.st_mtime) > _STALE_SECONDS
            if path.suffix in (_PART, _LOADING) and is_old:
                remove(path)
                freed += status.st_size
        return freed

    def _collect_now_and_then(self, key: str, nbytes: int) -> None:
        """Collect once for each 32nd of the bound that is written, by whichever process.

        Keys are evenly spread, so some of them, and not a count that ends with the process, say
        when; a listing of the directory for each entry would take longer than to write it.
        """
        if self.max_bytes is not None:
            rarely = max(1, self.max_bytes // (32 * nbytes))
            if int(key[:8], 16) % rarely == 0:
                self.collect()

    def is_usable(self) -> bool:
        """Return whether its directory is there, or can be made, and is private."""
        return self._usable(make=True)

    def _usable(self, *, make: bool = False) -> bool:
        if self._problem is None or (make and self._problem):
            found = private_directory(self.directory, make=make)
            missing = found and not make and not os.path.lexists(self.directory)
            if found and not missing:
                self._tell("it is not used", f"{self.directory}: {found}")
                self._is_writable = False
            self._problem = None if missing else found
            return not found
        return not self._problem

    def _tell(self, what: str, why: str) -> None:
        """Log a problem, the first of its kind as a warning; or raise it, where that is wanted."""
        if runtime_options.raise_persistent_cache_errors.value:
            raise XStackRuntimeError(message(
                "the compilation cache", f"{what}.", got=why,
                hint="config.update('raise_persistent_cache_errors', False) logs it and goes on",
            ))  # fmt: skip
        level = logging.DEBUG if what in self._told else logging.WARNING
        self._told.add(what)
        logger.log(level, "the compilation cache: %s: %s", what, why)


@contextlib.contextmanager
def _note(path: Path) -> Iterator[None]:
    """Leave a mark for as long as an entry is loaded, by which a process that ends is found out.

    Raises:
      BadEntryError: a process ended while it loaded this entry.
    """
    mark: Path | None = path.with_suffix(_LOADING)
    assert mark is not None
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        mark.write_text(_this_process())
    except FileExistsError:
        if _has_ended(mark):
            remove(mark)
            raise BadEntryError("a process ended while it loaded it") from None
        mark = None  # another process is about to load it
    except OSError:  # a directory that is only to read
        mark = None
    try:
        yield
    finally:
        if mark is not None:
            remove(mark)


def _this_process() -> str:
    return f"{os.uname().nodename} {os.getpid()} {_start_of(os.getpid())}"


def _start_of(pid: int) -> str:
    """Return when a process began, in the kernel's ticks, so that a number is not taken for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _has_ended(mark: Path) -> bool:
    """Return whether the process that made a mark is gone; one of another machine may be there.

    A process that ended as it should took its mark away before: who reads it, and then finds that
    the process is gone, has to look for the mark again.
    """
    try:
        age = abs(time.time() - mark.lstat().st_mtime)
        text = mark.read_text()
        words = text.split(" ")
        if len(words) != 3 or words[0] != os.uname().nodename:
            return age > _STALE_SECONDS
        return _is_gone(int(words[1]), words[2]) and mark.read_text() == text
    except (OSError, ValueError):
        return False


def _is_gone(pid: int, start: str) -> bool:
    """Return whether there is no process of this number that began then."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _start_of(pid) != start


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def default_directory() -> Path | None:
    """Return the user's directory for caches with `xstack/programs`; None for a user without."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if chosen and os.path.isabs(chosen):
        return Path(chosen, "xstack", "programs")
    home = os.path.expanduser("~")
    return Path(home, ".cache", "xstack", "programs") if os.path.isabs(home) else None


def disk_cache() -> DiskCache | None:
    """Return the cache that the options ask for, None where they ask for none."""
    if not runtime_options.enable_compilation_cache.value:
        return None
    most = runtime_options.compilation_cache_max_size.value
    return _cache_at(runtime_options.compilation_cache_dir.value, None if most < 0 else most)


def options_of_xla(device: Any) -> dict[str, str]:
    """Return the settings by which XLA keeps caches of its own, for a device that it has some for.

    They are beside the programs, in a directory that is as private, and change no code. Of several
    processes the first one writes.
    """
    requested = runtime_options.persistent_cache_enable_xla_caches.value
    if device.platform == "cpu" or requested in (None, "", "none"):
        return {}
    names = runtime_options.XLA_CACHES if requested == "all" else requested.split(",")
    disk = disk_cache()
    if disk is None or not disk.is_usable():
        return {}
    beside = disk.directory.with_name(f"{disk.directory.name}-xla")
    if private_directory(beside, make=True):
        return {}
    told = {name: str(beside / name) for name in names}
    if runtime_options.XLA_CACHES[1] in told:
        mode = "READ" if device.client.process_index() else "UPDATE"
        told["xla_gpu_experimental_autotune_cache_mode"] = f"AUTOTUNE_CACHE_MODE_{mode}"
    return told


def forget_what_was_found() -> None:
    """Look at directories anew, also at those that were found not to work, and count from zero."""
    _cache_at.cache_clear()


@functools.cache
def _cache_at(chosen: str | None, max_bytes: int | None) -> DiskCache | None:
    """Return the cache of a directory, one object for each."""
    # A subdirectory, which is made private: the one that is named may be anything.
    if chosen == "":
        return None
    directory = default_directory() if chosen is None else Path(chosen, "xstack-programs")
    return None if directory is None else DiskCache(directory, max_bytes)
