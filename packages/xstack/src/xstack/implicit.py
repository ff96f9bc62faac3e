"""Solutions of equations, differentiated by what they solve."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xad.implicit import *  # noqa: F403 - the whole public namespace
