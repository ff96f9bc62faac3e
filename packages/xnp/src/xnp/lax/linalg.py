"""Matrix factorisations and triangular systems, with batches in all leading dimensions.

Matrices are the last two dimensions; dtypes are float32, float64, complex64 and complex128. Where a
factorisation does not exist or LAPACK fails, results are NaN. `xnp.linalg` is NumPy's interface,
with promotion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

from xnp.lax import control_flow as loops
from xnp.primitives import solvers, table
from xnp.primitives.cholesky import cholesky_p, cholesky_update_p, symmetric_product_p
from xnp.primitives.eigen import eig_p, eigh_p, hessenberg_p, schur_p, tridiagonal_p
from xnp.primitives.linear_systems import (
    HALVES,
    lu_p,
    lu_pivots_to_permutation_p,
    solve_triangle,
    triangular_solve_p,
    tridiagonal_solve_p,
)
from xnp.primitives.matrices import adjoint, check_matrix, eye, matmul, mt, tril
from xnp.primitives.qr import column_order, columns_at, householder_product_p, ormqr_p, qr_p
from xnp.primitives.solvers import EighImplementation, EigImplementation, SvdAlgorithm
from xnp.primitives.svd import svd_p
from xnp.primitives.table import add, bind, convert, mul, scalar_like, scale_by, sub, sum_axes
from xprim import Array, as_array, dtypes, scalar_array
from xprim.avals import size_of
from xprim.errors import message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike
from xtree.namespaces import namespace

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
    "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p",
    "tridiagonal_solve", "tridiagonal_solve_p",
]  # fmt: skip


# -------------------------------------------------------------------------------- matrix systems
# Linear systems whose matrices need no factorisation: triangular and tridiagonal ones.
#
# All take batches in the leading dimensions. `xnp.lax.linalg` shows them beside the
# factorisations.


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

    Raises:
        TypeError: an operand is not an array.

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
        a, b = [convert(v, dtypes.float32) for v in (a, b)]
    if is_vector:
        b = _with_dimension(b, b.ndim if left_side else b.ndim - 1)
    x: Array = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and dtypes.is_complex(a.dtype),
        unit_diagonal=bool(unit_diagonal),
    )[0]  # fmt: skip
    if is_vector:
        x = _without_dimension(x, x.ndim - 1 if left_side else x.ndim - 2)
    return x if narrow is None else convert(x, narrow)


def _with_dimension(x: Any, dim: int) -> Any:
    shape = list(x.aval.shape)
    shape.insert(dim, 1)
    return table.reshape(x, shape)


def _without_dimension(x: Any, dim: int) -> Any:
    return table.reshape(x, [n for i, n in enumerate(x.aval.shape) if i != dim])


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

    Raises:
        TypeError: `b` is not an array.

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


# ---------------------------------------------------------------------------------- matrix forms
# Matrices brought to simpler forms by reflectors and rotations, and work with these.
#
# All take batches in the leading dimensions. `xnp.lax.linalg` shows them beside the
# factorisations.


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

    Raises:
        TypeError: `a` is not an array.

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

    Raises:
        TypeError: `a` is not an array.

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

    Raises:
        TypeError: `a` is not an array.

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

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> t, z = schur(xnp.array([[2.0, 0.0], [1.0, 3.0]]))
      >>> t.tolist(), z.tolist()
      ([[3.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    require(
        not sort_eig_vals and select_callable is None, "schur", "eigenvalues cannot be sorted.",
        got={"sort_eig_vals": sort_eig_vals, "select_callable": select_callable},
        expected="False and None",
    )  # fmt: skip
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

    Raises:
        TypeError: `a` is not an array.

    Example:
      >>> import xnp
      >>> _, d, e, _ = tridiagonal(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
      >>> d.tolist(), e.tolist()
      ([4.0, 3.0], [2.0])
    """
    found, d, e, taus = tridiagonal_p.bind(as_array(a, what="tridiagonal: a"), lower=bool(lower))
    return found, d, e, taus


# ------------------------------------------------------------------------------- polar iteration
# The polar decomposition by Halley's iteration with dynamic weights.
#
# Each step maps the singular values x of U to x (a + b x^2) / (1 + c x^2); the weights are best
# for singular values of at least l, which is known beforehand, so their number and values are,
# too. Source: Y. Nakatsukasa, Z. Bai, F. Gygi, Optimizing Halley's iteration for computing the
# matrix polar decomposition (2010).

_MOST = 10  # iterations, where the caller does not say
_FROM_QR = 100.0  # weights c above this are too great for a step by Cholesky's factorisation


