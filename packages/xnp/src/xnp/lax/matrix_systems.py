"""Linear systems whose matrices need no factorisation: triangular and tridiagonal ones.

All take batches in the leading dimensions. `xnp.lax.linalg` shows them beside the factorisations.

Neighbours: `xnp.primitives.triangular_solve` and `tridiagonal_solve` have the rules.
"""

from __future__ import annotations

from typing import Any

from xnp.docstrings import complete
from xnp.primitives.operations import converted, reshaped
from xnp.primitives.triangular_solve import HALVES, triangular_solve_p
from xnp.primitives.tridiagonal_solve import tridiagonal_solve_p
from xprim import Array, as_array, dtypes
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.namespaces import namespace

__all__ = ()


@boundary
def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
    transpose_a: bool = False, conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:  # fmt: skip
    """Solve op(a) x = b, or x op(a) = b, for triangular a.

    Args:
      a: matrices of shape (..., n, n), of which one triangle is read.
      b: right sides, of shape (..., n, k) or (..., k, n); also (..., n) for a single one.
      left_side: whether a stands on the left of x.
      lower: whether the lower triangle is read.
      transpose_a: whether op transposes.
      conjugate_a: whether op conjugates.
      unit_diagonal: whether the diagonal is taken for ones, and not read.

    Returns:
      x, of the shape of b; floats of 16 bits are solved in float32.

    Example:
      >>> import xnp
      >>> a, b = xnp.array([[2.0, 0.0], [1.0, 1.0]]), xnp.array([[2.0], [3.0]])
      >>> triangular_solve(a, b, left_side=True, lower=True)
      Array([[1.],
             [2.]], dtype=float32)

    Differentiable in: a, b.
    Source: StableHLO specification, section triangular_solve.
    """
    a, b = as_array(a, what="triangular_solve: a"), as_array(b, what="triangular_solve: b")
    is_vector = b.ndim == a.ndim - 1
    narrow = a.dtype if a.dtype == b.dtype and a.dtype in HALVES else None
    if narrow is not None:  # no kernel has them
        a, b = [converted(v, dtypes.float32) for v in (a, b)]
    if is_vector:
        b = _with_dimension(b, b.ndim if left_side else b.ndim - 1)
    x: Array = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and dtypes.is_complex(a.dtype),
        unit_diagonal=bool(unit_diagonal),
    )[0]  # fmt: skip
    if is_vector:
        x = _without_dimension(x, x.ndim - 1 if left_side else x.ndim - 2)
    return x if narrow is None else converted(x, narrow)


def _with_dimension(x: Any, dim: int) -> Any:
    shape = list(x.aval.shape)
    shape.insert(dim, 1)
    return reshaped(x, shape)


def _without_dimension(x: Any, dim: int) -> Any:
    return reshaped(x, [n for i, n in enumerate(x.aval.shape) if i != dim])


@boundary
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve A x = b for tridiagonal A.

    Args:
      dl: the lower diagonal, of shape (..., m): dl[i] is A[i, i - 1], and dl[0] is not read.
      d: the diagonal, of the same shape.
      du: the upper diagonal: du[i] is A[i, i + 1], and du[m - 1] is not read.
      b: right sides, of shape (..., m, n) and the same dtype.
      perturb_singular: whether pivots next to zero are moved away from it, so that x is finite;
        of real operands.

    Returns:
      x, of the shape of b; NaN where A is singular.

    Example:
      >>> import xnp
      >>> ones, b = xnp.ones(3), xnp.array([[4.0], [8.0], [8.0]])
      >>> tridiagonal_solve(ones, 2 * ones, ones, b).round(3).tolist()
      [[1.0], [2.0], [3.0]]

    Differentiable in: dl, d, du, b.
    """
    named = {"dl": dl, "d": d, "du": du, "b": b}
    arrays = [as_array(x, what=f"tridiagonal_solve: {name}") for name, x in named.items()]
    result: Array = tridiagonal_solve_p.bind(*arrays, perturb_singular=bool(perturb_singular))[0]
    return result


namespace(globals()).close()


complete(globals())
