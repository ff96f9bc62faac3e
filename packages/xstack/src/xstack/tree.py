"""Pytrees by their short names: `xstack.tree.map`, `flatten`, `leaves`, ..."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xtree import static as static
    from xtree.tree import *  # noqa: F403 - the whole public namespace
