"""Docstrings of families: what the arguments and results of their members are, said once.

The functions of a family, such as the circular functions, differ in one sentence, which stands
where each is defined. `complete` adds the sections that they share, and to each an example of its
own. The tables are in the modules of this folder, one for each module of functions; a test runs all
examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, NamedTuple

from xnp.docstrings.errors import raised
from xnp.docstrings.numpy_differences import beside_numpy

__all__ = ["Family", "complete"]

__dir__ = __all__.copy

_ARGUMENT = re.compile(r"^ {2,4}[*`]*(\w+)\b[^\n]*?:", re.MULTILINE)
# What an example imports, by what it uses.
_IMPORTS = {
    "xnp": "import xnp",
    "xrandom": "import xrandom",
    "lax": "from xnp import lax",
    "linalg": "from xnp import linalg",
    "nn": "from xnp import nn",
    "initializers": "from xrandom import initializers",
}


class Family(NamedTuple):
    """Functions of the same arguments.

    Attributes:
        args: what each argument is, as `name: text.`, in their order; empty where the docstring of
            each function says it.
        returns: what comes back; empty where the docstring of each function says it.
        examples: for each function an expression and what it prints; None where its docstring has
            an example.
    """

    args: tuple[str, ...]
    returns: str
    examples: Mapping[str, tuple[str, str] | None]


def complete(functions: Mapping[str, Any], families: Iterable[Family] = ()) -> None:
    """Add the sections of their families to the docstrings of functions, and what they raise.

    What they raise is added for all functions that the module defines, of a family or not.

    Args:
        functions: functions by name, such as the `globals()` of the module that defines them.
        families: the tables of that module.

    Example:
        >>> def double(x):
        ...     "Return 2 x."
        ...     return 2 * x
        >>> complete(
        ...     {"double": double},
        ...     [Family(("x: a number.",), "A number.", {"double": ("double(2)", "4")})],
        ... )
        >>> print(double.__doc__)
        Return 2 x.
        <BLANKLINE>
        Args:
            x: a number.
        ...
    """
    families = tuple(families)
    for family in families:
        for name, example in family.examples.items():
            doc = functions[name].__doc__
            if doc is not None:  # as it is under `python -OO`
                functions[name].__doc__ = _completed(_without_margin(doc), family, example)
    home = functions.get("__name__", "")
    public = {
        name for name, value in functions.items()
        if type(value) is FunctionType and value.__module__ == home and not name.startswith("_")
    }  # fmt: skip
    for name in public.union(*[family.examples for family in families]):
        doc = functions[name].__doc__
        if doc is not None:
            functions[name].__doc__ = _with_errors(name, _without_margin(doc), home)


def _with_errors(name: str, doc: str, home: str) -> str:
    """Return a docstring with how NumPy's function differs, and with what is raised."""
    arguments = _ARGUMENT.findall(doc.partition("\nArgs:\n")[2].partition("\n\n")[0])
    more = beside_numpy(name, home)
    if more and more not in doc and arguments:
        doc = doc.replace("\nArgs:\n", f"\n{more}\n\nArgs:\n", 1)
    lines = "" if "\nRaises:\n" in doc else raised(name, arguments, home)
    return _before(doc, f"Raises:\n{lines}", "Example") if lines else doc


def _without_margin(doc: str) -> str:
    """Return a docstring without the indentation of the code, which it has before Python 3.13."""
    margin = doc.rpartition("\n")[2]
    return (doc.replace(f"\n{margin}", "\n") if margin.isspace() else doc).rstrip()


def _completed(doc: str, family: Family, example: tuple[str, str] | None) -> str:
    """Return a docstring with the sections of its family, each in its place."""
    if family.args:
        args = "".join([f"    {text}\n" for text in family.args])
        doc = _before(doc, f"Args:\n{args}", "Returns", "Raises", "Example")
    if family.returns:
        doc = _before(doc, f"Returns:\n    {family.returns}\n", "Raises", "Example")
    if example is not None:
        expression, printed = example
        imports = [f"    >>> {line}" for name, line in _IMPORTS.items() if f"{name}." in expression]
        shown = "\n    ".join(printed.split("\n"))
        lines = ["Example:", *imports, f"    >>> {expression}", f"    {shown}"]
        doc = f"{doc}\n\n" + "\n".join(lines)
    return doc


def _before(doc: str, section: str, *headings: str) -> str:
    """Return a docstring with one more section, before those of some headings or at the end."""
    places = [doc.find(f"\n{heading}:\n") for heading in headings]
    place = min([at + 1 for at in places if at >= 0], default=None)
    if place is None:
        return f"{doc}\n\n{section}".rstrip()
    return f"{doc[:place]}{section}\n{doc[place:]}"
