"""Rotations in space."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.scipy.spatial import transform as transform
