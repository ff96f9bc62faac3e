"""What a function becomes: how long each step takes, and which lines of it make the program.

    print(explain(step, state, batch))
    explain(step, state, batch).save("step.svg")

tells the seconds of tracing, lowering and compiling; how many equations each of the user's lines
makes, and which share of the instructions that XLA made code for; lines that XLA computes again and
again, so that compiling grows faster than the program; blocks of equations that come again and
again, which a `scan` would hold once; arrays that the function captured; how exactly its matrix
products and convolutions are computed; which faster form of an operation does not serve, and why;
and what memory the program takes.
"""

from __future__ import annotations

import inspect
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from xjit.debug.monitoring import pause_trace_counts
from xjit.dispatch.jit import jit
from xjit.lowering.compile import equations_of, statistics
from xjit.lowering.modules import source_locations
from xprim import ClosedJaxpr, ConcreteArray, Equation
from xprim.source import describe, file_name
from xprim.tracebacks import boundary
from xprim.transformed import check_function, name_of
from xtree.interning import forkable_lock

__all__ = ["Block", "Constant", "Explanation", "Product", "explain"]

__dir__ = __all__.copy

_LEAST_CONSTANT = 1024  # bytes of a captured array that is worth a line
_LONGEST_BLOCK = 400  # equations; longer ones are not looked for
_LEAST_REPEATS = 3
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Block:
    """Equations that come several times in a row.

    Attributes:
      equations: how many one of them has.
      repeats: how often it comes.
      where: the line of the first one.
    """

    equations: int
    repeats: int
    where: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An array that a function captured.

    Attributes:
      nbytes: how large it is.
      type: its shape and dtype.
      variable: what the function calls it, if that is known.
      where: the first line that uses it.
    """

    nbytes: int
    type: str
    variable: str
    where: str


@dataclass(frozen=True, slots=True)
class Product:
    """Matrix products or convolutions of one line.

    Attributes:
      operation: the name of the primitive.
      types: of the operands.
      precision: how exactly each is computed: `float32`, `TensorFloat-32`, `bfloat16`, another
        dtype, or the name of an algorithm.
      count: how many there are.
      where: the line.
    """

    operation: str
    types: str
    precision: str
    count: int
    where: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `explain` found; `str` shows it, `svg` draws it.

    Attributes:
      name: of the function.
      seconds: of `trace`, `lower` and `compile`.
      from_cache: whether the executable was there already, so that `compile` says little.
      equations: how many the program has, those of loops and branches once.
      by_line: the user's lines, and how many equations each makes; the largest first.
      compiled_by_line: the user's lines, and which share of the optimised program's instructions
        each causes, which is about its share of the time to compile; the largest first.
      recomputed: the user's lines whose operations XLA computes three times or more, since it fuses
        them with each use, and how often; the most first.
      blocks: what comes again and again; the largest first.
      constants: captured arrays of a KiB and more; the largest first.
      memory: sizes in bytes by name.
      products: the matrix products and convolutions, with the precision that each has.
      notes: what operations say about their form, such as why attention is not cuDNN's.
    """

    name: str
    seconds: Mapping[str, float]
    from_cache: bool
    equations: int
    by_line: Sequence[tuple[str, int]]
    compiled_by_line: Sequence[tuple[str, float]]
    recomputed: Sequence[tuple[str, float]]
    blocks: Sequence[Block]
    constants: Sequence[Constant]
    memory: Mapping[str, int]
    products: Sequence[Product] = ()
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        steps = ", ".join([f"{k} {1e3 * v:.1f} ms" for k, v in self.seconds.items()])
        lines = [f"{self.name}: {steps}{' (found in a cache)' if self.from_cache else ''}"]
        lines.append(f"{self.equations} equations")
        for where, count in self.by_line[:_SHOWN]:
            lines.append(f"  {count / max(self.equations, 1):6.1%}  {count:6}  {where}")
        if len(self.by_line) > _SHOWN:
            lines.append(f"  and {len(self.by_line) - _SHOWN} lines more")
        if self.compiled_by_line:
            lines.append("compiled code:")
        for where, share in self.compiled_by_line[:_SHOWN]:
            lines.append(f"  {share:6.1%}          {where or 'elsewhere'}")
        lines += [
            f"warning: XLA computes {where} again for each use, {times:.1f} times: the time to "
            "compile grows faster than the program; a scan would hold it once"
            for where, times in self.recomputed
        ]
        lines += [*self._remarks(), f"memory: {self._memory_text()}"]
        return "\n".join(lines)

    def _remarks(self) -> list[str]:
        """Return what there is to say of blocks, constants, products and operations."""
        lines = [
            f"repeated: {b.equations} equations {b.repeats} times from {b.where or 'here'}; "
            "a scan would hold them once"
            for b in self.blocks
        ]
        for c in self.constants:
            called = f" {c.variable}" if c.variable else ""
            lines.append(f"captured:{called} {c.type}, {_size(c.nbytes)}, used at {c.where}")
        lines += [
            f"product: {p.operation} of {p.types} in {p.precision}"
            f"{f', {p.count} times' if p.count > 1 else ''}, at {p.where or 'an unknown line'}"
            for p in self.products
        ]
        return [*lines, *[f"note: {note}" for note in self.notes]]

    def _memory_text(self) -> str:
        kinds = [f"{k.removesuffix('_size_in_bytes')} {_size(v)}" for k, v in self.memory.items()
                 if v]  # fmt: skip
        return ", ".join(kinds) or "none"

    __repr__ = __str__

    def svg(self) -> str:
        """Return a picture: a bar for each step, and one for each line of the program."""
        total = max(sum(self.seconds.values()), 1e-9)
        rows = [(f"{k}: {1e3 * v:.1f} ms", v / total, "#4878a8") for k, v in self.seconds.items()]
        rows += [
            (f"{where or 'elsewhere'}: {count}", count / max(self.equations, 1), "#a86448")
            for where, count in self.by_line[:_SHOWN]
        ]
        parts = [_text(10, 22, f"{self.name}: {self.equations} equations", 15)]
        for i, (label, share, colour) in enumerate(rows):
            y = 36 + 24 * i
            width = max(1.0, 560 * share)
            parts.append(
                f'<rect x="10" y="{y}" width="{width:.1f}" height="18" fill="{colour}" '
                'fill-opacity="0.45"/>'
            )
            parts.append(_text(16, y + 13, f"{label} ({share:.0%})", 12))
        height = 46 + 24 * len(rows)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="580" height="{height}" '
            f'viewBox="0 0 580 {height}">\n' + "\n".join(parts) + "\n</svg>\n"
        )

    def save(self, file: str | Path) -> None:
        """Write the picture to a file, or the text where the name ends otherwise than in .svg."""
        path = Path(file)
        path.write_text(self.svg() if path.suffix == ".svg" else f"{self}\n")


