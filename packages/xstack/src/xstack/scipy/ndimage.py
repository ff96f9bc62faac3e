"""Images between their points."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.ndimage import *  # noqa: F403 - the whole public namespace
