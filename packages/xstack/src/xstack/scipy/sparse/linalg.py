"""Linear systems solved by iteration."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.sparse.linalg import *  # noqa: F403 - the whole public namespace
