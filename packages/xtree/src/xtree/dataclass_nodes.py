"""Dataclasses as nodes: data fields are children, meta fields are metadata."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar, overload

from xtree.boundaries import boundaries
from xtree.errors import message
from xtree.key_paths import GetAttrKey
from xtree.registry import NodeType, default_registry, registration_place

__all__ = ["register_dataclass", "static"]

__dir__ = __all__.copy

Cls = TypeVar("Cls", bound=type)


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
    return dataclasses.field(metadata=metadata, **kwargs)


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
            is no dataclass.
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
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
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
    if data_fields is None and not dataclasses.is_dataclass(nodetype):
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
    if not dataclasses.is_dataclass(nodetype):
        return
    expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(drop_fields)
    unexpected = sorted(set(names) - expected)
    if unexpected:
        raise ValueError(
            message(
                operation,
                f"{unexpected} are no fields of the constructor.",
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
