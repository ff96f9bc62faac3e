"""Unflatten: build a tree from its structure and its leaves.

A flat container is built at once; others by recursion over the structure, one call a node, until a
structure has been built so often that compiling it pays. Trees deeper than Python likes to recurse
are built with a stack.

Neighbours: `treedef` calls this for `PyTreeDef.unflatten`, `compiling` makes the compiled way,
`flattening` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from xtree.compiling import USES_BEFORE_COMPILING, compile_build, is_compilable
from xtree.errors import message

if TYPE_CHECKING:
    from xtree.treedef import PyTreeDef

__all__ = ["unflatten"]

__dir__ = __all__.copy

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
