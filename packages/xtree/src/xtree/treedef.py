"""`PyTreeDef`: the structure of a tree without its leaves; unflatten; mismatch errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, TypeVar

from xtree import errors
from xtree.boundaries import boundaries, leave
from xtree.errors import MalformedNodeError, StructureMismatchError, message, shown, with_article
from xtree.generated_code import define_function
from xtree.interning import InternTable, equality_key, is_hashable, is_same, remember, value_key
from xtree.key_paths import KeyPath, keystr
from xtree.records import Record
from xtree.registry import DICT, TUPLE, NodeType, default_registry

__all__ = [
    "node_text", "unflatten", "Mismatch", "find_mismatches", "flatten_up_to", "LEAF",
    "MAX_DEPTH", "PyTreeDef", "make_treedef", "treedef_children", "treedef_from_node_data",
    "treedef_is_leaf", "treedef_tuple", "USES_BEFORE_COMPILING", "can_match", "compile_match",
    "is_compilable",
]  # fmt: skip

__dir__ = __all__.copy


# ---------------------------------------------------------------------------------- treedef text
# How a tree definition prints: as its containers, with `*` for each leaf.


def node_text(treedef: PyTreeDef, children: list[str]) -> str:
    """Return the text of a node whose children have the given texts."""
    if treedef.node is None:
        return "*"
    items = ", ".join(children)
    kind = treedef.node.type
    if kind is tuple:
        return f"({items},)" if len(children) == 1 else f"({items})"
    if kind is list:
        return f"[{items}]"
    if kind is dict:
        pairs = zip(treedef.data, children, strict=True)
        return "{" + ", ".join([f"{key!r}: {child}" for key, child in pairs]) + "}"
    if kind is type(None):
        return "None"
    data = "" if hasattr(kind, "_fields") and treedef.data is None else f"[{treedef.data}]"
    return f"CustomNode({treedef.node.label}{data}, [{items}])"


# ---------------------------------------------------------------------------------- unflattening
# Unflatten: build a tree from its structure and its leaves.
#
# A flat container is built at once; others by recursion over the structure, one call a node,
# until a structure has been built so often that compiling it pays. Trees deeper than Python likes
# to recurse are built with a stack.

# Deeper structures are built with a stack of their own, which no recursion limit cuts short.
_MAX_RECURSION = 100


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build the tree of structure `treedef` with the given leaves, in order.

    Raises:
        ValueError: there are too few leaves or too many.
    """
    if type(leaves) is not list:
        leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise _wrong_count(treedef, len(leaves))
    build = treedef.build
    if build is not None:
        return build(leaves)
    node = treedef.node
    if node is None:
        return leaves[0]
    if treedef.is_flat:
        return node.unflatten(treedef.data, tuple(leaves))
    treedef.times_built += 1
    if treedef.times_built == USES_BEFORE_COMPILING and is_compilable(treedef):
        treedef.build = compile_build(treedef)
    if treedef.depth > _MAX_RECURSION:
        return _build_deep(treedef, iter(leaves))
    return _build(treedef, iter(leaves).__next__)


def _build(treedef: PyTreeDef, next_leaf: Callable[[], Any]) -> Any:
    children = [
        next_leaf() if child.node is None else _build(child, next_leaf)
        for child in treedef.child_defs
    ]
    return treedef.node.unflatten(treedef.data, tuple(children))  # type: ignore[union-attr]


