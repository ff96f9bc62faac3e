"""Map, reduce, transpose and broadcast trees; prefixes, key paths of leaves, `Partial`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtree.boundaries import boundaries, boundary, leave
from xtree.errors import message
from xtree.flattening import tree_flatten, tree_leaves, tree_structure, walk_with_path
from xtree.key_paths import GetAttrKey, KeyPath
from xtree.register import register_pytree_node
from xtree.registry import PyTree
from xtree.treedef import Mismatch, PyTreeDef, find_mismatches, flatten_up_to

__all__ = [
    "broadcast_prefix", "prefix_errors", "tree_flatten_with_path", "tree_leaves_with_path",
    "tree_map_with_path", "Partial", "tree_all", "tree_broadcast", "tree_map", "tree_reduce",
    "tree_reduce_associative", "tree_transpose",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------------- prefix
# Prefixes: a tree whose leaves stand for whole subtrees of another.
#
# `in_axes=(0, {"w": None, "b": 1})` is a prefix of the arguments it is about: each of its leaves
# applies to all leaves of the subtree at the same place. Here such a leaf is repeated that often,
# and all the places where the two do not fit are told.


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


# ----------------------------------------------------------------------------------------- paths
# Flatten and map with key paths: each leaf together with where it lies.


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


# --------------------------------------------------------------------------------------- partial
# `Partial`: a function with some arguments bound, as a tree.
#
# The bound arguments are children and the function is metadata, so a `Partial` can be passed to
# and returned from transformed functions: what is bound is traced, differentiated and batched
# like any other argument.


class Partial(functools.partial):  # type: ignore[type-arg]
    """`functools.partial` whose bound arguments are leaves.

    A `Partial` of a `Partial` is one `Partial` with all the arguments. A `functools.partial` given
    as the function stays as it
    is: what it binds is constant.

    Example:
        >>> import xtree
        >>> add = Partial(lambda x, y: x + y, 1)
        >>> add(2)
        3
        >>> xtree.leaves(add)
        [1]
        >>> xtree.map(lambda x: 10 * x, add)(2)
        12
    """

    @boundary
    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        """Bind the arguments."""
        if type(func) is Partial:
            args = func.args + args
            keywords = {**func.keywords, **keywords}
            func = func.func
        if isinstance(func, functools.partial) and not hasattr(func, "__wrapped__"):
            func = _Constant(func)  # else functools would merge the arguments
        return super().__new__(cls, func, *args, **keywords)


class _Constant:
    """A `functools.partial` as an opaque function."""

    __slots__ = ("func",)

    def __init__(self, func: functools.partial[Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if type(other) is _Constant else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


def _flatten(partial: Partial) -> tuple[tuple[Any, Any], Any]:
    return (partial.args, partial.keywords), partial.func


def _unflatten(func: Any, children: tuple[Any, Any]) -> Partial:
    args, keywords = children
    return Partial(func, *args, **keywords)


def _flatten_with_keys(partial: Partial) -> Any:
    pairs = ((GetAttrKey("args"), partial.args), (GetAttrKey("keywords"), partial.keywords))
    return pairs, partial.func


register_pytree_node(Partial, _flatten, _unflatten, _flatten_with_keys)


# ------------------------------------------------------------------------------------ transforms
# Map, reduce, transpose and broadcast trees.
#
# Each is flatten, a loop over the leaves, and unflatten. Where several trees go in, the first
# sets the structure and must be a prefix of the others.


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
                    "Mismatch: an inner tree has another structure.",
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
        by_order = _leaves_by_order(outer_treedef, inner_treedef, tree)
        if by_order is not None:
            return by_order
        raise TypeError(
            message(
                "transpose",
                "Mismatch: the tree does not have the outer structure.",
                got=f"{tree_structure(tree)}",
                expected=f"{outer_treedef} or a deeper tree",
            )
        ) from error


def _leaves_by_order(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, tree: Any
) -> list[Any] | None:
    """Return the inner trees of a node of a user's class, by the number of their leaves.

    The class may flatten what is inside of its values, too, as a mapping of Haiku does, so that
    its structure is not that of the outer tree. None where the tree is of another class, or has
    another number of leaves.
    """
    leaves, treedef = tree_flatten(tree)
    node, outer_node = treedef.node_data(), outer_treedef.node_data()
    if inner_treedef is None or node is None or outer_node is None or node[0] is not outer_node[0]:
        return None
    size = inner_treedef.num_leaves
    if node[0] in _BUILTIN_NODES or len(leaves) != size * outer_treedef.num_leaves:
        return None
    starts = range(0, len(leaves), size) if size else []
    return [inner_treedef.unflatten(leaves[i : i + size]) for i in starts]


_BUILTIN_NODES = (dict, list, tuple, type(None))  # which flatten one level


def _combine(operation: Callable[[Any, Any], Any], leaves: list[Any]) -> Any:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return operation(_combine(operation, leaves[:middle]), _combine(operation, leaves[middle:]))


def _nothing_to_reduce(operation: str, argument: str) -> TypeError:
    return TypeError(message(operation, "the tree has no leaves.", hint=f"pass {argument}=..."))


boundaries(globals(), written=True)
