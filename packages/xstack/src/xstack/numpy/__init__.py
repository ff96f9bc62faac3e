"""The NumPy functions."""

from xstack import compiler_on_demand
from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp import *  # noqa: F403 - the whole public namespace

with namespace(globals()):
    from xstack.numpy import linalg as linalg  # type: ignore[no-redef]

compiler_on_demand.install()
