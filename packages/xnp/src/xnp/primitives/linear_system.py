"""Solving linear systems by an LU factorisation, as a formula of primitives.

Neighbours: `lu`, `triangular_solve`; `xnp.linalg.solve` is the public function.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.lu import lu_p, row_selector
from xnp.primitives.matrices import matmul
from xnp.primitives.triangular_solve import solved


def solved_system(a: Any, b: Any) -> Any:
    """Return A^-1 B for batches of square matrices A and of matrices B."""
    factors, _, permutation = lu_p.bind(a)
    permuted = matmul(row_selector(permutation, b.aval.dtype), b)
    lower = solved(factors, permuted, lower=True, unit_diagonal=True)
    return solved(factors, lower, lower=False)
