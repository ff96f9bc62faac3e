"""What functions and objects say of themselves to the keys of programs.

An `Identity` is an object as a key that does not keep it alive. `describe_function` is for the
functions that transformations return, `constant_by_attributes` for classes like theirs.

Neighbours: `function_keys` and `key_walk` use these.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import xtree
from xtree.records import Record

__all__ = ()


class Identity:
    """The identity of an object, as a key that does not keep it alive.

    Args:
      value: the object.
    """

    __slots__ = ("__weakref__", "_hash", "_ref", "_strong")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        try:
            self._ref: Any = weakref.ref(value)
            self._strong = None
        except TypeError:  # builtins and other objects that last
            self._ref = None
            self._strong = value

    @property
    def value(self) -> Any:
        """The object, or None when it has died."""
        return self._strong if self._ref is None else self._ref()

    @property
    def is_strong(self) -> bool:
        """Whether the object is kept alive after all, because it cannot be referred to weakly."""
        return self._ref is None

    def when_dead(self, forget: Callable[[], object]) -> None:
        """Call `forget` when the object dies."""
        value = self.value
        if self._ref is not None and value is not None:
            weakref.finalize(value, forget).atexit = False

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Identity:
            return False
        value = self.value
        return value is not None and value is other.value


PARTS = "__xstack_parts__"


def describe_function(fun: Callable[..., Any], parts: Callable[[], tuple[Any, ...]]) -> None:
    """Say of a function object that it is made of `parts()`, whatever its closure holds.

    For the functions that transformations return and that keep caches in their closures: what they
    compute depends on the transformed function and the options alone. Parts may be identities.
    """
    # The owner is noted because `functools.wraps` copies attributes to other functions.
    setattr(fun, PARTS, (weakref.ref(fun), parts))


# Classes whose instances count by what they hold.
classes_of_constants: weakref.WeakSet[type] = weakref.WeakSet((
    type(xtree.Partial(functools.partial(len)).func),  # a partial that is metadata
))  # fmt: skip
_C = TypeVar("_C", bound=type)


def counts_by_attributes(cls: type) -> bool:
    """Return whether instances of a class count by what they hold.

    Fractions do, whose module, 3 ms to import, few programs have.
    """
    return (
        cls in classes_of_constants
        or (issubclass(cls, Record) and cls.__setattr__ is Record.__setattr__)
        or (cls.__module__ == "fractions" and cls.__name__ == "Fraction")
    )  # fmt: skip


def constant_by_attributes(cls: _C) -> _C:
    """Say of a class that what an instance does depends on its attributes alone; return the class.

    Instances then count by what they hold. It does not hold for subclasses.
    """
    classes_of_constants.add(cls)
    return cls


def identities(key: Any) -> Iterable[Identity]:
    """Yield the identities in a key."""
    if type(key) is Identity:
        yield key
    elif type(key) is tuple or type(key) is frozenset:
        for item in key:
            yield from identities(item)
