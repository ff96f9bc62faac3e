"""Docstrings of families: what the arguments and results of their members are, said once.

The functions of a family, such as the circular functions, differ in one sentence, which stands
where each is defined. `complete` adds the sections that they share, and to each an example of its
own. The tables are in the modules of this folder, one for each module of functions; a test runs all
examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Family", "complete"]

__dir__ = __all__.copy

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


def complete(functions: Mapping[str, Any], families: Iterable[Family]) -> None:
    """Add the sections of their families to the docstrings of functions.

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
    for family in families:
        args = "".join([f"    {text}\n" for text in family.args])
        shared = f"Args:\n{args}\n" if args else ""
        shared += f"Returns:\n    {family.returns}\n\n" if family.returns else ""
        for name, example in family.examples.items():
            doc = functions[name].__doc__
            if doc is not None:  # as it is under `python -OO`
                functions[name].__doc__ = _completed(doc, shared, example)


def _completed(doc: str, shared: str, example: tuple[str, str] | None) -> str:
    """Return a docstring with more sections: before its example, or at its end with the one given.

    Before Python 3.13 a docstring of several lines has the indentation of the code.
    """
    if example is None:
        start = doc.index("Example:")
        margin = doc[doc.rindex("\n", 0, start) + 1 : start]
        return (
            doc[:start]
            + shared.replace("\n", f"\n{margin}").replace(f"\n{margin}\n", "\n\n")
            + doc[start:]
        )
    expression, printed = example
    imports = [f"    >>> {line}" for name, line in _IMPORTS.items() if f"{name}." in expression]
    shown = "\n    ".join(printed.split("\n"))
    lines = ["Example:", *imports, f"    >>> {expression}", f"    {shown}", ""]
    added = f"\n\n{shared}" + "\n".join(lines)
    margin = "    " if doc.endswith("\n    ") else ""
    return doc.rstrip() + added.replace("\n", f"\n{margin}")
