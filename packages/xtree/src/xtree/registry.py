"""The registry: which types are nodes of a tree, and how each is taken apart and put together.

One table, keyed by exact type, holds a `NodeType` per container, Python's own from the start.
Everything whose type is not in it is a leaf; subclasses do not inherit a registration. The one
exception are namedtuple classes, which are nodes without being registered. What a type turned out
to be is remembered in `flatteners` and `leaf_types`, which the fast paths read directly.

Neighbours: `containers` has Python's own containers, `register` is the public way in, `flattening`
reads the tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from xtree.containers import CONTAINERS
from xtree.errors import RegistrationError, message
from xtree.key_paths import GetAttrKey, KeyEntry
from xtree.locks import forkable_rlock
from xtree.node_types import NodeType

__all__ = ["NodeType", "PyTreeRegistry", "default_registry", "registration_place"]

__dir__ = __all__.copy

# Types that were seen but not registered (leaf types, namedtuple classes) are remembered up to
# this many, and then looked up afresh, so that classes made in a loop can be collected.
_MAX_LEARNED = 4096


class PyTreeRegistry:
    """The table of node types. There is one, `default_registry`.

    Iterate over it to see what is registered.

    Example:
        >>> from xtree import default_registry
        >>> list in default_registry, int in default_registry
        (True, False)
        >>> default_registry.is_node(dict)
        True
    """

    def __init__(self) -> None:
        self._nodes: dict[type, NodeType] = {}
        self._lock = forkable_rlock()
        self.flatteners: dict[type, Any] = {}
        self.leaf_types: set[type] = set()

    def __iter__(self) -> Iterator[NodeType]:
        return iter(tuple(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, type_: object) -> bool:
        return type_ in self._nodes

    def __reduce__(self) -> str:
        return "default_registry"

    def register(self, node: NodeType) -> None:
        """Add `node`; a type that is registered already is a `RegistrationError`."""
        with self._lock:
            first = self._nodes.get(node.type)
            if first is not None:
                raise RegistrationError(
                    message(
                        f"register {node.type.__qualname__}",
                        "the type is registered as a pytree node already.",
                        got=f"a second registration at {node.place}",
                        expected=f"only the first, at {first.place}",
                    )
                )
            self._nodes[node.type] = node
            self.flatteners.pop(node.type, None)
            self.leaf_types.discard(node.type)

    def is_node(self, type_: type) -> bool:
        """Say whether instances of exactly `type_` are nodes; those of namedtuple classes are."""
        return self.find(type_) is not None

    def find(self, type_: type) -> NodeType | None:
        """Return the node type of `type_`, or None when its instances are leaves."""
        node = self._nodes.get(type_)
        if node is None and _is_namedtuple(type_):
            return _namedtuple_node(type_)
        return node

    def learn(self, type_: type, make_flattener: Callable[[NodeType], Any]) -> Any:
        """Look up a type seen for the first time; return its flattener, or None for leaves."""
        with self._lock:
            if len(self.flatteners) > len(self._nodes) + _MAX_LEARNED:
                self.flatteners.clear()
                self.leaf_types.clear()
            node = self.find(type_)
            if node is None:
                self.leaf_types.add(type_)
                flattener = None
            else:
                flattener = make_flattener(node)
            self.flatteners[type_] = flattener
            return flattener


default_registry = PyTreeRegistry()
for _node in CONTAINERS:  # they come first, whoever registers what: a second one is refused
    default_registry.register(_node)


def registration_place() -> str:
    """Return `file:line` of the nearest caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _in_this_package(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _in_this_package(module: str) -> bool:
    return module == "xtree" or module.startswith("xtree.")


def _is_namedtuple(type_: type) -> bool:
    return issubclass(type_, tuple) and isinstance(getattr(type_, "_fields", None), tuple)


def _namedtuple_node(type_: Any) -> NodeType:
    keys: tuple[Hashable, ...] = tuple(GetAttrKey(name) for name in type_._fields)

    def flatten(value: Any) -> tuple[tuple[Any, ...], None]:
        return tuple(value), None

    def unflatten(data: None, children: Iterable[Any]) -> Any:
        return type_._make(children)

    def flatten_with_keys(value: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], None]:
        return zip(keys, value, strict=True), None

    place = f"{type_.__module__} (a namedtuple)"
    label = f"namedtuple[{type_.__name__}]"
    return NodeType(type_, flatten, unflatten, flatten_with_keys, place, label, True)
