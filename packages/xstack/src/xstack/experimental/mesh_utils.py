"""Devices in a grid, so that neighbours on it are near each other."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xpar.mesh_utils import *  # noqa: F403 - the whole public namespace
