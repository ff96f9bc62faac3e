"""For libraries that extend the family: `core` has programs and primitives."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.extend import core as core
