"""Clusters: `xnp.scipy.cluster.vq`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.cluster import vq as vq
