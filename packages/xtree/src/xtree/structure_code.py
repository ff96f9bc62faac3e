"""Structures that are used often, compiled into Python functions of their own.

`build` unpacks the list of leaves and evaluates the tree as one nested literal, `{'b': x0, 'w':
[x1, (x2, x3)]}`. `match` is the way back: it takes a tree apart with straight-line code,
checking type, length and keys of each container, and gives the leaves, or None when the tree
has another structure. Both cost a third to a fifth of walking the structure; they are a
shortcut only, and no result depends on whether it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from xtree.generated_code import define_function
from xtree.interning import is_hashable, value_key
from xtree.registry import default_registry

if TYPE_CHECKING:
    from xtree.treedef import PyTreeDef

__all__ = [
    "USES_BEFORE_COMPILING", "can_match", "compile_build", "compile_match", "is_compilable",
]  # fmt: skip

__dir__ = __all__.copy

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
        return _constant(value, self.constants)


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
        keys = [_constant(key, constants) for key in treedef.data]
        return "{" + ", ".join(map(": ".join, zip(keys, items, strict=True))) + "}"
    if node.type is type(None):
        return "None"
    children = f"({', '.join(items)},)" if items else "()"
    if node.type is tuple:
        return children
    data = _constant(treedef.data, constants)
    return f"{_constant(node.unflatten, constants)}({data}, {children})"


def _constant(value: Any, constants: dict[str, Any]) -> str:
    if type(value) is str:
        return repr(value)
    name = f"c{len(constants)}"
    constants[name] = value
    return name


def _function(name: str, lines: list[str], constants: dict[str, Any]) -> Any:
    # The text holds only names made here, counts, and string keys as repr quotes them.
    return define_function(name, "\n".join(lines), constants, home=__file__)
