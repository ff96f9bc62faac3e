"""Walk a tree with a stack of its own: with `is_leaf`, with key paths, and to any depth.

The general way to flatten. It enters the containers one by one, keeps those it is inside of on a
stack, and so can tell a container that holds itself from a tree that is merely deep, and say where.

Neighbours: `flattening` calls this where its recursion does not do, `paths` for everything with
key paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xtree.errors import DepthError, message, with_article
from xtree.key_paths import KeyPath, keystr
from xtree.registry import NodeType, default_registry
from xtree.treedef import LEAF, MAX_DEPTH, PyTreeDef, make_treedef

__all__ = ["walk", "walk_with_path"]

__dir__ = __all__.copy


def walk(
    tree: Any,
    visit_leaf: Callable[[Any], object],
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTreeDef:
    """Call `visit_leaf(leaf)` for the leaves in order, and return the structure."""
    at_path = None if is_leaf is None else lambda path, value: is_leaf(value)
    return _walk(tree, lambda path, leaf: visit_leaf(leaf), at_path, with_keys=False)


def walk_with_path(
    tree: Any,
    visit_leaf: Callable[[KeyPath, Any], object],
    is_leaf: Callable[[KeyPath, Any], bool] | None = None,
) -> PyTreeDef:
    """Call `visit_leaf(path, leaf)` for the leaves in order, and return the structure."""
    return _walk(tree, visit_leaf, is_leaf, with_keys=True)


class _Level:
    """A container that the walk is inside of."""

    __slots__ = ("child_defs", "children", "data", "node", "path", "value")

    def __init__(
        self, node: NodeType, data: Any, children: Iterator[Any], path: KeyPath, value: Any
    ) -> None:
        self.node = node
        self.data = data
        self.children = children
        self.path = path
        self.value = value  # alive, so that its id stays its own
        self.child_defs: list[PyTreeDef] = []


def _walk(
    tree: Any,
    visit_leaf: Callable[[KeyPath, Any], object],
    is_leaf: Callable[[KeyPath, Any], bool] | None,
    with_keys: bool,
) -> PyTreeDef:
    levels: list[_Level] = []
    inside: set[int] = set()
    path: KeyPath = ()
    value = tree
    while True:
        node = default_registry.find(type(value))
        if node is None or (is_leaf is not None and is_leaf(path, value)):
            visit_leaf(path, value)
            if not levels:
                return LEAF
            levels[-1].child_defs.append(LEAF)
        else:
            _check_nesting(levels, inside, value)
            inside.add(id(value))
            levels.append(_entered(node, path, value, with_keys))
        while (pair := next(levels[-1].children, None)) is None:
            level = levels.pop()
            inside.discard(id(level.value))
            treedef = make_treedef(level.node, level.data, tuple(level.child_defs))
            if not levels:
                return treedef
            levels[-1].child_defs.append(treedef)
        key, value = pair
        if with_keys:
            path = (*levels[-1].path, key)


def _entered(node: NodeType, path: KeyPath, value: Any, with_keys: bool) -> _Level:
    if with_keys:
        keyed_children, data = node.children_with_keys(value)
        return _Level(node, data, iter(keyed_children), path, value)
    children, data = node.children(value)
    return _Level(node, data, ((None, child) for child in children), path, value)


def _check_nesting(levels: list[_Level], inside: set[int], value: Any) -> None:
    if id(value) in inside:
        depth = next(i for i, level in enumerate(levels) if level.value is value)
        path, period = _path_to(levels), len(levels) - depth
        shown_path = keystr(path[: depth + period]) if len(path) < 10 else "a path of many levels"
        raise DepthError(
            message(
                "flatten",
                f"{with_article(type(value).__qualname__)} contains itself.",
                got=f"the container at {keystr(path[:depth]) or 'the root'} is found again "
                f"at {shown_path}",
                expected="a finite tree",
            )
        )
    if len(levels) >= MAX_DEPTH:
        start = keystr(_path_to(levels[:6]))
        raise DepthError(
            message(
                "flatten",
                f"the tree is nested more than {MAX_DEPTH} levels deep.",
                got=f"a path that starts with {start}",
                expected=f"at most {MAX_DEPTH} levels",
            )
        )


def _path_to(levels: list[_Level]) -> KeyPath:
    """Return the key path from the first level to the child that is being visited in the last."""
    return tuple(
        level.node.children_with_keys(level.value)[0][len(level.child_defs)][0] for level in levels
    )
