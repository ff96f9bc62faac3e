"""Small classes of values that do not change, made without compiling any code.

A frozen dataclass writes the text of its methods and compiles it, about half a millisecond when its
module is imported: too much for modules that every program loads. A `Record` has the same methods,
written once for all of them, and its `__init__` is written out.

Neighbours: `key_paths` and `mismatch` have records, and so have the packages above.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, NoReturn

__all__ = ["Record", "set_once"]

__dir__ = __all__.copy

set_once = object.__setattr__
"""What sets the attributes of a record, in its `__init__`."""


class Record:
    """A value: equal to one of its class with equal attributes, hashable, and as it was made.

    A class of records names its attributes in `__slots__`, in the order of its arguments, and has
    them again as `__match_args__`, for patterns.

    Example:
        >>> class Point(Record):
        ...     __slots__ = __match_args__ = ("x", "y")
        ...     def __init__(self, x, y=0):
        ...         set_once(self, "x", x)
        ...         set_once(self, "y", y)
        >>> Point(1), Point(1) == Point(1, 0)
        (Point(x=1, y=0), True)
        >>> Point(1).x = 2
        Traceback (most recent call last):
        AttributeError: a Point does not change: its attribute 'x' cannot be set.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _values: ClassVar[Callable[[Any], Any]]  # of one record: all that makes it what it is

    def __init_subclass__(cls) -> None:
        names = cls.__match_args__
        cls._values = attrgetter(*names) if names else lambda _: ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = self.__class__._values
        return values(self) == values(other)  # type: ignore[no-any-return]

    def __hash__(self) -> int:
        return hash(self.__class__._values(self))

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__match_args__]
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def __reduce__(self) -> Any:
        return self.__class__, tuple([getattr(self, name) for name in self.__match_args__])

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a {self.__class__.__name__} does not change: its attribute {name!r} cannot be set."
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a {self.__class__.__name__} does not change: its attribute {name!r} stays."
        )