@boundary
def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
    eps: float | None = None, dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the polar decomposition x = u h, by an iteration of QR and Cholesky factorisations.

    Args:
      x: a matrix of full rank, of shape (m, n) with m >= n.
      is_hermitian: whether x is; it is treated like others.
      max_iterations: after how many steps to stop; None for 10.
      eps: the relative precision; None for that of the dtype.
      dynamic_shape: the rows and columns of x that count, which may be traced; the rest of x is
        taken for zero. None for all.

    Returns:
      (u, h, num_iters, is_converged): u of shape (m, n) with orthonormal columns, h Hermitian
      positive semidefinite of shape (n, n), the number of steps, and whether they were enough.

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> u, h, _, _ = qdwh(xnp.array([[0.0, 2.0], [1.0, 0.0]]))
      >>> abs(u).round(3).tolist(), abs(h).round(3).tolist()
      ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]])
    """
    del is_hermitian
    x = as_array(x, what="qdwh: x")
    batch, m, n = check_matrix("qdwh", x.aval)
    require(
        not batch and m >= n, "qdwh",
        "the operand must be one matrix with at least as many rows as columns.", got=x,
    )  # fmt: skip
    most = _MOST if max_iterations is None else static_int(max_iterations, "qdwh", "max_iterations")
    precision = float(dtypes.finfo(x.dtype).eps) if eps is None else float(eps)
    if dynamic_shape is not None:
        x = _within(x, dynamic_shape)
    return _iterate(x, most, precision)


def _within(x: Any, shape: tuple[Any, Any]) -> Any:
    inside = None
    for dim, size in enumerate(shape):
        size = convert(as_array(size, what="qdwh: dynamic_shape"), dtypes.int32)
        less = bind("lt", table.iota(x.aval.shape, dim), _repeat(size, x.aval.shape))
        inside = less if inside is None else bind("and", inside, less)
    return table.select(inside, x, _repeat(scalar_like(x, 0), x.aval.shape))


def _repeat(value: Any, shape: Any) -> Any:
    return bind("broadcast_in_dim", value, shape=tuple(shape), broadcast_dimensions=())


def _iterate(x: Any, most: int, eps: float) -> tuple[Any, Any, Any, Any]:
    magnitudes = bind("abs", x)
    zero = scalar_like(magnitudes, 0)
    greatest = mul(
        _greatest(sum_axes(magnitudes, (0,)), zero), _greatest(sum_axes(magnitudes, (1,)), zero)
    )
    bound = bind("sqrt", greatest)  # of the largest singular value
    bound = table.select(bind("eq", bound, zero), scalar_like(bound, 1), bound)
    u = table.div(x, _repeat(convert(bound, x.aval.dtype), x.aval.shape))
    limit = math.cbrt(5 * eps)
    weights, reached = _weights(eps, most)
    previous = u
    for a, b, c in weights:
        previous, u = u, _step(u, a, b, c)

    def is_unfinished(state: Any) -> Any:
        count, u, previous = state
        far = bind("gt", _distance(u, previous), scalar_like(bound, limit))
        return bind("and", bind("lt", count, scalar_like(count, most)), far)

    def more(state: Any) -> Any:
        count, u, _ = state
        return add(count, scalar_like(count, 1)), _step(u, 3.0, 1.0, 3.0), u

    count = scalar_array(len(weights), dtypes.int32)
    if reached and most > len(weights):
        count, u, previous = loops.while_loop(is_unfinished, more, (count, u, previous))
    converged: Array = scalar_array(False, dtypes.bool_)
    if reached:  # the steps before leave great singular values where they are
        converged = bind("le", _distance(u, previous), scalar_like(bound, limit))
    u = sub(scale_by(u, 1.5), scale_by(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = matmul(adjoint(u), x)
    return u, scale_by(add(h, adjoint(h)), 0.5), count, converged


def _greatest(x: Any, zero: Any) -> Any:
    return bind("max", bind("reduce_max", x, axes=(0,)), zero) if x.aval.size else zero


def _distance(u: Any, previous: Any) -> Any:
    change = bind("abs", sub(u, previous))
    return bind("sqrt", sum_axes(mul(change, change), (0, 1)))


def _weights(low: float, most: int) -> tuple[list[tuple[float, float, float]], bool]:
    """Return a, b, c of the steps that bring singular values from `low` to 1, and if they do."""
    found: list[tuple[float, float, float]] = []
    tolerance = 5 * low
    while low + tolerance < 1 and len(found) < most:
        square = low * low
        d = math.cbrt(4 * (1 - square) / square**2)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = low * (a + b * square) / (1 + c * square)
        found.append((a, b, c))
    return found, low + tolerance >= 1


def _step(u: Any, a: float, b: float, c: float) -> Any:
    """Return U (a I + b U^H U) (I + c U^H U)^-1."""
    m, n = u.aval.shape
    identity = eye((n, n), u.aval.dtype)
    if c > _FROM_QR:
        q, _ = qr_p.bind(table.join([scale_by(u, math.sqrt(c)), identity], 0), full_matrices=False)
        product = matmul(table.slice_dim(q, 0, 0, m), adjoint(table.slice_dim(q, 0, m, m + n)))
        return add(scale_by(u, b / c), scale_by(product, (a - b / c) / math.sqrt(c)))
    gram = add(identity, scale_by(matmul(adjoint(u), u), c))
    (lower,) = cholesky_p.bind(gram)
    is_complex = dtypes.is_complex(u.aval.dtype)
    half = solve_triangle(lower, adjoint(u), lower=True)
    whole = solve_triangle(lower, half, lower=True, transpose_a=True, conjugate_a=is_complex)
    return add(scale_by(u, b / c), scale_by(adjoint(whole), a - b / c))


# ---------------------------------------------------------------------------------------- linalg


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with x = L L^H.

    Args:
      x: Hermitian positive definite matrices, of shape (..., n, n).
      symmetrize_input: whether to take (x + x^H) / 2, of integers as floats; otherwise the lower
        triangle alone is read.

    Returns:
      An array of the shape of x, zero above the diagonal; its lower triangle is NaN where x is not
      positive definite.

    Raises:
        TypeError: `x` is not an array.

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

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> eigh(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[1].round(3)
      Array([1.438, 5.562], dtype=float32)

    Differentiable in: x, where the eigenvalues are distinct.
    """
    solvers.check_choice("eigh", "implementation", implementation, *EighImplementation)
    x = as_array(x, what="eigh: x")
    v, w = eigh_p.bind(
        _symmetric("eigh", x) if symmetrize_input else x, lower=bool(lower),
        **solvers.omit_none(implementation=implementation),
    )  # fmt: skip
    if subset_by_index is not None:
        start, stop = _range("eigh", subset_by_index, x.shape[-1])
        v, w = [table.slice_dim(x, x.ndim - 1, start, stop) for x in (v, w)]
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

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> eig(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[0].shape
      (2,)

    Differentiable in: x, for the eigenvalues; for the vectors with `enable_eigvec_derivs`.
    """
    solvers.check_choice("eig", "implementation", implementation, *EigImplementation)
    solvers.check_magma("eig", use_magma)
    x = as_array(x, what="eig: x")
    return list(eig_p.bind(
        x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        **solvers.omit_none(implementation=implementation),
    ))  # fmt: skip


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Return (LU, pivots, permutation) with `x[permutation] == L @ U`.

    Args:
      x: matrices of shape (..., m, n).

    Returns:
      L (below the diagonal; its diagonal is one) and U in one matrix; the row that each of the
      first min(m, n) rows was exchanged with, int32; the order of rows that this leads to, int32.

    Raises:
        TypeError: `x` is not an array.

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
      TypeError: pivots that are not integers.

    Example:
      >>> import xnp
      >>> lu_pivots_to_permutation(xnp.array([1, 1]), 3)
      Array([1, 0, 2], dtype=int32)
    """
    pivots = as_array(pivots, what="lu_pivots_to_permutation: pivots")
    require(
        dtypes.is_integer(pivots.aval.dtype), "lu_pivots_to_permutation",
        "the pivots must be integers.", got=pivots, error=TypeError,
    )  # fmt: skip
    pivots = convert(pivots, dtypes.int32)
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

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> abs(qr(xnp.array([[4.0, 2.0], [2.0, 3.0]]))[1]).round(3)
      Array([[4.472, 3.13 ],
             [0.   , 1.789]], dtype=float32)

    Differentiable in: x, where the first min(m, n) columns are independent, and, for
    m > n, without `full_matrices`.
    """
    solvers.check_magma("qr", use_magma)
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

    Raises:
        TypeError: `x` is not an array.

    Example:
      >>> import xnp
      >>> svd(xnp.array([[4.0, 2.0], [2.0, 3.0]]), compute_uv=False).round(3)
      Array([5.562, 1.438], dtype=float32)

    Differentiable in: x, where the singular values are distinct; the vectors of matrices that are
    not square without `full_matrices`.
    """
    solvers.check_choice("svd", "algorithm", algorithm, *SvdAlgorithm)
    x = as_array(x, what="svd: x")
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: subset_by_index goes with full_matrices=False.")
    results: Any = svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
        **solvers.omit_none(algorithm=algorithm),
    )  # fmt: skip
    if subset_by_index is not None:
        start, stop = _range("svd", subset_by_index, min(x.shape[-2:]))
        last = x.ndim - 1
        dims = (last - 1, last, last - 1)  # of the values in s, u and vh
        results = [table.slice_dim(y, d, start, stop) for y, d in zip(results, dims, strict=False)]
    s: Array = results[0]
    return (results[1], s, results[2]) if compute_uv else s


def _symmetric(name: str, x: Any) -> Any:
    x = convert(x, dtypes.to_inexact_dtype(x.aval.dtype))
    check_matrix(name, x.aval, square=True)
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

boundaries(globals())
