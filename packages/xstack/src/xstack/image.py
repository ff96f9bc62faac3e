"""Images of another size."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.image import *  # noqa: F403 - the whole public namespace
