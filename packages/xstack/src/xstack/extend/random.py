"""The hash under random keys, for libraries that extend the family."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xrandom.hashing import *  # noqa: F403 - the whole public namespace
