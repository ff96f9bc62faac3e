"""Linear algebra under NumPy's names."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), hint=ABSENCES):
    from xnp.linalg import *  # noqa: F403 - the whole public namespace
