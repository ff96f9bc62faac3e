"""What the devices exchange in a compiled program: each collective, its bytes and the user's line.

    explain_communication    a table of the collectives that XLA put in, and of copied arguments
    assert_no_collectives    raises where there is one
    pad_for_sharding         pad an array so that its dimensions divide over a mesh

The facts are read from the text of the optimised program (HLO), which names shapes, groups and
lines. Source: XLA, "Operation semantics" and the text form of `replica_groups`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import xtree
from xjit import jit
from xjit.debug.monitoring import pause_trace_counts
from xjit.lowering.modules import source_locations
from xjit.sharding.shardings import Sharding, resolve
from xnp import lax
from xprim import Array, as_array
from xprim.errors import message
from xprim.requirements import require
from xprim.source import file_name
from xprim.tracebacks import boundaries
from xprim.transformed import name_of

__all__ = [
    "Collective", "Communication", "assert_no_collectives", "explain_communication",
    "pad_for_sharding",
]  # fmt: skip

__dir__ = __all__.copy

_KINDS = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute",
          "collective-broadcast", "ragged-all-to-all")  # fmt: skip
_COLLECTIVE = re.compile(rf"= (.+?) ({'|'.join(_KINDS)})(?:-start)?\((.*)")
_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(ENTRY )?%?[\w.\-]+ .*\{$")


@dataclass(frozen=True, slots=True)
class Collective:
    """One exchange of values in a compiled program.

    Attributes:
      kind: as XLA calls it: `all-reduce`, `all-gather`, ...
      shape: of what each device has in the end: `f32[32,64]`.
      bytes: of that, for `reduce-scatter` of what goes in: on each device, each time it happens.
      members: how many devices exchange with each other.
      operation: the primitive that needs it, or the argument that is brought together.
      where: the user's file and line, where it is known.
      is_repeated: whether it is inside a loop or a branch, so that it may happen often, or never.
    """

    kind: str
    shape: str
    bytes: int
    members: int
    operation: str
    where: str
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class Communication:
    """What the devices of a program exchange, and which arguments each of them has in full.

    Attributes:
      name: of the function.
      collectives: in the order of the program.
      copied: for arguments that several devices have the same piece of: name, bytes of a piece, the
        number of copies of each piece, and why.
    """

    name: str
    collectives: tuple[Collective, ...]
    copied: tuple[tuple[str, int, int, str], ...]

    @property
    def bytes(self) -> int:
        """The bytes of all collectives together, each taken once."""
        return sum([c.bytes for c in self.collectives])

    def __str__(self) -> str:
        count = len(self.collectives)
        head = f"{self.name}: {count} collective{'s'[: count != 1]}, {_size(self.bytes)}"
        rows = [
            (c.kind, c.shape, _size(c.bytes), f"among {c.members}", c.operation,
             _format_place(c.where) + (" (in a loop or branch)" if c.is_repeated else ""))
            for c in self.collectives
        ]  # fmt: skip
        copies = [(name, _size(size), f"x {count}", why) for name, size, count, why in self.copied]
        lines = [head, *_align(rows)]
        return "\n".join([*lines, *(["copied arguments:"] if copies else []), *_align(copies)])


def _format_place(where: str) -> str:
    """Return `train.py:41` for the path of that file and the line, as errors name it."""
    path, _, line = where.rpartition(":")
    return f"{file_name(path)}:{line}" if path else where


def explain_communication(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Communication:
    """Compile a function for arguments, and say what its devices exchange.

    Args:
      f: a function of arrays, compiled by `jit` or not.
      *args: its arguments; where they lie decides what is exchanged. Nothing is computed.
      **kwargs: likewise.

    Returns:
      A `Communication`; its text is a table.

    Example:
      >>> import numpy as np
      >>> print(explain_communication(lambda x: x + x, np.ones(4, np.float32)))
      <lambda>: 0 collectives, 0 bytes
    """
    with source_locations(True), pause_trace_counts():  # a program with lines is wanted
        function: Any = f if hasattr(f, "lower") else jit(f)
        text = function.lower(*args, **kwargs).compile().as_text()
    return Communication(name_of(f), _collectives(text), _copy(args, kwargs))


def assert_no_collectives(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raise where the compiled function exchanges values between devices.

    Args:
      f: a function of arrays.
      *args: its arguments.
      **kwargs: likewise.

    Raises:
      AssertionError: it does; the error lists the collectives.
    """
    found = explain_communication(f, *args, **kwargs)
    if found.collectives:
        raise AssertionError(message(
            f"assert_no_collectives({found.name})", "the devices exchange values.", got=str(found),
        ))  # fmt: skip


def pad_for_sharding(x: Any, sharding: Any, value: Any = 0) -> Array:
    """Pad an array at the ends of its dimensions so that they divide over a mesh.

    Args:
      x: an array.
      sharding: its sharding, or a partition spec over the context mesh.
      value: of the elements that are added.

    Returns:
      The padded array, which is not moved. Indexing its first elements cuts what was added.

    Example:
      >>> import numpy as np
      >>> from xpar import P, make_mesh, set_mesh
      >>> with set_mesh(make_mesh((1,), ("x",))):
      ...     pad_for_sharding(np.ones(3), P("x")).shape
      (3,)
    """
    operation = "pad_for_sharding"
    array = as_array(x, what=operation)
    where = resolve(sharding, operation)
    require(
        isinstance(where, Sharding), operation, "this is not a sharding.", got=sharding,
        error=TypeError,
    )  # fmt: skip
    where.check_rank(array.shape, operation)
    counts = where.tiles(array.ndim).counts
    extra = [-n % count for n, count in zip(array.shape, counts, strict=True)]
    fill = lax.full((), value, array.dtype)
    return lax.pad(array, fill, [(0, n, 0) for n in extra]) if any(extra) else array


