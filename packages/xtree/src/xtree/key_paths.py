"""Key paths: where in a tree a leaf is, as a tuple of one key per level.

A path prints as the Python expression that leads from the root to the leaf,
`['layers'][0].weight`, which is what error messages show. Each container has its own class of key,
so that `x[0]`, `x['0']` and `x.zero` stay apart; the key of a registered class may be any hashable
value whose `str` reads well at the end of an expression.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from xtree.boundaries import boundary
from xtree.records import Record

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "SequenceKey",
    "keystr",
    "sequence_key",
]

__dir__ = __all__.copy

KeyEntry: TypeAlias = Hashable
KeyPath: TypeAlias = tuple[KeyEntry, ...]


class SequenceKey(Record):
    """The position of a child in a list or tuple; prints as `[0]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(Record):
    """The key of a child in a dict; prints as `['name']`."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(Record):
    """The attribute that holds a child (dataclasses, namedtuples); prints as `.name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(Record):
    """The position of a child of a class without keys; prints as `[<flat index 0>]`."""

    key: int

    def __hash__(self) -> int:
        return hash((FlattenedIndexKey, self.key))

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


@boundary
def keystr(keys: Iterable[KeyEntry], *, simple: bool = False, separator: str = "") -> str:
    """Print a key path.

    Args:
        keys: the path, as the `*_with_path` functions give it.
        simple: print the bare index, key or name of each entry instead of Python syntax.
        separator: put between the entries.

    Returns:
        The text; empty for the root.

    Example:
        >>> from xtree import DictKey, SequenceKey, keystr
        >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("weight"))
        >>> keystr(path)
        "['layers'][0].weight"
        >>> keystr(path, simple=True, separator="/")
        'layers/0/weight'
    """
    return separator.join(_bare(key) if simple else str(key) for key in keys)


def sequence_key(idx: int) -> SequenceKey:
    """Return `SequenceKey(idx)`; the common ones are made once."""
    return _SEQUENCE_KEYS[idx] if idx < len(_SEQUENCE_KEYS) else SequenceKey(idx)


_SEQUENCE_KEYS = tuple(SequenceKey(idx) for idx in range(64))


def _bare(key: Any) -> str:
    match key:
        case SequenceKey(idx=value) | DictKey(key=value):
            return str(value)
        case GetAttrKey(name=value) | FlattenedIndexKey(key=value):
            return str(value)
        case _:
            return str(key)
