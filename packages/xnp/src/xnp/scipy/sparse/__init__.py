"""Systems that are given by what they do: `xnp.scipy.sparse.linalg`."""

from xtree.namespaces import namespace

with namespace(globals()):
    from xnp.scipy.sparse import linalg as linalg
