"""Eigenvectors and solutions of sparse systems."""

from xstack.absences import hint_for
from xtree.namespaces import namespace

with namespace(globals(), hint=hint_for):
    from xnp.sparse.linalg import lobpcg_standard as lobpcg_standard, spsolve as spsolve
