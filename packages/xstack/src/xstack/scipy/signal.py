"""Signals."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.signal import *  # noqa: F403 - the whole public namespace
