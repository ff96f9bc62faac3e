"""Random numbers from splittable keys."""

from xrandom import *  # noqa: F403 - the whole public namespace, by its __all__
from xrandom import __all__ as __all__
from xstack import compiler_on_demand

compiler_on_demand.install()
