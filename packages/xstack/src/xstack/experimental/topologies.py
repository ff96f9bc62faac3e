"""Which devices there are, described for a compiler."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xpar.topologies import *  # noqa: F403 - the whole public namespace
