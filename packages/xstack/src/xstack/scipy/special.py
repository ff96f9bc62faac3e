"""Special functions."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.special import *  # noqa: F403 - the whole public namespace
