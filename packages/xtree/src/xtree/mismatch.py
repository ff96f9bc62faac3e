"""Flatten a tree up to a structure, and say where and why that fails.

The way that succeeds is a recursion that checks each container once and collects subtrees. Only
when it fails are the two walked again with key paths, to name the first place (or all places)
where they differ, and how.

Neighbours: `treedef` calls this for `PyTreeDef.flatten_up_to`, `prefix` and `transforms` for their
errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xtree.boundaries import boundaries
from xtree.errors import MalformedNodeError, StructureMismatchError, message, shown, with_article
from xtree.interning import is_same
from xtree.key_paths import KeyPath, keystr
from xtree.records import Record, set_once

if TYPE_CHECKING:
    from xtree.registry import NodeType
    from xtree.treedef import PyTreeDef

__all__ = ["Mismatch", "find_mismatches", "flatten_up_to"]

__dir__ = __all__.copy

_MAX_RECURSION = 100


class Mismatch(Record):
    """One place where a structure is not a prefix of a tree.

    Attributes:
        path: the key path of the place.
        problem: what differs, as a short phrase.
        got: the subtree of the full tree there, described.
        expected: what the prefix has there, described.
        hint: the remedy, where one is certain.
    """

    __slots__ = __match_args__ = ("path", "problem", "got", "expected", "hint")
    path: KeyPath
    problem: str
    got: str
    expected: str
    hint: str

    def __init__(
        self, path: KeyPath, problem: str, got: str, expected: str, hint: str = ""
    ) -> None:
        set_once(self, "path", path)
        set_once(self, "problem", problem)
        set_once(self, "got", got)
        set_once(self, "expected", expected)
        set_once(self, "hint", hint)

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
    """Return the places, in order, at most `limit`, where `treedef` is no prefix of `tree`."""
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
        expected = _described(kind, len(treedef.child_defs))
        return Mismatch(path, "different types", _described_value(value), expected, hint)
    if treedef.select is not None:
        return _key_mismatch(treedef, value, path)
    values, data = node.children(value)
    count = len(treedef.child_defs)
    if kind is tuple or kind is list:
        if len(values) == count:
            return None
        return Mismatch(path, "different lengths", _described_value(value), _described(kind, count))
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


def _described(kind: type, count: int) -> str:
    if kind is type(None):
        return "None"
    if kind is tuple or kind is list:
        return f"a {kind.__name__} of length {count}"
    return with_article(kind.__qualname__)


def _described_value(value: Any) -> str:
    if type(value) in (tuple, list):
        return _described(type(value), len(value))
    if value is None:
        return "None"
    return f"{with_article(type(value).__qualname__)}, {shown(value, 60)}"


boundaries(globals(), written=True)
