"""Register a type as a node of trees.

A registration is a function that takes an instance apart into children and metadata, and one that
puts it together. The children are trees again; the metadata is part of the structure and must be
comparable; where it is hashable too, calls are faster. A third function, optional, also names the
children, for key paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from xtree.boundaries import boundaries
from xtree.errors import RegistrationError, message
from xtree.key_paths import KeyEntry
from xtree.registry import NodeType, default_registry, registration_place

__all__ = [
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
]

__dir__ = __all__.copy

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


boundaries(globals(), written=True)
