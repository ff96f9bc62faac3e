"""How the instances of one type are taken apart and put together: `NodeType`.

Neighbours: `containers` has those of Python's containers, `registry` keeps all, and is where the
class is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from xtree.errors import MalformedNodeError, message, shown
from xtree.key_paths import FlattenedIndexKey, KeyEntry

__all__ = ()

PyTree: TypeAlias = Any
"""A tree: tuples, lists, dicts and registered classes to any depth; all else is a leaf."""

FlattenFunc: TypeAlias = Callable[[Any], tuple[Iterable[Any], Any]]
FlattenWithKeysFunc: TypeAlias = Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]]
UnflattenFunc: TypeAlias = Callable[[Any, Any], Any]


class NodeType:
    """How the instances of one type are taken apart and put together.

    Attributes:
        type: the exact type.
        flatten: object -> (children, metadata).
        unflatten: (metadata, children) -> object.
        flatten_with_keys: object -> (pairs of key and child, metadata), or None.
        place: `file:line` of the registration.
        label: the type's name as `repr` of a tree definition shows it.
        is_trusted: the functions are this package's own, so what they return need not be checked.
        recent: tree definitions made lately, by metadata and the definitions of their children.
    """

    __slots__ = (
        "flatten",
        "flatten_with_keys",
        "is_trusted",
        "label",
        "place",
        "recent",
        "type",
        "unflatten",
    )

    def __init__(
        self,
        type_: type,
        flatten: FlattenFunc,
        unflatten: UnflattenFunc,
        flatten_with_keys: FlattenWithKeysFunc | None,
        place: str,
        label: str = "",
        is_trusted: bool = False,
    ) -> None:
        self.type = type_
        self.flatten = flatten
        self.unflatten = unflatten
        self.flatten_with_keys = flatten_with_keys
        self.place = place
        self.label = label or type_.__name__
        self.is_trusted = is_trusted
        self.recent: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"NodeType({self.type.__qualname__}, registered at {self.place})"

    def children(self, value: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the children and the metadata of `value`, or report what was returned instead."""
        result = self.flatten(value)
        try:
            children, data = result
            return (children if type(children) is tuple else tuple(children)), data
        except (TypeError, ValueError) as error:
            raise self._malformed("flatten", result, "(children, metadata)") from error

    def children_with_keys(self, value: Any) -> tuple[tuple[tuple[KeyEntry, Any], ...], Any]:
        """Return pairs of key and child, and the metadata, of `value`."""
        if self.is_trusted and self.flatten_with_keys is not None:
            pairs, data = self.flatten_with_keys(value)
            return tuple(pairs), data
        children, data = self.children(value)
        if self.flatten_with_keys is None:
            return tuple((FlattenedIndexKey(i), child) for i, child in enumerate(children)), data
        result = self.flatten_with_keys(value)
        try:
            pairs, data = result
            keyed_children = tuple((key, child) for key, child in pairs)
        except (TypeError, ValueError) as error:
            raise self._malformed(
                "flatten_with_keys", result, "(pairs of key and child, metadata)"
            ) from error
        if len(keyed_children) != len(children):
            raise MalformedNodeError(
                message(
                    f"flatten {self.type.__qualname__}",
                    "the registered functions disagree about the number of children.",
                    got=f"{len(keyed_children)} with keys, {len(children)} without",
                    expected="the same children, in the same order",
                    hint=f"registered at {self.place}",
                )
            )
        return keyed_children, data

    def _malformed(self, function: str, result: Any, expected: str) -> MalformedNodeError:
        return MalformedNodeError(
            message(
                f"flatten {self.type.__qualname__}",
                f"the registered {function} function returned something else than a pair.",
                got=shown(result),
                expected=expected,
                hint=f"registered at {self.place}",
            )
        )
