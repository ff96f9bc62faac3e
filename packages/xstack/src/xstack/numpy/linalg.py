"""Linear algebra under NumPy's names."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.linalg import *  # noqa: F403 - the whole public namespace
