"""Kinds of memory of devices."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.memories import Space as Space
