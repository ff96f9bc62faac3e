"""Rotations in space."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.scipy.spatial import transform as transform
