"""Transforms of cosines."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.fft import *  # noqa: F403 - the whole public namespace
