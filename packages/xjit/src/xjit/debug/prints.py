"""Look into programs while they run: `print`, `callback`, `breakpoint`, shardings."""

from __future__ import annotations

import bdb
import functools
import inspect
import linecache
import logging
import re
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import FrameType
from typing import Any, TextIO

import numpy as np

import xtree
from xjit.callbacks import primitive
from xjit.callbacks.functions import FormatError, UserFunction, format_error_like, physical
from xjit.callbacks.primitive import ORDERED_DEBUG, DebugEffect, OrderedDebugEffect, callback_p
from xjit.sharding.meshes import abstract_mesh_now
from xprim import Array, ConcreteArray, Tracer, get_primitive, shaped_array
from xprim.errors import described, message
from xprim.requirements import require
from xprim.source import capture, describe_full, is_hidden
from xprim.trace import has_ended
from xprim.tracebacks import boundary
from xprim.transformed import check_function

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "log", "print"]

__dir__ = __all__.copy


# `debug.breakpoint`: stop where a program is, and look at values.
#
# Tracing notes the user's frames and their variables; the arrays among these are operands, so
# that the prompt shows the values of the run: of each step of a loop, of each example of a batch.

HELP = """\
  an expression         its value, from the variables of the frame
  l, list               the lines around this one
  v, vars               the variables of the frame
  w, where              the frames
  u, up / d, down       go to the frame that called this one, or back
  c, continue           continue the program
  q, quit               end the program
  h, help               this list
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A frame as it was while tracing: where it is, the name and first line of its function."""

    file: str
    line: int
    name: str
    first_line: int
    variables: dict[str, Any]


def places(skip_hidden: bool, limit: int | None, depth: int) -> list[Place]:
    """Return the frames of the caller, the innermost one first.

    Args:
      skip_hidden: whether frames of libraries are left out.
      limit: how many there are at most.
      depth: how many frames, from this one outwards, are not the caller's.
    """
    found: list[Place] = []
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and (limit is None or len(found) < limit):
        code = frame.f_code
        if not (skip_hidden and is_hidden(code.co_filename)):
            names = {k: v for k, v in frame.f_locals.items() if not k.startswith("__")}
            if found and code.co_name == "<module>":
                names = {}
            shown = {k: as_program_argument(v) for k, v in names.items()}
            found.append(Place(
                code.co_filename, frame.f_lineno, code.co_name, code.co_firstlineno, shown
            ))  # fmt: skip
            if code.co_name == "<module>" and len(found) > 1:
                break
        frame = frame.f_back
    return found


def as_program_argument(value: Any) -> Any:
    """Return a variable as a tree that can be passed to a program, or a text in its place."""
    try:
        leaves = xtree.leaves(value)
    except (TypeError, ValueError):
        return value
    if any(isinstance(x, Tracer) and has_ended(x) for x in leaves):
        return _Text(repr(value))
    return value if any(isinstance(x, Array) for x in leaves) else _Kept(value)


