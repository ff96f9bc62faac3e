"""Interning: equal tree definitions are one object, so that they compare and hash by identity.

A weak table maps (node type, metadata, identities of the children) to the definition that is
alive. Metadata made of plain values (`None`, strings, numbers, classes, tuples of these) is looked
up by value *and type*, so `1`, `1.0` and `True` stay apart and a round trip gives back what went
in. Any other metadata is looked up by identity, because objects that are equal need not be
interchangeable; definitions that hold such metadata compare by value (`treedef`).

Neighbours: `treedef` makes all of its objects through this table.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from xtree.locks import forkable_rlock

__all__ = ["InternTable", "value_key"]

T = TypeVar("T")

_PLAIN_TYPES = frozenset({str, bytes, type(None), type})
_STR_ONLY = frozenset({str})


def value_key(data: Any) -> tuple[Hashable, bool]:
    """Return a key for metadata, and whether it stands for the value (else for the identity).

    Keys of different kinds cannot be mistaken: plain values stand for themselves, everything else
    is a tuple that starts with a class, or for tuples of strings with a string.
    """
    kind = type(data)
    if kind in _PLAIN_TYPES:
        return data, True
    if kind is tuple:
        if data and _STR_ONLY.issuperset(map(type, data)):
            return data, True
        keys = [value_key(item) for item in data]
        return (tuple, *[key for key, _ in keys]), all(by_value for _, by_value in keys)
    if kind is int or kind is bool:
        return (kind, data), True
    if kind is float:
        return (float, data.hex()), True  # -0.0 is not 0.0, and a NaN is itself
    if isinstance(data, tuple) and kind.__eq__ is tuple.__eq__ and not hasattr(data, "__dict__"):
        keys = [value_key(item) for item in data]  # a named tuple
        return (kind, *[key for key, _ in keys]), all(by_value for _, by_value in keys)
    return (_Identity, id(data)), False


class _Identity:
    """Marks a key that stands for an identity."""


class _Entry(weakref.ref, Generic[T]):  # type: ignore[type-arg]  # ref[T] is no base at run time
    """A weak reference that knows its key."""

    __slots__ = ("key",)
    key: Hashable

    def __new__(cls, value: Any, callback: Callable[[Any], object], key: Hashable) -> _Entry[T]:
        self = super().__new__(cls, value, callback)
        self.key = key
        return self

    def __init__(self, value: Any, callback: Callable[[Any], object], key: Hashable) -> None:
        super().__init__(value, callback)  # type: ignore[call-arg]


class InternTable(Generic[T]):
    """A weak table with at most one living object per key.

    Dead entries are only noted when they die, in whatever thread that is, and removed at the next
    insertion: no lock is taken by the garbage collector.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry[T]] = {}
        self._dead: deque[_Entry[T]] = deque()
        self._lock = forkable_rlock()

    def __len__(self) -> int:
        return len(self._entries)

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the living object of `key`, made now if there is none."""
        entry = self._entries.get(key)
        value: T | None = None if entry is None else entry()
        if value is not None:
            return value
        with self._lock:
            self._remove_dead()
            entry = self._entries.get(key)
            value = None if entry is None else entry()
            if value is None:
                value = make()
                self._entries[key] = _Entry(value, self._dead.append, key)
            return value

    def _remove_dead(self) -> None:
        while self._dead:
            entry = self._dead.popleft()
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]
