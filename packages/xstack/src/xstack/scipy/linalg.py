"""Linear algebra under SciPy's names."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.linalg import *  # noqa: F403 - the whole public namespace
