"""The short names of the functions of trees, as in `jax.tree`: `map`, `flatten`, `leaves`, ..."""

from __future__ import annotations

from xtree import transforms
from xtree.flattening import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from xtree.namespaces import namespace
from xtree.transforms import tree_all, tree_broadcast, tree_map, tree_reduce, tree_transpose

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "structure", "transpose", "unflatten",
]  # fmt: skip

flatten = tree_flatten
unflatten = tree_unflatten
leaves = tree_leaves
structure = tree_structure
map = tree_map
reduce = tree_reduce
reduce_associative = transforms.tree_reduce_associative
all = tree_all
transpose = tree_transpose
broadcast = tree_broadcast
flatten_with_path = transforms.tree_flatten_with_path
leaves_with_path = transforms.tree_leaves_with_path
map_with_path = transforms.tree_map_with_path

namespace(globals()).close()
