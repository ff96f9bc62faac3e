"""A pytree of arrays as one vector, and back."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.flatten_util import *  # noqa: F403 - the whole public namespace
