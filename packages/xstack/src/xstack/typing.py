"""Types for annotations: what array functions take, and what shapes, axes and dtypes may be."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xprim.typing import *  # noqa: F403 - the whole public namespace
