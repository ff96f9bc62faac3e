"""The compilation cache on disk: what is in it, whether it works, and how to clean it.

    python -m xjit.cache stats                  entries, bytes, seconds that they save
    python -m xjit.cache doctor                 whether it works here, and what mends it
    python -m xjit.cache gc                     remove entries beyond the bound, and left-over files
    python -m xjit.cache clear                  remove all entries
    python -m xjit.cache explain KEY1 KEY2      why one entry does not serve the other's program

A key may be shortened. The options `compilation_cache_dir` and `compilation_cache_max_size`
(environment: `XSTACK_COMPILATION_CACHE_DIR`, ...) say which cache it is.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xjit import jaxlib_gateway as gateway
from xjit.cache import disk
from xjit.cache.disk import SUFFIX, DiskCache, Entry, disk_cache, read_private, remove, unpack
from xprim import config
from xprim.errors import message
from xprim.tracebacks import boundaries

__all__ = [
    "clear", "collect", "directory", "doctor", "entries", "explain", "reset_cache",
    "set_cache_dir", "stats",
]  # fmt: skip

__dir__ = __all__.copy

NO_CACHE = "there is no cache: enable_compilation_cache is off, or this user has no home directory"


def directory() -> Path | None:
    """Return the directory of the entries, None where nothing is kept.

    Example:
      >>> directory() is None or directory().name
      True
    """
    cache = disk_cache()
    return None if cache is None else cache.directory


def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep programs that are compiled from now on in a directory, and look for them there.

    Args:
      path: the directory; None for the user's cache directory, "" for no cache. The entries are in
        a folder inside it, which is the user's alone, because a compiled program is code.

    Returns:
      Nothing.

    Example:
      >>> from xprim.runtime_options import compilation_cache_dir
      >>> before = compilation_cache_dir.value
      >>> set_cache_dir(Path("programs"))
      >>> compilation_cache_dir.value
      'programs'
      >>> set_cache_dir(before)
    """
    config.update("compilation_cache_dir", None if path is None else os.fspath(path))


def reset_cache() -> None:
    """Look at the directory anew, also where it was found not to work; no entry is removed.

    Returns:
      Nothing.

    Example:
      >>> reset_cache()
      >>> stats().get("hits", 0)
      0
    """
    disk.forget_what_was_found()


def stats() -> dict[str, Any]:
    """Return numbers about the cache: of all entries, and of this process.

    Returns:
      `entries`, `bytes`, `max_bytes` and `seconds` (what compiling the entries took); of this
      process `hits`, `misses`, `stored` and `seconds_saved`. Empty where there is no cache.
    """
    cache = disk_cache()
    if cache is None:
        return {}
    entries = cache.entries()
    seconds = [e.facts.get("seconds", 0.0) for _, e in _read(cache) if e is not None]
    return {
        "entries": len(entries), "bytes": sum(size for _, size, _ in entries),
        "max_bytes": cache.max_bytes, "seconds": sum(seconds), "hits": cache.hits,
        "misses": cache.misses, "stored": cache.stored, "seconds_saved": cache.seconds_saved,
    }  # fmt: skip


def clear() -> int:
    """Remove all entries; return how many there were."""
    cache = disk_cache()
    paths = [] if cache is None else [path for path, _, _ in cache.entries()]
    for path in paths:
        remove(path)
    return len(paths)


def collect() -> int:
    """Remove the least recently used entries beyond the bound; return the bytes that were freed."""
    cache = disk_cache()
    return 0 if cache is None else cache.collect()


def doctor() -> list[str]:
    """Return what is wrong with the cache, each with what mends it; nothing if it works."""
    cache = disk_cache()
    if cache is None:
        return [NO_CACHE]
    return list(_problems(cache))


def _problems(cache: DiskCache) -> Iterator[str]:
    path = cache.directory
    wrong = disk.private_directory(path, make=True)
    if wrong:
        yield f"{path}: {wrong}; or choose another with XSTACK_COMPILATION_CACHE_DIR"
        return
    try:
        with tempfile.TemporaryDirectory(dir=path) as trial:
            yield from _trial(DiskCache(Path(trial, "entries")))
    except OSError as error:
        yield f"{path} cannot be written: {error}; entries are only read"
    free = shutil.disk_usage(path).free
    if cache.max_bytes is not None and free < cache.max_bytes // 10:
        yield f"{path}: only {free} bytes are free; `python -m xjit.cache clear` frees some"
    bad = [p.name for p, entry in _read(cache) if entry is None]
    if bad:
        yield f"{len(bad)} entries are damaged, such as {bad[0]}; each is deleted at its next use"


def _trial(cache: DiskCache) -> Iterator[str]:
    """Store a small program and load it again."""
    text = "func.func public @main() -> tensor<f32> {\n%0 = stablehlo.constant dense<1.0> : " \
           "tensor<f32>\nreturn %0 : tensor<f32>\n}"  # fmt: skip
    key = "0" * 64
    made = gateway.compile_program(text)
    cache.store(key, lambda: Entry(made.serialize(), {}), gateway.deserialize_program)
    if cache.load(key, gateway.deserialize_program) is None:
        yield "this machine does not load the programs that it stores; switch the cache off with " \
              "XSTACK_ENABLE_COMPILATION_CACHE=0"  # fmt: skip


def explain(first: str, second: str) -> str:
    """Return what differs between two entries, which is why one does not serve for the other.

    Args:
      first: the key of an entry, or its beginning.
      second: likewise.

    Raises:
      LookupError: no entry, or more than one, has such a key.
    """
    one, two = _entry(first), _entry(second)
    lines = []
    for name in sorted({*one.facts, *two.facts} - {"text", "seconds"}):
        values = one.facts.get(name, ""), two.facts.get(name, "")
        if values[0] != values[1]:
            lines.append(f"{name}: {values[0]}\n{' ' * len(name)}  {values[1]}")
    a, b = (
        disk.expanded(e.facts["text"]).splitlines() if "text" in e.facts else [] for e in (one, two)
    )
    lines += difflib.unified_diff(a, b, "program of the first", "of the second", n=1, lineterm="")
    return "\n".join(lines) or "they are equal but for their keys: XLA's version or this format"


def _entry(key: str) -> Entry:
    cache = disk_cache()
    found = [] if cache is None else [p for p, _, _ in cache.entries() if p.name.startswith(key)]
    if len(found) != 1:
        raise LookupError(message(
            "explain", f"{len(found) or 'no'} entries begin with {key!r}.",
            hint="`python -m xjit.cache stats -v` lists the keys",
        ))  # fmt: skip
    data = read_private(found[0])
    if data is None:
        raise LookupError(f"explain: the entry {key!r} has just been removed.")
    return unpack(data)


def entries() -> list[tuple[str, str, float]]:
    """Return key, name of the function and seconds of compilation of all entries, oldest first."""
    cache = disk_cache()
    found = [] if cache is None else list(_read(cache))
    return [
        (path.name.removesuffix(SUFFIX), "damaged", 0.0) if entry is None
        else (path.name.removesuffix(SUFFIX), entry.facts["name"], entry.facts["seconds"])
        for path, entry in found
    ]  # fmt: skip


def _read(cache: DiskCache) -> Iterator[tuple[Path, Entry | None]]:
    for path, _, _ in cache.entries():
        try:
            data = read_private(path)
            yield path, None if data is None else unpack(data, path.name.removesuffix(SUFFIX))
        except (disk.BadEntryError, OSError, ValueError):
            yield path, None


boundaries(globals())
