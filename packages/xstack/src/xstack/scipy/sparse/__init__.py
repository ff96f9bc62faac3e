"""Linear systems that are given by what they do."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xstack.scipy.sparse import linalg as linalg
