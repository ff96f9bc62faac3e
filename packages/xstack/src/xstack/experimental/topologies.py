"""Which devices there are, described for a compiler."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xpar.topologies import *  # noqa: F403 - the whole public namespace
