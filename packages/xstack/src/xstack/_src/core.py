"""Asked for by flax and numpyro."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xstack.core import *  # noqa: F403 - the names of that module
    from xstack.extend.core import *  # noqa: F403 - the names of that module
