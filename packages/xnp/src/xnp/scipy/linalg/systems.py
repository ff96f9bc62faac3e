"""Linear systems, by factorisations that are kept or not.

Neighbours: `factorisations`; `xnp.primitives.triangular_solve` and `solve` have the derivatives.
"""

from __future__ import annotations

from typing import Any

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.operands import broadcast_batches, matrix, promoted
from xprim import Array
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "cho_factor", "cho_solve", "det", "inv", "lu_factor", "lu_solve", "solve", "solve_triangular",
]  # fmt: skip

__dir__ = __all__.copy

_TRANSPOSED = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def _system(operation: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Return square matrices and right sides of one dtype, as matrices, and whether b is a vector.

    A right side is a vector where it has one dimension, or one less than the matrices and no
    shape of matrices that would fit.
    """
    x, y = promoted(operation, a, b, inexact=True)
    x = matrix(operation, x, square=True)
    is_vector = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape == x.shape[:-1])
    if is_vector:
        y = y[..., None]
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise ValueError(message(
            operation, "the operands do not fit.",
            got=f"a: {x.aval.str_long()}, b: {y.aval.str_long()}",
            expected="as many rows of b as columns of a",
        ))  # fmt: skip
    x, y = broadcast_batches(operation, x, y, core=(2, 2))
    return x, y, is_vector


def _solution(x: Any, is_vector: bool) -> Array:
    result: Array = x[..., 0] if is_vector else x
    return result


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Array:
    """Solve op(a) x = b for triangular a.

    Args:
      a: matrices of shape (..., n, n), of which one triangle is read.
      b: right sides of shape (n,) or (..., n, k).
      trans: op: 0 or "N" for a itself, 1 or "T" for its transpose, 2 or "C" for its adjoint.
      lower: whether the lower triangle is read.
      unit_diagonal: whether the diagonal is taken for ones, and not read.
      overwrite_b: means nothing here.
      debug: means nothing here.
      check_finite: means nothing here.

    Differentiable in: a, b.
    """
    del overwrite_b, debug, check_finite
    op = _TRANSPOSED.get(trans)
    if op is None:
        raise ValueError(message(
            "solve_triangular", "there is no such operation.", got=f"trans={trans!r}",
            expected="0, 1, 2, 'N', 'T' or 'C'",
        ))  # fmt: skip
    x, y, is_vector = _system("solve_triangular", a, b)
    result = lax.linalg.triangular_solve(
        x, y, left_side=True, lower=lower, transpose_a=op != "N", conjugate_a=op == "C",
        unit_diagonal=unit_diagonal,
    )  # fmt: skip
    return _solution(result, is_vector)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Return Cholesky's factor of Hermitian matrices, and `lower`, for `cho_solve`.

    Args:
      a: positive definite matrices of shape (..., n, n), of which one triangle is read.
      lower: whether it is the lower one; the factor is a lower triangle then, too.
      overwrite_a: means nothing here.
      check_finite: means nothing here.

    Returns:
      The factor, zero beside its triangle (SciPy leaves there what was in `a`), NaN where `a` is
      not positive definite; and `lower`.
    """
    del overwrite_a, check_finite
    return cholesky_factor("cho_factor", a, lower), lower


def cholesky_factor(operation: str, a: Any, lower: bool) -> Array:
    """Return L with L L^H = a, reading the lower triangle of a, or U = L^H, reading the upper."""
    x = matrix(operation, a, square=True)
    if not lower:
        x = xn.conj(x).mT
    factor = lax.linalg.cholesky(x, symmetrize_input=False)
    return factor if lower else xn.conj(factor).mT


def cho_solve(
    c_and_lower: tuple[Any, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve a x = b with the factor of a.

    Args:
      c_and_lower: what `cho_factor(a)` gave.
      b: right sides of shape (n,) or (..., n, k).
      overwrite_b: means nothing here.
      check_finite: means nothing here.

    Example:
      >>> import numpy as np
      >>> a = np.float32([[4, 2], [2, 3]])
      >>> np.asarray(cho_solve(cho_factor(a), np.float32([2, 1]))).round(5).tolist()
      [0.5, 0.0]
    """
    del overwrite_b, check_finite
    c, lower = c_and_lower
    x, y, is_vector = _system("cho_solve", c, b)
    for is_adjoint in (not lower, lower):
        y = lax.linalg.triangular_solve(
            x, y, left_side=True, lower=lower, transpose_a=is_adjoint, conjugate_a=is_adjoint
        )
    return _solution(y, is_vector)


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return L and U in one matrix, and the row exchanges, for `lu_solve`.

    Args:
      a: matrices of shape (..., m, n).
      overwrite_a: means nothing here.
      check_finite: means nothing here.

    Returns:
      L below the diagonal (its diagonal is one), U on and above it; and the row that each row was
      exchanged with, int32.
    """
    del overwrite_a, check_finite
    factors, pivots, _ = lax.linalg.lu(matrix("lu_factor", a))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: ArrayLike, trans: int = 0, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solve op(a) x = b with the factors of a.

    Args:
      lu_and_piv: what `lu_factor(a)` gave.
      b: right sides of shape (n,) or (..., n, k).
      trans: op: 0 for a itself, 1 for its transpose, 2 for its adjoint.
      overwrite_b: means nothing here.
      check_finite: means nothing here.
    """
    del overwrite_b, check_finite
    if trans not in (0, 1, 2):
        raise ValueError(message(
            "lu_solve", "there is no such operation.", got=f"trans={trans!r}", expected="0, 1 or 2",
        ))  # fmt: skip
    factors, pivots = lu_and_piv
    x, y, is_vector = _system("lu_solve", factors, b)
    order = lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-1])
    order = xn.broadcast_to(order, (*y.shape[:-2], x.shape[-1]))[..., None]

    def triangular(y: Any, lower: bool) -> Any:
        return lax.linalg.triangular_solve(
            x, y, left_side=True, lower=lower, unit_diagonal=lower, transpose_a=trans > 0,
            conjugate_a=trans == 2,
        )  # fmt: skip

    if trans == 0:
        y = xn.take_along_axis(y, order, -2)
        y = triangular(triangular(y, lower=True), lower=False)
    else:
        y = triangular(triangular(y, lower=False), lower=True)
        y = xn.take_along_axis(y, xn.argsort(order, axis=-2), -2)
    return _solution(y, is_vector)


_STRUCTURES = ("gen", "sym", "her", "pos")


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve a x = b.

    Args:
      a: square matrices of shape (..., n, n).
      b: right sides of shape (n,) or (..., n, k).
      lower: for "pos", whether the lower triangle is read.
      overwrite_a: means nothing here.
      overwrite_b: means nothing here.
      debug: means nothing here.
      check_finite: means nothing here.
      assume_a: "gen" for any matrix; "pos" for positive definite ones, which are solved in half the
        time; "sym" and "her" are solved as any.

    Differentiable in: a, b.
    """
    del overwrite_a, overwrite_b, debug, check_finite
    if assume_a not in _STRUCTURES:
        raise ValueError(message(
            "solve", "there is no such structure.", got=f"assume_a={assume_a!r}",
            expected=f"one of {_STRUCTURES}",
        ))  # fmt: skip
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    x, y, is_vector = _system("solve", a, b)
    return _solution(linalg.solve(x, y), is_vector)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices; inf or NaN where they are singular.

    Args:
      a: matrices of shape (..., n, n).
      overwrite_a: means nothing here.
      check_finite: means nothing here.
    """
    del overwrite_a, check_finite
    return linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices.

    Args:
      a: matrices of shape (..., n, n).
      overwrite_a: means nothing here.
      check_finite: means nothing here.
    """
    del overwrite_a, check_finite
    return linalg.det(a)


boundaries(globals())
