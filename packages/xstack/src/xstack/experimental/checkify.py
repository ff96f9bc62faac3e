"""Checks of values in programs, and their failures as values."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xjit.checkify import *  # noqa: F403 - the whole public namespace
