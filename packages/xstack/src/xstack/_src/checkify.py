"""Names that flax imports from `jax._src.checkify`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.experimental.checkify import *  # noqa: F403 - the names of that module
