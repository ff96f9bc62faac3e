"""Sylvester's equation A X + X B = C: solve_sylvester.

With the complex Schur forms A = U R U^H, B = V S V^H it is R Y + Y S = U^H C V for Y = U^H X V, and
column j of Y solves a triangular system with R + S[j, j]. Source: R. Bartels, G. Stewart, Algorithm
432, Solution of the matrix equation AX + XB = C (1972).

Neighbours: `schur_forms`; `matrix_functions`, where it is the derivative of the square root.
"""

from __future__ import annotations

import math
from typing import Any

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.operands import broadcast_batches, matrix, promoted
from xnp.scipy.linalg.schur_forms import schur
from xprim import Array, dtypes
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["solve_sylvester"]

__dir__ = __all__.copy


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve A X + X B = C.

    Args:
      A: square matrices of shape (..., m, m).
      B: square matrices of shape (..., n, n).
      C: right sides of shape (..., m, n); all batches are broadcast.
      method: "schur", or "eigen" for eigenvectors, which is faster, and less exact where these are
        nearly dependent.
      tol: how near to zero the sum of an eigenvalue of A and one of B may come; where it is nearer,
        X is NaN, since there is no solution, or more than one.

    Returns:
      X, of the shape of C, real where all operands are.

    Example:
      >>> import numpy as np
      >>> a, b = np.array([[1.0]], np.float32), np.array([[2.0]], np.float32)
      >>> solve_sylvester(a, b, np.array([[6.0]], np.float32)).round(3).tolist()
      [[2.0]]

    Differentiable in: A, B, C.
    """
    if method not in ("schur", "eigen"):
        raise ValueError(message(
            "solve_sylvester", "there is no such method.", got=f"{method!r}",
            expected="'schur' or 'eigen'",
        ))  # fmt: skip
    a, b, c = promoted("solve_sylvester", A, B, C, inexact=True)
    a = matrix("solve_sylvester", a, square=True)
    b = matrix("solve_sylvester", b, square=True)
    c = matrix("solve_sylvester", c)
    if c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(message(
            "solve_sylvester", "the operands do not fit.",
            got=f"A: {a.aval.str_long()}, B: {b.aval.str_long()}, C: {c.aval.str_long()}",
            expected="C.shape[-2:] == (A.shape[-1], B.shape[-1])",
        ))  # fmt: skip
    a, b, c = broadcast_batches("solve_sylvester", a, b, c, core=(2, 2, 2))
    found = _by_schur_forms if method == "schur" else _by_eigenvectors

    def solve(_: Any, right: Any) -> Any:
        return found(a, b, right, tol)

    def transposed(_: Any, right: Any) -> Any:
        # A^T X + X B^T = C is B X^T + X^T A = C^T
        return found(b, a, right.mT, tol).mT

    def product(x: Any) -> Any:
        return a @ x + x @ b

    result: Array = lax.custom_linear_solve(product, c, solve, transposed)
    return result


def _by_schur_forms(a: Any, b: Any, c: Any, tol: float) -> Any:
    (r, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    right = xn.conj(u).mT @ c.astype(u.dtype) @ v
    x = u @ solve_triangular_sylvester(r, s, right) @ xn.conj(v).mT
    values = xn.diagonal(r, 0, -2, -1), xn.diagonal(s, 0, -2, -1)
    return _real_where(c.dtype, _determined(x, *values, tol))


def solve_triangular_sylvester(r: Any, s: Any, right: Any) -> Any:
    """Solve R Y + Y S = F for upper triangular matrices R and S."""
    columns = right.shape[-1]
    if not right.size:
        return xn.zeros_like(right)
    identity = xn.eye(r.shape[-1], dtype=r.dtype)

    def step(j: Any, y: Any) -> Any:
        column = lax.dynamic_slice_in_dim(s, j, 1, -1)
        own = lax.dynamic_slice_in_dim(column, j, 1, -2)
        rest = lax.dynamic_slice_in_dim(right, j, 1, -1) - y @ column
        found = lax.linalg.triangular_solve(r + own * identity, rest, left_side=True)
        return lax.dynamic_update_slice_in_dim(y, found, j, -1)

    return lax.fori_loop(0, columns, step, xn.zeros_like(right))


def _by_eigenvectors(a: Any, b: Any, c: Any, tol: float) -> Any:
    (p, u), (q, v) = linalg.eig(a), linalg.eig(b)
    right = linalg.solve(u, c.astype(u.dtype) @ v)
    y = right / (p[..., :, None] + q[..., None, :])
    x = linalg.solve(v.mT, (u @ y).mT).mT
    return _real_where(c.dtype, _determined(x, p, q, tol))


def _determined(x: Any, p: Any, q: Any, tol: float) -> Any:
    """Return X, or NaN where an eigenvalue p is next to one of -q."""
    near = (xn.abs(p[..., :, None] + q[..., None, :]) < tol).any((-2, -1), keepdims=True)
    return xn.where(near, math.nan, x)


def _real_where(dtype: Any, x: Any) -> Any:
    return x if dtypes.is_complex(dtype) else x.real


boundaries(globals())
