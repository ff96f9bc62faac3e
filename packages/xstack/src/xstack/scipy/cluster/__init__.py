"""Clusters of vectors."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.scipy.cluster import vq as vq
