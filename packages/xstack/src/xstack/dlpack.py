"""Arrays of other libraries, by DLPack."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.dlpack import *  # noqa: F403 - the whole public namespace
