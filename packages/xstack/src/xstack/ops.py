"""Reductions by segments."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.ops import *  # noqa: F403 - the whole public namespace
