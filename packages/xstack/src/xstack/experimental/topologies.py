"""Which devices there are, described for a compiler."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xpar.topologies import *  # noqa: F403 - the whole public namespace
