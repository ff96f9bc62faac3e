"""Initial weights of neural networks: the names of `xrandom.initializers`."""

from xstack import compiler_on_demand
from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=hint_for):
    from xrandom.initializers import *  # noqa: F403 - the whole public namespace

compiler_on_demand.install()
