"""Pytrees by their short names: `xstack.tree.map`, `flatten`, `leaves`, ..."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xtree import static as static
    from xtree.tree import *  # noqa: F403 - the whole public namespace
