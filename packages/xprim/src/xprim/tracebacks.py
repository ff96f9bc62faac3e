"""Tracebacks that show the user's frames: those of the library are left out.

Between the user's call of a transformation and the user's own function lie ten and more frames of
these packages, which help nobody to find the mistake. `shorten` cuts them out of the traceback of
an error that is about to leave the library; `boundary` does that for a public function. The option
`traceback_filtering` chooses how, and "off" keeps all frames.

A `try` that nothing leaves costs nothing, so a boundary may stand on hot paths.

Neighbour: `source` knows which files are the library's.
"""

from __future__ import annotations

import functools
import os
import sys
from types import TracebackType
from typing import Any

import numpy as np

from xprim import config
from xprim.integer_arguments import name_argument
from xprim.source import is_hidden
from xprim.unknown_keywords import hint_at_keyword
from xtree.boundaries import boundaries, boundary, when_leaving

__all__ = ["boundaries", "boundary", "shorten"]

__dir__ = __all__.copy

_NOTE = (
    "(The library's own frames are left out; XSTACK_TRACEBACK_FILTERING=off in the environment, or "
    "config.update('traceback_filtering', 'off'), shows them.)"
)


def shorten(error: BaseException) -> None:
    """Cut the frames of the library out of the traceback of an error that is about to leave it.

    One about an argument that is no integer says which (`integer_arguments`), and one about a
    keyword that the function does not have the likely one (`unknown_keywords`).

    To be followed by a bare `raise`, which adds no frame of its own.
    """
    name_argument(error)
    hint_at_keyword(error)
    mode = config.values.traceback_filtering
    if mode == "off":
        return
    if mode == "tracebackhide" or (mode == "auto" and _hides_marked_frames()):
        _mark(error.__traceback__)
        return
    error.__traceback__ = _without_hidden(error.__traceback__)
    context = error.__context__
    if context is not None and _without_hidden(context.__traceback__) is None:
        error.__suppress_context__ = True  # a detour of the library, of which users know nothing
    if mode == "remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


when_leaving(shorten)


def _without_hidden(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    users = 0  # how many of `kept` lie outside of what the library has called for itself
    from_library = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_hidden(file):
            from_library = True
        else:
            from_library = from_library and _is_helper(file)
            kept.append(traceback)
            users = users if from_library else len(kept)
        traceback = traceback.tb_next
    following = None
    del kept[users:]
    for tb in reversed(kept):
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


def _mark(traceback: TracebackType | None) -> None:
    """Mark the library's frames as ones that IPython and pytest leave out."""
    while traceback is not None:
        frame = traceback.tb_frame
        if is_hidden(frame.f_code.co_filename):
            frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def _hides_marked_frames() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None
