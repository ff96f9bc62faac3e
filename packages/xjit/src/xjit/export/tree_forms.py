"""The structure of arguments and results as JSON.

Python's containers are known; a class of somebody's own is stored under a name that both sides
register, with the bytes of its metadata.

Neighbours: `files` stores what this gives.
"""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import xtree
from xprim.errors import message

__all__ = [
    "register_namedtuple_serialization", "register_pytree_node_serialization", "tree_form",
    "tree_of_form",
]  # fmt: skip

__dir__ = __all__.copy

T = TypeVar("T")


class _Registered(NamedTuple):
    """How one class is stored."""

    type: type
    name: str
    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


# Classes of pytrees that exported programs may name.
_by_type: dict[type, _Registered] = {}
# The same, to be read again.
_by_name: dict[str, _Registered] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Say how a class of nodes is stored where it is in the arguments of exported functions.

    Args:
      nodetype: the class; it is registered as a pytree node already, unless `from_children` is
        given.
      serialized_name: what stands for it in the bytes; the reader registers the same.
      serialize_auxdata: from the metadata of a node to bytes.
      deserialize_auxdata: from these bytes to metadata.
      from_children: from metadata and children to an object, whose structure alone is used; by
        default the node is put together as it was registered.

    Returns:
      The class, so that this serves as a decorator.

    Raises:
      ValueError: the class or the name is registered, or the class is no pytree node.

    Example:
      >>> import xtree
      >>> class Pair:
      ...     def __init__(self, a, b):
      ...         self.a, self.b = a, b
      >>> _ = xtree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None),
      ...                                lambda _, children: Pair(*children))
      >>> register_pytree_node_serialization(
      ...     Pair, serialized_name="example.Pair", serialize_auxdata=lambda _: b"",
      ...     deserialize_auxdata=lambda _: None).__name__
      'Pair'
    """
    operation = "register_pytree_node_serialization"
    if nodetype in _by_type:
        raise ValueError(message(
            operation, f"{nodetype.__name__} is registered already.",
            got=f"serialized_name={serialized_name!r}",
            expected=f"the name {_by_type[nodetype].name!r}",
        ))  # fmt: skip
    if serialized_name in _by_name:
        raise ValueError(message(
            operation, f"the name {serialized_name!r} stands for another class.",
            got=nodetype.__name__, expected=_by_name[serialized_name].type.__name__,
        ))  # fmt: skip
    if from_children is None and xtree.default_registry.find(nodetype) is None:
        raise ValueError(message(
            operation, f"{nodetype.__name__} is no pytree node.",
            hint="call register_pytree_node first, or give from_children",
        ))  # fmt: skip
    entry = _Registered(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_type[nodetype] = _by_name[serialized_name] = entry
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Say under which name a namedtuple is stored.

    Args:
      nodetype: the namedtuple; the reader's has the same fields, in any order.
      serialized_name: what stands for it in the bytes.

    Returns:
      The class, so that this serves as a decorator.

    Raises:
      ValueError: it is no namedtuple, or the class or the name is registered.
    """
    fields = getattr(nodetype, "_fields", None)
    if not issubclass(nodetype, tuple) or not isinstance(fields, tuple):
        raise ValueError(message(
            "register_namedtuple_serialization", "the class is no namedtuple.",
            got=nodetype.__name__, hint="register_pytree_node_serialization takes other classes",
        ))  # fmt: skip
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(fields).encode(),
        deserialize_auxdata=json.loads,
        from_children=lambda names, values: nodetype(**dict(zip(names, values, strict=True))),
    )


def _keys_as_json(keys: Sequence[Any]) -> bytes:
    _check_keys(keys)
    return json.dumps(list(keys)).encode()


def _check_keys(keys: Sequence[Any]) -> None:
    for key in keys:
        if not isinstance(key, str | int | float) or json.loads(json.dumps(key)) != key:
            raise ValueError(message(
                "serialize", "a key of a dict cannot be stored.", got=repr(key),
                expected="keys that are strings or numbers",
            ))  # fmt: skip


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_keys_as_json,
    deserialize_auxdata=lambda data: tuple(json.loads(data)),
)


def tree_form(tree: xtree.PyTreeDef) -> Any:
    """Return a structure as JSON's values.

    Raises:
      ValueError: a class in it is not registered for this.

    Example:
      >>> tree_form(xtree.structure((1, {"a": None})))
      ['tuple', ['*', ['dict', ['a'], [['none']]]]]
    """
    node = tree.node_data()
    if node is None:
        return "*"
    kind, data = node
    children = [tree_form(child) for child in tree.children()]
    if kind is tuple or kind is list:
        return [kind.__name__, children]
    if kind is type(None):
        return ["none"]
    if kind is dict:
        _check_keys(data)
        return ["dict", list(data), children]
    entry = _by_type.get(kind)
    if entry is None:
        is_named = issubclass(kind, tuple)
        raise ValueError(message(
            "serialize", f"it is not known how {kind.__name__} is stored.", got=f"{tree}",
            hint=f"register_{'namedtuple' if is_named else 'pytree_node'}_serialization says so",
        ))  # fmt: skip
    return ["node", entry.name, base64.b64encode(entry.serialize(data)).decode(), children]


def tree_of_form(form: Any) -> xtree.PyTreeDef:
    """Return the structure that `tree_form` gave.

    Raises:
      ValueError: a class in it is not registered here.
    """
    if form == "*":
        return xtree.structure(0)
    kind, *rest = form
    if kind == "none":
        return xtree.structure(None)
    children = [tree_of_form(child) for child in rest[-1]]
    if kind in ("tuple", "list"):
        data = ({"tuple": tuple, "list": list}[kind], None)
        return xtree.treedef_from_node_data(data, children)
    if kind == "dict":
        return xtree.treedef_from_node_data((dict, tuple(rest[0])), children)
    entry = _by_name.get(rest[0])
    if entry is None:
        raise ValueError(message(
            "deserialize", f"the class that is stored as {rest[0]!r} is not known here.",
            hint="register_pytree_node_serialization or register_namedtuple_serialization, under "
            "this serialized_name, comes first",
        ))  # fmt: skip
    data = entry.deserialize(base64.b64decode(rest[1]))
    if entry.from_children is None:
        return xtree.treedef_from_node_data((entry.type, data), children)
    leaf = object()
    values = [child.unflatten([leaf] * child.num_leaves) for child in children]
    return xtree.structure(entry.from_children(data, values))