def _build_deep(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    stack: list[tuple[PyTreeDef, list[Any]]] = [(treedef, [])]
    while True:
        parent, children = stack[-1]
        if len(children) < len(parent.child_defs):
            child = parent.child_defs[len(children)]
            if child.node is None:
                children.append(next(leaves))
            else:
                stack.append((child, []))
            continue
        value = parent.node.unflatten(parent.data, tuple(children))  # type: ignore[union-attr]
        stack.pop()
        if not stack:
            return value
        stack[-1][1].append(value)


def _wrong_count(treedef: PyTreeDef, count: int) -> ValueError:
    problem = "too few leaves" if count < treedef.num_leaves else "too many leaves"
    return ValueError(
        message(
            "unflatten",
            f"{problem} for the structure.",
            got=f"{count} leaves",
            expected=f"{treedef.num_leaves} leaves",
        )
    )


# -------------------------------------------------------------------------------------- mismatch
# Flatten a tree up to a structure, and say where and why that fails.
#
# The way that succeeds is a recursion that checks each container once and collects subtrees. Only
# when it fails are the two walked again with key paths, to name the first place (or all places)
# where they differ, and how.


class Mismatch(Record):
    """One place where a structure is not a prefix of a tree.

    Attributes:
        path: the key path of the place.
        problem: what differs, as a short phrase.
        got: the subtree of the full tree there, described.
        expected: what the prefix has there, described.
        hint: the remedy, where one is certain.
    """

    path: KeyPath
    problem: str
    got: str
    expected: str
    hint: str = ""

    def error(
        self, operation: str, prefix: str = "the prefix", full: str = "the tree"
    ) -> StructureMismatchError:
        """Return the exception that reports this mismatch of the two named trees."""
        place = f" at {keystr(self.path)}" if self.path else ""
        return StructureMismatchError(
            message(
                operation,
                f"{prefix} and {full} differ{place}: {self.problem}.",
                got=f"{full}{keystr(self.path)}: {self.got}",
                expected=f"{self.expected}, as in {prefix}",
                hint=self.hint,
            )
        )


def flatten_up_to(
    treedef: PyTreeDef,
    tree: Any,
    operation: str = "flatten_up_to",
    prefix: str = "the structure",
    full: str = "the tree",
) -> list[Any]:
    """Return the subtrees of `tree` that lie at the leaves of `treedef`.

    Args:
        treedef: the structure.
        tree: a tree of which it is a prefix.
        operation: the public operation, for the error.
        prefix: what to call the structure in the error.
        full: what to call the tree in the error.

    Raises:
        StructureMismatchError: the structure is not a prefix; names the key path and the
            difference.
    """
    if treedef.match is not None:
        leaves = treedef.match(tree)
        if leaves is not None:
            return leaves
    subtrees: list[Any] = []
    if treedef.depth <= _MAX_RECURSION:
        if _collect(treedef, tree, subtrees):
            return subtrees
    elif _collect_deep(treedef, tree, subtrees):
        return subtrees
    mismatches = find_mismatches(treedef, tree, limit=1)
    if not mismatches:
        raise _changing_children(operation, f"{full}: {shown(tree)}")
    raise mismatches[0].error(operation, prefix, full)


def find_mismatches(treedef: PyTreeDef, tree: Any, limit: int | None = None) -> list[Mismatch]:
    """Return the places, in order, at most `limit`, where `treedef` is not a prefix of `tree`."""
    found: list[Mismatch] = []
    stack: list[tuple[PyTreeDef, Any, KeyPath]] = [(treedef, tree, ())]
    while stack and (limit is None or len(found) < limit):
        part, value, path = stack.pop()
        node = part.node
        if node is None:
            continue
        mismatch = _mismatch_at(part, node, value, path)
        if mismatch is not None:
            found.append(mismatch)
            continue
        keyed_children, _ = node.children_with_keys(value)
        if len(keyed_children) != len(part.child_defs):
            raise _changing_children(f"flatten {node.type.__qualname__}", shown(value))
        children = zip(part.child_defs, keyed_children, strict=True)
        stack += [(child, v, (*path, key)) for child, (key, v) in reversed(list(children))]
    return found


def _collect(treedef: PyTreeDef, tree: Any, subtrees: list[Any]) -> bool:
    """Append the subtrees at the leaves of `treedef`; say whether it is a prefix of `tree`."""
    node = treedef.node
    if node is None:
        subtrees.append(tree)
        return True
    values = _matching_children(treedef, node, tree)
    if values is None:
        return False
    if treedef.is_flat:
        subtrees += values
        return True
    for child, value in zip(treedef.child_defs, values, strict=True):
        if child.node is None:
            subtrees.append(value)
        elif not _collect(child, value, subtrees):
            return False
    return True


def _collect_deep(treedef: PyTreeDef, tree: Any, subtrees: list[Any]) -> bool:
    stack = [(treedef, tree)]
    while stack:
        part, value = stack.pop()
        if part.node is None:
            subtrees.append(value)
            continue
        values = _matching_children(part, part.node, value)
        if values is None:
            return False
        stack += reversed(list(zip(part.child_defs, values, strict=True)))
    return True


def _matching_children(treedef: PyTreeDef, node: NodeType, value: Any) -> Any:
    """Return the children of `value` if it is the node that `treedef` asks for, else None."""
    kind = type(value)
    if kind is not node.type:
        return None
    if kind is tuple or kind is list:
        return value if len(value) == len(treedef.child_defs) else None
    if treedef.select is not None:
        if len(value) != len(treedef.child_defs):
            return None
        try:
            return treedef.select(value)
        except KeyError:
            return None
    values, data = node.children(value)
    if len(values) != len(treedef.child_defs) or not is_same(data, treedef.data):
        return None
    return values


def _mismatch_at(treedef: PyTreeDef, node: NodeType, value: Any, path: KeyPath) -> Mismatch | None:
    kind: Any = node.type
    if type(value) is not kind:
        hint = ""
        if value is None or kind is type(None):
            hint = "None is a node without leaves; is_leaf=lambda x: x is None makes it a leaf"
        expected = _describe(kind, len(treedef.child_defs))
        return Mismatch(path, "different types", _describe_value(value), expected, hint)
    if treedef.select is not None:
        return _key_mismatch(treedef, value, path)
    values, data = node.children(value)
    count = len(treedef.child_defs)
    if kind is tuple or kind is list:
        if len(values) == count:
            return None
        return Mismatch(path, "different lengths", _describe_value(value), _describe(kind, count))
    if not is_same(data, treedef.data):
        return Mismatch(
            path,
            f"different metadata of {kind.__qualname__}",
            shown(data),
            shown(treedef.data),
        )
    if len(values) != count:
        got = f"{len(values)} children of {kind.__qualname__}"
        return Mismatch(path, "different numbers of children", got, f"{count} children")
    return None


def _key_mismatch(treedef: PyTreeDef, value: dict[Any, Any], path: KeyPath) -> Mismatch | None:
    expected_keys = set(treedef.data)
    missing = [key for key in treedef.data if key not in value]
    extra = [key for key in value if key not in expected_keys]
    if not missing and not extra:
        return None
    parts = []
    if missing:
        parts.append(f"without the keys {shown(missing)}")
    if extra:
        parts.append(f"with the additional keys {shown(extra)}")
    got = f"a dict {' and '.join(parts)}"
    return Mismatch(path, "different keys", got, f"a dict with the keys {shown([*treedef.data])}")


def _changing_children(operation: str, got: str) -> MalformedNodeError:
    return MalformedNodeError(
        message(
            operation,
            "a registered flatten function gave other children when it was called again.",
            got=got,
            expected="the same children whenever it is called with the same object",
        )
    )


def _describe(kind: type, count: int) -> str:
    if kind is type(None):
        return "None"
    if kind is tuple or kind is list:
        return f"a {kind.__name__} of length {count}"
    return with_article(kind.__qualname__)


def _describe_value(value: Any) -> str:
    if type(value) in (tuple, list):
        return _describe(type(value), len(value))
    if value is None:
        return "None"
    return f"{with_article(type(value).__qualname__)}, {shown(value, 60)}"


# --------------------------------------------------------------------------------------- treedef
# `PyTreeDef`: the structure of a tree without its leaves.
#
# A definition is a node type, its metadata and the definitions of its children; `LEAF` stands for
# one leaf. Definitions are immutable and interned: two that are equal are the same object, so
# `==` and `hash`, and with them every cache that is keyed by structure, cost nothing. The
# exception is metadata compared by value (see `interning`): those definitions are a subclass that
# walks both structures, with the hash computed once.

# A tree this deep is a mistake (mostly a container that holds itself). Python's own recursion
# limit is 1000.
MAX_DEPTH = 1000

# Definitions made lately are kept alive per node type, up to this many, so that flattening the
# same structure again and again finds it although it has no other holder.
MAX_RECENT = 1024


class PyTreeDef:
    """The structure of a tree: its containers, their metadata, and where its leaves are.

    Made by `flatten` and `structure`, never directly. Immutable, hashable (metadata that has no
    hash counts by its `==`), and picklable when the types and metadata in it are.

    Example:
        >>> import xtree
        >>> treedef = xtree.structure({"w": (1, 2), "b": None})
        >>> treedef
        PyTreeDef({'b': None, 'w': (*, *)})
        >>> treedef.num_leaves, treedef.num_nodes
        (2, 5)
        >>> treedef is xtree.structure({"b": None, "w": (3, 4)})
        True
    """

    __slots__ = (
        "__weakref__",
        "build",
        "child_defs",
        "data",
        "depth",
        "is_flat",
        "match",
        "node",
        "num_leaves",
        "num_nodes",
        "select",
        "times_built",
    )

    node: NodeType | None
    data: Any
    child_defs: tuple[PyTreeDef, ...]
    num_leaves: int
    num_nodes: int
    depth: int
    is_flat: bool
    select: Callable[[Any], Any] | None
    build: Callable[[list[Any]], Any] | None
    match: Callable[[Any], list[Any] | None] | None
    times_built: int

    def __init__(self) -> None:
        raise TypeError(
            message(
                "PyTreeDef",
                "a tree definition is not made directly.",
                hint="structure(tree), treedef_tuple(...) and treedef_from_node_data(...) make one",
            )
        )

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree of this structure with the given leaves.

        Args:
            leaves: exactly `num_leaves` values, in the order in which `flatten` gives them.

        Raises:
            ValueError: there are too few leaves or too many.
        """
        try:
            return unflatten(self, leaves)
        except Exception as error:
            leave(error)
            raise

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` that lie where this structure has leaves.

        Raises:
            StructureMismatchError: this structure is not a prefix of `tree`.

        Example:
            >>> import xtree
            >>> xtree.structure((0, 0)).flatten_up_to(([1, 2], {"a": 3}))
            [[1, 2], {'a': 3}]
        """
        try:
            return flatten_up_to(self, tree)
        except Exception as error:
            leave(error)
            raise

    def is_prefix(self, other: PyTreeDef) -> bool:
        """Say whether replacing leaves of this structure by subtrees can give `other`.

        Example:
            >>> import xtree
            >>> xtree.structure((0, 0)).is_prefix(xtree.structure((0, [0, 0])))
            True
        """
        pairs = [(self, other)]
        while pairs:
            prefix, full = pairs.pop()
            if prefix is full or prefix.node is None:
                continue
            if not _same_kind(prefix, full) or not is_same(prefix.data, full.data):
                return False
            pairs += zip(prefix.child_defs, full.child_defs, strict=True)
        return True

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with every leaf replaced by `inner`.

        Example:
            >>> import xtree
            >>> xtree.structure([0, 0]).compose(xtree.structure((0, 0)))
            PyTreeDef([(*, *), (*, *)])
        """

        def rebuild(treedef: PyTreeDef, children: list[PyTreeDef]) -> PyTreeDef:
            if treedef.node is None:
                return inner
            return make_treedef(treedef.node, treedef.data, tuple(children))

        composed: PyTreeDef = _fold(self, rebuild)
        return composed

    def children(self) -> list[PyTreeDef]:
        """Return the definitions of the root's children; empty for a leaf."""
        return list(self.child_defs)

    def node_data(self) -> tuple[type, Any] | None:
        """Return the type and metadata (for a dict: sorted keys) of the root; None for a leaf."""
        return None if self.node is None else (self.node.type, self.data)

    def walk(
        self,
        f_node: Callable[[tuple[Any, ...], Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Combine leaves from the bottom up, and return what comes out for the root.

        Args:
            f_node: of the results for a node's children, and the node's metadata.
            f_leaf: of a leaf; None takes the leaf itself.
            leaves: as many as the structure has.

        Example:
            >>> import xtree
            >>> treedef = xtree.structure({"a": 0, "b": (0, 0)})
            >>> treedef.walk(lambda results, data: sum(results), None, [1, 2, 3])
            6
        """
        rest = iter(leaves)

        def combine(each: PyTreeDef, results: list[Any]) -> Any:
            if each.node is None:
                return next(rest) if f_leaf is None else f_leaf(next(rest))
            data = list(each.data) if each.node is DICT else each.data
            return f_node(tuple(results), data)

        return _fold(self, combine)

    def __repr__(self) -> str:
        return f"PyTreeDef({_fold(self, node_text)})"

    def _repr_html_(self) -> str:
        return errors.preformatted(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Flat, because pickling level by level would recurse in C.
        steps = [
            (*(treedef.node_data() or (None, None)), len(treedef.child_defs))
            for treedef in _post_order(self)
        ]
        return _from_steps, (steps,)


_HASHED_BY_RECURSION = 64


class _ByValueTreeDef(PyTreeDef):
    """A definition with metadata whose equality is the metadata's own affair."""

    __slots__ = ("_hash", "data_key")
    _hash: int
    data_key: Any  # of metadata that can be hashed, made when it is first compared

    def __getattr__(self, name: str) -> Any:
        if name == "data_key":
            self.data_key = equality_key(self.data)
            return self.data_key
        if name == "_hash":
            if self.depth > _HASHED_BY_RECURSION:  # else Python's recursion would not reach down
                for each in _post_order(self):
                    if isinstance(each, _ByValueTreeDef):
                        each._hash = hash((each.child_defs, each.data_key))
            self._hash = hash((self.child_defs, self.data_key))
            return self._hash
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        pairs: list[tuple[PyTreeDef, PyTreeDef]] = [(self, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if not isinstance(left, _ByValueTreeDef) or not isinstance(right, _ByValueTreeDef):
                return False
            if not _same_kind(left, right) or left.data_key != right.data_key:
                return False
            pairs += zip(left.child_defs, right.child_defs, strict=True)
        return True

    def __hash__(self) -> int:
        return self._hash


def make_treedef(node: NodeType, data: Any, child_defs: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """Return the one definition of this node type, metadata and children."""
    data_key, by_value = value_key(data)
    # The children are alive as long as the definition that holds them, so their identities stand
    # for them.
    if by_value and _BY_IDENTITY.issuperset(map(type, child_defs)):
        recent_key = child_defs if data is None else (data_key, child_defs)
        recent: PyTreeDef | None = node.recent.get(recent_key)
        if recent is not None:
            return recent
        key = (node.type, data_key, *map(id, child_defs))
        treedef = _table.get_or_make(key, lambda: _new_treedef(PyTreeDef, node, data, child_defs))
        remember(node.recent, recent_key, treedef, MAX_RECENT)
        return treedef
    if not by_value and not is_hashable(data):  # it can change: what it is now is its key
        treedef = _new_treedef(_ByValueTreeDef, node, data, child_defs)
        treedef.data_key = equality_key(data)
        return treedef
    key = (node.type, data_key, *map(id, child_defs))
    return _table.get_or_make(key, lambda: _new_treedef(_ByValueTreeDef, node, data, child_defs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the definitions of the children of a structure's root."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Say whether a structure is a single node: a leaf, `None` or an empty container."""
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose items have the given structures.

    Example:
        >>> import xtree
        >>> treedef_tuple([xtree.structure(1), xtree.structure([1])])
        PyTreeDef((*, [*]))
    """
    return make_treedef(TUPLE, None, tuple(treedefs))


def treedef_from_node_data(
    node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef] = ()
) -> PyTreeDef:
    """Return the structure that `node_data()` and `children()` describe.

    Args:
        node_data: a type and its metadata, or None for a leaf.
        children: the structures of the children.

    Raises:
        RegistrationError: the type is not registered.
    """
    if node_data is None:
        return LEAF
    type_, data = node_data
    node = default_registry.find(type_)
    if node is None:
        raise errors.RegistrationError(
            message(
                "treedef",
                f"{type_.__qualname__} is not registered as a pytree node.",
                hint=f"import {type_.__module__}, or whatever module registers it, first",
            )
        )
    return make_treedef(node, tuple(data) if node is DICT else data, tuple(children))


_T = TypeVar("_T", bound=PyTreeDef)


def _new_treedef(
    cls: type[_T], node: NodeType | None, data: Any, child_defs: tuple[PyTreeDef, ...]
) -> _T:
    treedef = object.__new__(cls)
    treedef.node = node
    treedef.data = data
    treedef.child_defs = child_defs
    treedef.num_leaves = 1 if node is None else sum([c.num_leaves for c in child_defs])
    treedef.num_nodes = 1 + sum([c.num_nodes for c in child_defs])
    treedef.depth = 1 + max([c.depth for c in child_defs], default=-1)
    treedef.is_flat = node is not None and all(c.node is None for c in child_defs)
    treedef.select = _selector(data) if node is DICT else None
    treedef.build = None
    treedef.match = None
    treedef.times_built = 0
    if treedef.depth > MAX_DEPTH:
        raise errors.DepthError(message("treedef", f"more than {MAX_DEPTH} levels of nesting."))
    return treedef


def _selector(keys: tuple[Any, ...]) -> Callable[[Any], Any]:
    # itemgetter of one key gives a bare value, and of none is an error.
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda mapping: tuple([mapping[key] for key in keys])


_BY_IDENTITY = frozenset({PyTreeDef})
_table: InternTable[PyTreeDef] = InternTable()
LEAF = _new_treedef(PyTreeDef, None, None, ())


def _same_kind(left: PyTreeDef, right: PyTreeDef) -> bool:
    """Say whether the roots agree in type and number of children."""
    if left.node is None or right.node is None:
        return left.node is right.node
    return left.node.type is right.node.type and len(left.child_defs) == len(right.child_defs)


def _post_order(treedef: PyTreeDef) -> Iterator[PyTreeDef]:
    """Yield all definitions inside `treedef`, children before their parent."""
    stack = [(treedef, iter(treedef.child_defs))]
    while stack:
        parent, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            yield parent
        else:
            stack.append((child, iter(child.child_defs)))


def _fold(treedef: PyTreeDef, combine: Callable[[PyTreeDef, list[Any]], Any]) -> Any:
    """Combine every definition with the results of its children, from the leaves up."""
    results: list[Any] = []
    for each in _post_order(treedef):
        count = len(each.child_defs)
        children = results[len(results) - count :]
        del results[len(results) - count :]
        results.append(combine(each, children))
    return results[0]


def _from_steps(steps: list[tuple[type | None, Any, int]]) -> PyTreeDef:
    results: list[PyTreeDef] = []
    for type_, data, count in steps:
        children = results[len(results) - count :]
        del results[len(results) - count :]
        node_data = None if type_ is None else (type_, data)
        results.append(treedef_from_node_data(node_data, children))
    return results[0]


# ----------------------------------------------------------------------------------- structure code
# Structures that are used often, compiled into Python functions of their own.
#
# `build` unpacks the list of leaves and evaluates the tree as one nested literal, `{'b': x0, 'w':
# [x1, (x2, x3)]}`. `match` is the way back: it takes a tree apart with straight-line code,
# checking type, length and keys of each container, and gives the leaves, or None when the tree
# has another structure. Both cost a third to a fifth of walking the structure; they are a
# shortcut only, and no result depends on whether it was taken.

# Compiling takes some 10 us a node, and saves some 0.2 us a node at each use.
USES_BEFORE_COMPILING = 64
_MAX_NODES = 2000
# CPython's parser refuses expressions nested some 100 levels and more.
_MAX_DEPTH = 30
# So many are looked at one by one in the time that a call for all takes.
_FEW_KEYS = 4

_STR_ONLY = frozenset({str})


def is_compilable(treedef: PyTreeDef) -> bool:
    """Say whether a structure is neither so small nor so large that compiling it does not pay."""
    return (
        not treedef.is_flat and 3 <= treedef.num_nodes <= _MAX_NODES and treedef.depth <= _MAX_DEPTH
    )


def compile_build(treedef: PyTreeDef) -> Callable[[list[Any]], Any]:
    """Return the function from a list of the right number of leaves to the tree."""
    names = [f"x{i}" for i in range(treedef.num_leaves)]
    constants: dict[str, Any] = {}
    expression = _literal(treedef, iter(names), constants)
    lines = ["def build(leaves):", f" [{', '.join(names)}] = leaves", f" return {expression}"]
    build: Callable[[list[Any]], Any] = _function("build", lines, constants)
    return build


def compile_match(treedef: PyTreeDef) -> Callable[[Any], list[Any] | None]:
    """Return the function from a tree to its leaves, or to None if it has another structure."""
    code = _MatchCode()
    code.add(treedef, "x0")
    code.constants |= {
        "is_leaves_only": default_registry.leaf_types.issuperset,
        "is_str_only": _STR_ONLY.issuperset,
        "value_key": value_key,
    }
    lines = [
        "def match(x0):",
        " try:",
        *[f"  {line}" for line in code.lines],
        f"  leaves = [{', '.join(code.leaves)}]",
        " except KeyError:",
        "  return None",
        " if not is_leaves_only(map(type, leaves)): return None",
        *[f" {line}" for line in code.checks_of_keys],
        " return leaves",
    ]
    match: Callable[[Any], list[Any] | None] = _function("match", lines, code.constants)
    return match


class _MatchCode:
    """Straight-line code that takes one structure apart."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.checks_of_keys: list[str] = []
        self.constants: dict[str, Any] = {}
        self.count = 0

    def add(self, treedef: PyTreeDef, value: str) -> None:
        """Append the code for the variable `value`, which should hold a tree of this structure."""
        node = treedef.node
        if node is None:
            self.leaves.append(value)
            return
        kind = node.type
        if kind is type(None):
            self.lines.append(f"if {value} is not None: return None")
            return
        names = [self._new_name() for _ in treedef.child_defs]
        type_ = kind.__name__ if kind in (tuple, list, dict) else self._constant(kind)
        self.lines.append(f"if type({value}) is not {type_}: return None")
        if kind is dict:
            self._take_items(treedef, value, names)
        elif kind is tuple or kind is list:
            self._unpack(value, names)
        else:
            self._take_children(treedef, value, names)
        for child, name in zip(treedef.child_defs, names, strict=True):
            self.add(child, name)

    def _take_items(self, treedef: PyTreeDef, value: str, names: list[str]) -> None:
        # Exactly str: an instance of a subclass may equal a string, but must come back as itself.
        self.checks_of_keys += (
            [f"for key in {value}:", "  if type(key) is not str: return None"]
            if len(names) <= _FEW_KEYS
            else [f"if not is_str_only(map(type, {value})): return None"]
        )
        self.lines.append(f"if len({value}) != {len(names)}: return None")
        for key, name in zip(treedef.data, names, strict=True):
            self.lines.append(f"{name} = {value}[{key!r}]")

    def _take_children(self, treedef: PyTreeDef, value: str, names: list[str]) -> None:
        assert treedef.node is not None
        children_of = self._constant(treedef.node.children)
        data_key = self._constant(value_key(treedef.data)[0])
        self.lines.append(f"{value}, data = {children_of}({value})")
        self.lines.append(f"if value_key(data)[0] != {data_key}: return None")
        self._unpack(value, names)

    def _unpack(self, value: str, names: list[str]) -> None:
        self.lines.append(f"if len({value}) != {len(names)}: return None")
        if names:
            self.lines.append(f"[{', '.join(names)}] = {value}")

    def _new_name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def _constant(self, value: Any) -> str:
        return _constant_name(value, self.constants)


def can_match(treedef: PyTreeDef) -> bool:
    """Say whether `match` can check a structure fast.

    The keys of dicts must be strings, and metadata hashable: a list, which can change, is compared
    by what it holds at each time.
    """
    node = treedef.node
    if node is not None and node.type is dict:
        if not _STR_ONLY.issuperset(map(type, treedef.data)):
            return False
    elif not is_hashable(treedef.data):
        return False
    return all(map(can_match, treedef.child_defs))


def _literal(treedef: PyTreeDef, names: Iterator[str], constants: dict[str, Any]) -> str:
    node = treedef.node
    if node is None:
        return next(names)
    items = [_literal(child, names, constants) for child in treedef.child_defs]
    if node.type is list:
        return f"[{', '.join(items)}]"
    if node.type is dict:
        keys = [_constant_name(key, constants) for key in treedef.data]
        return "{" + ", ".join(map(": ".join, zip(keys, items, strict=True))) + "}"
    if node.type is type(None):
        return "None"
    children = f"({', '.join(items)},)" if items else "()"
    if node.type is tuple:
        return children
    data = _constant_name(treedef.data, constants)
    return f"{_constant_name(node.unflatten, constants)}({data}, {children})"


def _constant_name(value: Any, constants: dict[str, Any]) -> str:
    if type(value) is str:
        return repr(value)
    name = f"c{len(constants)}"
    constants[name] = value
    return name


def _function(name: str, lines: list[str], constants: dict[str, Any]) -> Any:
    # The text holds only names made here, counts, and string keys as repr quotes them.
    return define_function(name, "\n".join(lines), constants, home=__file__)


boundaries(
    globals(),
    written=True,
    names=[
        "find_mismatches",
        "flatten_up_to",
        "make_treedef",
        "treedef_children",
        "treedef_from_node_data",
        "treedef_is_leaf",
        "treedef_tuple",
    ],
)
