"""Matrix decompositions as primitives."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.lax.linalg import *  # noqa: F403 - the whole public namespace
