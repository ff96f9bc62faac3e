"""Taylor mode: derivatives of high order."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xad.jet import *  # noqa: F403 - the whole public namespace
