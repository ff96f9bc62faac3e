"""Distributions and statistics; `import xstack.scipy.stats.norm` finds a distribution, too."""

from xnp.scipy.stats.distributions import Distribution, as_modules
from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.scipy.stats import *  # noqa: F403 - the whole public namespace

as_modules(__name__, [value for value in globals().values() if isinstance(value, Distribution)])
