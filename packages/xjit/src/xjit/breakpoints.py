"""`debug.breakpoint`: stop where a program is, and look at values.

Tracing notes the user's frames and their variables; the arrays among these are operands, so that
the prompt shows the values of the run: of each step of a loop, of each example of a batch.

Neighbours: `debug` binds it, `callback_runs` is what a program calls.
"""

from __future__ import annotations

import bdb
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO

import xtree
from xprim import Array, Tracer
from xprim.source import is_hidden
from xprim.trace import has_ended

__all__ = ()

HELP = """\
  an expression         its value, from the variables of the frame
  l, list               the lines around this one
  v, vars               the variables of the frame
  w, where              the frames
  u, up / d, down       go to the frame that called this one, or back
  c, continue           go on
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
            shown = {k: shown_value(v) for k, v in names.items()}
            found.append(Place(
                code.co_filename, frame.f_lineno, code.co_name, code.co_firstlineno, shown
            ))  # fmt: skip
            if code.co_name == "<module>" and len(found) > 1:
                break
        frame = frame.f_back
    return found


def shown_value(value: Any) -> Any:
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
    """Reads commands and answers, until told to go on.

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
            if (answer if line else self._ended)():
                return

    def _enter(self) -> None:
        self._where()

    def _ended(self) -> bool:
        """Answer to the end of the input: whether to go on."""
        return True

    def _failed(self, error: Exception) -> str:
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
            return self._say(self._failed(error))

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

    It shows where it is when it is asked, quits at the end of the input, and ends the program by
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

    def _ended(self) -> bool:
        return self._quit()

    def _help(self) -> bool:
        return self._say("commands: " + ", ".join(sorted({*self._commands, "p", "pp"})))

    def _failed(self, error: Exception) -> str:
        return f"*** {super()._failed(error)}"

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
