"""Where in the user's program something happened, taken at the cost of a frame walk.

A `Source` is a pair of a code object and an instruction offset: nothing is formatted, no frame is
kept alive. `capture` walks outwards past the frames of this family of packages (their folders are
registered with `hide`), so an equation or an error points at the user's own line.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = [
    "hide", "depth", "is_hidden", "capture", "describe", "describe_full", "file_name",
    "warn_once", "warn_or_raise",
]  # fmt: skip

__dir__ = __all__.copy

Source = tuple[CodeType, int]

_hidden_folders: list[str] = []
# Whether a file is none of the user's, by its name.
_is_hidden: dict[str, bool] = {}


def hide(module_file: str) -> None:
    """Leave the frames of the package that holds `module_file` out of the lines shown to users."""
    folder = os.path.join(os.path.dirname(_absolute(module_file)), "")
    if folder not in _hidden_folders:
        _hidden_folders.append(folder)
        _is_hidden.clear()


def depth() -> int:
    """Return how many frames the user's code is away from the caller: `stacklevel` of a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and is_hidden(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def is_hidden(filename: str) -> bool:
    """Return whether a file belongs to a package whose frames are hidden."""
    found = _is_hidden.get(filename)
    return _classify(filename) if found is None else found


def capture(skip: int = 1) -> Source | None:
    """Return the innermost frame of the caller's stack that belongs to the user.

    Args:
      skip: how many frames, from this one outwards, are known to be hidden: looking at a frame
        costs as much as appending an equation's parts.
    """
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        try:
            hidden = _is_hidden[code.co_filename]
        except KeyError:
            hidden = _classify(code.co_filename)
        if not hidden:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def line_of(source: Source) -> int:
    """Return the line number of a source."""
    code, offset = source
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def describe(source: Source | None) -> str:
    """Return `train.py:41 in loss`, or an empty string when nothing is known."""
    if source is None:
        return ""
    code = source[0]
    place = f"{file_name(code.co_filename)}:{line_of(source)}"
    return place if code.co_name == "<module>" else f"{place} in {code.co_name}"


def file_name(path: str) -> str:
    """Return what users call a file: its name, or `Cell In[11]` for the cell of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    find = getattr(getattr(shell, "compile", None), "format_code_name", None)
    cell = find(path) if callable(find) else None  # ("Cell", "In[11]"), of IPython 8.0 and later
    return " ".join(cell) if cell else os.path.basename(path)


def describe_full(source: Source | None) -> tuple[str, int, str]:
    """Return the file path, line and function name of a source, for compiled programs."""
    if source is None:
        return "", 0, ""
    return source[0].co_filename, line_of(source), source[0].co_qualname


_MAX_LINES = 4096
_warned: dict[type[Warning], set[tuple[int, int]]] = {}  # lines, by code object and instruction


def warn_once(text: Callable[[], str], category: type[Warning], source: Source | None) -> None:
    """Warn at a line of the user's, once for each line and category of warnings.

    Args:
      text: makes the message, where it is needed.
      category: the class of the warning.
      source: the line; those that are not known count as one.
    """
    lines = _warned.setdefault(category, set())
    line = (0, 0) if source is None else (id(source[0]), source[1])
    if line in lines:
        return
    if len(lines) >= _MAX_LINES:
        lines.clear()
    lines.add(line)
    file, number, _ = describe_full(source)
    warnings.warn_explicit(text(), category, file or "<unknown>", number)


def warn_or_raise(
    mode: str | bool | None,
    text: Callable[[], str],
    warning: type[Warning],
    error: type[Exception],
    source: Source | None,
) -> None:
    """Warn at a line of the user's, once, raise, or do nothing, as an option of `config` says.

    Args:
      mode: "warn"; "allow", False or None for nothing; all else raises.
      text: makes the message, where it is needed.
      warning: the class of the warning.
      error: the class of the error.
      source: the line.
    """
    if mode == "warn":
        warn_once(text, warning, source)
    elif mode and mode != "allow":
        raise error(text())


def _classify(filename: str) -> bool:
    path = _absolute(filename)
    hidden = (
        filename.startswith("<frozen")
        or any(path.startswith(folder) for folder in _hidden_folders)
        or _hides_itself(path)
    )
    if len(_is_hidden) > 10_000:
        _is_hidden.clear()
    _is_hidden[filename] = hidden
    return hidden


def _hides_itself(path: str) -> bool:
    """Whether the package of a file has set `__tracebackhide__`; the innermost that has decides.

    So a package that is imported before this one need not import it to be hidden.
    """
    parts = path.split(os.sep)
    for start, name in enumerate(parts[:-1]):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and os.path.dirname(file) == os.sep.join(parts[: start + 1]):
            names = [".".join(parts[start:end]) for end in range(start + 1, len(parts))]
            said = [vars(sys.modules[name]) for name in names if name in sys.modules]
            return any([scope["__tracebackhide__"] for scope in said
                        if "__tracebackhide__" in scope][-1:])  # fmt: skip
    return False


def _absolute(filename: str) -> str:
    try:
        return os.path.abspath(filename)
    except OSError:  # the working directory was deleted
        return filename
