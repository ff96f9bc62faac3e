"""Asked for by equinox."""

from xtree.namespaces import namespace

with namespace(globals()):
    pass
