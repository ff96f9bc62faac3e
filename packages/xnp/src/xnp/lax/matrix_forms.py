"""Matrices brought to simpler forms by reflectors and rotations, and work with these.

All take batches in the leading dimensions. `xnp.lax.linalg` shows them beside the factorisations.

Neighbours: `xnp.primitives.schur`, `hessenberg`, `reflectors`, ... have the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.docstrings import complete
from xnp.primitives.cholesky_update import cholesky_update_p
from xnp.primitives.hessenberg import hessenberg_p
from xnp.primitives.householder_product import householder_product_p
from xnp.primitives.matrices import mt, tril
from xnp.primitives.operations import add
from xnp.primitives.ormqr import ormqr_p
from xnp.primitives.schur import schur_p
from xnp.primitives.symmetric_product import symmetric_product_p
from xnp.primitives.tridiagonal import tridiagonal_p
from xprim import Array, as_array
from xprim.errors import message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike
from xtree.namespaces import namespace

__all__ = ()


@boundary
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the upper triangular R1 with R1^T R1 = R^T R + w w^T.

    Args:
      r_matrix: R, real matrices of shape (..., n, n), of which the upper triangle is read.
      w_vector: w, of shape (..., n) and the same dtype.

    Returns:
      An array of the shape of R, found in n^2 steps.

    Example:
      >>> import xnp
      >>> cholesky_update(xnp.array([[3.0, 0.0], [0.0, 1.0]]), xnp.array([4.0, 0.0]))
      Array([[5., 0.],
             [0., 1.]], dtype=float32)

    Differentiable in: r_matrix, w_vector. Source: P. Gill, G. Golub, W. Murray, M. Saunders,
    Methods for modifying matrix factorizations (1974).
    """
    r = as_array(r_matrix, what="cholesky_update: r_matrix")
    w = as_array(w_vector, what="cholesky_update: w_vector")
    result: Array = cholesky_update_p.bind(r, w)[0]
    return result


@boundary
def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Reduce square matrices to upper Hessenberg form, A = Q H Q^H.

    Args:
      a: matrices of shape (..., n, n).

    Returns:
      H on and above the first subdiagonal, with the vectors of reflectors below; and their factors,
      of shape (..., n - 1). `householder_product(h[..., 1:, :-1], taus)` is Q but for its first row
      and column, those of the identity. Where LAPACK fails, they are NaN.

    Example:
      >>> import xnp
      >>> h, taus = hessenberg(xnp.array([[1.0, 2.0], [3.0, 4.0]]))
      >>> h.tolist(), taus.tolist()
      ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """
    h, taus = hessenberg_p.bind(as_array(a, what="hessenberg: a"))
    return h, taus


@boundary
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the product Q of Householder reflectors: its first n columns.

    Args:
      a: matrices of shape (..., m, n), m >= n, with the vectors of the reflectors below their
        diagonal; the ones on it are not stored.
      taus: the factors of the reflectors, of shape (..., k), k <= n.

    Returns:
      An array of the shape of `a`, with orthonormal columns.

    Example:
      >>> import xnp
      >>> q = householder_product(xnp.array([[5.0], [0.5]]), xnp.array([1.6]))
      >>> q.round(3).tolist()
      [[-0.6000000238418579], [-0.800000011920929]]

    Differentiable in: a, taus.
    """
    a = as_array(a, what="householder_product: a")
    taus = as_array(taus, what="householder_product: taus")
    result: Array = householder_product_p.bind(a, taus)[0]
    return result


@boundary
def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the square Q of reflectors, without forming it.

    Args:
      a: matrices of shape (..., m, n) with the vectors of the reflectors below their diagonal, as a
        QR factorisation leaves them (the transpose of what `xnp.linalg.qr` returns for mode="raw").
      taus: their factors, of shape (..., k).
      c: what is multiplied, of shape (..., m, p), or (..., p, m) where Q stands on the right.
      left: whether Q stands on the left.
      transpose: whether it is Q^H.

    Returns:
      Q c, Q^H c, c Q or c Q^H, of the shape of c.

    Example:
      >>> import xnp
      >>> reflectors, taus = xnp.array([[5.0], [0.5]]), xnp.array([1.6])
      >>> ormqr(reflectors, taus, xnp.array([[1.0], [0.0]])).round(3).tolist()
      [[-0.6000000238418579], [-0.800000011920929]]

    Differentiable in: a, taus, c.
    """
    a, taus = as_array(a, what="ormqr: a"), as_array(taus, what="ormqr: taus")
    c = as_array(c, what="ormqr: c")
    result: Array = ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))[0]
    return result


@boundary
def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """Return the Schur form (t, z) of square matrices, x = z t z^H with unitary z.

    Args:
      x: matrices of shape (..., n, n).
      compute_schur_vectors: whether z is among the results.
      sort_eig_vals: must be False: eigenvalues stand in the order in which they are found.
      select_callable: must be None.

    Returns:
      t, upper triangular for complex x; for real x real, with a block of two rows for each pair of
      complex eigenvalues, [[a, b], [c, a]] with b c < 0 and |b| >= |c|. The first of the large
      components of each column of z is positive. Without `compute_schur_vectors`, (t,). Where x is
      not finite they are NaN.

    Example:
      >>> import xnp
      >>> t, z = schur(xnp.array([[2.0, 0.0], [1.0, 3.0]]))
      >>> t.tolist(), z.tolist()
      ([[3.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    if sort_eig_vals or select_callable is not None:
        raise ValueError(message(
            "schur", "eigenvalues cannot be sorted.",
            got=f"sort_eig_vals={sort_eig_vals!r}, select_callable={select_callable!r}",
            expected="False and None",
        ))  # fmt: skip
    x = as_array(x, what="schur: x")
    return tuple(schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors)))


@boundary
def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:  # fmt: skip
    """Return alpha A A^T + beta C.

    Args:
      a_matrix: A, real matrices of shape (..., m, n).
      c_matrix: C, symmetric matrices of shape (..., m, m).
      alpha: a Python number.
      beta: a Python number.
      symmetrize_output: whether the upper triangle is made the transpose of the lower one.

    Returns:
      An array of the shape of C.

    Example:
      >>> import xnp
      >>> symmetric_product(xnp.array([[1.0], [2.0]]), xnp.ones((2, 2)), beta=1.0)
      Array([[2., 3.],
             [3., 5.]], dtype=float32)

    Differentiable in: a_matrix, c_matrix.
    """
    a = as_array(a_matrix, what="symmetric_product: a_matrix")
    c = as_array(c_matrix, what="symmetric_product: c_matrix")
    result: Array = symmetric_product_p.bind(a, c, alpha=float(alpha), beta=float(beta))[0]
    return add(tril(result), mt(tril(result, -1))) if symmetrize_output else result


@boundary
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce Hermitian matrices to real tridiagonal form, A = Q T Q^H.

    Args:
      a: matrices of shape (..., n, n), of which one triangle is read.
      lower: whether it is the lower one.

    Returns:
      (a, d, e, taus): the matrix with T on its diagonals and the vectors of reflectors beyond them,
      the diagonal (..., n) of T and the one beside it (..., n - 1), both real, and the factors of
      the reflectors (..., n - 1).

    Example:
      >>> import xnp
      >>> _, d, e, _ = tridiagonal(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
      >>> d.tolist(), e.tolist()
      ([4.0, 3.0], [2.0])
    """
    found, d, e, taus = tridiagonal_p.bind(as_array(a, what="tridiagonal: a"), lower=bool(lower))
    return found, d, e, taus


namespace(globals()).close()


complete(globals())
