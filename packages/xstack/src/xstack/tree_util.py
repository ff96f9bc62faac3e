"""Pytrees by their long names, key paths and registration."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xtree.tree_util import *  # noqa: F403 - the whole public namespace
