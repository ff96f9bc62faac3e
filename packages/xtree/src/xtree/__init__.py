"""Trees of Python containers: take apart, map, put together.

A tree is any nesting of tuples, lists, dicts and registered classes; everything else is a leaf.
The short names are those of `jax.tree`, the long ones those of `jax.tree_util` (also in
`xtree.tree_util`); they are the same functions.
"""

from __future__ import annotations

from xtree.dataclass_nodes import (
    register_dataclass,
    static,
)
from xtree.errors import (
    DepthError,
    KeyOrderError,
    MalformedNodeError,
    RegistrationError,
    StructureMismatchError,
)

# isort: off  (the order is the one in which a reader learns)
from xtree.flattening import (
    all_leaves,
    flatten_one_level,
    flatten_one_level_with_keys,
    flattener,
    is_tree_node,
    tree_flatten,
    tree_flatten as flatten,
    tree_leaves,
    tree_leaves as leaves,
    tree_structure,
    tree_structure as structure,
    tree_unflatten,
    tree_unflatten as unflatten,
)
from xtree.key_paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    keystr,
)
from xtree.mismatch import (
    Mismatch,
    flatten_up_to,
)
from xtree.partial import Partial
from xtree.paths import (
    tree_flatten_with_path,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves_with_path,
    tree_leaves_with_path as leaves_with_path,
    tree_map_with_path,
    tree_map_with_path as map_with_path,
)
from xtree.prefix import (
    broadcast_prefix,
    prefix_errors,
)
from xtree.register import (
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from xtree.registry import (
    PyTreeRegistry,
    default_registry,
)
from xtree.transforms import (
    tree_all,
    tree_all as all,
    tree_broadcast,
    tree_broadcast as broadcast,
    tree_map,
    tree_map as map,
    tree_reduce,
    tree_reduce as reduce,
    tree_reduce_associative,
    tree_reduce_associative as reduce_associative,
    tree_transpose,
    tree_transpose as transpose,
)
from xtree.treedef import (
    PyTreeDef,
    treedef_children,
    treedef_from_node_data,
    treedef_is_leaf,
    treedef_tuple,
)

__all__ = [
    "flatten",
    "unflatten",
    "leaves",
    "structure",
    "map",
    "reduce",
    "reduce_associative",
    "all",
    "transpose",
    "broadcast",
    "flatten_with_path",
    "leaves_with_path",
    "map_with_path",
    "keystr",
    "KeyPath",
    "KeyEntry",
    "SequenceKey",
    "DictKey",
    "GetAttrKey",
    "FlattenedIndexKey",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "register_dataclass",
    "static",
    "Partial",
    "PyTreeDef",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "treedef_from_node_data",
    "default_registry",
    "PyTreeRegistry",
    "all_leaves",
    "is_tree_node",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flattener",
    "tree_flatten",
    "tree_unflatten",
    "tree_leaves",
    "tree_structure",
    "tree_map",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_all",
    "tree_transpose",
    "tree_broadcast",
    "tree_flatten_with_path",
    "tree_leaves_with_path",
    "tree_map_with_path",
    "Mismatch",
    "flatten_up_to",
    "broadcast_prefix",
    "prefix_errors",
    "StructureMismatchError",
    "DepthError",
    "KeyOrderError",
    "MalformedNodeError",
    "RegistrationError",
]
