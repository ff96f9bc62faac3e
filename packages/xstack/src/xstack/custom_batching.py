"""Batching rules of the user's own."""

from xbatch import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
