"""Prefixes: a tree whose leaves stand for whole subtrees of another.

`in_axes=(0, {"w": None, "b": 1})` is a prefix of the arguments it is about: each of its leaves
applies to all leaves of the subtree at the same place. Here such a leaf is repeated that often, and
all the places where the two do not fit are told.

Neighbours: `mismatch` compares a structure with a tree, `transforms` has `broadcast`, which gives
a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtree.boundaries import boundaries
from xtree.flattening import tree_flatten, tree_structure
from xtree.mismatch import Mismatch, find_mismatches, flatten_up_to

__all__ = ["broadcast_prefix", "prefix_errors"]

__dir__ = __all__.copy


def broadcast_prefix(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """Return one leaf of the prefix for each leaf of the full tree.

    Args:
        prefix_tree: a tree whose leaves stand for whole subtrees.
        full_tree: the full tree.
        is_leaf: where it returns true for a value of `prefix_tree`, that value is a leaf; to let
            None be one, pass `lambda x: x is None`.

    Returns:
        A list as long as the list of leaves of `full_tree`.

    Raises:
        StructureMismatchError: `prefix_tree` is not a prefix of `full_tree`; names the place and
            the difference.

    Example:
        >>> broadcast_prefix((0, None), ([1, 2], {"a": 3, "b": 4}), is_leaf=lambda x: x is None)
        [0, 0, None, None]
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    subtrees = flatten_up_to(treedef, full_tree, "broadcast", "the prefix", "the full tree")
    result: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        result += [leaf] * tree_structure(subtree).num_leaves
    return result


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Mismatch]:
    """Return every place where a tree is not a prefix of another; empty when it is one.

    Args:
        prefix_tree: a tree whose leaves stand for whole subtrees.
        full_tree: the full tree.
        is_leaf: where it returns true for a value of `prefix_tree`, that value is a leaf.

    Returns:
        One `Mismatch` per place, in order; its `error(operation, prefix_name, full_name)` makes
        the exception to raise.

    Example:
        >>> [mismatch] = prefix_errors({"a": (0, 1)}, {"a": (1, 2, 3)})
        >>> print(mismatch.error("vmap", "in_axes", "args"))
        vmap: in_axes and args differ at ['a']: different lengths.
          got       args['a']: a tuple of length 3
          expected  a tuple of length 2, as in in_axes
    """
    return find_mismatches(tree_structure(prefix_tree, is_leaf), full_tree)


boundaries(globals(), written=True)
