"""Tracebacks that show the user's frames: those of the library are left out.

Between the user's call of a transformation and the user's own function lie ten and more frames of
these packages, which do not help to find the mistake. `shorten` cuts them out of the traceback of
an error that is about to leave the library; `boundary` does that for a public function. The option
`traceback_filtering` chooses how, and "off" keeps all frames.

A `try` that nothing leaves costs nothing, so a boundary may stand on hot paths.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from types import TracebackType
from typing import Any

import numpy as np

from xprim import config
from xprim.errors import OutOfMemoryError, hint_at_keyword
from xprim.memory import out_of_memory_error
from xprim.requirements import calls_left, name_argument
from xprim.source import is_hidden
from xtree.boundaries import boundaries, boundary, when_leaving

__all__ = ["boundaries", "boundary", "shorten"]

__dir__ = __all__.copy

_NOTE = (
    "(The library's own frames are left out; XSTACK_TRACEBACK_FILTERING=off in the environment, or "
    "config.update('traceback_filtering', 'off'), shows them.)"
)


def shorten(error: BaseException) -> None:
    """Cut the frames of the library out of the traceback of an error that is about to leave it.

    One about an argument that is not an integer says which (`integer_arguments`), and one about a
    keyword that the function does not have the likely one (`unknown_keywords`). Where an array
    function found what is wrong, the error begins with the name of the one that the user called.

    To be followed by a bare `raise`, which adds no frame of its own.
    """
    name_argument(error)
    hint_at_keyword(error)
    _name_function(error)
    mode = config.values.traceback_filtering
    if mode == "off":
        return
    in_notebook = mode in ("auto", "tracebackhide") and _ipython_shows_it()
    if mode == "tracebackhide" and not in_notebook:
        _mark(_entries(error.__traceback__))
        return
    entries = _to_the_last_of_the_user(error.__traceback__)
    if in_notebook:  # IPython leaves marked frames out and counts them, but never the last one
        _mark(entries)
        error.__traceback__ = _join(entries)
    else:
        error.__traceback__ = _join([entry for entry in entries if not _is_hidden(entry)])
    context = error.__context__
    if context is not None and not _to_the_last_of_the_user(context.__traceback__):
        error.__suppress_context__ = True  # a detour of the library, of which users know nothing
    if mode == "remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


when_leaving(shorten)


# Patterns of messages: compiled when an error is shown.
_LABEL = r"(?:lax\.)?([a-z]\w*)(?=: )"
_ARGUMENT = r": (\w+)(?=: )"
# A computation that failed later, or out of memory, is reported by the function that began it.
_OF_ARGUMENTS = (TypeError, ValueError, IndexError, NameError)
_OF_ARRAYS = ("xnp", "xrandom", "xpar")  # packages whose public functions take arrays


def _name_function(error: BaseException) -> None:
    """Have an error of an array function that another one has called begin with that one's name.

    What the user's code raised further in, and what begins with the name of anything else than a
    public array function, stays as it is; so does what comes out of a function given as argument.
    """
    text: Any = error.args[0] if error.args else None
    label = re.match(_LABEL, text) if type(text) is str else None
    if label is None:
        _name_what_refused(error)
    if label is None or not isinstance(error, _OF_ARGUMENTS):
        return
    for fun, given in calls_left(error.__traceback__):
        if fun.__name__ != label[1] and _speaks(fun, given) and _is_public(label[1]):
            rest = _without_argument(text[label.end() :], fun)
            error.args = (fun.__name__ + rest, *error.args[1:])


def _name_what_refused(error: BaseException) -> None:
    """Have an error of Python or NumPy themselves begin with the name of the array function.

    One about memory becomes an `OutOfMemoryError`.
    """
    is_about_memory = isinstance(error, MemoryError) and not isinstance(error, OutOfMemoryError)
    is_named = re.match(_NAMED, str(error))
    if not is_about_memory and (is_named or type(error) not in _OF_OTHERS):
        return
    for fun, given in calls_left(error.__traceback__):
        if not _speaks(fun, given):
            return
        if isinstance(error, MemoryError):
            raise out_of_memory_error(fun.__name__, error) from None
        error.args = (f"{fun.__name__}: {str(error).rstrip('.')}.",)


_NAMED = r"[\w.<>]+: "
# Classes of what Python and NumPy raise for numbers that they do not take; ours are derived ones.
_OF_OTHERS = (OverflowError, TypeError, ValueError)


def _speaks(fun: Any, given: dict[str, Any]) -> bool:
    """Return whether a function is a public one of arrays, and calls none that it was given."""
    if fun.__module__.partition(".")[0] not in _OF_ARRAYS or not _is_public(fun.__name__):
        return False
    values = [given.get(name) for name in _parameters(fun)]
    values += [v for value in values if isinstance(value, list | tuple) for v in value]
    return not any(callable(value) and not isinstance(value, type) for value in values)


def _without_argument(text: str, fun: Any) -> str:
    """Return what follows a name, without the name of an argument that the function has not."""
    argument = re.match(_ARGUMENT, text)
    return text[argument.end() :] if argument and argument[1] not in _parameters(fun) else text


def _is_public(name: str) -> bool:
    """Return whether a module of array functions lists a name."""
    return name in _public_names(len(sys.modules))


@functools.lru_cache(
    maxsize=1
)  # of the modules that are there: to ask each takes half a millisecond
def _public_names(count: int) -> frozenset[str]:
    """Return all names that the modules of array functions list, of which there are so many."""
    del count
    return frozenset(
        name
        for path, module in tuple(sys.modules.items())
        if path.partition(".")[0] in _OF_ARRAYS
        for name in getattr(module, "__all__", ())
    )


def _parameters(fun: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a function, without `**keywords`."""
    code = fun.__code__
    several = bool(code.co_flags & inspect.CO_VARARGS)
    names: tuple[str, ...] = code.co_varnames
    return names[: code.co_argcount + code.co_kwonlyargcount + several]


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def _is_hidden(entry: TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    if file == "<string>":  # what `dataclass` writes has the globals of the module of the class
        file = entry.tb_frame.f_globals.get("__file__") or file
    return is_hidden(file)


def _to_the_last_of_the_user(traceback: TracebackType | None) -> list[TracebackType]:
    """Return the entries without those at the end that are the library's, or called by it."""
    entries = _entries(traceback)
    users = 0  # how many of `entries` lie outside of what the library has called for itself
    from_library = False
    for number, entry in enumerate(entries, 1):
        from_library = _is_hidden(entry) or (
            from_library and _is_helper(entry.tb_frame.f_code.co_filename)
        )
        users = users if from_library else number
    return entries[:users]


def _join(entries: list[TracebackType]) -> TracebackType | None:
    following = None
    for tb in reversed(entries):
        following = TracebackType(following, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return following


@functools.lru_cache(maxsize=1024)
def _is_helper(file: str) -> bool:
    """Whether a file is of NumPy, or a module of Python that functions of ours call for checks."""
    return file.startswith(_NUMPY) or file in _HELPERS


_PYTHON = os.path.dirname(os.__file__)
_HELPERS = frozenset(os.path.join(_PYTHON, f"{name}.py")
                     for name in ("contextlib", "enum", "inspect", "typing"))  # fmt: skip
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")


def _mark(entries: list[TracebackType]) -> None:
    """Mark the library's frames as ones that IPython and pytest leave out."""
    for entry in entries:
        if _is_hidden(entry):
            entry.tb_frame.f_locals["__tracebackhide__"] = True


def _ipython_shows_it() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None
