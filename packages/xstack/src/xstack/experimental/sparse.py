"""Arrays most of whose elements are zero, in coordinates."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.sparse import *  # noqa: F403 - the whole public namespace
    from xstack.random_sparse import random_bcoo as random_bcoo
