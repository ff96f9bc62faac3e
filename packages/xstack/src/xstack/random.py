"""Random numbers from splittable keys: the names of `xrandom`, each taken when it is first used."""

from xstack import compiler_on_demand
from xstack.namespaces import namespace

with namespace(globals(), overview="xrandom"):
    from xrandom import *  # noqa: F403 - the whole public namespace

compiler_on_demand.install()
