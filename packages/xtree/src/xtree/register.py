"""Register a type as a node of trees.

A registration is a function that takes an instance apart into children and metadata, and one that
puts it together. The children are trees again; the metadata is part of the structure and must be
comparable; where it is hashable too, calls are faster. A third function, optional, also names the
children, for key paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, overload

from xtree.boundaries import boundaries
from xtree.errors import RegistrationError, message
from xtree.key_paths import GetAttrKey, KeyEntry
from xtree.namespaces import late_import
from xtree.registry import NodeType, default_registry, registration_place

__all__ = [
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "register_dataclass", "static",
]  # fmt: skip

__dir__ = __all__.copy

_dataclasses = late_import("dataclasses", "it takes as long as twenty modules of ours")

T = TypeVar("T")
Cls = TypeVar("Cls", bound=type)


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: (
        Callable[[T], tuple[Iterable[tuple[KeyEntry, Any]], Hashable]] | None
    ) = None,
) -> None:
    """Make the instances of a type nodes.

    Args:
        nodetype: the type; subclasses of it are not registered with it.
        flatten_func: takes an instance, returns `(children, metadata)`.
        unflatten_func: takes `(metadata, children)`, returns an instance. The children may be
            placeholders of any type, so it should not check or convert them.
        flatten_with_keys_func: takes an instance, returns `(pairs of key and child, metadata)`.

    Raises:
        RegistrationError: the type is registered already; names both places.

    Example:
        >>> import xtree
        >>> class Interval:
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        >>> xtree.register_pytree_node(
        ...     Interval,
        ...     lambda interval: ((interval.low, interval.high), None),
        ...     lambda _, children: Interval(*children),
        ... )
        >>> xtree.map(lambda x: 10 * x, Interval(1, 2)).high
        20
    """
    _check_functions(
        nodetype,
        flatten_func=flatten_func,
        unflatten_func=unflatten_func,
        flatten_with_keys_func=flatten_with_keys_func,
    )
    place = registration_place()
    default_registry.register(
        NodeType(nodetype, flatten_func, unflatten_func, flatten_with_keys_func, place)
    )


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[KeyEntry, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make the instances of a type nodes whose children have keys.

    Args:
        nodetype: the type.
        flatten_with_keys: takes an instance, returns `(pairs of key and child, metadata)`.
        unflatten_func: takes `(metadata, children)`, returns an instance.
        flatten_func: takes an instance, returns `(children, metadata)`; a faster way to the same
            children.

    Raises:
        RegistrationError: the type is registered already; names both places.
    """
    if flatten_func is None:

        def flatten_func(value: T) -> tuple[Iterable[Any], Hashable]:
            pairs, data = flatten_with_keys(value)
            return tuple([child for _, child in pairs]), data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Cls) -> Cls:
    """Make the instances of a class nodes; a decorator.

    Args:
        cls: has a method `tree_flatten(self) -> (children, metadata)` and a class method
            `tree_unflatten(cls, metadata, children)`.

    Returns:
        The class.

    Example:
        >>> import xtree
        >>> @xtree.register_pytree_node_class
        ... class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        ...     def tree_flatten(self):
        ...         return (self.x, self.y), None
        ...     @classmethod
        ...     def tree_unflatten(cls, metadata, children):
        ...         return cls(*children)
        >>> xtree.leaves(Pair(1, [2, 3]))
        [1, 2, 3]
    """
    methods: Any = cls
    _check_methods(cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, lambda value: value.tree_flatten(), methods.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Cls) -> Cls:
    """Make the instances of a class nodes whose children have keys; a decorator.

    Args:
        cls: has a method `tree_flatten_with_keys(self) -> (pairs of key and child, metadata)` and
            a class method `tree_unflatten(cls, metadata, children)`; a method `tree_flatten` is
            used if it is there.

    Returns:
        The class.
    """
    methods: Any = cls
    _check_methods(cls, "tree_flatten_with_keys", "tree_unflatten")
    register_pytree_with_keys(
        cls,
        methods.tree_flatten_with_keys,
        methods.tree_unflatten,
        methods.tree_flatten if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_static(cls: Cls) -> Cls:
    """Make the instances of a class nodes without leaves, all metadata; a decorator.

    A transformation then treats an instance as a constant: a compiled function is compiled anew
    for each different one.

    Args:
        cls: a class whose instances can be compared; those that are hashable are found faster.

    Returns:
        The class.

    Example:
        >>> import xtree
        >>> @xtree.register_static
        ... class Mode(str): pass
        >>> xtree.leaves([1, Mode("train")])
        [1]
    """
    register_pytree_node(cls, lambda value: ((), value), lambda value, children: value)
    return cls


def _check_functions(nodetype: Any, **function_by_name: Any) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(message("register", "the node type is not a class.", got=f"{nodetype!r}"))
    for name, function in function_by_name.items():
        optional = name == "flatten_with_keys_func"
        if not callable(function) and not (optional and function is None):
            raise TypeError(
                message(
                    f"register {nodetype.__qualname__}",
                    f"{name} is not callable.",
                    got=f"{function!r}",
                )
            )


def _check_methods(cls: type, *names: str) -> None:
    missing = [name for name in names if not hasattr(cls, name)]
    if missing:
        raise RegistrationError(
            message(
                f"register {cls.__qualname__}",
                f"the class has no method {missing[0]}.",
                expected=f"a class with {' and '.join(names)}",
            )
        )


# -------------------------------------------------------------------------------------- dataclasses
# Dataclasses as nodes: data fields are children, meta fields are metadata.


def static(**kwargs: Any) -> Any:
    """Declare a field of a dataclass that `register_dataclass` takes as metadata.

    Args:
        **kwargs: those of `dataclasses.field`.

    Example:
        >>> import dataclasses, xtree
        >>> @xtree.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: float
        ...     activation: str = xtree.static(default="relu")
        >>> xtree.flatten(Layer(2.0))
        ([2.0], PyTreeDef(CustomNode(Layer[('relu',)], [*])))
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return _dataclasses.field(metadata=metadata, **kwargs)


@overload
def register_dataclass(
    nodetype: Cls,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Cls: ...
@overload
def register_dataclass(
    nodetype: None = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Callable[[Cls], Cls]: ...
def register_dataclass(
    nodetype: type | None = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type | Callable[[type], type]:
    """Make the instances of a dataclass nodes; a decorator, with or without arguments.

    Args:
        nodetype: the dataclass, or any class whose constructor takes all the fields as keywords.
        data_fields: names of the fields that are children; by default all that are not static.
        meta_fields: names of the fields that are metadata, which are compared; by default
            those declared with `static()` or with `field(metadata={"static": True})`.
        drop_fields: names of fields that are neither; unflattening gives them their defaults.

    Returns:
        The class; without `nodetype`, a decorator.

    Raises:
        TypeError: only one of `data_fields` and `meta_fields` is given, or none for a class that
            is not a dataclass.
        ValueError: the fields named are not those of the constructor.
        RegistrationError: the type is registered already; names both places.

    Example:
        >>> import dataclasses, xtree
        >>> @xtree.register_dataclass
        ... @dataclasses.dataclass
        ... class Point:
        ...     x: float
        ...     y: float
        >>> xtree.map(lambda v: -v, Point(1.0, 2.0))
        Point(x=-1.0, y=-2.0)
    """
    if nodetype is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    _check_arguments(nodetype, data_fields, meta_fields)
    if data_fields is None or meta_fields is None:
        fields = [f for f in _dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    data_names, meta_names = tuple(data_fields), tuple(meta_fields)
    _check_fields(nodetype, data_names, meta_names, drop_fields)
    default_registry.register(_dataclass_node(nodetype, data_names, meta_names))
    return nodetype


def _dataclass_node(
    nodetype: Any, data_names: tuple[str, ...], meta_names: tuple[str, ...]
) -> NodeType:
    data_of, meta_of = _getter(data_names), _getter(meta_names)
    keys = tuple(GetAttrKey(name) for name in data_names)
    names = meta_names + data_names

    def flatten(value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return data_of(value), meta_of(value)

    def unflatten(data: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(names, (*data, *children), strict=True)))

    def flatten_with_keys(value: Any) -> Any:
        return zip(keys, data_of(value), strict=True), meta_of(value)

    place = registration_place()
    return NodeType(nodetype, flatten, unflatten, flatten_with_keys, place, is_trusted=True)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function object -> tuple of these attributes."""
    if len(names) > 1:  # attrgetter of one name gives a bare value
        return attrgetter(*names)
    if not names:
        return lambda value: ()
    get = attrgetter(names[0])
    return lambda value: (get(value),)


def _check_arguments(nodetype: Any, data_fields: Any, meta_fields: Any) -> None:
    operation = f"register_dataclass {getattr(nodetype, '__qualname__', nodetype)}"
    if not isinstance(nodetype, type):
        raise TypeError(message(operation, "the node type is not a class."))
    if (data_fields is None) != (meta_fields is None):
        given, missing = ("data_fields", "meta_fields")[:: 1 if meta_fields is None else -1]
        raise TypeError(
            message(operation, f"{given} is given without {missing}.", hint=f"pass {missing}=[...]")
        )
    if data_fields is None and not _dataclasses.is_dataclass(nodetype):
        raise TypeError(
            message(
                operation,
                "the class is not a dataclass.",
                hint="decorate it with @dataclass first, or pass data_fields and meta_fields",
            )
        )


def _check_fields(
    nodetype: Any,
    data_names: tuple[str, ...],
    meta_names: tuple[str, ...],
    drop_fields: Sequence[str],
) -> None:
    operation = f"register_dataclass {nodetype.__qualname__}"
    names = data_names + meta_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(message(operation, f"the fields {twice} are named twice."))
    if not _dataclasses.is_dataclass(nodetype):
        return
    expected = {f.name for f in _dataclasses.fields(nodetype) if f.init} - set(drop_fields)
    unexpected = sorted(set(names) - expected)
    if unexpected:
        raise ValueError(
            message(
                operation,
                f"{unexpected} are not fields of the constructor.",
                expected=f"names among {sorted(expected)}",
            )
        )
    missing = sorted(expected - set(names))
    if missing:
        raise ValueError(
            message(
                operation,
                f"the fields {missing} are neither data nor metadata.",
                hint="name them in data_fields, meta_fields or drop_fields",
            )
        )


boundaries(globals(), written=True)
