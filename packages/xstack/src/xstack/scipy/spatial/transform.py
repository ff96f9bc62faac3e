"""Rotations in three dimensions."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.spatial.transform import *  # noqa: F403 - the whole public namespace
