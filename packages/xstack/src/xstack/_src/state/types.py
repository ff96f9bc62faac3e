"""Asked for by flax."""

from xtree.namespaces import namespace

with namespace(globals()):
    pass