# --- the text of a program ------------------------------------------------------------------------


def _collectives(text: str) -> tuple[Collective, ...]:
    places = _Places(text)
    found, in_entry = [], False
    for line in text.splitlines():
        if _COMPUTATION.match(line):
            in_entry = line.startswith("ENTRY")
        match = _COLLECTIVE.search(line)
        if match is not None:
            found.append(_collective(match, line, places, not in_entry))
    return tuple(found)


def _collective(match: Any, line: str, places: _Places, is_repeated: bool) -> Collective:
    result, kind, rest = match.groups()
    shapes = _SHAPE.findall(result)
    if f"{kind}-start" in line and len(shapes) > 1:  # operands and results
        shapes = shapes[len(shapes) // 2 :]
    members = _members(rest)
    size = sum([_bytes(dtype, dims) for dtype, dims in shapes])
    shape = ", ".join([f"{dtype}[{dims}]" for dtype, dims in shapes])
    size *= members if kind == "reduce-scatter" else 1
    named = re.search(r'op_name="([^"]*)"', line)
    # the last part of a path in parentheses, `jvp(layer/dot_general:reduce_sum)`, closes them
    operation = named.group(1).split("/")[-1] if named else ""
    operation = operation[:-1] if operation.count(")") > operation.count("(") else operation
    argument = re.fullmatch(r"Arg_(\d+)\.\d+", operation)
    operation = f"argument {argument.group(1)}" if argument else operation
    return Collective(kind, shape, size, members, operation, places.of(line), is_repeated)


def _members(rest: str) -> int:
    """Return how many devices are in a group, in any of the three forms of HLO."""
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", rest)
    if listed:
        return listed.group(1).count(",") + 1
    counted = re.search(r"replica_groups=\[\d+,(\d+)\]", rest)
    if counted:
        return int(counted.group(1))
    named = re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", rest)
    if named:
        sizes = dict(re.findall(r"'([^']+)'=(\d+)", named.group(1)))
        return math.prod([int(sizes[name]) for name in re.findall(r"'([^']+)'", named.group(2))
                          if name in sizes])  # fmt: skip
    pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", rest)
    return len(set(re.findall(r"\d+", pairs.group(1)))) if pairs else 0


def _bytes(dtype: str, dims: str) -> int:
    bits = re.search(r"\d+", dtype)
    width = 8 if bits is None else int(bits.group())  # pred
    return math.prod([int(n) for n in dims.split(",") if n]) * max(width, 8) // 8


class _Places:
    """The user's lines that a program names: in tables, or at each operation."""

    __slots__ = ("_files", "_frames", "_lines")

    def __init__(self, text: str) -> None:
        self._files = dict(re.findall(r'^(\d+) "(.*)"$', _part(text, "FileNames"), re.MULTILINE))
        locations = _part(text, "FileLocations")
        self._lines = {
            i: (file, line)
            for i, file, line in re.findall(
                r"^(\d+) \{file_name_id=(\d+).*?line=(\d+)", locations, re.MULTILINE)
        }  # fmt: skip
        frames = _part(text, "StackFrames")
        self._frames = dict(re.findall(r"^(\d+) \{file_location_id=(\d+)", frames, re.MULTILINE))

    def of(self, line: str) -> str:
        """Return file and line of an operation, or nothing."""
        direct = re.search(r'source_file="([^"]*)" source_line=(\d+)', line)
        if direct:
            return f"{direct.group(1)}:{direct.group(2)}"
        frame = re.search(r"stack_frame_id=(\d+)", line)
        place = self._lines.get(self._frames.get(frame.group(1), "")) if frame else None
        return "" if place is None else f"{self._files.get(place[0], '?')}:{place[1]}"


def _part(text: str, title: str) -> str:
    """Return a table of a program's text."""
    return text.partition(f"\n{title}\n")[2].partition("\n\n")[0]


def _copy(args: Any, kwargs: Any) -> tuple[tuple[str, int, int, str], ...]:
    found = []
    for path, leaf in xtree.leaves_with_path((args, kwargs)):
        sharding = getattr(leaf, "sharding", None)
        if not isinstance(sharding, Sharding) or sharding.num_devices == 1:
            continue
        counts = sharding.tiles(len(leaf.shape)).counts
        copies = sharding.num_devices // math.prod(counts)
        if copies > 1:
            name = f"argument {xtree.keystr(path[1:])}"
            size = math.prod(sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
            found.append((name, size, copies, _reason(sharding)))
    return tuple(found)


def _reason(sharding: Any) -> str:
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    if mesh is None or spec is None:
        return "some devices have the same piece"
    unused = [name for name, size in mesh.shape_tuple if size > 1 and name not in spec.names()]
    return f"{spec} does not name {', '.join(map(repr, unused))}"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join([f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)])
            .rstrip() for row in rows]  # fmt: skip


boundaries(globals())
