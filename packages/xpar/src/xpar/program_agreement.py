"""All processes run the same program: told before it is compiled, not by a hang or a wrong sum.

A program over devices of several processes is compiled by each of them. Each says the digest of
its text, and waits for those of the others; where they differ, the texts are compared, and all
raise the same error. The programs for a set of processes are counted, so a process that went
another way meets the others at the first program that differs.

Neighbours: `process_watch` waits, and says who has failed in the meantime.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
import logging
import time
import zlib
from typing import TYPE_CHECKING, Any

from xprim import source
from xprim.errors import XStackRuntimeError, message

if TYPE_CHECKING:
    from xpar.process_watch import ProcessWatch

__all__ = ["DifferentProgramsError"]

__dir__ = __all__.copy

logger = logging.getLogger("xpar")

_FOLDER = "xpar/programs"
_MAX_TEXT = 1 << 22  # bytes of a compressed text that others are given to compare
_counts: collections.Counter[tuple[int, ...]] = collections.Counter()


class DifferentProgramsError(XStackRuntimeError):
    """Processes that share devices compile different programs for them.

    Each process runs the same program on its own part of the data. Where a program depends on the
    number of the process, on local data or on the order of a set, they part, and would wait for
    each other or take the values of one program for those of another.

    Example:
      >>> issubclass(DifferentProgramsError, RuntimeError)
      True
    """


def agree(watch: ProcessWatch, text: str, name: str, devices: tuple[Any, ...]) -> None:
    """Raise where another process compiles another program for its part of these devices.

    Raises:
      DifferentProgramsError: they differ; it says who and where.
      ProcessFailureError: another process has failed.
    """
    processes = tuple(sorted({int(device.process_index) for device in devices}))
    if watch.process_id not in processes:
        return
    number = _counts[processes]
    _counts[processes] += 1
    folder = f"{_FOLDER}/{'-'.join(map(str, processes))}/{number}"
    mine = {"digest": hashlib.sha256(text.encode()).hexdigest(), "name": name, "where": _where()}
    watch.member.set(f"{folder}/{watch.process_id}", json.dumps(mine))
    said = _said_by_all(watch, folder, processes, name)
    if number > 1:  # all have read what was said before the last
        watch.member.delete(f"{_FOLDER}/{'-'.join(map(str, processes))}/{number - 2}"
                            f"/{watch.process_id}")  # fmt: skip
    if len({one["digest"] for one in said.values()}) > 1:
        raise DifferentProgramsError(_difference(watch, folder, said, text))


def _said_by_all(
    watch: ProcessWatch, folder: str, processes: tuple[int, ...], name: str
) -> dict[int, dict[str, str]]:
    said: dict[str, str] = {}

    def is_complete() -> bool:
        nonlocal said
        said = watch.member.texts(folder)
        if time.monotonic() > told_at[0] + watch.timeout and len(said) < len(processes):
            told_at[0] = float("inf")
            missing = [i for i in processes if str(i) not in said]
            logger.warning(
                "%s: waiting for process %s to compile it, too", name,
                ", ".join(map(str, missing)),
            )  # fmt: skip
        return len(said) >= len(processes)

    told_at = [time.monotonic()]
    watch.wait_for_word(is_complete)
    return {int(process): json.loads(line) for process, line in sorted(said.items())}


def _difference(
    watch: ProcessWatch, folder: str, said: dict[int, dict[str, str]], text: str
) -> str:
    """Return the message that says who differs from the most, and in which line of the program."""
    common = collections.Counter([one["digest"] for one in said.values()]).most_common(1)[0][0]
    usual = min(process for process, one in said.items() if one["digest"] == common)
    others = [process for process, one in said.items() if one["digest"] != common]
    packed = zlib.compress(text.encode())
    texts = f"{folder}-texts"
    if watch.process_id in (usual, others[0]) and len(packed) <= _MAX_TEXT:
        watch.member.set_bytes(f"{texts}/{watch.process_id}", packed)
    lines = [_line_of(process, said[process]) for process in (usual, *others[:3])]
    found = {process: _text_of(watch, f"{texts}/{process}") for process in (usual, others[0])}
    lines += _first_difference(found)
    plural = "es" if len(others) > 1 else ""
    return message(
        "compile", f"process{plural} {', '.join(map(str, others))} "
        f"compile{'' if plural else 's'} another program than process {usual}.",
        got="\n".join(lines),
        expected="the same program in all processes, in the same order",
        hint="what differs between processes belongs in the elements of arrays, not in the program",
    )  # fmt: skip


def _line_of(process: int, one: dict[str, str]) -> str:
    return f"process {process}: {one['name']}" + (f", at {one['where']}" if one["where"] else "")


def _text_of(watch: ProcessWatch, key: str) -> str:
    """Return a program's text as another process left it, or nothing where it does not come."""
    end = time.monotonic() + min(watch.timeout, 5.0)
    while time.monotonic() < end:
        found = watch.member.get_bytes(key)
        if found is not None:
            return zlib.decompress(found).decode()
        time.sleep(0.01)
    return ""


def _first_difference(texts: dict[int, str]) -> list[str]:
    """Return the first line that differs in the texts of two processes, for both."""
    if not all(texts.values()):
        return []
    pairs = itertools.zip_longest(*[text.splitlines() for text in texts.values()], fillvalue="")
    for number, pair in enumerate(pairs, 1):
        if pair[0].strip() != pair[1].strip():
            return [f"line {number} in process {process}: {line.strip()[:160]}"
                    for process, line in zip(texts, pair, strict=True)]  # fmt: skip
    return []


def _where() -> str:
    """Return the user's line that asked for the program."""
    return source.describe(source.capture())
