"""Solutions of equations, differentiated by what they solve."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xad.implicit import *  # noqa: F403 - the whole public namespace
