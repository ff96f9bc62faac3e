"""Values between processes that work together."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xpar.multihost_utils import *  # noqa: F403 - the whole public namespace
