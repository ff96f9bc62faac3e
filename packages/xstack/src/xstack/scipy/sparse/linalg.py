"""Linear systems solved by iteration."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.sparse.linalg import *  # noqa: F403 - the whole public namespace
