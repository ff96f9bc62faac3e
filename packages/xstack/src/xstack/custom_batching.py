"""Batching rules of the user's own."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xbatch import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
