"""Clusters of vectors."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.scipy.cluster import vq as vq
