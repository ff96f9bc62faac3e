"""What a call reaches through its arguments: methods of their classes, functions among them.

A program is found by the structure of the arguments and the static values. The classes of pytree
nodes and static objects have methods, which may see a global that has changed since; functions may
be static, or the metadata of a node. `arguments_key` has what of that must be equal as well;
`program_key` has all that a program depends on, for those who keep programs of functions, and
`seen_by` what a function that counts as itself alone sees.

Neighbours: `function_keys` walks through them; `static_keys` has the static values themselves.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import xtree
from xprim import config
from xprim.captured_state import captured_state
from xprim.function_keys import Identity, function_key, is_by_identity
from xprim.library_code import is_library_class
from xprim.static_keys import static_key
from xprim.thread_state import state
from xprim.transformed import Transformed
from xtree.bounded import remember
from xtree.exactness import has_equality_of_identity
from xtree.interning import is_hashable

__all__ = ["arguments_key", "call_key", "program_key", "seen_by", "value_key"]

__dir__ = __all__.copy

_MAX_KEPT = 4096
# By identity: structures with metadata of the user's may be equal without being the same.
_parts_by_id: dict[int, tuple[weakref.ref[Any], tuple[Any, ...]]] = {}


def arguments_key(tree: Any, statics: tuple[Any, ...] = ()) -> Hashable:
    """Return a key of the classes and functions that a call reaches through its arguments.

    Args:
      tree: the structure of the traced arguments.
      statics: the static values.

    Returns:
      None where there is nothing of the kind, the common case; else a key that is equal for
      calls that reach the same, or an object that is equal to nothing else.
    """
    also = _parts(tree, statics)
    if not also:
        return None
    key = function_key(_nothing, also)
    return object() if is_by_identity(key) else key


# Releases 0.2.0 of xnp and xad call it, whose range of xprim has this one; no package here does.
def program_key(
    fun: Callable[..., Any], tree: Any, avals: Sequence[Any],
    statics: Sequence[tuple[Any, Any]] = (),
) -> Hashable:  # fmt: skip
    """Return a key of all that the program of a function depends on.

    Args:
      fun: the function.
      tree: the structure of its traced arguments.
      avals: their abstract values.
      statics: the places of the static values, and the values.

    Returns:
      None where that cannot be told: something that the function reaches may change, or `call_key`
      knows no key. The first part of the key has the identities of what the program depends on, and
      keeps none of it alive.
    """
    call = call_key(tree, avals, statics)
    key = None if call is None else value_key(fun, tree, statics)
    return None if key is None or call is None else (key, *call)


def call_key(
    tree: Any, avals: Sequence[Any], statics: Sequence[tuple[Any, Any]] = ()
) -> tuple[Hashable, ...] | None:
    """Return a key of what a program depends on beside the function, as `program_key` takes it.

    Returns:
      None where a static value has no hash, or axis names are in scope.
    """
    if state.axis_sizes or not all(is_hashable(value) for _, value in statics):
        return None
    fixed = tuple([(place, _key_of_static(value)) for place, value in statics])
    return (tree, tuple(avals), fixed, config.trace_context())


def value_key(
    fun: Callable[..., Any], tree: Any, statics: Sequence[tuple[Any, Any]] = ()
) -> Hashable:
    """Return a function's key, with what a call reaches; None where something may change."""
    key = function_key(fun, _parts(tree, [value for _, value in statics]))
    return None if is_by_identity(key) else key


def seen_by(
    fun: Callable[..., Any], tree: Any, statics: Sequence[tuple[Any, Any]] = ()
) -> Hashable:
    """Return what a call reaches as it is now: `value_key`, or else what can be seen of it.

    Returns:
      None where that is too much to look at.
    """
    key = value_key(fun, tree, statics)
    if key is not None:
        return key
    return captured_state((fun, *_parts(tree, [value for _, value in statics])))


def _key_of_static(value: Any) -> Hashable:
    if value is None or not has_equality_of_identity(type(value)):
        return static_key(value)
    return Identity(value)  # a function that was static dies, and what it captured


def _nothing() -> None:
    """Reach nothing."""


def _parts(tree: Any, statics: Sequence[Any]) -> tuple[Any, ...]:
    """Return the classes and functions that a structure and static values reach."""
    parts = _parts_of(tree)
    return (*parts, *[part for value in statics for part in _parts_of_value(value)])


def _parts_of(tree: Any) -> tuple[Any, ...]:
    entry = _parts_by_id.get(id(tree))
    if entry is not None and entry[0]() is tree:
        return entry[1]
    parts = tuple(_walked(tree))
    remember(_parts_by_id, id(tree), (weakref.ref(tree), parts), _MAX_KEPT)
    return parts


def _walked(tree: xtree.PyTreeDef) -> Iterator[Any]:
    found = tree.node_data()
    if found is None:
        return
    kind, metadata = found
    if kind not in _CONTAINERS:
        if not is_library_class(kind):
            yield kind
        yield from _parts_of_value(metadata)
    for child in tree.children():
        yield from _walked(child)


def _parts_of_value(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind in _PLAIN:
        return
    if isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _parts_of_value(item)
    elif isinstance(value, dict):
        yield from _parts_of_value(tuple(value.values()))
    if isinstance(value, _FUNCTIONS):
        yield value
    elif is_library_class(kind):
        if callable(value):
            yield value
    else:  # an equality of its own says what counts; without one it is all that the object holds
        own_equality: Any = kind.__eq__
        yield value if own_equality is object.__eq__ else kind


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, type, Transformed)
_CONTAINERS = (tuple, list, dict, type(None))
_PLAIN = frozenset((str, bytes, bool, int, float, complex, type(None)))
