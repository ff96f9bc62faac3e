"""Clusters of vectors."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.scipy.cluster import vq as vq
