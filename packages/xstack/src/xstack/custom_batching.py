"""Batching rules of the user's own."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xbatch import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
