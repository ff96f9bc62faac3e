"""Rotations in space."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.scipy.spatial import transform as transform
