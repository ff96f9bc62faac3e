"""Python's own containers as nodes: tuple, list, dict, OrderedDict, defaultdict and None.

The children of a dict lie in the order of its sorted keys, so that dicts that are equal flatten
equally. Keys of several types are sorted type by type; keys that have no order are refused by
name. An OrderedDict keeps its own order.

Neighbours: `registry` begins with these, `flattening` has faster paths for tuple, list
and dict.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from xtree.errors import KeyOrderError, message, shown
from xtree.key_paths import DictKey, KeyEntry, sequence_key
from xtree.node_types import NodeType

__all__ = ["CONTAINERS", "DICT", "LIST", "NONE", "TUPLE", "sorted_keys"]

__dir__ = __all__.copy

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


def _ordered_dict_with_keys(value: OrderedDict[Any, Any]) -> Keyed:
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
    OrderedDict, _flatten_ordered_dict, _unflatten_ordered_dict, _ordered_dict_with_keys
)
_DEFAULT_DICT = _container(
    defaultdict, _flatten_default_dict, _unflatten_default_dict, _default_dict_with_keys
)

CONTAINERS = (TUPLE, LIST, DICT, NONE, _ORDERED_DICT, _DEFAULT_DICT)
