"""Pytrees by their long names, key paths and registration."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xtree.tree_util import *  # noqa: F403 - the whole public namespace
