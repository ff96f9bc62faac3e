"""Errors about an argument that must be an integer name the function and the argument.

The annotations of a public function say which of its arguments are integers, or sequences of them:
`int`, `Axis`, `Sequence[int] | None`, ... When an error leaves a function one of whose such
arguments is none, the error is about that argument, whichever inner function, or Python itself,
met it first: `name_argument` writes so. A call that is right pays nothing for it.

Neighbours: `tracebacks` asks for it where errors leave the library, `static_sizes` refuses at once.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from xprim.descriptions import described
from xprim.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)
from xprim.sizes import size_of
from xprim.source import is_hidden
from xprim.trace import Tracer

__all__ = ()

_ONE, _SEVERAL, _NONE = "an integer", "a sequence of integers", "None"
_FORMS = {
    "int": (_ONE,), "DimSize": (_ONE,), "Sequence[int]": (_SEVERAL,), "None": (_NONE,),
    "tuple[int, ...]": (_SEVERAL,), "tuple[int, int]": (_SEVERAL,), "ShapeLike": (_ONE, _SEVERAL),
    "Axis": (_ONE, _SEVERAL, _NONE),
}  # fmt: skip
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_BOUNDARY_AND_FUNCTION = 2  # the frames an error passes last
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_NOTHING, _OTHER = object(), "another"
_OF_TRACED = (ConcretizationTypeError, TracerIntegerConversionError, TracerArrayConversionError)


def integers_of(fun: Callable[..., Any]) -> dict[str, tuple[str, ...]]:
    """Return what those arguments of a function may be that its annotations call integers.

    Example:
      >>> def window(x: Array, size: int, axes: Sequence[int] | None, ddof: float): ...
      >>> integers_of(window)
      {'size': ('an integer',), 'axes': ('a sequence of integers', 'None')}
    """
    found = {}
    plain: Any = inspect.unwrap(fun)
    code = plain.__code__
    annotations = getattr(fun, "__annotations__", {})
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        annotation = annotations.get(name)
        parts = annotation.split(" | ") if isinstance(annotation, str) else [""]
        forms = [form for part in parts for form in _FORMS.get(part, (_OTHER,))]
        if _OTHER not in forms and forms != [_NONE]:
            found[name] = tuple(forms)
    return found


def name_argument(error: BaseException) -> None:
    """Have an error that is about to leave a public function say which argument is no integer.

    Args:
      error: whose traceback begins at the function or at its boundary. One of a class of its own,
        and one that the user's own code raised further in, stays as it is.
    """
    if type(error) in (TypeError, ValueError) or isinstance(error, _OF_TRACED):
        for fun, given in called(error.__traceback__):
            _look_at(error, fun, given)


def called(traceback: TracebackType | None) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    """Yield the public function that an error leaves, with its arguments, if no user's code did."""
    frames: list[FrameType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if frames and file.startswith(_NUMPY):
            break  # which the library called
        if frames and not (is_hidden(file) or _belongs_to(frames[-1], traceback.tb_frame)):
            return
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in frames[:_BOUNDARY_AND_FUNCTION]:
        fun = _function_of(frame)
        if fun is not None:
            yield fun, frame.f_locals
            return


def _belongs_to(caller: FrameType, frame: FrameType) -> bool:
    """Return whether a frame is called by a boundary or is a comprehension of its caller.

    A boundary is ours or a stranger's; comprehensions are frames before Python 3.12.
    """
    if caller.f_code.co_name == "bounded" and is_hidden(caller.f_code.co_filename):
        return True
    code = frame.f_code
    return code.co_name in _COMPREHENSIONS and code in caller.f_code.co_consts


def _function_of(frame: FrameType) -> Callable[..., Any] | None:
    """Return the function of a module that a frame runs, which boundaries may stand around."""
    fun = frame.f_globals.get(frame.f_code.co_name)
    while fun is not None and getattr(fun, "__code__", None) is not frame.f_code:
        fun = getattr(fun, "__wrapped__", None)
    return fun


def _look_at(error: Any, fun: Callable[..., Any], given: dict[str, Any]) -> None:
    for name, forms in integers_of(fun).items():
        value = given.get(name)
        wrong = _wrong_in(value, forms)
        if wrong is not _NOTHING and not _says(error, fun.__name__, name):
            _say(error, fun.__name__, name, value, wrong, forms)
            return


def _wrong_in(value: Any, forms: Sequence[str]) -> Any:
    """Return what is no integer in an argument: itself, an element of it, or nothing."""
    if (value is None and _NONE in forms) or (_ONE in forms and _is_integer(value)):
        return _NOTHING
    if _SEVERAL not in forms or isinstance(value, str | bytes):
        return value
    try:
        elements = list(value)
    except TypeError:
        return value
    return next((e for e in elements if not _is_integer(e)), _NOTHING)


def _is_integer(value: Any) -> bool:
    try:
        size_of(value)
    except TypeError:
        return False
    return True


def _says(error: Any, operation: str, name: str) -> bool:
    """Return whether an error names the function and the argument already."""
    start, _, rest = str(error).partition(": ")
    return start == operation and re.search(rf"\b{name}\b", rest) is not None


def _say(
    error: Any, operation: str, name: str, value: Any, wrong: Any, forms: Sequence[str]
) -> None:
    if isinstance(wrong, Tracer):
        holds = "is" if wrong is value else "holds"
        problem = f"{name} {holds} a traced value, but it must be known while tracing."
        error.args = (str(ConcretizationTypeError(wrong, operation, problem)),)
    elif not isinstance(error, _OF_TRACED):
        wanted = " or ".join([", ".join(forms[:-1]), forms[-1]] if forms[1:] else forms)
        held = "" if wrong is value else f" that holds {described(wrong)}"
        error.args = (f"{operation}: {name} must be {wanted}, got {described(value)}{held}.",)
