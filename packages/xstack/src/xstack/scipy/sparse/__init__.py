"""Linear systems that are given by what they do."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xstack.scipy.sparse import linalg as linalg
