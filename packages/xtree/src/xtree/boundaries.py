"""Boundaries: where library frames are cut out of tracebacks.

Between a user's call and the line that says what is wrong are frames of no use. An error
that leaves a boundary is shown to the function that `when_leaving` was given, which may cut them
out of its traceback. `boundary` is for one function, `boundaries` for all that a module makes
public.

This module imports no other of the package but `generated_code`, so that each may be a boundary.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any, ParamSpec, TypeVar

from xtree.generated_code import define_function, rename_variables

__all__ = ["boundaries", "boundary", "boundary_methods", "is_boundary", "leave", "when_leaving"]

__dir__ = __all__.copy

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_leaving: list[Callable[[BaseException], None]] = []


def when_leaving(shorten: Callable[[BaseException], None]) -> None:
    """Have a function called with each error that leaves a boundary."""
    _leaving[:] = [shorten]


def leave(error: BaseException) -> None:
    """Say that an error is about to leave the library; to be followed by a bare `raise`."""
    for shorten in _leaving:
        shorten(error)


def boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """Let errors leave a public function without the frames of the library.

    Example:
      >>> @boundary
      ... def apply(fun, x):
      ...     return fun(x)
      >>> apply(abs, -1)
      1
    """

    @functools.wraps(fun)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            leave(error)
            raise

    return bounded


# A `try` that nothing leaves costs nothing, so hot functions have one themselves and call `leave`.


def boundaries(
    module_globals: dict[str, Any], *, written: bool = False, names: Iterable[str] | None = None
) -> None:
    r"""Make every public function of a module a boundary; the last line of the module.

    What the module lists of others stays as it is, and so does what is a boundary already. Two
    names of one function stay names of one.

    Args:
      module_globals: its `globals()`.
      written: write each boundary for the parameters of its function. A call then costs 0.02 us
        more than one of the function, instead of 0.1 us; the first of its form takes 0.1 ms.
      names: the functions that become boundaries; by default all in `__all__`.

    Example:
      >>> import types
      >>> module = types.ModuleType("geometry")
      >>> exec("__all__ = ['area']\ndef area(a, b=1): return a * b", vars(module))
      >>> plain = module.area
      >>> boundaries(vars(module), written=True)
      >>> module.area(3), module.area(3, b=2), module.area.__wrapped__ is plain
      (3, 6, True)
    """
    home = module_globals["__name__"]
    make = functools.cache(_write if written else boundary)
    for name in module_globals["__all__"] if names is None else names:
        fun = module_globals.get(name)
        if type(fun) is FunctionType and fun.__module__ == home and not is_boundary(fun):
            module_globals[name] = make(fun)


def boundary_methods(cls: type[C]) -> type[C]:
    """Make each public method of a class a boundary, its operators, too; a decorator.

    Properties stay as they are, and so does what flattens and compares, which is called often and
    seldom goes wrong.

    Example:
      >>> @boundary_methods
      ... class Square:
      ...     def __init__(self, side):
      ...         self.side = side
      ...     def area(self):
      ...         return self.side**2
      >>> Square(3).area(), is_boundary(Square.area)
      (9, True)
    """
    for name, member in list(vars(cls).items()):
        is_special = name.startswith("__") and name.endswith("__")
        if name in _NO_BOUNDARIES or (name.startswith("_") and not is_special):
            continue
        kind = type(member)
        fun = member.__func__ if kind in (classmethod, staticmethod) else member
        if type(fun) is FunctionType and not is_boundary(fun):
            made = boundary(fun)
            setattr(cls, name, made if fun is member else kind(made))
    return cls


_NO_BOUNDARIES = frozenset((
    "tree_flatten", "tree_unflatten", "__repr__", "__str__", "__hash__", "__eq__", "__ne__",
    "__setattr__", "__delattr__", "__getattr__", "__init_subclass__", "__class_getitem__",
    "__reduce__", "__copy__", "__deepcopy__", "__getnewargs__", "__dir__", "__del__",
))  # fmt: skip


def is_boundary(fun: FunctionType) -> bool:
    """Return whether errors leave a function through a boundary, its own or one around it."""
    return not _LEAVING_NAMES.isdisjoint(fun.__code__.co_names)


_LEAVING_NAMES = frozenset(("leave", "shorten", "_shorten"))
_VARIABLE = 0x04 | 0x08  # of `co_flags`: *args, **kwargs; `inspect` takes long to import


def _write(fun: FunctionType) -> Callable[..., Any]:
    code = fun.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    if code.co_flags & _VARIABLE or any(name.startswith("_") for name in names):
        return boundary(fun)
    template = _template(count, code.co_posonlyargcount, code.co_kwonlyargcount)
    old = template.__code__
    named = rename_variables(old, dict(zip(old.co_varnames, names, strict=False)))
    made = FunctionType(
        named, template.__globals__, fun.__name__, fun.__defaults__, (CellType(fun),)
    )
    made.__kwdefaults__ = fun.__kwdefaults__
    return functools.update_wrapper(made, fun)


@functools.cache
def _template(count: int, only_positional: int, keywords: int) -> FunctionType:
    """Return a boundary with so many parameters, named `a0`, `a1`, ..., for all of this form."""
    names = [f"a{i}" for i in range(count + keywords)]
    slash = ["/"] if only_positional else []
    star = ["*", *names[count:]] if keywords else []
    parameters = [*names[:only_positional], *slash, *names[only_positional:count], *star]
    given = [*names[:count], *[f"{name}={name}" for name in names[count:]]]
    call = f"_fun({', '.join(given)})"
    if not only_positional:  # the function refuses a keyword within the boundary
        parameters.append("**_unknown")
        call = f"_fun({', '.join([*given, '**_unknown'])}) if _unknown else {call}"
    text = _TEMPLATE.format(parameters=", ".join(parameters), call=call)
    # The text holds the template and these names.
    made: FunctionType = define_function("_make", text, {"leave": leave}, home=__file__)(None)
    return made


_TEMPLATE = """
def _make(_fun):
    def bounded({parameters}):
        try:
            return {call}
        except Exception as _error:
            leave(_error)
            raise
    return bounded
"""
