"""Asked for by blackjax."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.flatten_util import ravel_pytree as ravel_pytree
