"""What the `==` of objects does not see: types and signs of zeros, in what they hold.

`1 == 1.0 == True` and `0.0 == -0.0`, and an object whose `==` compares such attributes is equal to
one that acts differently. `unseen_in_attributes` has what must be equal as well. It may tell apart
what is the same; it never changes with the value of a counter, only with its type.

Neighbours: `interning` compares metadata with it; the keys of static arguments use it as well.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable
from typing import Any

__all__ = ["has_equality_of_identity", "is_decimal", "unseen_in_attributes"]

__dir__ = __all__.copy

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
