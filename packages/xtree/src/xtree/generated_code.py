"""Functions made at run time: the one place where text becomes code.

A function that is written for one structure, one set of parameters or one program has no loops and
no branches, which is what makes calls quick. Who wants one writes its text out of names that it has
made or looked at itself, and gives the values that the names stand for.

The code has a file name in the folder of the module that wrote it, so its frames are hidden from
users as that module's are, and tracebacks that show them show the line of the text.
"""

from __future__ import annotations

from itertools import count
from types import CodeType
from typing import Any

__all__ = ["define_function", "rename_variables"]

__dir__ = __all__.copy

_numbers = count(1)


class _Text:
    """The loader of what was written: `linecache`, which tracebacks ask, finds the text here."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, name: str) -> str:
        """Return the text."""
        del name
        return self._text


def define_function(name: str, text: str, constants: dict[str, Any], *, home: str) -> Any:
    """Return the function of a name that a text defines.

    Args:
      name: of the function.
      text: Python, of names that the caller makes or has looked at; nothing else may be in it.
      constants: the values of the names in it, which are copied.
      home: `__file__` of the module that wrote the text.

    Example:
      >>> define_function("add", "def add(x): return x + k", {"k": 1}, home="sums.py")(2)
      3
    """
    namespace = {**constants, "__name__": __name__, "__loader__": _Text(text)}
    exec(compile(text, f"{home}#{name}{next(_numbers)}", "exec"), namespace)
    return namespace[name]


def rename_variables(code: CodeType, names: dict[str, str]) -> CodeType:
    """Return code with other names for its variables, and for the keywords of its calls.

    To write and compile a text costs as much as to rename thirty copies of its code.
    """
    consts = [
        tuple([names.get(n, n) for n in c]) if type(c) is tuple else names.get(c, c)
        for c in code.co_consts
    ]
    variables = tuple([names.get(name, name) for name in code.co_varnames])
    return code.replace(co_varnames=variables, co_consts=tuple(consts))


def written_function(name: str, text: str, namespace: dict[str, Any], file: str) -> Any:
    """Return what `define_function` does; packages of release 0.2.0 ask for it by this name."""
    return define_function(name, text, namespace, home=file)
