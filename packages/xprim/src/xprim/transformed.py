"""The functions that transformations return, and what they say they are.

`transformed(run, fun, "jit")` is called as `run`, looks like `fun`, and prints as what it is:
`<jit of loss at train.py:12>`, or `<jit of <grad of loss at train.py:12>>`. The text is made when
it is asked for. Python's functions cannot have a repr of their own, so these are objects; they
become methods in classes, and are pickled and copied by name, as functions are.

`Transforms` gives the same repr to classes whose objects stand for a function, as `custom_jvp`.

Neighbours: `callables` copies names and documentation, `descriptions` names places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, TypeVar, cast

from xprim.callables import look_like
from xprim.descriptions import place_of

__all__ = ["Transformed", "Transforms", "transformed", "transforming"]

__dir__ = __all__.copy

F = TypeVar("F", bound=Callable[..., Any])

_MOST_WRAPPERS = 100


class Transforms:
    """What says by its repr by which transformation, and of what function, it was made.

    Attributes:
      transformation: the name of the transformation.
    """

    __slots__ = ()

    transformation: str

    def __repr__(self) -> str:
        return f"<{self.transformation} of {_origin(getattr(self, '__wrapped__', None))}>"


class Transformed(Transforms, functools.partial):  # type: ignore[type-arg]
    """A function that a transformation returned; made by `transformed`.

    A `functools.partial` of no arguments hands a call on in 0.03 us, by position or by name; a
    `__call__` of Python's takes five times as long.
    """

    __slots__ = ("__name__", "__qualname__", "transformation")

    __name__: str
    __qualname__: str

    def __new__(cls, run: Callable[..., Any], transformation: str) -> Transformed:
        """Make one that looks like `run` until it is told otherwise."""
        self = super().__new__(cls, run)
        self.__name__ = run.__name__
        self.__qualname__ = run.__qualname__
        self.transformation = transformation
        return self

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__


def transformed(
    run: F, fun: Any, transformation: str, updated: tuple[str, ...] = functools.WRAPPER_UPDATES
) -> F:
    """Return a function that does what `run` does, looks like `fun`, and says what it is.

    Args:
      run: what is called.
      fun: the function of the user that was transformed, or any callable.
      transformation: the name of the public function that does it.
      updated: as that of `functools.update_wrapper`: `()` copies no attributes of `fun`.

    Example:
      >>> transformed(lambda x: 2 * len(x), len, "twice")
      <twice of len>
    """
    made = look_like(Transformed(run, transformation), fun, updated)
    if type(run) is FunctionType:  # by whose name Python refuses a call of wrong arguments
        run.__qualname__ = made.__qualname__
    return cast("F", made)


def transforming(fun: Any, transformation: str) -> Callable[[F], F]:
    """Return the decorator that does what `transformed` does.

    Example:
      >>> @transforming(len, "twice")
      ... def twice(x):
      ...     return 2 * len(x)
      >>> twice([1]), twice
      (2, <twice of len>)
    """
    return lambda run: transformed(run, fun, transformation)


def _origin(fun: Any) -> str:
    """Return what a function was made of: another transformation, or a place in a file."""
    inside = fun
    for _ in range(_MOST_WRAPPERS):
        if isinstance(inside, Transforms):
            return repr(inside)
        if isinstance(inside, functools.partial):
            inside = inside.func
        elif isinstance(inside, MethodType):
            inside = inside.__func__
        elif callable(wrapped := getattr(inside, "__wrapped__", None)):
            inside = wrapped
        else:
            break
    return place_of(fun)
