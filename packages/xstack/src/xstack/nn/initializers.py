"""Initial weights of neural networks: the names of `xrandom.initializers`."""

from xrandom.initializers import *  # noqa: F403 - the whole public namespace, by its __all__
from xrandom.initializers import __all__ as __all__
from xstack import compiler_on_demand

compiler_on_demand.install()
