"""Integrals of samples."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.integrate import *  # noqa: F403 - the whole public namespace
