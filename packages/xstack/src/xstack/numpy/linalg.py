"""Linear algebra under NumPy's names."""

from xstack.namespaces import namespace

with namespace(globals(), overview="xnp.linalg"):
    from xnp.linalg import *  # noqa: F403 - the whole public namespace
