"""Names that flax imports from `jax._src.tree_util`."""

import xtree
from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.tree_util import *  # noqa: F403 - the names of that module

_registry = xtree.default_registry
