"""Taylor mode: derivatives of high order."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xad.jet import *  # noqa: F403 - the whole public namespace
