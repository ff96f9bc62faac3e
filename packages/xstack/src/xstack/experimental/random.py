"""Generators of random numbers that remember how often they were asked."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xrandom.stateful import *  # noqa: F403 - the whole public namespace
