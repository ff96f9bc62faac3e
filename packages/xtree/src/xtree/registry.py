"""The registry of node types: how each type of node is flattened and unflattened."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from xtree.errors import KeyOrderError, MalformedNodeError, RegistrationError, message, shown
from xtree.interning import forkable_rlock
from xtree.key_paths import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, sequence_key

__all__ = [
    "CONTAINERS", "DICT", "LIST", "NONE", "TUPLE", "sorted_keys", "NodeType", "PyTreeRegistry",
    "default_registry", "registration_place",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------ node types
# How the instances of one type are taken apart and put together: `NodeType`.

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
            raise self._error_of_malformed("flatten", result, "(children, metadata)") from error

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
            raise self._error_of_malformed(
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

    def _error_of_malformed(self, function: str, result: Any, expected: str) -> MalformedNodeError:
        return MalformedNodeError(
            message(
                f"flatten {self.type.__qualname__}",
                f"the registered {function} function returned something else than a pair.",
                got=shown(result),
                expected=expected,
                hint=f"registered at {self.place}",
            )
        )


# ------------------------------------------------------------------------------------ containers
# Python's own containers as nodes: tuple, list, dict, OrderedDict, defaultdict and None.
#
# The children of a dict lie in the order of its sorted keys, so that dicts that are equal flatten
# equally. Keys of several types are sorted type by type; keys that have no order raise an error
# that names them. An OrderedDict keeps its own order.

Keyed = tuple[Iterable[tuple[KeyEntry, Any]], Any]


def sorted_keys(mapping: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Return the keys of a dict in the order of its children.

    Args:
        mapping: any dict.

    Returns:
        The keys, sorted.

    Raises:
        KeyOrderError: keys cannot be compared, or are sets, which are ordered only in part.

    Example:
        >>> sorted_keys({"b": 1, "a": 2}), sorted_keys({2: 1, 1.5: 2})
        (('a', 'b'), (1.5, 2))
    """
    try:
        keys = sorted(mapping)
    except TypeError as error:
        raise _no_order(list(mapping), str(error)) from error
    if len(keys) > 1 and any(isinstance(key, frozenset) for key in keys):
        raise _no_order(keys, "sets are ordered only in part")
    return tuple(keys)


def _no_order(keys: list[Any], reason: str) -> KeyOrderError:
    return KeyOrderError(
        message(
            "flatten",
            "the keys of a dict cannot be sorted.",
            got=f"{shown(keys)}: {reason}",
            expected="keys that compare with <: all of them strings, or all numbers",
            hint="an OrderedDict is flattened in its own order",
        )
    )


def _flatten_sequence(value: Any) -> tuple[tuple[Any, ...], None]:
    return tuple(value), None


def _sequence_with_keys(value: Any) -> Keyed:
    return ((sequence_key(i), child) for i, child in enumerate(value)), None


def _unflatten_tuple(data: None, children: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(children)


def _unflatten_list(data: None, children: Iterable[Any]) -> list[Any]:
    return list(children)


def _flatten_dict(value: dict[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    keys = sorted_keys(value)
    return tuple([value[key] for key in keys]), keys


def _dict_with_keys(value: dict[Any, Any]) -> Keyed:
    keys = sorted_keys(value)
    return ((DictKey(key), value[key]) for key in keys), keys


def _unflatten_dict(keys: Any, children: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, children, strict=True))


def _flatten_ordered_dict(value: OrderedDict[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    return tuple(value.values()), tuple(value)


def _order_dict_with_keys(value: OrderedDict[Any, Any]) -> Keyed:
    return ((DictKey(key), child) for key, child in value.items()), tuple(value)


def _unflatten_ordered_dict(keys: Any, children: Iterable[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(keys, children, strict=True))


def _flatten_default_dict(value: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Any]:
    children, keys = _flatten_dict(value)
    return children, (value.default_factory, keys)


def _default_dict_with_keys(value: defaultdict[Any, Any]) -> Keyed:
    pairs, keys = _dict_with_keys(value)
    return pairs, (value.default_factory, keys)


def _unflatten_default_dict(data: Any, children: Iterable[Any]) -> defaultdict[Any, Any]:
    factory, keys = data
    return defaultdict(factory, zip(keys, children, strict=True))


def _flatten_none(value: None) -> tuple[tuple[()], None]:
    return (), None


def _unflatten_none(data: None, children: Iterable[Any]) -> None:
    return None


_PLACE = "xtree (a Python container)"


def _container(
    type_: type, flatten: Any, unflatten: Any, flatten_with_keys: Any = None
) -> NodeType:
    return NodeType(type_, flatten, unflatten, flatten_with_keys, _PLACE, is_trusted=True)


TUPLE = _container(tuple, _flatten_sequence, _unflatten_tuple, _sequence_with_keys)
LIST = _container(list, _flatten_sequence, _unflatten_list, _sequence_with_keys)
DICT = _container(dict, _flatten_dict, _unflatten_dict, _dict_with_keys)
NONE = _container(type(None), _flatten_none, _unflatten_none)
_ORDERED_DICT = _container(
    OrderedDict, _flatten_ordered_dict, _unflatten_ordered_dict, _order_dict_with_keys
)
_DEFAULT_DICT = _container(
    defaultdict, _flatten_default_dict, _unflatten_default_dict, _default_dict_with_keys
)

CONTAINERS = (TUPLE, LIST, DICT, NONE, _ORDERED_DICT, _DEFAULT_DICT)


# -------------------------------------------------------------------------------------- registry
# The registry: which types are nodes of a tree, and how each is taken apart and put together.
#
# One table, keyed by exact type, holds a `NodeType` per container, Python's own from the start.
# Everything whose type is not in it is a leaf; subclasses do not inherit a registration. The one
# exception are namedtuple classes, which are nodes without being registered. What a type turned
# out to be is remembered in `flatteners` and `leaf_types`, which the fast paths read directly.

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
        self._add(node.type, node)

    def _add(self, type_: type, node: NodeType) -> None:
        with self._lock:
            first = self._nodes.get(type_)
            if first is not None:
                raise RegistrationError(
                    message(
                        f"register {type_.__qualname__}",
                        "the type is registered as a pytree node already.",
                        got=f"a second registration at {node.place}",
                        expected=f"only the first, at {first.place}",
                    )
                )
            self._nodes[type_] = node
            self.flatteners.pop(type_, None)
            self.leaf_types.discard(type_)

    def register_as(self, type_: type, nodetype: type) -> None:
        """Make the instances of a type nodes of another type, which is registered.

        Instances of both have equal structures where their metadata and children have. The
        functions of `nodetype` take instances of both.

        Args:
            type_: the type; one that is registered already is a `RegistrationError`.
            nodetype: the type whose nodes they are.

        Example:
            >>> import xtree
            >>> class Point(list): pass
            >>> xtree.default_registry.register_as(Point, list)
            >>> xtree.structure(Point([1, 2])) == xtree.structure([1, 2])
            True
        """
        self._add(type_, self._nodes[nodetype])

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
for _node in CONTAINERS:  # they come first, whoever registers what: a second one raises
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