@boundary
def explain(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Compile a function for some arguments and say what became of it.

    Args:
      fun: a function, or what `jit` returned for one; it is traced and compiled, and not run.
      *args: its arguments, arrays or what has their shapes and dtypes.
      **kwargs: its keyword arguments.

    Example:
      >>> import numpy as np
      >>> def f(x):
      ...     for _ in range(4):
      ...         x = x * 2 + 1
      ...     return x
      >>> found = explain(f, np.ones(3, np.float32))
      >>> found.equations, found.blocks[0].equations, found.blocks[0].repeats
      (8, 2, 4)
    """
    check_function(fun, "explain")
    compiled: Any = fun if hasattr(fun, "trace") else jit(fun)
    seconds, before = {}, statistics.compiled
    start = time.perf_counter()
    with _Notes() as notes:
        traced = compiled.trace(*args, **kwargs)
    seconds["trace"] = time.perf_counter() - start
    start = time.perf_counter()
    lowered = traced.lower()
    seconds["lower"] = time.perf_counter() - start
    start = time.perf_counter()
    program = lowered.compile()
    seconds["compile"] = time.perf_counter() - start
    closed: ClosedJaxpr = traced.jaxpr
    eqns = list(equations_of(closed.jaxpr))
    lines = Counter([describe(eqn.source) for eqn in eqns])
    with source_locations(True), pause_trace_counts(), notes:
        located = compiled.trace(*args, **kwargs).lower().as_text()
    named = {where.partition(" in ")[0]: where for where in lines}
    shares, recomputed = [
        [(named.get(where, where), figure) for where, figure in figures]
        for figures in _compile_lines(located, lowered.as_text(), program.as_text())
    ]
    return Explanation(
        name=name_of(fun, "the function"),
        seconds=seconds,
        from_cache=statistics.compiled == before,
        equations=len(eqns),
        by_line=lines.most_common(),
        compiled_by_line=shares,
        recomputed=recomputed,
        blocks=_repeat(closed.jaxpr.eqns),
        constants=_constants(inspect.unwrap(fun), closed),
        memory=program.memory_analysis(),
        products=_products(eqns, lowered._lowered.platform),
        notes=list(dict.fromkeys(notes.found)),
    )


_logger = logging.getLogger("xnp")
_notes_lock = forkable_lock()
_open_notes: list[_Notes] = []
_logger_before: tuple[int, bool] = (logging.NOTSET, True)  # the first of them came


class _Notes(logging.Handler):
    """Collects what operations say in this thread of their form, on the logger `xnp`.

    The logger is one for all threads: the first to come opens it, and the last to go restores it.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Append the text of a record."""
        if record.thread == self._thread:
            self.found.append(record.getMessage())

    def __enter__(self) -> _Notes:
        global _logger_before
        with _notes_lock:
            if not _open_notes:
                _logger_before = _logger.level, _logger.propagate
                if not _logger.isEnabledFor(logging.INFO):  # what notes alone want is shown nowhere
                    _logger.setLevel(logging.INFO)
                    _logger.propagate = False
            _open_notes.append(self)
            _logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        with _notes_lock:
            _logger.removeHandler(self)
            _open_notes.remove(self)
            if not _open_notes:
                level, _logger.propagate = _logger_before
                _logger.setLevel(level)


def _products(eqns: Sequence[Equation], platform: str) -> list[Product]:
    """Return the products of a program for a platform, those that are alike counted."""
    found = Counter([
        (
            eqn.primitive.name, " and ".join([x.aval.str_short() for x in eqn.inputs[:2]]),
            _precision(eqn, platform), describe(eqn.source),
        )
        for eqn in eqns if "precision" in eqn.params
    ])  # fmt: skip
    return [Product(*key[:3], count, key[3]) for key, count in found.items()]


_LESS = {"cuda": "TensorFloat-32", "rocm": "TensorFloat-32", "tpu": "bfloat16"}
_SINGLE = ("float32", "complex64")


def _precision(eqn: Equation, platform: str) -> str:
    """Return how exactly an operation is computed: see `xnp.lax.Precision`."""
    requested = eqn.params["precision"]
    dtypes = [x.aval.dtype.name for x in (*eqn.inputs[:2], *eqn.outputs)]
    single = next((name for name in dtypes if name in _SINGLE), None)
    if hasattr(requested, "accumulation_type"):
        return f"{requested.lhs_precision_type} summed in {requested.accumulation_type}"
    if requested is not None and not isinstance(requested, tuple):
        return str(requested)
    levels = {level.name for level in requested or ()}
    if single is None or platform not in _LESS or not levels - {"HIGHEST"}:
        return "float32" if single is not None else dtypes[-1]
    return _LESS[platform]


_USER_LINE = re.compile(r' loc\("(?:[^"\\]|\\.)*"\("((?:[^"\\]|\\.)*)":(\d+):\d+\)\)$')
_FUNCTION = re.compile(r"func\.func \w+ @([\w.$]+)\(")
_CALL = re.compile(r"func\.call @([\w.$]+)\(")
_INSTRUCTION = re.compile(r" = .*source_line=(\d+)")
_LEAST_TIMES = 3.0
_MAIN = "main"


@dataclass(slots=True)
class _TextLines:
    """What is known of the lines of a program's text, which begin with 1.

    Attributes:
      where: the user's lines, "" where there is none.
      functions: the functions that they belong to.
      calls: of each function those that call it, with the user's line of the call.
    """

    where: list[str]
    functions: list[str]
    calls: dict[str, list[tuple[str, str]]]

    @classmethod
    def of(cls, text: str) -> _TextLines:
        """Read the text of a program that carries the user's lines."""
        lines = text.splitlines()
        found = cls([""] * (len(lines) + 1), [_MAIN] * (len(lines) + 1), {})
        function, regions = _MAIN, list[int]()
        for number, line in enumerate(lines, 1):
            header = _FUNCTION.match(line)
            function = header[1] if header else function
            found.functions[number] = function
            place = _USER_LINE.search(line)
            if place:
                found.where[number] = f"{file_name(place[1])}:{place[2]}"
            if line.endswith("({"):
                regions.append(number)
            elif line.startswith("})") and regions:
                found._fill(regions.pop(), number)
            call = _CALL.search(line)
            if call:
                found.calls.setdefault(call[1], []).append((function, found.where[number]))
        return found

    def _fill(self, start: int, end: int) -> None:
        """Have the lines of an operation's regions be of its own line, where nothing is known."""
        for number in range(start, end):
            self.where[number] = self.where[number] or self.where[end]

    def copies(self, function: str) -> int:
        """Return how often a function is called, by way of all that call it."""
        callers = self.calls.get(function, ())
        return 1 if function == _MAIN else sum([self.copies(caller) for caller, _ in callers])

    def places(self, number: int) -> list[str]:
        """Return the user's lines that a line of the text belongs to, of a function all callers."""
        where, function = self.where[number], self.functions[number]
        if where or function == _MAIN:
            return [where]
        return [place for _, place in self.calls.get(function, ())] or [""]


def _compile_lines(
    located: str, text: str, optimised: str
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Return which share of an optimised program each of the user's lines causes, and the repeats.

    Args:
      located: the text that was lowered, with the user's lines.
      text: the same without them, which was compiled: of as many lines.
      optimised: what XLA made of that, each instruction with the line of the text that it is of.
    """
    if located.count("\n") != text.count("\n"):
        return [], []
    lines = _TextLines.of(located)
    made: Counter[int] = Counter()
    times: Counter[int] = Counter()  # in how many computations: one of XLA holds no copies
    for computation in optimised.split("\n}"):
        found = Counter([int(n) for n in _INSTRUCTION.findall(computation)])
        made.update(found)
        times.update(found.keys())
    shares: dict[str, float] = {}
    copies: dict[str, list[float]] = {}
    for number, count in made.items():
        if number >= len(lines.where):
            continue
        places = lines.places(number)
        expected = max(lines.copies(lines.functions[number]), 1)
        for place in places:
            shares[place] = shares.get(place, 0.0) + count / len(places)
            copies.setdefault(place, []).append(times[number] / expected)
    total = max(sum(shares.values()), 1)
    means = [(where, sum(each) / len(each)) for where, each in copies.items() if where]
    repeats = [(where, mean) for where, mean in means if mean >= _LEAST_TIMES]
    return (
        [(where, shares[where] / total) for where in sorted(shares, key=lambda w: -shares[w])],
        sorted(repeats, key=lambda pair: -pair[1]),
    )


def _repeat(eqns: Sequence[Equation]) -> list[Block]:
    """Return the blocks that come several times in a row, none inside another."""
    numbers: dict[Any, int] = {}
    ids = np.array([
        numbers.setdefault(
            (eqn.primitive, describe(eqn.source), *[x.aval for x in (*eqn.inputs, *eqn.outputs)]),
            len(numbers),
        )
        for eqn in eqns
    ])  # fmt: skip
    found: list[tuple[int, int, int]] = []  # equations saved, start, length of a block
    for length in range(1, min(_LONGEST_BLOCK, len(ids) // _LEAST_REPEATS) + 1):
        start, run = _longest_run(ids[length:] == ids[:-length])
        repeats = run // length + 1
        if repeats >= _LEAST_REPEATS:
            found.append(((repeats - 1) * length, start, length))
    blocks: list[Block] = []
    taken: list[tuple[int, int]] = []
    for saved, start, length in sorted(found, key=lambda b: (-b[0], b[2])):
        end = start + saved + length
        if all(end <= s or start >= e for s, e in taken):
            taken.append((start, end))
            blocks.append(Block(length, saved // length + 1, describe(eqns[start].source)))
    return blocks


def _longest_run(equal: Any) -> tuple[int, int]:
    """Return start and length of the longest run of true elements."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], equal.astype(np.int8), [0]])))
    if not edges.size:
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    i = int(np.argmax(ends - starts))
    return int(starts[i]), int(ends[i] - starts[i])


def _constants(fun: Any, closed: ClosedJaxpr) -> list[Constant]:
    names = dict(_find_captured_names(fun))
    found = []
    for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if not isinstance(value, ConcreteArray) or value.nbytes < _LEAST_CONSTANT:
            continue
        users = [eqn for eqn in closed.eqns if any(x is var for x in eqn.inputs)]
        where = describe(users[0].source) if users else ""
        same = [name for name, held in names.items() if _is_same(held, value)]
        found.append(Constant(value.nbytes, value.aval.str_long(), same[0] if same else "", where))
    return sorted(found, key=lambda c: -c.nbytes)


def _find_captured_names(fun: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables of outside that a function names, and their values."""
    try:
        found = inspect.getclosurevars(fun)
    except TypeError:
        return
    yield from found.nonlocals.items()
    yield from found.globals.items()


def _is_same(held: Any, value: ConcreteArray) -> bool:
    if held is value:
        return True
    return (
        isinstance(held, np.ndarray)
        and held.shape == value.aval.shape
        and np.array_equal(held.astype(value.aval.dtype), value.to_host())
    )


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**20:.1f} MiB" if nbytes >= 2**20 else f"{nbytes / 2**10:.1f} KiB"


def _text(x: int, y: int, text: str, size: int) -> str:
    place = f'x="{x}" y="{y}" font-family="sans-serif" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"
