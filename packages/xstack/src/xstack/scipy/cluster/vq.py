"""Vector quantisation."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.cluster.vq import *  # noqa: F403 - the whole public namespace
