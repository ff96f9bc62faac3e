"""Tables that stay bounded, locks that survive a fork, and interning of equal values."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from xtree.errors import MalformedNodeError, message, shown
from xtree.records import unseen_in_attributes

__all__ = [
    "remember", "forkable_lock", "forkable_rlock", "InternTable", "equality_key", "is_hashable",
    "is_marker", "is_same", "value_key",
]  # fmt: skip

__dir__ = __all__.copy


# --------------------------------------------------------------------------------------- bounded
# Tables that do not grow without end: an entry is looked up, or made again.

_K = TypeVar("_K")
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, limit: int) -> _V:
    """Keep a value in a table, which is emptied when it would hold more than `limit`; return it.

    A hot path looks into the table itself. Two threads that find nothing both make a value, and the
    later one stays: values of one key are equal.

    Args:
      table: a dictionary of the asker's.
      key: what determines the value.
      value: what was made for it.
      limit: how many are kept.

    Example:
      >>> squares = {}
      >>> [remember(squares, x, x * x, limit=2) for x in (1, 2, 3)], squares
      ([1, 4, 9], {3: 9})
    """
    if len(table) >= limit:
        table.clear()
    table[key] = value
    return value


# ----------------------------------------------------------------------------------------- locks
# Locks that a forked process finds free.
#
# A child made by `os.fork` has the memory of its parent but only the thread that forked: a lock
# that another thread held at that moment would never be released in it. What these locks guard is
# whole at any moment, so the child may take them.


def forkable_lock() -> threading.Lock:
    """Return a lock that is free in a forked child.

    Example:
      >>> with forkable_lock() as held:
      ...     held
      True
    """
    return _free_in_child(threading.Lock())  # type: ignore[no-any-return]


def forkable_rlock() -> Any:
    """Return a lock that one thread may take several times, and that is free in a forked child."""
    return _free_in_child(threading.RLock())


def _free_in_child(lock: Any) -> Any:
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock


# ------------------------------------------------------------------------------------- interning
# Interning: equal tree definitions are one object, so that they compare and hash by identity.
#
# A weak table maps (node type, metadata, identities of the children) to the definition that is
# alive. Metadata made of plain values (`None`, strings, numbers, classes, tuples of these) is
# looked up by value *and type*, so `1`, `1.0` and `True` stay apart and a round trip gives back
# what went in. Any other metadata is looked up by identity, because objects that are equal need
# not be interchangeable; definitions that hold such metadata compare by value (`treedef`), which
# `equality_key` stands for. Metadata that cannot be hashed can mostly be changed: its definition
# is made anew each time, with a key that says what the metadata was then.

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
    return _key_of_object(data)


def _key_of_object(data: Any) -> tuple[Hashable, bool]:
    if type(data) is frozenset:
        keys = [value_key(item) for item in data]
        if all(by_value for _, by_value in keys):
            return (frozenset, frozenset([key for key, _ in keys])), True
    elif is_marker(data):
        return data, True
    return (_Identity, id(data)), False


# Of a class: its instances that its module names, by identity, and how often they were looked for.
_markers: dict[type, tuple[dict[int, Any], int]] = {}
_NO_MARKERS: tuple[dict[int, Any], int] = ({}, 0)
_MAX_CLASSES = 1024
_MAX_SEARCHES = 8
_MAX_ATTRIBUTES = 4
_SMALL_TYPES = _PLAIN_TYPES | {int, bool}


def is_marker(data: Any) -> bool:
    """Say whether an object is a constant of its module that is equal to itself alone.

    Such as `MISSING = _Missing()`: it lives as long as the module, and so may what refers to it.

    Args:
      data: the object. One that its module names later is found among the first few of its class.
    """
    kind = type(data)
    found, searches = _markers.get(kind, _NO_MARKERS)
    if id(data) in found:
        return True
    if searches >= _MAX_SEARCHES:
        return False
    if not _has_marker_class(kind):
        remember(_markers, kind, ({}, _MAX_SEARCHES), _MAX_CLASSES)
        return False
    module = sys.modules.get(kind.__module__)
    names = [] if module is None else list(vars(module).values())
    found = {id(each): each for each in names if type(each) is kind and _is_small(each)}
    remember(_markers, kind, (found, searches + 1), _MAX_CLASSES)
    return id(data) in found


def _has_marker_class(kind: Any) -> bool:
    """Say whether instances of a class have no state but their `__dict__`, and no equality."""
    is_python = kind.__flags__ & _HEAP_TYPE and kind.__basicsize__ <= _Identity.__basicsize__
    return bool(
        is_python and kind.__itemsize__ == 0 and kind.__dictoffset__ != 0
        and kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__
    )  # fmt: skip


def _is_small(value: Any) -> bool:
    attributes = vars(value)
    return len(attributes) <= _MAX_ATTRIBUTES and _SMALL_TYPES.issuperset(
        map(type, attributes.values())
    )


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: of a class that is made at run time


def equality_key(data: Any) -> Hashable:
    """Return a key that is equal for metadata of equal type and value, hashable or not.

    The key of a dict, list or set is that of what it holds now. Any other object that cannot be
    hashed is compared by its own `==`, whatever it has become.
    """
    kind = type(data)
    if kind is list or isinstance(data, tuple):  # named ones too: P(1) is not P(True)
        return (kind, *[equality_key(item) for item in data])
    if kind is dict:
        return dict, frozenset([(equality_key(k), equality_key(v)) for k, v in data.items()])
    if kind is set or kind is frozenset:
        return kind, frozenset([equality_key(item) for item in data])
    key, by_value = value_key(data)
    return key if by_value else _ByEquality(data)


class _ByEquality:
    """Compares an object by its type and its `==`; hashes it if it can be."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self._hash = hash(value)
        except TypeError:
            self._hash = hash(type(value))

    def __eq__(self, other: object) -> bool:
        if type(other) is not _ByEquality or type(other.value) is not type(self.value):
            return False
        if self.value is other.value:
            return True
        return is_same(self.value, other.value) and (
            unseen_in_attributes(self.value) == unseen_in_attributes(other.value)
        )

    def __hash__(self) -> int:
        return self._hash


def is_hashable(value: Any) -> bool:
    """Say whether a value has a hash."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_same(left: Any, right: Any) -> bool:
    """Compare metadata by identity, then by `==`.

    Raises:
      MalformedNodeError: `==` fails, or gives something that is neither true nor false.
    """
    if left is right:
        return True
    try:
        return bool(left == right)
    except Exception as error:
        raise MalformedNodeError(
            message(
                "compare the structures of trees",
                f"metadata of type {type(left).__qualname__} cannot be compared.",
                got=f"{shown(left)}: {error}",
                expected="metadata whose == gives True or False",
                hint="arrays belong among the children",
            )
        ) from error


class _Identity:
    """Marks a key that stands for an identity."""


class _Entry(weakref.ref, Generic[T]):  # type: ignore[type-arg]  # ref[T] is not a base at run time
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

    def living(self) -> list[T]:
        """Return the objects that somebody holds."""
        with self._lock:
            found = [entry() for entry in self._entries.values()]
        return [value for value in found if value is not None]

    def _remove_dead(self) -> None:
        while self._dead:
            entry = self._dead.popleft()
            if self._entries.get(entry.key) is entry:
                del self._entries[entry.key]
