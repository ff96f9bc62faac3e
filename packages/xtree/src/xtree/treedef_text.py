"""How a tree definition prints: as its containers, with `*` for each leaf.

Neighbours: `treedef` calls this for each node, from the leaves up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xtree.treedef import PyTreeDef

__all__ = ["node_text"]

__dir__ = __all__.copy


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
