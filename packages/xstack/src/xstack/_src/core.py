"""Names that flax and numpyro import from `jax._src.core`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.core import *  # noqa: F403 - the names of that module
    from xstack.extend.core import *  # noqa: F403 - the names of that module
