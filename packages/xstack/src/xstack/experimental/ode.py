"""Ordinary differential equations."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xad.ode import *  # noqa: F403 - the whole public namespace
