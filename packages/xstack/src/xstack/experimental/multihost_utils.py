"""Values between processes that work together."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xpar.multihost_utils import *  # noqa: F403 - the whole public namespace
