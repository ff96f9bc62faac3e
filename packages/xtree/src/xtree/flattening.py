"""Flatten: the leaves of a tree, in order, and its structure; walks with `is_leaf`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from xtree.boundaries import boundaries, leave
from xtree.errors import DepthError, message, shown, with_article
from xtree.interning import remember
from xtree.key_paths import KeyEntry, KeyPath, keystr
from xtree.registry import DICT, LIST, NONE, TUPLE, NodeType, PyTree, default_registry, sorted_keys
from xtree.treedef import (
    LEAF,
    MAX_DEPTH,
    MAX_RECENT,
    USES_BEFORE_COMPILING,
    PyTreeDef,
    can_match,
    compile_match,
    is_compilable,
    make_treedef,
    unflatten,
)

__all__ = [
    "walk", "walk_with_path", "all_leaves", "flatten_one_level", "flatten_one_level_with_keys",
    "flattener", "is_tree_node", "tree_flatten", "tree_leaves", "tree_structure",
    "tree_unflatten",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------------ walk
# Walk a tree with a stack of its own: with `is_leaf`, with key paths, and to any depth.
#
# The general way to flatten. It enters the containers one by one, keeps those it is inside of on
# a stack, and so can tell a container that holds itself from a tree that is merely deep, and say
# where.


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
            levels.append(_enter(node, path, value, with_keys))
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


def _enter(node: NodeType, path: KeyPath, value: Any, with_keys: bool) -> _Level:
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


# ------------------------------------------------------------------------------------ flattening
# Flatten: the leaves of a tree, in order, and its structure.
#
# This is on the path of every call of a compiled function, so it is written for speed: one
# dictionary look-up by exact type finds a flattener (None marks a leaf), which appends leaves and
# returns the definition of its node, found by the definitions of its children. A container that
# holds leaves only is recognised by one set operation in C, and values that keep having one
# structure are recognised by a function compiled for it. Trees too deep for Python's recursion,
# and calls with `is_leaf`, go through `walk`, which needs neither.


def tree_flatten(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], PyTreeDef]:
    """Take a tree apart into its leaves and its structure.

    Args:
        tree: nested containers; everything whose type is not registered is a leaf, `None` is a
            node without leaves.
        is_leaf: called with every node and leaf before it is entered; where it returns true the
            value is a leaf.

    Returns:
        The list of leaves, depth first, dicts in the order of their sorted keys; and the structure.

    Raises:
        DepthError: the tree is deeper than 1000 levels, or a container holds itself.
        KeyOrderError: the keys of a dict cannot be sorted.
        MalformedNodeError: a registered flatten function does not return a pair of children and
            metadata.

    Example:
        >>> tree_flatten({"b": 3, "a": (1, [2, None])})
        ([1, 2, 3], PyTreeDef({'a': (*, [*, None]), 'b': *}))
    """
    leaves: list[Any] = []
    try:
        if is_leaf is not None:
            return leaves, walk(tree, leaves.append, is_leaf)
        try:
            flattener = _flatteners[type(tree)]
        except KeyError:
            flattener = _learn(type(tree))
        if flattener is None:
            return [tree], LEAF
        try:
            return leaves, flattener(tree, leaves)
        except RecursionError:
            leaves = []
            return leaves, walk(tree, leaves.append)
    except Exception as error:
        leave(error)
        raise


def flattener() -> Callable[[Any], tuple[list[Any], PyTreeDef]]:
    """Return a `flatten` for one place that mostly meets trees of one structure.

    It gives what `flatten` gives. Where the structure stays the same it is compiled to a function,
    also where `flatten` itself, which all places share, could not tell: for a short list of
    tuples it takes half the time.

    Example:
        >>> flatten_parameters = flattener()
        >>> flatten_parameters([(1, 2), (3, 4)])
        ([1, 2, 3, 4], PyTreeDef([(*, *), (*, *)]))
    """
    guess = _Guess()

    def flatten(tree: Any) -> tuple[list[Any], PyTreeDef]:
        compiled = guess.compiled
        if compiled is not None:
            match, treedef = compiled
            leaves = match(tree)
            if leaves is not None:
                return leaves, treedef
        leaves, treedef = tree_flatten(tree)
        guess.note(treedef)
        return leaves, treedef

    return flatten


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree; see `flatten`.

    Example:
        >>> tree_leaves([1, {"k1": 2, "k2": (3, 4)}, 5])
        [1, 2, 3, 4, 5]
    """
    try:
        return tree_flatten(tree, is_leaf)[0]
    except Exception as error:
        leave(error)
        raise


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of a tree; see `flatten`.

    Example:
        >>> tree_structure([1, (2, 3)]) == tree_structure(["x", ("y", "z")])
        True
    """
    try:
        return tree_flatten(tree, is_leaf)[1]
    except Exception as error:
        leave(error)
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """Build a tree from its structure and its leaves: the inverse of `flatten`.

    Raises:
        ValueError: there are too few leaves or too many.

    Example:
        >>> tree_unflatten(tree_structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
        {'a': 1, 'b': (2, 3)}
    """
    try:
        if type(treedef) is PyTreeDef:
            return unflatten(treedef, leaves)
        if hasattr(treedef, "unflatten"):
            return treedef.unflatten(leaves)
        raise TypeError(message(
            "unflatten", "the first argument is not a structure.",
            got=f"a value of type {type(treedef).__name__}", expected="unflatten(treedef, leaves)",
        ))  # fmt: skip
    except Exception as error:
        leave(error)
        raise


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Say whether every item of `iterable` is a leaf.

    Example:
        >>> all_leaves([1, "a"]), all_leaves([1, [2]]), all_leaves([None])
        (True, False, False)
    """
    return all(
        (is_leaf is not None and is_leaf(item)) or default_registry.find(type(item)) is None
        for item in iterable
    )


def is_tree_node(typ: type) -> bool:
    """Say whether instances of exactly `typ` are nodes rather than leaves."""
    return default_registry.is_node(typ)


def flatten_one_level(tree: PyTree) -> tuple[tuple[Any, ...], Hashable]:
    """Return the children of the root of a tree, and its metadata.

    Raises:
        ValueError: the value is a leaf.

    Example:
        >>> flatten_one_level({"b": [1], "a": 2})
        ((2, [1]), ('a', 'b'))
    """
    return _node_of(tree).children(tree)


def flatten_one_level_with_keys(
    tree: PyTree,
) -> tuple[tuple[tuple[KeyEntry, Any], ...], Hashable]:
    """Return pairs of key and child of the root of a tree, and its metadata.

    Raises:
        ValueError: the value is a leaf.

    Example:
        >>> flatten_one_level_with_keys([7])
        (((SequenceKey(idx=0), 7),), None)
    """
    return _node_of(tree).children_with_keys(tree)


def _node_of(tree: Any) -> NodeType:
    node = default_registry.find(type(tree))
    if node is None:
        raise ValueError(
            message(
                "flatten_one_level",
                "the value is a leaf.",
                got=f"{type(tree).__qualname__}: {shown(tree)}",
                expected="a container, or an instance of a registered type",
            )
        )
    return node


# From here on: flatteners, functions (value, leaves) -> definition that append the leaves of the
# value.


def _flatten_children(values: Iterable[Any], leaves: list[Any]) -> tuple[PyTreeDef, ...]:
    child_defs = []
    for value in values:
        try:
            flattener = _flatteners[type(value)]
        except KeyError:
            flattener = _learn(type(value))
        if flattener is None:
            leaves.append(value)
            child_defs.append(LEAF)
        else:
            child_defs.append(flattener(value, leaves))
    return tuple(child_defs)


class _Guess:
    """The structure that values of one kind had lately, compiled if they keep having it."""

    __slots__ = ("compiled", "times", "treedef")

    def __init__(self) -> None:
        self.treedef: PyTreeDef = LEAF
        self.times = 0
        # One attribute, so that other threads never see the function of one structure with another.
        self.compiled: tuple[Callable[[Any], list[Any] | None], PyTreeDef] | None = None

    def note(self, treedef: PyTreeDef) -> None:
        """Learn from one more value, which was not recognised."""
        if treedef is not self.treedef:
            self.compiled = None
            self.times = 0
            # A definition that compares by value may hold functions, which must not live on here.
            self.treedef = treedef if type(treedef) is PyTreeDef else LEAF
            return
        self.times += 1
        if self.times == USES_BEFORE_COMPILING and is_compilable(treedef) and can_match(treedef):
            match = treedef.match or compile_match(treedef)
            treedef.match = match
            self.compiled = (match, treedef)


def _sequence_flattener(node: NodeType) -> Callable[[Any, list[Any]], PyTreeDef]:
    recent = node.recent
    flatteners = _flatteners
    leaf_types = default_registry.leaf_types
    flatten_long = _long_sequence_flattener(node)

    def flatten(values: Any, leaves: list[Any]) -> PyTreeDef:
        if len(values) > 4:
            if leaf_types.issuperset(map(type, values)):
                leaves += values
                child_defs: Any = (LEAF,) * len(values)
            else:
                return flatten_long(values, leaves)
        else:
            # As _flatten_children; a call and its arguments would be a third of the time of a pair.
            child_defs = []
            for value in values:
                try:
                    flattener = flatteners[type(value)]
                except KeyError:
                    flattener = _learn(type(value))
                if flattener is None:
                    leaves.append(value)
                    child_defs.append(LEAF)
                else:
                    child_defs.append(flattener(value, leaves))
            child_defs = tuple(child_defs)
        try:
            return recent[child_defs]  # type: ignore[no-any-return]
        except (KeyError, TypeError):  # TypeError: metadata that cannot be hashed
            return make_treedef(node, None, child_defs)

    return flatten


def _long_sequence_flattener(node: NodeType) -> Callable[[Any, list[Any]], PyTreeDef]:
    guess_by_length: dict[int, _Guess] = {}

    def flatten(values: Any, leaves: list[Any]) -> PyTreeDef:
        guess = guess_by_length.get(len(values))
        if guess is None:
            guess = remember(guess_by_length, len(values), _Guess(), _MAX_PLANS)
        compiled = guess.compiled
        if compiled is not None:
            match, treedef = compiled
            found = match(values)
            if found is not None:
                leaves += found
                return treedef
        treedef = make_treedef(node, None, _flatten_children(values, leaves))
        guess.note(treedef)
        return treedef

    return flatten


class _DictPlan:
    """What is known of the dicts with certain keys in a certain order."""

    __slots__ = ("flat_def", "guess", "keys", "recent", "select")

    def __init__(self, keys_as_inserted: tuple[str, ...]) -> None:
        self.keys = tuple(sorted(keys_as_inserted))
        is_sorted = self.keys == keys_as_inserted
        self.select = None if is_sorted else itemgetter(*self.keys)
        self.flat_def = make_treedef(DICT, self.keys, (LEAF,) * len(self.keys))
        self.recent: dict[Any, PyTreeDef] = {}
        self.guess = _Guess()


_STR_ONLY = frozenset({str})
_MAX_PLANS = 1024
# How dictionaries of these keys are taken apart: their order, and their structure.
_plans: dict[tuple[Any, ...], _DictPlan] = {}
_EMPTY_DICT_DEF = make_treedef(DICT, (), ())


def _flatten_dict(value: dict[Any, Any], leaves: list[Any]) -> PyTreeDef:
    if not value:
        return _EMPTY_DICT_DEF
    keys = tuple(value)
    # Exactly str: an instance of a subclass may equal a string, but must come back as itself.
    if not _STR_ONLY.issuperset(map(type, keys)):
        return _flatten_dict_of_any_keys(value, leaves)
    plan = _plans.get(keys) or remember(_plans, keys, _DictPlan(keys), _MAX_PLANS)
    compiled = plan.guess.compiled
    if compiled is not None:
        match, treedef = compiled
        found = match(value)
        if found is not None:
            leaves += found
            return treedef
    values = value.values() if plan.select is None else plan.select(value)
    if default_registry.leaf_types.issuperset(map(type, values)):
        leaves += values
        return plan.flat_def
    child_defs = _flatten_children(values, leaves)
    try:
        treedef = plan.recent[child_defs]
    except (KeyError, TypeError):  # TypeError: metadata that cannot be hashed
        treedef = make_treedef(DICT, plan.keys, child_defs)
        if type(treedef) is PyTreeDef:
            remember(plan.recent, child_defs, treedef, MAX_RECENT)
    plan.guess.note(treedef)
    return treedef


def _flatten_dict_of_any_keys(value: dict[Any, Any], leaves: list[Any]) -> PyTreeDef:
    keys = sorted_keys(value)
    return make_treedef(DICT, keys, _flatten_children([value[key] for key in keys], leaves))


_NONE_DEF = make_treedef(NONE, None, ())


def _flatten_none(value: None, leaves: list[Any]) -> PyTreeDef:
    return _NONE_DEF


def _make_registered_flattener(node: NodeType) -> Callable[[Any, list[Any]], PyTreeDef]:
    children_of = node.flatten if node.is_trusted else node.children
    recent = node.recent

    def flatten(value: Any, leaves: list[Any]) -> PyTreeDef:
        values, data = children_of(value)
        child_defs = _flatten_children(values, leaves)
        if data is None:
            try:
                return recent[child_defs]  # type: ignore[no-any-return]
            except (KeyError, TypeError):  # TypeError: metadata that cannot be hashed
                pass
        return make_treedef(node, data, child_defs)

    return flatten


def _make_flattener(node: NodeType) -> Callable[[Any, list[Any]], PyTreeDef]:
    if node is TUPLE or node is LIST:
        return _sequence_flattener(node)
    if node is DICT:
        return _flatten_dict
    if node is NONE:
        return _flatten_none
    return _make_registered_flattener(node)


def _learn(type_: type) -> Any:
    return default_registry.learn(type_, _make_flattener)


_flatteners = default_registry.flatteners


boundaries(
    globals(),
    written=True,
    names=[
        "all_leaves",
        "flatten_one_level",
        "flatten_one_level_with_keys",
        "flattener",
        "is_tree_node",
        "tree_flatten",
        "tree_leaves",
        "tree_structure",
        "tree_unflatten",
    ],
)
