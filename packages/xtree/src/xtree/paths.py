"""Flatten and map with key paths: each leaf together with where it lies.

Neighbours: `key_paths` says what a path is made of, `walk` does the walking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtree.boundaries import boundaries
from xtree.key_paths import KeyPath
from xtree.mismatch import flatten_up_to
from xtree.node_types import PyTree
from xtree.treedef import PyTreeDef
from xtree.walk import walk_with_path

__all__ = ["tree_flatten_with_path", "tree_leaves_with_path", "tree_map_with_path"]

__dir__ = __all__.copy


def tree_flatten_with_path(
    tree: PyTree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Take a tree apart into pairs of key path and leaf, and its structure.

    Args:
        tree: any tree.
        is_leaf: where it returns true for a value, that value is a leaf.
        is_leaf_takes_path: call `is_leaf(path, value)` instead of `is_leaf(value)`.

    Returns:
        The pairs in the order of `flatten`, and the structure.

    Example:
        >>> from xtree import keystr
        >>> pairs, _ = tree_flatten_with_path({"a": [1, 2], "b": 3})
        >>> [(keystr(path), leaf) for path, leaf in pairs]
        [("['a'][0]", 1), ("['a'][1]", 2), ("['b']", 3)]
    """
    pairs: list[tuple[KeyPath, Any]] = []
    treedef = walk_with_path(
        tree,
        lambda path, leaf: pairs.append((path, leaf)),
        _taking_path(is_leaf, is_leaf_takes_path),
    )
    return pairs, treedef


def tree_leaves_with_path(
    tree: PyTree,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> list[tuple[KeyPath, Any]]:
    """Return the pairs of key path and leaf of a tree; see `flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Call `f(path, leaf, *other_leaves)` for each leaf of `tree`; return the tree of results.

    Args:
        f: gets the key path, the leaf, and the subtree of each tree in `rest` at the same place.
        tree: the tree that sets the structure of the result.
        *rest: trees of which `tree` is a prefix.
        is_leaf: where it returns true for a value of `tree`, that value is a leaf.
        is_leaf_takes_path: call `is_leaf(path, value)` instead of `is_leaf(value)`.

    Raises:
        StructureMismatchError: `tree` is not a prefix of one of `rest`.

    Example:
        >>> from xtree import keystr
        >>> tree_map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": [1, 2]})
        {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [
        flatten_up_to(treedef, other, "map_with_path", "the first tree", f"tree {position}")
        for position, other in enumerate(rest, start=2)
    ]
    rows = zip(pairs, *columns, strict=True)
    return treedef.unflatten([f(path, leaf, *others) for (path, leaf), *others in rows])


def _taking_path(
    is_leaf: Callable[..., bool] | None, takes_path: bool
) -> Callable[[KeyPath, Any], bool] | None:
    if is_leaf is None or takes_path:
        return is_leaf
    return lambda path, value: is_leaf(value)


boundaries(globals(), written=True)
