"""Eigenvectors and solutions of sparse systems: `lobpcg_standard`, `spsolve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.sparse.formats import CSR, JAXSparse, as_bcoo
from xprim import Array, dtypes
from xprim.errors import described, message
from xprim.requirements import static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike

__all__ = ["lobpcg_standard", "spsolve"]
__dir__ = __all__.copy


@boundary
def lobpcg_standard(
    A: ArrayLike | JAXSparse | Callable[[Array], Array],
    X: ArrayLike,
    m: int = 100,
    tol: Array | float | None = None,
) -> tuple[Array, Array, Array]:
    """Return the greatest eigenvalues of a symmetric matrix, with eigenvectors.

    Each round looks for the best vectors in the space of those it has, their residuals and their
    last directions, of three times as many dimensions.

    Args:
      A: the matrix, dense or sparse, of n rows; or a function that multiplies n rows by it.
      X: k vectors to begin with, of shape (n, k), with 5 k < n.
      m: how many rounds there are at most.
      tol: the relative error of a residual at which a pair is done; by default the spacing of
        numbers of the dtype.

    Returns:
      The k greatest eigenvalues, descending; the vectors, orthonormal, (n, k); and how many
      rounds there were.

    Raises:
      ValueError: there are too many vectors for so few rows.

    Example:
      >>> import numpy as np
      >>> from xnp.sparse import BCOO
      >>> A = BCOO.fromdense(np.diag(np.arange(1.0, 21.0, dtype="f")))
      >>> lobpcg_standard(A, np.ones((20, 1), "f"))[0].round(3).tolist()
      [20.0]

    Source: A. Knyazev, Toward the optimal preconditioned eigensolver, SIAM J. Sci. Comput. 23
    (2001), with the basis made orthonormal in each round.
    """
    start = _check_start(X)
    product = _product(A, start.shape[0])
    bound = dtypes.finfo(start.dtype).eps if tol is None else tol
    bound = xn.asarray(bound, start.dtype) * 10 * start.shape[0]
    rounds, k = static_int(m, "lobpcg_standard: m"), start.shape[1]

    def best(basis: Any) -> Any:
        images = product(basis)
        inner = basis.T @ images
        values, vectors = linalg.eigh((inner + inner.T) / 2)
        weights = vectors[:, ::-1][:, :k]
        found, values = basis @ weights, values[::-1][:k]
        direction = basis[:, k:] @ weights[k:]
        return found, direction, images @ weights - found * values, values

    def is_unfinished(state: Any) -> Any:
        count, (_, _, residuals, values) = state
        sizes = xn.sqrt((residuals * residuals).sum(0))
        return (count < rounds) & xn.any(sizes > bound * (abs(values[0]) + abs(values)))

    def step(state: Any) -> Any:
        count, (vectors, direction, residuals, _) = state
        # orthonormal also where directions vanish: reflectors fill up with any that are
        basis, _ = linalg.qr(xn.concatenate([vectors, residuals, direction], 1))
        return count + 1, best(basis)

    first = best(linalg.qr(start)[0])
    first = (first[0], xn.zeros_like(start), *first[2:])
    count, (vectors, _, _, values) = lax.while_loop(is_unfinished, step, (xn.zeros((), int), first))
    return values, vectors, count


def _check_start(X: ArrayLike) -> Any:
    start = xn.asarray(X)
    start = start.astype(dtypes.to_inexact_dtype(start.dtype))
    if start.ndim != 2 or not 0 < 5 * start.shape[1] < start.shape[0]:
        raise ValueError(message(
            "lobpcg_standard", "X must be of k columns and more than 5 k rows.",
            got=f"shape {start.shape}",
        ))  # fmt: skip
    return start


def _product(A: Any, rows: int) -> Callable[[Any], Any]:
    if callable(A):
        return A  # type: ignore[no-any-return]
    matrix = as_bcoo(A) if hasattr(A, "todense") else xn.asarray(A)
    if matrix.shape != (rows, rows):
        raise ValueError(message(
            "lobpcg_standard", f"A must have {rows} rows and columns, as X has rows.",
            got=described(A),
        ))  # fmt: skip
    return lambda x: matrix @ x


@boundary
def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6,
    reorder: int = 1,
) -> Array:  # fmt: skip
    """Solve A x = b for a sparse matrix that is given row by row, by dense elimination.

    The matrix is made dense: for systems that are too large for that, `scipy.sparse.linalg` has
    iterative solvers.

    Args:
      data: the values, as of a `CSR`.
      indices: the column of each.
      indptr: where each row begins, and the last one ends.
      b: the right side, a vector.
      tol: taken for programs written for JAX: up to which pivot a matrix counts as singular on a
        GPU. Here a singular matrix gives what `linalg.solve` gives.
      reorder: likewise, how the sparse factors are kept sparse; there are none here.

    Example:
      >>> import numpy as np
      >>> from xnp.sparse import CSR
      >>> A = CSR.fromdense(np.float32([[2, 0], [1, 4]]))
      >>> spsolve(A.data, A.indices, A.indptr, np.float32([2, 9])).tolist()
      [1.0, 2.0]

    Differentiable in: data, b.
    """
    right = xn.asarray(b)
    matrix = CSR((data, indices, indptr), shape=(right.shape[0],) * 2)
    return linalg.solve(matrix.todense(), right)