class _Text:
    """Shows what a value was."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True)
class _Kept:
    """Holds a variable without arrays as one leaf."""

    value: Any


class Prompt:
    """Reads commands and answers, until a command continues the program.

    Args:
      frames: the innermost one first.
      given: reads one line; None reads standard input.
      out: where answers go; None for standard output.
    """

    mark = "(xdb) "

    def __init__(
        self, frames: Sequence[Place], given: Callable[[], str] | None = None,
        out: TextIO | None = None,
    ) -> None:  # fmt: skip
        self._frames = frames
        self._at = 0
        self._out = out or sys.stdout
        self._given = given or sys.stdin.readline
        self._commands: dict[str, Callable[[], bool]] = {}
        for names, command in (
            (("l", "list"), self._list), (("v", "vars"), self._variables),
            (("w", "where", "bt"), self._where), (("u", "up"), lambda: self._go(1)),
            (("d", "down"), lambda: self._go(-1)), (("c", "continue"), lambda: True),
            (("q", "quit"), self._quit), (("h", "help"), lambda: self._say(HELP)),
        ):  # fmt: skip
            self._commands.update(dict.fromkeys(names, command))

    def run(self) -> None:
        """Read and answer until `continue`, or the end of the input.

        Raises:
          bdb.BdbQuit: at `quit`.
        """
        self._enter()
        while True:
            self._out.write(self.mark)
            self._out.flush()
            line = self._given()
            command = line.strip()
            shown = functools.partial(self._show, command.removeprefix("pp ").removeprefix("p "))
            answer = self._commands.get(command, shown)
            if (answer if line else self._answer_end)():
                return

    def _enter(self) -> None:
        self._where()

    def _answer_end(self) -> bool:
        """Answer to the end of the input: whether to continue."""
        return True

    def _describe_failure(self, error: Exception) -> str:
        return f"{type(error).__name__}: {error}"

    def _say(self, text: str) -> bool:
        self._out.write(text if text.endswith("\n") else text + "\n")
        return False

    def _show(self, expression: str) -> bool:
        """Answer with the value of an expression of the frame's variables."""
        if not expression:
            return False
        values = {
            k: v.value if isinstance(v, _Kept) else v
            for k, v in self._frames[self._at].variables.items()
        }
        try:
            return self._say(repr(eval(expression, {**values})))
        except Exception as error:
            return self._say(self._describe_failure(error))

    def _variables(self) -> bool:
        found = self._frames[self._at].variables.items()
        return self._say("".join([
            f"  {k} = {v.value if isinstance(v, _Kept) else v!r}\n" for k, v in found
        ]) or "  no variables\n")  # fmt: skip

    def _where(self) -> bool:
        marks = ["->" if i == self._at else "  " for i in range(len(self._frames))]
        return self._say("".join([
            f"{mark} {f.file}:{f.line} in {f.name}\n"
            for mark, f in zip(marks, self._frames, strict=True)
        ]))  # fmt: skip

    def _list(self) -> bool:
        f = self._frames[self._at]
        numbers = range(max(1, f.line - 5), f.line + 6)
        lines = [(i, linecache.getline(f.file, i)) for i in numbers]
        return self._say("".join([
            f"{'->' if i == f.line else '  '}{i:5} {text}" for i, text in lines if text
        ]))  # fmt: skip

    def _go(self, step: int) -> bool:
        self._at = min(max(self._at + step, 0), len(self._frames) - 1)
        return self._where()

    def _quit(self) -> bool:
        raise bdb.BdbQuit


class CommandLine(Prompt):
    """The prompt with the words and the looks of JAX's, and of Python's own debugger.

    It shows where it is on request, quits at the end of the input, and ends the program by
    `SystemExit`.
    """

    mark = "(jdb) "

    def __init__(self, frames: Sequence[Place], stdin: TextIO, stdout: TextIO) -> None:
        super().__init__(frames, stdin.readline, stdout)
        self._commands |= {"cont": self._commands["c"], "exit": self._quit, "EOF": self._quit}
        for name in ("v", "vars", "h"):  # variables of these names can be looked at
            del self._commands[name]
        self._commands |= {"help": self._help, "?": self._help}

    def _enter(self) -> None:
        self._say("Entering jdb:")

    def _answer_end(self) -> bool:
        return self._quit()

    def _help(self) -> bool:
        return self._say("commands: " + ", ".join(sorted({*self._commands, "p", "pp"})))

    def _describe_failure(self, error: Exception) -> str:
        return f"*** {super()._describe_failure(error)}"

    def _where(self) -> bool:
        lines = [
            f'  File "{f.file}", line {f.line}\n    {linecache.getline(f.file, f.line).strip()}\n'
            for f in reversed(self._frames)
        ]
        return self._say("".join(["Traceback:\n", *lines]))

    def _list(self, around: int = 5) -> bool:
        """Show the lines of the function that are near."""
        f = self._frames[self._at]
        block = inspect.getblock(linecache.getlines(f.file)[f.first_line - 1 :])
        numbered = [(n, line) for n, line in enumerate(block, f.first_line)
                    if abs(n - f.line) <= around]  # fmt: skip
        return self._say("".join([
            f"> {f.file}({f.line})\n",
            *[f"{'->' if n == f.line else '  '}  {line}" for n, line in numbered], "    \n",
        ]))  # fmt: skip

    def _go(self, step: int) -> bool:
        now = self._at + step
        if not 0 <= now < len(self._frames):
            self._say("At topmost frame." if step > 0 else "At bottommost frame.")
        self._at = min(max(now, 0), len(self._frames) - 1)
        return self._list(2)

    def _quit(self) -> bool:
        raise SystemExit(0)


