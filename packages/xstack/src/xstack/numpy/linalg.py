"""Linear algebra under NumPy's names."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for, overview="xnp.linalg"):
    from xnp.linalg import *  # noqa: F403 - the whole public namespace
