"""Trees of Python containers: take apart, map, put together.

A tree is any nesting of tuples, lists, dicts and registered classes; everything else is a leaf.
The short names are those of `jax.tree`, the long ones those of `jax.tree_util` (also in
`xtree.tree_util`); they are the same functions.
"""

from xtree.namespaces import moved_modules, namespace

__version__ = "0.2.1"

# The names that public modules had in release 0.2, by where their contents are now.
moved_modules(__name__, """
        errors: misspellings notebooks
        flattening: walk
        generated_code: compiling
        interning: bounded locks
        records: exactness
        register: dataclass_nodes
        registry: containers
        transforms: partial paths prefix
        treedef: mismatch treedef_text unflattening
""")  # fmt: skip

with namespace(globals()):
    from xtree.errors import (
        DepthError as DepthError, KeyOrderError as KeyOrderError,
        MalformedNodeError as MalformedNodeError, RegistrationError as RegistrationError,
        StructureMismatchError as StructureMismatchError,
    )  # fmt: skip
    from xtree.flattening import (
        all_leaves as all_leaves, flatten_one_level as flatten_one_level,
        flatten_one_level_with_keys as flatten_one_level_with_keys, flattener as flattener,
        is_tree_node as is_tree_node, tree_flatten as tree_flatten, tree_leaves as tree_leaves,
        tree_structure as tree_structure, tree_unflatten as tree_unflatten,
    )  # fmt: skip
    from xtree.key_paths import (
        DictKey as DictKey, FlattenedIndexKey as FlattenedIndexKey, GetAttrKey as GetAttrKey,
        KeyEntry as KeyEntry, KeyPath as KeyPath, SequenceKey as SequenceKey, keystr as keystr,
    )  # fmt: skip
    from xtree.register import (
        register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
        register_pytree_node_class as register_pytree_node_class,
        register_pytree_with_keys as register_pytree_with_keys,
        register_pytree_with_keys_class as register_pytree_with_keys_class,
        register_static as register_static, static as static,
    )  # fmt: skip
    from xtree.registry import (
        PyTree as PyTree, PyTreeRegistry as PyTreeRegistry, default_registry as default_registry,
    )  # fmt: skip
    from xtree.transforms import (
        Partial as Partial, broadcast_prefix as broadcast_prefix, prefix_errors as prefix_errors,
        tree_all as tree_all, tree_broadcast as tree_broadcast,
        tree_flatten_with_path as tree_flatten_with_path,
        tree_leaves_with_path as tree_leaves_with_path, tree_map as tree_map,
        tree_map_with_path as tree_map_with_path, tree_reduce as tree_reduce,
        tree_reduce_associative as tree_reduce_associative, tree_transpose as tree_transpose,
    )  # fmt: skip
    from xtree.tree import (
        all as all, broadcast as broadcast, flatten as flatten,
        flatten_with_path as flatten_with_path, leaves as leaves,
        leaves_with_path as leaves_with_path, map as map, map_with_path as map_with_path,
        reduce as reduce, reduce_associative as reduce_associative, structure as structure,
        transpose as transpose, unflatten as unflatten,
    )  # fmt: skip
    from xtree.treedef import (
        Mismatch as Mismatch, PyTreeDef as PyTreeDef, flatten_up_to as flatten_up_to,
        treedef_children as treedef_children, treedef_from_node_data as treedef_from_node_data,
        treedef_is_leaf as treedef_is_leaf, treedef_tuple as treedef_tuple,
    )  # fmt: skip
