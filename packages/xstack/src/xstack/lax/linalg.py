"""Matrix decompositions as primitives."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), hint=ABSENCES):
    from xnp.lax.linalg import *  # noqa: F403 - the whole public namespace
