"""Names that blackjax imports from `jax._src.flatten_util`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.flatten_util import ravel_pytree as ravel_pytree
