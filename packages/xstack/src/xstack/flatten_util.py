"""A pytree of arrays as one vector, and back."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xnp.flatten_util import *  # noqa: F403 - the whole public namespace
