"""The platforms that programs run on, for libraries that extend the family."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.runtime_clients import *  # noqa: F403 - the whole public namespace
