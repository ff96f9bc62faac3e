"""Special functions."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), hint=ABSENCES):
    from xnp.scipy.special import *  # noqa: F403 - the whole public namespace
