"""Where the rules of a primitive are written: its row, and the formula of each rule.

Many primitives are rows of a table: calls of a function (`unary("sin", ..., jvp=lambda ...)`) that
makes the rules from formulas. A person looks for the row and for the formula, not for the function
that stands between. Such a function is marked as a *maker*, so the row is the line that calls it;
the formulas of a rule are what it closed over: functions, ufuncs, names of operations.

Neighbours: `primitive` asks where a row stands, `python -m xprim NAME` and errors show it.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from xtree.boundaries import boundary

__all__ = ()

_F = TypeVar("_F", bound=Callable[..., Any])
# Functions that stand between a row and its primitive, and the one that each boundary is.
_makers: set[types.CodeType] = {boundary(inspect.currentframe).__code__}


def primitive_maker(function: _F) -> _F:
    """Mark a function that defines a primitive for its caller: the row is the call.

    Example:
      >>> from xprim import Primitive
      >>> @primitive_maker
      ... def scaling(name, factor, **rules):
      ...     return Primitive(name, numpy=lambda x: (factor * x,), **rules)
    """
    _makers.add(function.__code__)
    return function


def row_place(inside: str) -> tuple[str, str]:
    """Return `file:line` of the call that defines a primitive, as seen from below, and its module.

    Args:
      inside: the file whose frames do not count.
    """
    frame = inspect.currentframe()
    passed = (__file__, inside)
    while frame is not None and (frame.f_code.co_filename in passed or frame.f_code in _makers):
        frame = frame.f_back
    if frame is None:
        return "an unknown place", ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}", frame.f_globals.get("__name__", "")


def is_being_imported(module: str) -> bool:
    """Return whether a thread is in the middle of importing a module."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))  # as `import` itself asks


def rule_places(rule: Any, row: str, name: str) -> list[str]:
    """Return where a rule is written: the place of each formula, and last that of the rule itself.

    Args:
      rule: a rule that is callable.
      row: `file:line` where its primitive is defined.
      name: of the primitive, which rules close over, too.

    Returns:
      Texts `file:line name`. A formula that is no Python function, such as a ufunc or the name of
      an operation, stands in the row; so does one that a maker made of the row's other arguments.
    """
    rule = inspect.unwrap(rule)
    if not isinstance(rule, types.FunctionType):
        return [f"{row} {_name(rule)}"]
    file, own_file = row.rpartition(":")[0], rule.__code__.co_filename
    found = [f for f in _formulas(rule, set()) if f is not rule and f != name]
    written = [f for f in found if isinstance(f, types.FunctionType)]
    places = [_place(f) for f in written if f.__code__.co_filename in {file} - {own_file}]
    places = places or [_place(f) for f in written if f.__code__.co_filename != own_file]
    if not places and own_file != file and "<locals>" in rule.__qualname__:
        names = [_name(f) for f in found if not isinstance(f, types.FunctionType)]
        places = [f"{row} {' '.join(dict.fromkeys(names))}".rstrip()]
    return [*dict.fromkeys(places), _place(rule)]


def _formulas(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what a function was made from, innermost functions alone; constants are left out."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inner = [found for part in _parts(value) for found in _formulas(part, seen)]
    if isinstance(value, types.FunctionType):
        takes_operands = value.__code__.co_argcount or value.__code__.co_flags & inspect.CO_VARARGS
        if takes_operands and not any(isinstance(f, types.FunctionType) for f in inner):
            yield value
    elif isinstance(value, str) or (
        callable(value) and hasattr(value, "__name__") and not isinstance(value, type)
    ):
        yield value
    yield from inner


def _parts(value: Any) -> list[Any]:
    match value:
        case types.FunctionType():
            return list(inspect.getclosurevars(value).nonlocals.values())
        case functools.partial():
            return [value.func, *value.args, *value.keywords.values()]
        case tuple() | list():
            return list(value)
        case dict():
            return list(value.values())
    return []


def _place(function: types.FunctionType) -> str:
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}"


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    name = getattr(value, "__name__", None)
    if name is None:
        return repr(value)
    module = getattr(value, "__module__", None) or "builtins"
    return name if module == "builtins" else f"{module}.{name}"
