"""Initial weights of neural networks: the names of `xrandom.initializers`."""

from xstack import compiler_on_demand
from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xrandom.initializers import *  # noqa: F403 - the whole public namespace

compiler_on_demand.install()
