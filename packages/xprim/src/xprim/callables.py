"""What transformations ask of a user's callable: that it returns its result, its name, its looks.

A callable need not be a function: it may be a partial, an object with `__call__`, a builtin or a
test's mock, whose `__name__`, `__doc__` and other attributes may be missing or be no strings.
Everything in the family that reads them reads them here.

Neighbours: `descriptions` names places and arguments in errors, `function_keys` compares functions.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType, NoneType
from typing import Any, TypeVar

from xprim.descriptions import described, place_of
from xprim.errors import message

__all__ = ["attribute_of_wrapped", "check_function", "name_of", "look_like", "looking_like"]

__dir__ = __all__.copy

F = TypeVar("F", bound=Callable[..., Any])

_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DELAYED = inspect.CO_GENERATOR | _ASYNC
_TYPES_BY_ATTRIBUTE: dict[str, Any] = {
    "__name__": str,
    "__qualname__": str,
    "__module__": (str, NoneType),
    "__doc__": (str, NoneType),
    "__annotations__": dict,
    "__type_params__": tuple,
}


def check_function(fun: Any, operation: str, hint: str = "") -> None:
    """Raise a TypeError unless `fun` is something that returns its result when it is called.

    A generator function or an async function returns before its body has run, so that there would
    be nothing to transform.

    Example:
      >>> check_function(abs, "grad")
      >>> check_function(3, "grad")
      Traceback (most recent call last):
      ...
      TypeError: grad: expected a function, got an int.
    """
    if not callable(fun):
        raise TypeError(message(
            operation, f"expected a function, got {described(fun)}.", hint=hint
        ))  # fmt: skip
    flags = _code_flags(fun)
    if flags & _DELAYED:
        kind, what = ("an async", "await") if flags & _ASYNC else ("a generator", "yield")
        raise TypeError(message(
            operation, f"expected a function, got {kind} function: {place_of(fun)}.",
            hint=f"{what} around the call of a function that returns its result",
        ))  # fmt: skip


def _code_flags(fun: Any) -> int:
    while isinstance(fun, functools.partial | MethodType):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__
    if not isinstance(fun, FunctionType):
        fun = inspect.getattr_static(type(fun), "__call__", None)
    return fun.__code__.co_flags if isinstance(fun, FunctionType) else 0


def name_of(fun: Any, otherwise: str = "the function") -> str:
    """Return a callable's `__name__`, or `otherwise` where that is missing or no string.

    Example:
      >>> name_of(len), name_of(functools.partial(len))
      ('len', 'the function')
    """
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else otherwise


def look_like(wrapper: F, fun: Any, updated: tuple[str, ...] = functools.WRAPPER_UPDATES) -> F:
    """Give `wrapper` the name, documentation and attributes of `fun`, as far as it has them."""
    if type(fun) is FunctionType:
        functools.update_wrapper(wrapper, fun, updated=updated)
        return wrapper
    assigned = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(fun, name, ...), _TYPES_BY_ATTRIBUTE.get(name, object))
    ]
    functools.update_wrapper(wrapper, fun, assigned, updated)
    return wrapper


def looking_like(fun: Any) -> Callable[[F], F]:
    """Return the decorator that does what `look_like` does.

    Example:
      >>> @looking_like(len)
      ... def wrapper(x):
      ...     return len(x)
      >>> wrapper.__name__
      'len'
    """
    return functools.partial(look_like, fun=fun)


def attribute_of_wrapped(decorated: Any, name: str) -> Any:
    """Return a public attribute of what an object decorates, for its `__getattr__`.

    Rules are set through decorators of other kinds so: `def_vmap` of a `custom_vjp` around a
    `custom_vmap`.

    Args:
      decorated: an object with the decorated function as `fun`.
      name: an attribute that the object does not have.

    Raises:
      AttributeError: where the function has none either, or the name is private.

    Example:
      >>> class Decorated:
      ...     fun = functools.partial(max, default=1)
      >>> attribute_of_wrapped(Decorated(), "keywords")
      {'default': 1}
    """
    fun = None if name == "fun" or name.startswith("_") else decorated.fun
    if fun is None or not hasattr(fun, name):
        raise AttributeError(
            f"{type(decorated).__name__!r} object has no attribute {name!r}",
            name=name, obj=decorated,
        )  # fmt: skip
    return getattr(fun, name)
