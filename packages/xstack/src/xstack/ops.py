"""Reductions by segments."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=ABSENCES):
    from xnp.ops import *  # noqa: F403 - the whole public namespace
