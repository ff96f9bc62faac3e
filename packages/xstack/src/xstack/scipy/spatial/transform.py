"""Rotations in three dimensions."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.spatial.transform import *  # noqa: F403 - the whole public namespace
