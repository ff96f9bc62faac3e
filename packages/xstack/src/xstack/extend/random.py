"""The hash under random keys, for libraries that extend the family."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xrandom.hashing import *  # noqa: F403 - the whole public namespace
