"""Eigenvectors and solutions of sparse systems."""

from xstack.namespaces import namespace

with namespace(globals()):
    from xnp.sparse.linalg import lobpcg_standard as lobpcg_standard, spsolve as spsolve