# ----------------------------------------------------------------------------------------- debug
# Look into programs while they run: `debug.print`, `debug.callback` and `debug.breakpoint`.
#
# All show values under every transformation: each example of a batch, each step of a loop, the
# primal values of a derivative, each replica. They never change a result, and never is one
# dropped: when a call of a compiled function returns, all it prints is there. Since they only
# look, a transformation may show something again (recomputation), or for examples of a batch that
# take no part (branches and loops of a batch); an `io_callback` raises there.

logger = logging.getLogger("xjit")


@boundary
def callback(
    callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False,
    partitioned: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Call a Python function with the values that its arguments have when the program runs.

    Args:
      callback: called with the arguments, arrays as Arrays on the host; its result is ignored.
        Without it, the result is a function that takes it with its arguments.
      *args: pytrees; leaves that are not arrays (numbers, strings) are passed as they are.
      ordered: whether calls happen in the order of the program.
      partitioned: whether each device of a program over several calls it, with the pieces that it
        has; so nothing is gathered. Under vmap it is called with whole examples.
      **kwargs: further pytrees.

    Example:
      >>> from xjit import jit
      >>> seen = []
      >>> @jit
      ... def f(x):
      ...     callback(lambda v, name: seen.append((name, float(v))), x, "x", ordered=True)
      ...     return x
      >>> _ = f(2.0)
      >>> seen
      [('x', 2.0)]
    """
    if callback is None:
        return lambda function, *args, **kwargs: _show(
            "debug.callback", function, args, kwargs, ordered, partitioned
        )
    check_function(callback, "debug.callback", "the function comes first, then its arguments")
    return _show("debug.callback", callback, args, kwargs, ordered, partitioned)


@boundary
def print(
    fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
    skip_format_check: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Print a text with the values that its arguments have when the program runs.

    Args:
      fmt: a format for `str.format`, such as `"loss: {:.3f}"` or `"{x} {y}"`; not an f-string,
        which is made while tracing, before there are values. Without it, the result is a function
        that takes it with its arguments.
      *args: what `{}` and `{0}` stand for: arrays, pytrees of arrays, or anything else.
      ordered: whether texts appear in the order of the program. Without it, those of one program
        may overtake each other.
      partitioned: whether each device shows the pieces that it has; see `callback`.
      skip_format_check: whether the format is tried only when the program runs.
      **kwargs: what `{name}` stands for.

    In a function of `shard_map` each member prints: the line begins with the place of the member
    on the mesh, as in `(x, y) = (0, 1): loss: 0.250`. A format that has `{member}` shows it there.

    Raises:
      TypeError: `fmt` is not a string.
      ValueError: `fmt` does not fit the arguments, or leaves one out; found while tracing. It is a
        KeyError or an IndexError, too, where `str.format` raises one.

    Example:
      >>> from xjit import jit
      >>> @jit
      ... def f(x):
      ...     print("x = {x:.2f}", x=x)
      ...     return x * 2
      >>> _ = f(1.5)
      x = 1.50
    """
    if fmt is None:
        return lambda fmt, *args, **kwargs: _print(
            fmt, args, kwargs, ordered, partitioned, skip_format_check
        )
    return _print(fmt, args, kwargs, ordered, partitioned, skip_format_check)


@boundary
def log(
    fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
    skip_format_check: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Log a text with the values that its arguments have when the program runs.

    It is `debug.print` with a record of level INFO, of the logger `xjit`, in the place of a line on
    standard output; the record is of the file and line of this call.

    Args:
      fmt: a format for `str.format`, as for `debug.print`. Without it, the result is a function
        that takes it with its arguments.
      *args: what `{}` and `{0}` stand for.
      ordered: whether records appear in the order of the program.
      partitioned: whether each device shows the pieces that it has; see `callback`.
      skip_format_check: whether the format is tried only when the program runs.
      **kwargs: what `{name}` stands for.

    Raises:
      TypeError: `fmt` is not a string.
      ValueError: `fmt` does not fit the arguments, or leaves one out; found while tracing.

    Example:
      >>> import logging
      >>> from xjit import jit
      >>> logging.getLogger("xjit").setLevel(logging.INFO)
      >>> seen, handler = [], logging.Handler()
      >>> handler.emit = lambda record: seen.append((record.levelname, record.getMessage()))
      >>> logging.getLogger("xjit").addHandler(handler)
      >>> _ = jit(lambda x: log("x = {}", x))(1.5)
      >>> logging.getLogger("xjit").removeHandler(handler)
      >>> seen
      [('INFO', 'x = 1.5')]
    """
    file, line, name = describe_full(capture())

    def write(text: str) -> None:
        if logger.isEnabledFor(logging.INFO):
            logger.handle(logger.makeRecord(
                logger.name, logging.INFO, file or "(unknown file)", line, text, (), None, name
            ))  # fmt: skip

    def note(fmt: str, *args: Any, **kwargs: Any) -> None:
        _print(fmt, args, kwargs, ordered, partitioned, skip_format_check, "debug.log", write)

    return note if fmt is None else note(fmt, *args, **kwargs)


@boundary
def breakpoint(
    *, backend: Any = None, filter_frames: bool = True, num_frames: int | None = None,
    ordered: bool = False, token: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    r"""Stop when the program is here, and show values: a prompt on standard input and output.

    `h` lists the commands. An expression is computed from the variables of the frame, arrays with
    the values of this run; nothing that is done there changes the program. In a function of
    `shard_map` each member stops, and its place on the mesh stands behind the function's name.

    Args:
      backend: None for standard input and output, a pair of a function that returns one line and
        a file to write to, or "cli": a prompt with the commands of Python's debugger, `p`, `l`,
        `u`, `d`, `bt`, `c` and `q`.
      filter_frames: whether the frames of this library are left out.
      num_frames: how many frames may be looked at; None for all.
      ordered: whether prompts appear in the order of the program, as ordered prints do.
      token: a tree of arrays that is returned as it is.
      **kwargs: the files `stdin` and `stdout` of the prompt "cli", which either of them asks for.

    Returns:
      `token`.

    Raises:
      bdb.BdbQuit: `q` was answered; where the compiled function was called. The prompt "cli" raises
        SystemExit, also at the end of its input.

    Example:
      >>> import sys
      >>> from xjit import jit
      >>> lines = iter(["x + 1\n", "c\n"])
      >>> @jit
      ... def f(x):
      ...     y = x * 2
      ...     breakpoint(backend=(lambda: next(lines), sys.stdout), num_frames=1)
      ...     return y
      >>> f(3.0)
      -> <doctest ...>:4 in f
      (xdb) Array(4., dtype=float32)
      (xdb) Array(6., dtype=float32, weak_type=True)
    """
    prompt = _prompt(backend, **kwargs)
    found = places(filter_frames, num_frames, depth=_FRAMES_OF_BREAKPOINT)
    facts = [(p.file, p.line, p.name, p.first_line) for p in found]

    axes, numbers = _member()

    def stop(variables: list[dict[str, Any]], numbers: Sequence[Any]) -> None:
        here = f", member {_member_text(axes, numbers)}" if axes else ""
        frames = [
            Place(file, line, name + here, first_line, values)
            for (file, line, name, first_line), values in zip(facts, variables, strict=True)
        ]
        prompt(frames).run()

    _show("debug.breakpoint", stop, ([p.variables for p in found], numbers), {}, ordered)
    return token


def _member() -> tuple[tuple[Any, ...], list[Array]]:
    """Return the manual axes of a mesh of several members, and this member's numbers along them."""
    mesh = abstract_mesh_now()
    if mesh is None:
        return (), []
    axes, sizes = mesh.manual_axes, mesh.shape
    if all(sizes[name] == 1 for name in axes):
        return (), []
    return axes, [get_primitive("axis_index").bind(axis_name=(name,))[0] for name in axes]


def _member_text(axes: Sequence[Any], numbers: Sequence[Any]) -> str:
    """Return where a member is on the mesh: `(x, y) = (0, 1)`."""
    return f"({', '.join(map(str, axes))}) = ({', '.join([str(int(n)) for n in numbers])})"


def _prompt(
    backend: Any, *, stdin: TextIO | None = None, stdout: TextIO | None = None, **others: Any
) -> Callable[[Sequence[Place]], Prompt]:
    """Return what makes the prompt of frames."""
    if others:
        raise TypeError(f"debug.breakpoint: there is no option {min(others)!r}.")
    if backend == "cli" or (backend is None and (stdin or stdout)):
        return lambda frames: CommandLine(frames, stdin or sys.stdin, stdout or sys.stdout)
    require(
        not isinstance(backend, str) and not stdin and not stdout, "debug.breakpoint",
        "unknown backend {!r}.", backend,
        expected="None or 'cli', with stdin and stdout; or a pair (readline, file)",
    )  # fmt: skip
    given, out = (None, None) if backend is None else backend
    return lambda frames: Prompt(frames, given, out)


_FRAMES_OF_BREAKPOINT = 3  # `places`, `breakpoint` and its boundary


def _print(
    fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any], ordered: bool, partitioned: bool,
    unchecked: bool, operation: str = "debug.print", write: Callable[[str], Any] | None = None,
) -> None:  # fmt: skip
    if not isinstance(fmt, str):
        raise TypeError(message(
            operation, "the format must be a string.", got=described(fmt),
            hint=f'{operation}("x = {{}}", x)',
        ))  # fmt: skip
    axes, numbers = _member()
    names_member = "member" not in kwargs and "{member" in fmt
    if names_member:
        kwargs = kwargs | {"member": "()"}
    if not unchecked:
        _check_format(fmt, args, kwargs)

    def show(numbers: Sequence[Any], args: Sequence[Any], named: dict[str, Any]) -> None:
        member = _member_text(axes, numbers) if axes else "()"
        text = fmt.format(*args, **(named | {"member": member} if names_member else named))
        if axes and not names_member:
            text = f"{member}: {text}"
        if write is None:
            sys.stdout.write(text + "\n")  # a line of one thread, whole
        else:
            write(text)

    _show(operation, show, (numbers, args, kwargs), {}, ordered, partitioned)


class _Absent:
    """Stands for an array among leaves, which comes when the program runs."""


_ABSENT = _Absent()


def _show(
    operation: str, function: Callable[..., Any], args: Any, kwargs: Any, ordered: bool,
    partitioned: bool = False,
) -> None:  # fmt: skip
    leaves, tree = xtree.flatten((args, kwargs))
    arrays = [x for x in leaves if isinstance(x, Array | np.ndarray)]
    kept = [_ABSENT if isinstance(x, Array | np.ndarray) else x for x in leaves]

    def call(*values: Any) -> None:
        given = iter(values)
        args, kwargs = tree.unflatten([next(given) if x is _ABSENT else x for x in kept])
        function(*args, **kwargs)

    call.__name__ = getattr(function, "__name__", type(function).__name__)
    operands = [_array(x) for x in arrays]
    in_tree = xtree.structure((tuple(range(len(operands))), {}))
    host = UserFunction(operation, call, in_tree, [x.aval.dtype for x in operands], _NOTHING)
    effect = ORDERED_DEBUG if ordered else primitive.DEBUG
    callback_p.bind(*map(physical, operands), host=host, avals=(), effect=effect,
                    vmap_method=None, device=primitive.EACH if partitioned else None)  # fmt: skip


_NOTHING = xtree.structure(None)


def _array(x: Any) -> Array:
    if isinstance(x, Array):
        return x
    copy = np.array(x)
    return ConcreteArray(copy, shaped_array(copy.shape, copy.dtype))


def _check_format(fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise unless a format takes arguments of these types, and mentions them all."""
    args, kwargs = xtree.map(_example, (args, kwargs))
    problem, kind = "", FormatError
    try:
        fmt.format(*args, **kwargs)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        kind = format_error_like(error)
    else:
        unused = sorted({*map(str, range(len(args))), *kwargs} - set(_field_names(fmt, count())))
        problem = f"it does not mention the argument {unused[0]}" if unused else ""
    if problem:
        raise kind(message(
            "debug.print", "the format does not fit the arguments.", got=f"{fmt!r}: {problem}",
            hint="write {} or {name} for each argument, braces as {{ }}; an f-string is made too "
            "early, when there are no values",
        ))  # fmt: skip


def _field_names(fmt: str, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the names and numbers of the arguments that a format shows."""
    for _, field, spec, _ in string.Formatter().parse(fmt):
        if field is not None:
            yield re.split(r"[.[]", field)[0] or str(next(numbers))
            yield from _field_names(spec or "", numbers)


def _example(x: Any) -> Any:
    """Return an array of the same type, of zeros that take no memory; other values as they are."""
    if not isinstance(x, Array) or x.aval.physical is not None:
        return x
    return ConcreteArray(np.broadcast_to(np.zeros((), x.aval.dtype), x.aval.shape), x.aval)
