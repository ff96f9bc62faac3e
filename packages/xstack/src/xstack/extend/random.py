"""The hash under random keys, for libraries that extend the family."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xrandom.threefry_hash import *  # noqa: F403 - the whole public namespace
