"""Matrix factorisations and triangular systems, with batches in all leading dimensions.

Matrices are the last two dimensions; dtypes are float32, float64, complex64 and complex128. Where a
factorisation does not exist or LAPACK fails, results are NaN. `xnp.linalg` is NumPy's interface,
with promotion.

Neighbours: `matrix_forms`, `matrix_systems` and `polar_iteration` define what is shown here, too.
"""

from __future__ import annotations

from typing import Any, Literal, overload

from xnp.docstrings import complete
from xnp.lax.matrix_forms import (
    cholesky_update,
    hessenberg,
    householder_product,
    ormqr,
    schur,
    symmetric_product,
    tridiagonal,
)
from xnp.lax.matrix_systems import triangular_solve, tridiagonal_solve
from xnp.lax.polar_iteration import qdwh
from xnp.primitives.cholesky import cholesky_p
from xnp.primitives.cholesky_update import cholesky_update_p
from xnp.primitives.column_pivots import column_order, columns_at
from xnp.primitives.eig import eig_p
from xnp.primitives.eigh import eigh_p
from xnp.primitives.factorisation_choices import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    check_choice,
    check_magma,
    given,
)
from xnp.primitives.hessenberg import hessenberg_p
from xnp.primitives.householder_product import householder_product_p
from xnp.primitives.lu import lu_p
from xnp.primitives.lu_pivots_to_permutation import lu_pivots_to_permutation_p
from xnp.primitives.matrices import adjoint, checked
from xnp.primitives.operations import add, converted, mul, scalar_like, sliced
from xnp.primitives.ormqr import ormqr_p
from xnp.primitives.qr import qr_p
from xnp.primitives.schur import schur_p
from xnp.primitives.svd import svd_p
from xnp.primitives.symmetric_product import symmetric_product_p
from xnp.primitives.triangular_solve import triangular_solve_p
from xnp.primitives.tridiagonal import tridiagonal_p
from xnp.primitives.tridiagonal_solve import tridiagonal_solve_p
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike
from xtree.namespaces import namespace

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with x = L L^H.

    Args:
      x: Hermitian positive definite matrices, of shape (..., n, n).
      symmetrize_input: whether to take (x + x^H) / 2, of integers as floats; otherwise the lower
        triangle alone is read.

    Returns:
      An array of the shape of x, zero above the diagonal; its lower triangle is NaN where x is not
      positive definite.

    Example:
      >>> import xnp
      >>> cholesky(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
      Array([[2.   , 0.   ],
             [1.   , 1.414]], dtype=float32)

    Differentiable in: x. Source: I. Murray, Differentiation of the Cholesky decomposition (2016).
    """
    x = as_array(x, what="cholesky: x")
    result: Array = cholesky_p.bind(_symmetric("cholesky", x) if symmetrize_input else x)[0]
    return result


def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
    sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the eigenvectors and eigenvalues (v, w) of Hermitian matrices, x v = v diag(w).

    Args:
      x: matrices of shape (..., n, n).
      lower: which triangle is read.
      symmetrize_input: whether to take (x + x^H) / 2 first.
      sort_eigenvalues: whether the eigenvalues must ascend; here they always do.
      subset_by_index: the half-open range of eigenvalues to return; None for all.
      implementation: `EighImplementation.QR`, which a CPU has alone, or `JACOBI` in programs for
        GPUs; None leaves the choice there to cuSOLVER.

    Returns:
      v of shape (..., n, n), its columns of length one, and w of shape (..., n), real, ascending.

    Example:
      >>> import xnp
      >>> eigh(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[1].round(3)
      Array([1.438, 5.562], dtype=float32)

    Differentiable in: x, where the eigenvalues are distinct.
    """
    check_choice("eigh", "implementation", implementation, *EighImplementation)
    x = as_array(x, what="eigh: x")
    v, w = eigh_p.bind(
        _symmetric("eigh", x) if symmetrize_input else x, lower=bool(lower),
        **given(implementation=implementation),
    )  # fmt: skip
    if subset_by_index is not None:
        start, stop = _range("eigh", subset_by_index, x.shape[-1])
        v, w = sliced(v, v.ndim - 1, start, stop), sliced(w, w.ndim - 1, start, stop)
    return v, w


def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None, use_magma: bool | None = None,
) -> list[Array]:  # fmt: skip
    """Return the eigenvalues, left and right eigenvectors [w, u, v] of square matrices.

    Args:
      x: matrices of shape (..., n, n).
      compute_left_eigenvectors: whether u with u^H x = diag(w) u^H is among the results.
      compute_right_eigenvectors: whether v with x v = v diag(w) is.
      enable_eigvec_derivs: whether the vectors may be differentiated. Their derivative keeps each
        of length one and its largest component real, and needs distinct eigenvalues and one largest
        component in each vector.
      implementation: `EigImplementation.LAPACK`, which a CPU has alone and which programs for GPUs
        call on the host, too; there are `CUSOLVER`, without left eigenvectors, and `MAGMA`, where
        it is installed. None is LAPACK, or MAGMA for large matrices where it is there.
      use_magma: None or False; `EigImplementation.MAGMA` asks for it.

    Returns:
      Complex arrays; vectors are columns of length one, their largest component real.

    Example:
      >>> import xnp
      >>> eig(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[0].shape
      (2,)

    Differentiable in: x, for the eigenvalues; for the vectors with `enable_eigvec_derivs`.
    """
    check_choice("eig", "implementation", implementation, *EigImplementation)
    check_magma("eig", use_magma)
    x = as_array(x, what="eig: x")
    return list(eig_p.bind(
        x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs), **given(implementation=implementation),
    ))  # fmt: skip


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Return (LU, pivots, permutation) with `x[permutation] == L @ U`.

    Args:
      x: matrices of shape (..., m, n).

    Returns:
      L (below the diagonal; its diagonal is one) and U in one matrix; the row that each of the
      first min(m, n) rows was exchanged with, int32; the order of rows that this leads to, int32.

    Example:
      >>> import xnp
      >>> lu(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[2]
      Array([0, 1], dtype=int32)

    Differentiable in: x.
    """
    factors, pivots, permutation = lu_p.bind(as_array(x, what="lu: x"))
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of `permutation_size` rows that a sequence of row exchanges leads to.

    Args:
      pivots: integers of shape (..., k): row i is exchanged with row pivots[..., i]. Negative ones
        count from the end; ones out of range stand for the nearest row.
      permutation_size: the number of rows, k at least.

    Returns:
      int32 of shape (..., permutation_size).

    Raises:
      TypeError: pivots that are no integers.

    Example:
      >>> import xnp
      >>> lu_pivots_to_permutation(xnp.array([1, 1]), 3)
      Array([1, 0, 2], dtype=int32)
    """
    pivots = as_array(pivots, what="lu_pivots_to_permutation: pivots")
    if not dtypes.is_integer(pivots.aval.dtype):
        raise TypeError(message(
            "lu_pivots_to_permutation", "the pivots must be integers.", got=pivots.aval.str_long(),
        ))  # fmt: skip
    pivots = converted(pivots, dtypes.int32)
    size = size_of(permutation_size)
    result: Array = lu_pivots_to_permutation_p.bind(pivots, permutation_size=size)[0]
    return result


@overload
def qr(
    x: ArrayLike, *, pivoting: Literal[False] = ..., full_matrices: bool = ...,
    use_magma: bool | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def qr(
    x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = ...,
    use_magma: bool | None = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def qr(
    x: ArrayLike, *, pivoting: bool, full_matrices: bool = ..., use_magma: bool | None = ...
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:  # fmt: skip
    """Return (q, r) with x = q r, orthonormal columns of q, and upper triangular r.

    Args:
      x: matrices of shape (..., m, n).
      pivoting: whether to return (q, r, p) with x[:, p] = q r instead, where p, int32, puts columns
        in such an order that the absolute values on the diagonal of r do not increase.
      full_matrices: whether q is square; otherwise it has min(m, n) columns.
      use_magma: None or False: MAGMA is for GPUs.

    Returns:
      q of shape (..., m, m) and r of shape (..., m, n); without `full_matrices` (..., m, k) and
      (..., k, n) for k = min(m, n).

    Example:
      >>> import xnp
      >>> abs(qr(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[1]).round(3)
      Array([[4.472, 3.13 ],
             [0.   , 1.789]], dtype=float32)

    Differentiable in: x, where the first min(m, n) columns are independent, and, for
    m > n, without `full_matrices`.
    """
    check_magma("qr", use_magma)
    x = as_array(x, what="qr: x")
    if pivoting:
        order = column_order(x)
        x = columns_at(x, order)
    q, r = qr_p.bind(x, full_matrices=bool(full_matrices))
    return (q, r, order) if pivoting else (q, r)


@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: Literal[True] = ...,
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    x: ArrayLike, *, full_matrices: bool = ..., compute_uv: bool,
    subset_by_index: tuple[int, int] | None = ..., algorithm: SvdAlgorithm | None = ...,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:  # fmt: skip
    """Return (u, s, vh) with x = u diag(s) vh, or s alone.

    Args:
      x: matrices of shape (..., m, n).
      full_matrices: whether u and vh are square.
      compute_uv: whether the vectors are returned.
      subset_by_index: the half-open range of singular values to return; None for all.
      algorithm: `SvdAlgorithm.DEFAULT` or None; a CPU has `DIVIDE_AND_CONQUER` alone, which is the
        default there. Programs for CUDA have `JACOBI`, the default up to 1024 rows and columns,
        `QR` beyond it, and `POLAR`.

    Returns:
      The singular values descend. Vectors are columns of u and rows of vh.

    Example:
      >>> import xnp
      >>> svd(xnp.array([[4.0, 2.0], [2.0, 3.0]]), compute_uv=False).round(3)
      Array([5.562, 1.438], dtype=float32)

    Differentiable in: x, where the singular values are distinct; the vectors of matrices that are
    not square without `full_matrices`.
    """
    check_choice("svd", "algorithm", algorithm, *SvdAlgorithm)
    x = as_array(x, what="svd: x")
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: subset_by_index goes with full_matrices=False.")
    results: Any = svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
        **given(algorithm=algorithm),
    )  # fmt: skip
    if subset_by_index is not None:
        start, stop = _range("svd", subset_by_index, min(x.shape[-2:]))
        last = x.ndim - 1
        dims = (last - 1, last, last - 1)  # of the values in s, u and vh
        results = [sliced(y, d, start, stop) for y, d in zip(results, dims, strict=False)]
    s: Array = results[0]
    return (results[1], s, results[2]) if compute_uv else s


def _symmetric(name: str, x: Any) -> Any:
    x = converted(x, dtypes.to_inexact_dtype(x.aval.dtype))
    checked(name, x.aval, square=True)
    return mul(add(x, adjoint(x)), scalar_like(x, 0.5))


def _range(name: str, subset: tuple[int, int], size: int) -> tuple[int, int]:
    start, stop = subset
    if not 0 <= start <= stop <= size:
        raise ValueError(message(
            name, f"subset_by_index must be a range within the {size} values.",
            got=f"{tuple(subset)}",
        ))  # fmt: skip
    return start, stop


namespace(globals()).close()


complete(globals())
boundaries(globals())
