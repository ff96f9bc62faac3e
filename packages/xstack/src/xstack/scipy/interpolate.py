"""Interpolation on grids."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.interpolate import *  # noqa: F403 - the whole public namespace
