"""How errors speak of values and functions: `an int`, `a list of length 2`, `loss at train.py:41`.

`described` says what somebody passed, `place_of` where a function of theirs stands,
`argument_names` what its arguments are called. They run only when an error is written.

Neighbours: `errors` has the form of the messages, `source` the places of operations.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import CodeType, MethodType
from typing import Any

import xtree
from xprim.source import file_name, is_hidden
from xtree.errors import with_article

__all__ = [
    "described", "kind_name", "with_article", "brief", "place_of", "argument_names",
    "LazyNames",
]  # fmt: skip

__dir__ = __all__.copy

_LONGEST = 60
_MOST_WRAPPERS = 100


def described(value: Any) -> str:
    """Return what a value is, with its article: its kind, and its shape or length.

    Example:
      >>> described(3), described([1, 2]), described(None), described(len)
      ('an int', 'a list of length 2', 'None', 'the function len')
    """
    if value is None:
        return "None"
    aval = getattr(value, "aval", None)
    if aval is not None and hasattr(aval, "str_long"):
        return f"an array {aval.strong().str_long()}"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None and hasattr(value, "__array__"):
        return f"a NumPy array {dtype}[{','.join(map(str, shape))}]"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    name = kind_name(value)
    if isinstance(value, tuple | list | dict | set | frozenset):
        return f"{with_article(name)} of length {len(value)}"
    return with_article(name)


def kind_name(value: Any) -> str:
    """Return the name of a value's type, with its module unless that is built in."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def brief(value: Any) -> str:
    """Return the start of a value's repr, on one line."""
    text = repr(value)
    first = text.splitlines()[0] if text else ""
    return first if first == text and len(first) <= _LONGEST else f"{first[: _LONGEST - 3]}..."


def place_of(fun: Callable[..., Any]) -> str:
    """Return `loss at train.py:41` for a function, or its name alone: a builtin's, or one of ours.

    Example:
      >>> place_of(len), place_of(place_of)
      ('len', 'place_of')
    """
    plain = _unwrapped(fun)
    name = getattr(plain, "__name__", None)
    if not isinstance(name, str):
        name = type(plain).__qualname__
    code = getattr(plain, "__code__", None)
    if not isinstance(code, CodeType):
        return name
    file = code.co_filename
    return name if is_hidden(file) else f"{name} at {file_name(file)}:{code.co_firstlineno}"


def _unwrapped(fun: Any) -> Any:
    """Return the function inside partials and wrappers, as far as the way down has an end."""
    for _ in range(_MOST_WRAPPERS):
        if callable(inner := getattr(fun, "__wrapped__", None)):
            fun = inner
        elif isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, MethodType):
            fun = fun.__func__
        else:
            break
    return fun


def argument_names(fun: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> list[str]:
    """Return what to call each leaf of the arguments: `x`, `y['a']`, `args[2]`.

    Example:
      >>> argument_names(lambda x, y: x, [1, {"a": 2}], {"z": 3})
      ['x', "y['a']", 'z']
    """
    names = _parameter_names(fun, len(args))
    found = []
    for i, arg in enumerate(args):
        found += [names[i] + xtree.keystr(p) for p, _ in xtree.leaves_with_path(arg)]
    for key in sorted(kwargs):
        found += [key + xtree.keystr(p) for p, _ in xtree.leaves_with_path(kwargs[key])]
    return found


def _parameter_names(fun: Callable[..., Any], count: int) -> list[str]:
    names: list[str] = []
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{k}]" for k in range(max(0, count - len(names)))]
            break
    return names[:count] + [f"args[{i}]" for i in range(len(names), count)]


class LazyNames(Sequence[str]):
    """Names of a function's arguments, worked out when an error asks for one.

    Args:
      find: returns them.
      fun: the function, where it is known.
    """

    def __init__(self, find: Callable[[], Sequence[str]], fun: Any = None) -> None:
        self._find = find
        self._fun = fun

    def place(self) -> str:
        """Return `loss at train.py:41` for the function, or an empty string."""
        return "" if self._fun is None else place_of(self._fun)

    def __len__(self) -> int:
        return len(self._find())

    def __getitem__(self, index: Any) -> Any:
        return self._find()[index]
