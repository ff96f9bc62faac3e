"""Devices in a grid, so that neighbours on it are near each other."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xpar.mesh_utils import *  # noqa: F403 - the whole public namespace
