"""Small immutable values, and an equality that sees types and signed zeros."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, dataclass_transform

from xtree.generated_code import define_function

__all__ = [
    "has_equality_of_identity", "is_decimal", "unseen_in_attributes", "Immutable", "Record",
    "set_once",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- exactness
# What the `==` of objects does not see: types and signs of zeros, in what they hold.
#
# `1 == 1.0 == True` and `0.0 == -0.0`, and an object whose `==` compares such attributes is equal
# to one that acts differently. `unseen_in_attributes` has what must be equal as well. It may tell
# apart what is the same; it never changes with the value of a counter, only with its type.

_MAX_DEPTH = 8
_TO_THE_TYPE = frozenset((int, bool, str, bytes, type(None), type(...), type))


def has_equality_of_identity(kind: Any) -> bool:
    """Return whether the objects of a class are equal only to themselves."""
    return kind.__eq__ is object.__eq__ or issubclass(kind, type)


def unseen_in_attributes(value: Any, depth: int = 0) -> Hashable:
    """Return what `==` may not see of the attributes of an object."""
    slots = [n for base in type(value).__mro__ for n in _names(vars(base).get("__slots__", ()))]
    found = [(n, _unseen(getattr(value, n, None), depth)) for n in slots if n[:2] != "__"]
    attributes = getattr(value, "__dict__", None)
    if attributes:
        found += [(name, _unseen(v, depth)) for name, v in attributes.items()]
    return tuple(found)


def is_decimal(kind: Any) -> bool:
    """Return whether a class is `decimal.Decimal`; few programs import that, which takes 1 ms."""
    found: bool = kind.__module__ == "decimal" and kind.__name__ == "Decimal"
    return found


def _unseen(value: Any, depth: int) -> Hashable:
    kind: Any = type(value)
    if kind is float:
        return (kind, math.copysign(1.0, value) if value == 0 else 0.0)
    if kind in _TO_THE_TYPE or depth >= _MAX_DEPTH:
        return kind  # type: ignore[no-any-return]
    if kind in _BY_TEXT or is_decimal(kind):
        return (kind, repr(value))
    if isinstance(value, tuple | list | dict | set | frozenset):
        return (kind, _unseen_items(value, depth + 1))
    if hasattr(kind, "tobytes"):  # of NumPy: a scalar is its bytes, an array is compared by no `==`
        return (kind, value.dtype.str, value.tobytes() if value.ndim == 0 else b"")
    if has_equality_of_identity(kind):
        return kind  # type: ignore[no-any-return]
    return (kind, unseen_in_attributes(value, depth + 1))


def _unseen_items(value: Any, depth: int) -> Hashable:
    if isinstance(value, dict):
        return tuple([(_unseen(k, depth), _unseen(v, depth)) for k, v in value.items()])
    items = [_unseen(v, depth) for v in value]
    return tuple(items) if isinstance(value, tuple | list) else frozenset(items)


# Equal ones may differ in digits, or in the time zone: 1.0 and 1.00, 12:00 and 13:00+01:00.
_BY_TEXT = frozenset((complex, range, slice, datetime.datetime, datetime.time))


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


# --------------------------------------------------------------------------------------- records
# Small classes of values that do not change, made without compiling any code.
#
# A frozen dataclass writes the text of its methods and compiles it, about half a millisecond when
# its module is imported: too much for modules that every program loads. A `Record` has the same
# methods, written once for all of them but for `__init__`, which is compiled when the first one is
# made, in 13 to 70 us.

set_once = object.__setattr__
"""What sets the attributes of an immutable object, while it is made."""


class Immutable:
    """An object whose attributes are set while it is made, by `set_once`, and never again.

    Example:
        >>> class Point(Immutable):
        ...     __slots__ = ("x",)
        ...     def __init__(self, x):
        ...         set_once(self, "x", x)
        >>> Point(1).x = 2
        Traceback (most recent call last):
        AttributeError: Point does not change: its attribute 'x' cannot be set.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"{self.__class__.__name__} does not change: its attribute {name!r} cannot be set."
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{self.__class__.__name__} does not change: its attribute {name!r} cannot be deleted."
        )


class _InitOfFields:
    """The `__init__` of a record that sets its fields: a function, once somebody looks at it."""

    __slots__ = ("_annotations", "_defaults", "_owner")

    def __init__(self, annotations: dict[str, str], defaults: dict[str, Any]) -> None:
        self._annotations = annotations
        self._defaults = defaults

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner

    def __get__(self, record: Any, kind: Any = None) -> Any:
        names, defaults = self._annotations, self._defaults
        head = ", ".join([f"{n}=default_of_{n}" if n in defaults else n for n in names])
        body = "".join([f"    set_once(self, {name!r}, {name})\n" for name in names])
        constants = {f"default_of_{name}": value for name, value in defaults.items()}
        init = define_function(
            "__init__", f"def __init__(self, {head}):\n{body}",
            {"set_once": set_once, **constants}, home=__file__,
        )  # fmt: skip
        owner: Any = self._owner
        init.__annotations__ = {**names, "return": "None"}
        init.__module__, init.__qualname__ = owner.__module__, f"{owner.__qualname__}.__init__"
        owner.__init__ = init
        return init.__get__(record, kind)


class _RecordType(type):
    """The class of classes of records: their annotations are the slots and the arguments."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        if "__slots__" not in namespace:
            own = {n: kind for n, kind in namespace.get("__annotations__", {}).items()
                   if "ClassVar[" not in str(kind)}  # fmt: skip
            fields = {**getattr(bases[0], "_fields", {}), **own}
            defaults = {n: namespace.pop(n) for n in own if n in namespace}
            defaults = {**getattr(bases[0], "_defaults", {}), **defaults}
            namespace["__slots__"], namespace["__match_args__"] = tuple(own), tuple(fields)
            namespace["_fields"], namespace["_defaults"] = fields, defaults
            if own:
                namespace.setdefault("__init__", _InitOfFields(fields, defaults))
        return super().__new__(mcs, name, bases, namespace, **options)


@dataclass_transform(frozen_default=True)
class Record(Immutable, metaclass=_RecordType):
    """A value: equal to one of its class with equal fields, hashable, and as it was made.

    A class of records annotates its fields, in the order of its arguments and behind those of its
    base. They are its slots and its `__match_args__`, for patterns; one with a value has it by
    default. A class that computes what it holds writes its own `__init__`, which sets each by
    `set_once`; one with slots that do not count writes out `__slots__` and `__match_args__`.

    Example:
        >>> class Point(Record):
        ...     x: float
        ...     y: float = 0
        >>> Point(1), Point(1) == Point(1, y=0)
        (Point(x=1, y=0), True)
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
