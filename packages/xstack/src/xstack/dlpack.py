"""Arrays of other libraries, by DLPack."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xnp.dlpack import *  # noqa: F403 - the whole public namespace
