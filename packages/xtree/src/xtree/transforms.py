"""Map, reduce, transpose and broadcast trees.

Each is flatten, a loop over the leaves, and unflatten. Where several trees go in, the first sets
the structure and must be a prefix of the others.

Neighbours: `paths` has the maps with key paths, `prefix` what broadcasting is made of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtree.boundaries import boundaries, leave
from xtree.errors import message
from xtree.flattening import tree_flatten, tree_leaves, tree_structure
from xtree.mismatch import flatten_up_to
from xtree.node_types import PyTree
from xtree.prefix import broadcast_prefix
from xtree.treedef import PyTreeDef

__all__ = [
    "tree_all",
    "tree_broadcast",
    "tree_map",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_transpose",
]

__dir__ = __all__.copy


class _NotGiven:
    """The default of an argument for which every value, None too, has a meaning."""

    def __repr__(self) -> str:
        return "<not given>"


_NOT_GIVEN: Any = _NotGiven()


def tree_map(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Call `f(leaf, *other_leaves)` for each leaf of `tree`, and return the tree of the results.

    Args:
        f: gets the leaf, and the subtree of each tree in `rest` at the same place.
        tree: the tree that sets the structure of the result.
        *rest: trees of which `tree` is a prefix.
        is_leaf: where it returns true for a value of `tree`, that value is a leaf.

    Raises:
        StructureMismatchError: `tree` is not a prefix of one of `rest`; names the place and the
            difference.

    Example:
        >>> tree_map(lambda x: x * x, [1, {"k1": 2, "k2": (3, 4)}, 5])
        [1, {'k1': 4, 'k2': (9, 16)}, 25]
        >>> tree_map(lambda x, y: x + y, (1, [2]), (10, [20]))
        (11, [22])
    """
    try:
        if not callable(f):
            raise TypeError(message(
                "map", "the first argument is not a function.",
                got=f"a value of type {type(f).__name__}", expected="map(f, tree, *rest)",
            ))  # fmt: skip
        leaves, treedef = tree_flatten(tree, is_leaf)
        if not rest:
            return treedef.unflatten([f(leaf) for leaf in leaves])
        columns = [
            flatten_up_to(treedef, other, "map", "the first tree", f"tree {position}")
            for position, other in enumerate(rest, start=2)
        ]
        return treedef.unflatten(list(map(f, leaves, *columns)))
    except Exception as error:
        leave(error)
        raise


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: PyTree = _NOT_GIVEN,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Combine the leaves from left to right: `function(function(l0, l1), l2)`.

    Args:
        function: gets the value so far and the next leaf.
        tree: any tree.
        initializer: the value to start from; without it, the first leaf.
        is_leaf: where it returns true for a value, that value is a leaf.

    Raises:
        TypeError: the tree has no leaves and no `initializer` is given.

    Example:
        >>> tree_reduce(lambda total, x: total + x, [1, (2, 3)])
        6
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _NOT_GIVEN:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise _nothing_to_reduce("reduce", "initializer")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: PyTree,
    *,
    identity: PyTree = _NOT_GIVEN,
    is_leaf: Callable[[Any], bool] | None = None,
) -> PyTree:
    """Combine the leaves pairwise, as a balanced tree of depth log2(number of leaves).

    Args:
        operation: an associative function of two neighbouring results.
        tree: any tree.
        identity: the result for a tree without leaves.
        is_leaf: where it returns true for a value, that value is a leaf.

    Raises:
        TypeError: the tree has no leaves and no `identity` is given.

    Example:
        >>> tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", ["c", "d"]])
        '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _combine(operation, leaves)
    if identity is _NOT_GIVEN:
        raise _nothing_to_reduce("reduce_associative", "identity")
    return identity


def tree_all(tree: PyTree, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether all leaves of a tree are true; yes when there are none.

    Example:
        >>> tree_all({"a": True, "b": [1, 2]}), tree_all([True, 0]), tree_all([])
        (True, False, True)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure of the trees at its leaves, which is all the same; None takes
            that of the first.
        pytree_to_transpose: a tree of structure `outer_treedef.compose(inner_treedef)`.

    Returns:
        A tree of structure `inner_treedef.compose(outer_treedef)` with the same leaves.

    Raises:
        TypeError: the tree has another structure, or there is no inner tree to take the structure
            from.

    Example:
        >>> from xtree import structure
        >>> tree_transpose(structure([0, 0]), structure((0, 0, 0)), [(1, 2, 3), (4, 5, 6)])
        ([1, 4], [2, 5], [3, 6])
    """
    subtrees = _outer_leaves(outer_treedef, inner_treedef, pytree_to_transpose)
    rows: list[list[Any]] = []
    for subtree in subtrees:
        leaves, treedef = tree_flatten(subtree)
        inner_treedef = treedef if inner_treedef is None else inner_treedef
        if treedef != inner_treedef:
            raise TypeError(
                message(
                    "transpose",
                    "an inner tree has another structure.",
                    got=f"{treedef} at leaf {len(rows)} of {outer_treedef}",
                    expected=f"{inner_treedef}",
                )
            )
        rows.append(leaves)
    if inner_treedef is None:
        raise TypeError(
            message(
                "transpose",
                "the structure of the inner trees is unknown: the outer tree has no leaves.",
                hint="pass inner_treedef",
            )
        )
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(
    prefix_tree: PyTree, full_tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """Repeat the leaves of a prefix so that it gets the structure of the full tree.

    Args:
        prefix_tree: a tree whose leaves stand for whole subtrees.
        full_tree: the tree that sets the structure of the result.
        is_leaf: where it returns true for a value of `prefix_tree`, that value is a leaf.

    Raises:
        StructureMismatchError: `prefix_tree` is not a prefix of `full_tree`.

    Example:
        >>> tree_broadcast((1, {"a": 2}), ((0, 0), {"a": [0, 0]}))
        ((1, 1), {'a': [2, 2]})
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def _outer_leaves(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, tree: Any
) -> list[Any]:
    for name, treedef in (("outer_treedef", outer_treedef), ("inner_treedef", inner_treedef)):
        if not isinstance(treedef, PyTreeDef) and (treedef is not None or name == "outer_treedef"):
            raise TypeError(
                message(
                    "transpose",
                    f"{name} is not a structure.",
                    got=type(treedef).__qualname__,
                    expected="a PyTreeDef, as structure(tree) gives",
                )
            )
    try:
        return outer_treedef.flatten_up_to(tree)
    except ValueError as error:
        raise TypeError(
            message(
                "transpose",
                "the tree does not have the outer structure.",
                got=f"{tree_structure(tree)}",
                expected=f"{outer_treedef} or a deeper tree",
            )
        ) from error


def _combine(operation: Callable[[Any, Any], Any], leaves: list[Any]) -> Any:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return operation(_combine(operation, leaves[:middle]), _combine(operation, leaves[middle:]))


def _nothing_to_reduce(operation: str, argument: str) -> TypeError:
    return TypeError(message(operation, "the tree has no leaves.", hint=f"pass {argument}=..."))


boundaries(globals(), written=True)
