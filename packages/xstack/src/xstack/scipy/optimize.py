"""Minimisation."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xad.optimize import *  # noqa: F403 - the whole public namespace
