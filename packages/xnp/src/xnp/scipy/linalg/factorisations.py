"""Factorisations and systems: cholesky, lu, qr, svd, eigh, schur, solve, lu_solve, ..."""

from __future__ import annotations

from typing import Any, Literal, overload

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.products import broadcast_batches, matrix, promote
from xnp.numpy.dispatch import inexact
from xnp.primitives.eigen import eigh_tridiagonal_p
from xprim import Array, dtypes
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "hessenberg", "rsf2csf", "schur", "cho_factor", "cho_solve", "det", "inv", "lu_factor",
    "lu_solve", "solve", "solve_triangular", "cholesky", "eigh", "eigh_tridiagonal", "lu",
    "polar", "qr", "qr_multiply", "svd",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- schur forms
# Unitary similarities: schur, rsf2csf, hessenberg.


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Return (t, z) with a = z t z^H, unitary z, and a (nearly) upper triangular t.

    Args:
      a: square matrices of shape (..., n, n).
      output: "real" for t and z of the dtype of `a`, where t of a real `a` has blocks of two rows
        for pairs of complex eigenvalues; "complex" for complex ones, with t upper triangular.

    Returns:
      Arrays of the shape of `a`. The first of the large components of each column of z is positive
      (SciPy leaves the phases to rounding errors).

    Example:
      >>> import numpy as np
      >>> t, z = schur(np.array([[2.0, 0.0], [1.0, 3.0]], np.float32))
      >>> t.tolist(), z.tolist()
      ([[3.0, 1.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    require_choice("schur", "output", output, ("real", "complex"))
    x = matrix("schur", a, square=True)
    if output == "complex":
        x = x.astype(dtypes.to_complex_dtype(x.dtype))
    t, z = lax.linalg.schur(x)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Turn a real Schur form into a complex one, with an upper triangular T.

    Args:
      T: real Schur forms of shape (..., n, n).
      Z: their vectors; batches are broadcast.
      check_finite: has no effect.

    Returns:
      Complex (T, Z), of which Z T Z^H is the same matrix.

    Example:
      >>> import numpy as np
      >>> t = np.array([[0.0, 1.0], [-1.0, 0.0]], np.float32)
      >>> abs(rsf2csf(t, np.eye(2, dtype=np.float32))[0]).round(3).tolist()
      [[1.0, 0.0], [0.0, 1.0]]

    Differentiable in: T, Z, where the eigenvalues of each block are distinct.
    """
    del check_finite
    t, z = promote("rsf2csf", T, Z, inexact=True)
    t, z = matrix("rsf2csf", t, square=True), matrix("rsf2csf", z, square=True)
    require(
        t.shape[-1] == z.shape[-1], "rsf2csf", "the matrices do not fit.", got={"T": t, "Z": z},
        expected="equal shapes",
    )  # fmt: skip
    t, z = broadcast_batches("rsf2csf", t, z, core=(2, 2))
    dtype = dtypes.to_complex_dtype(t.dtype)
    n = t.shape[-1]
    if n < 2:
        return t.astype(dtype), z.astype(dtype)
    turned = lax.fori_loop(1, n, _split_block, (t.astype(dtype), z.astype(dtype)))
    return xn.triu(turned[0]), turned[1]


def _split_block(step: Any, state: Any) -> Any:
    """Make the element below the diagonal of one pair of rows zero, by a rotation of both."""
    t, z = state
    n = t.shape[-1]
    k = n - 1 - step  # the upper row of the pair
    block = lax.dynamic_slice_in_dim(lax.dynamic_slice_in_dim(t, k, 2, -2), k, 2, -1)
    a, b, c, d = block[..., 0, 0], block[..., 0, 1], block[..., 1, 0], block[..., 1, 1]
    half = (a - d) / 2
    mu = half + xn.sqrt(half * half + b * c)  # an eigenvalue less d; the other is half - sqrt
    eps = xn.finfo(t.dtype).eps
    needed = xn.abs(c) > eps * (xn.abs(a) + xn.abs(d))
    size = xn.sqrt((mu * xn.conj(mu)).real + (c * xn.conj(c)).real)
    size = xn.where(needed, size, 1).astype(t.dtype)
    cosine = xn.where(needed, mu / size, 1)
    sine = xn.where(needed, c / size, 0)
    upper = xn.stack([xn.conj(cosine), sine], -1)
    turn = xn.stack([upper, xn.stack([-sine, cosine], -1)], -2)  # of the rows
    back = xn.conj(turn).mT
    rows = lax.dynamic_slice_in_dim(t, k, 2, -2)
    t = lax.dynamic_update_slice_in_dim(t, turn @ rows, k, -2)
    columns = lax.dynamic_slice_in_dim(t, k, 2, -1)
    t = lax.dynamic_update_slice_in_dim(t, columns @ back, k, -1)
    vectors = lax.dynamic_slice_in_dim(z, k, 2, -1)
    return t, lax.dynamic_update_slice_in_dim(z, vectors @ back, k, -1)


@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[False] = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool, overwrite_a: bool = ..., check_finite: bool = ...
) -> Array | tuple[Array, Array]: ...
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Return h, zero below its first subdiagonal, or (h, q), with a = q h q^H and unitary q.

    Args:
      a: square matrices of shape (..., n, n).
      calc_q: whether q is returned, too.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Example:
      >>> import numpy as np
      >>> a = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
      >>> hessenberg(a).tolist()
      [[1.0, 2.0], [3.0, 4.0]]
    """
    del overwrite_a, check_finite
    x = matrix("hessenberg", a, square=True)
    packed, taus = lax.linalg.hessenberg(x)
    h = xn.triu(packed, -1)
    if not calc_q:
        return h
    n = x.shape[-1]
    q = xn.broadcast_to(xn.eye(n, dtype=x.dtype), x.shape)
    if n > 1:
        inner = lax.linalg.householder_product(packed[..., 1:, :-1], taus)
        q = q.at[..., 1:, 1:].set(inner)
    return h, q


# --------------------------------------------------------------------------------------- systems
# Linear systems, by factorisations that are kept or not.

_TRANSPOSED = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def _system(operation: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Return square matrices and right sides of one dtype, as matrices, and whether b is a vector.

    A right side is a vector where it has one dimension, or one less than the matrices and no
    shape of matrices that would fit.
    """
    x, y = promote(operation, a, b, inexact=True)
    x = matrix(operation, x, square=True)
    is_vector = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape == x.shape[:-1])
    if is_vector:
        y = y[..., None]
    require(
        y.ndim >= 2 and y.shape[-2] == x.shape[-1], operation, "the operands do not fit.",
        got={"a": x, "b": y}, expected="as many rows of b as columns of a",
    )  # fmt: skip
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
      overwrite_b: has no effect.
      debug: has no effect.
      check_finite: has no effect.

    Differentiable in: a, b.
    """
    del overwrite_b, debug, check_finite
    require_choice("solve_triangular", "trans", trans, _TRANSPOSED)
    op = _TRANSPOSED[trans]
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
      overwrite_a: has no effect.
      check_finite: has no effect.

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
      overwrite_b: has no effect.
      check_finite: has no effect.

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
      overwrite_a: has no effect.
      check_finite: has no effect.

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
      overwrite_b: has no effect.
      check_finite: has no effect.
    """
    del overwrite_b, check_finite
    require_choice("lu_solve", "trans", trans, (0, 1, 2))
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
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      debug: has no effect.
      check_finite: has no effect.
      assume_a: "gen" for any matrix; "pos" for positive definite ones, which are solved in half the
        time; "sym" and "her" are solved as any.

    Differentiable in: a, b.
    """
    del overwrite_a, overwrite_b, debug, check_finite
    require_choice("solve", "assume_a", assume_a, _STRUCTURES)
    if assume_a == "pos":
        a, b = promote("solve", a, b, inexact=True)
        return cho_solve(cho_factor(a, lower), b)
    x, y, is_vector = _system("solve", a, b)
    return _solution(linalg.solve(x, y), is_vector)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices; inf or NaN where they are singular.

    Args:
      a: matrices of shape (..., n, n).
      overwrite_a: has no effect.
      check_finite: has no effect.
    """
    del overwrite_a, check_finite
    return linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices.

    Args:
      a: matrices of shape (..., n, n).
      overwrite_a: has no effect.
      check_finite: has no effect.
    """
    del overwrite_a, check_finite
    return linalg.det(a)


# -------------------------------------------------------------------------------- factorisations
# Factorisations: cholesky, lu, qr, svd, eigh, eigh_tridiagonal, polar.


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return the triangular U with a = U^H U, or L with a = L L^H.

    Args:
      a: Hermitian positive definite matrices (..., n, n), of which one triangle is read.
      lower: whether it is the lower one, and L is returned.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      An array of the shape of `a`; its triangle is NaN where `a` is not positive definite.
    """
    del overwrite_a, check_finite
    return cholesky_factor("cholesky", a, lower)


@overload
def lu(
    a: ArrayLike, permute_l: Literal[False] = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: Literal[True] = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: bool = ..., overwrite_a: bool = ..., check_finite: bool = ...
) -> tuple[Array, Array, Array] | tuple[Array, Array]: ...
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array, Array] | tuple[Array, Array]:
    """Return (p, l, u) with a = p l u, or (p l, u).

    Args:
      a: matrices of shape (..., m, n).
      permute_l: whether p and l are multiplied.
      overwrite_a: has no effect.
      check_finite: has no effect.

    Returns:
      The permutation matrix (..., m, m), of the real dtype; l, whose diagonal is one, of shape
      (..., m, k) and u of shape (..., k, n), where k = min(m, n).
    """
    del overwrite_a, check_finite
    x = matrix("lu", a)
    factors, _, order = lax.linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lead = (1,) * (x.ndim - 2)
    lower = xn.tril(factors[..., :k], -1) + xn.eye(m, k, dtype=x.dtype).reshape(*lead, m, k)
    upper = xn.triu(factors[..., :k, :])
    if permute_l:
        place = xn.broadcast_to(xn.argsort(order, axis=-1)[..., None], (*x.shape[:-2], m, 1))
        return xn.take_along_axis(lower, place, -2), upper
    places = order[..., None, :] == xn.arange(m).reshape(*lead, m, 1)
    return places.astype(x.real.dtype), lower, upper


@overload
def qr(
    a: ArrayLike, overwrite_a: bool = ..., lwork: int | None = ...,
    mode: Literal['full', 'economic'] = ..., pivoting: Literal[False] = ...,
    check_finite: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def qr(
    a: ArrayLike, overwrite_a: bool = ..., lwork: int | None = ...,
    mode: Literal['full', 'economic'] = ..., pivoting: Literal[True] = ...,
    check_finite: bool = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def qr(
    a: ArrayLike, overwrite_a: bool = ..., lwork: int | None = ..., mode: Literal['r'] = ...,
    pivoting: Literal[False] = ..., check_finite: bool = ...,
) -> tuple[Array]: ...  # fmt: skip
@overload
def qr(
    a: ArrayLike, overwrite_a: bool = ..., lwork: int | None = ..., mode: Literal['r'] = ...,
    pivoting: Literal[True] = ..., check_finite: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def qr(
    a: ArrayLike, overwrite_a: bool = ..., lwork: int | None = ..., mode: str = ...,
    pivoting: bool = ..., check_finite: bool = ...,
) -> tuple[Array, ...]: ...  # fmt: skip
def qr(
    a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """Return (q, r) with a = q r, orthonormal columns of q and upper triangular r.

    Args:
      a: matrices of shape (..., m, n).
      overwrite_a: has no effect.
      lwork: has no effect.
      mode: "full" for a square q, "economic" for one of min(m, n) columns, "r" for (r,) alone.
      pivoting: whether (q, r, p) with a[:, p] = q r is returned, the diagonal of r not increasing.
      check_finite: has no effect.
    """
    del overwrite_a, lwork, check_finite
    require_choice("qr", "mode", mode, ("full", "economic", "r"))
    x = matrix("qr", a)
    results = _factors(x, mode != "economic", pivoting)
    return tuple(results[1:]) if mode == "r" else tuple(results)


def _factors(x: Any, full: bool, pivoting: bool) -> tuple[Any, ...]:
    if pivoting:
        return lax.linalg.qr(x, full_matrices=full, pivoting=True)
    return lax.linalg.qr(x, full_matrices=full)


@overload
def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = ..., pivoting: Literal[False] = ...,
    conjugate: bool = ..., overwrite_a: bool = ..., overwrite_c: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = ..., pivoting: Literal[True] = ...,
    conjugate: bool = ..., overwrite_a: bool = ..., overwrite_c: bool = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = ..., pivoting: bool = ..., conjugate: bool = ...,
    overwrite_a: bool = ..., overwrite_c: bool = ...,
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...  # fmt: skip
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Return (q c, r) or (c q, r), and the order of columns, of the factorisation a = q r.

    Args:
      a: a matrix of shape (..., m, n).
      c: a matrix, or a vector.
      mode: "left" for q c, "right" for c q.
      pivoting: whether columns are put in order as in `qr`.
      conjugate: whether q is conjugated.
      overwrite_a: has no effect.
      overwrite_c: has no effect.
    """
    del overwrite_a, overwrite_c
    require_choice("qr_multiply", "mode", mode, ("left", "right"))
    x, y = promote("qr_multiply", a, c, inexact=True)
    x = matrix("qr_multiply", x)
    m, k = x.shape[-2], min(x.shape[-2:])
    is_vector = y.ndim == 1
    inner = y.shape[-1] if mode == "right" or is_vector else y.shape[-2]
    full = mode == "left" and inner == m and m > k
    q, *rest = _factors(x, full, pivoting)
    rest[0] = rest[0][..., :k, :]
    q = xn.conj(q) if conjugate else q
    if is_vector:
        product = xn.matvec(q, y) if mode == "left" else xn.vecmat(xn.conj(y), q)
    else:
        product = q @ y if mode == "left" else y @ q
    return (product, *rest)


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Literal[True] = ...,
    overwrite_a: bool = ..., check_finite: bool = ..., lapack_driver: str = ...,
) -> tuple[Array, Array, Array]: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Literal[False] = ...,
    overwrite_a: bool = ..., check_finite: bool = ..., lapack_driver: str = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: bool = ..., overwrite_a: bool = ...,
    check_finite: bool = ..., lapack_driver: str = ...,
) -> Array | tuple[Array, Array, Array]: ...  # fmt: skip
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:  # fmt: skip
    """Return (u, s, vh) with a = u diag(s) vh, or s alone.

    Args:
      a: matrices of shape (..., m, n).
      full_matrices: whether u and vh are square.
      compute_uv: whether the vectors are returned.
      overwrite_a: has no effect.
      check_finite: has no effect.
      lapack_driver: must be "gesdd", the one there is.
    """
    del overwrite_a, check_finite
    require_choice("svd", "driver", lapack_driver, ("gesdd",))
    x = matrix("svd", a)
    return lax.linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv)


@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = ..., lower: bool = ..., eigvals_only: Literal[False] = ...,
    overwrite_a: bool = ..., overwrite_b: bool = ..., turbo: bool = ..., eigvals: None = ...,
    type: int = ..., check_finite: bool = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = ..., lower: bool = ..., eigvals_only: Literal[True] = ...,
    overwrite_a: bool = ..., overwrite_b: bool = ..., turbo: bool = ..., eigvals: None = ...,
    type: int = ..., check_finite: bool = ...,
) -> Array: ...  # fmt: skip
@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = ..., lower: bool = ..., eigvals_only: bool = ...,
    overwrite_a: bool = ..., overwrite_b: bool = ..., turbo: bool = ..., eigvals: None = ...,
    type: int = ..., check_finite: bool = ...,
) -> tuple[Array, Array] | Array: ...  # fmt: skip
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None,
    type: int = 1,  # noqa: A002 - SciPy's name
    check_finite: bool = True,
) -> tuple[Array, Array] | Array:  # fmt: skip
    """Return the eigenvalues and vectors (w, v) of Hermitian matrices, a v = b v diag(w).

    Args:
      a: matrices of shape (..., n, n), of which one triangle is read.
      b: positive definite matrices of the same shape; None for the identity.
      lower: whether the lower triangles are read.
      eigvals_only: whether only w is returned.
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      turbo: has no effect.
      eigvals: must be None.
      type: which problem is solved: 1 for a v = b v w, 2 for a b v = v w, 3 for b a v = v w.
      check_finite: has no effect.

    Returns:
      Ascending real eigenvalues; vectors are columns, with v^H b v the identity (type 3: b^-1).

    Differentiable in: a, b, where eigenvalues are distinct.
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    require_choice("eigh", "type", type, (1, 2, 3))
    require(eigvals is None, "eigh", "selects no eigenvalues.", got={"eigvals": eigvals},
            expected="None; w[a:b] are some of them")  # fmt: skip
    if b is None:
        x = matrix("eigh", a, square=True)
        v, w = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
        return w if eigvals_only else (w, v)
    x, y = promote("eigh", a, b, inexact=True)
    factor = cholesky_factor("eigh", y, lower)
    factor = factor if lower else xn.conj(factor).mT
    x = _hermitian(matrix("eigh", x, square=True), lower)
    reduced = _reduce(x, factor) if type == 1 else xn.conj(factor).mT @ x @ factor
    v, w = lax.linalg.eigh((reduced + xn.conj(reduced).mT) / 2, symmetrize_input=False)
    if eigvals_only:
        return w
    if type == 3:
        return w, factor @ v
    return w, lax.linalg.triangular_solve(
        factor, v, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def _hermitian(x: Array, lower: bool) -> Any:
    """Return the Hermitian matrix of which one triangle is given."""
    half = xn.tril(x, -1) if lower else xn.triu(x, 1)
    diagonal = x.real * xn.eye(x.shape[-1], dtype=x.real.dtype)
    return half + xn.conj(half).mT + diagonal


def _reduce(x: Any, factor: Array) -> Any:
    """Return L^-1 x L^-H."""
    left = lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
    return lax.linalg.triangular_solve(
        factor, left, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )


@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[False] = ..., select: str = ...,
    select_range: tuple[float, float] | None = ..., tol: float | None = ...,
    key: Array | None = ...,
) -> tuple[Array, Array]: ...  # fmt: skip
@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: Literal[True], select: str = ...,
    select_range: tuple[float, float] | None = ..., tol: float | None = ...,
    key: Array | None = ...,
) -> Array: ...  # fmt: skip
@overload
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool, select: str = ...,
    select_range: tuple[float, float] | None = ..., tol: float | None = ...,
    key: Array | None = ...,
) -> tuple[Array, Array] | Array: ...  # fmt: skip
def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None,
    key: Array | None = None,
) -> tuple[Array, Array] | Array:  # fmt: skip
    """Return the eigenvalues, and vectors, of a symmetric tridiagonal matrix.

    Args:
      d: its diagonal, of shape (n,), real.
      e: the diagonal beside, of shape (n - 1,); where it is complex, the upper one is its
        conjugate.
      eigvals_only: whether only the eigenvalues are returned, else (w, v).
      select: "a" for all, "i" for those of the indices `select_range`, both ends included, "v" for
        those between the values of `select_range`; their number must be known, so not in a program
        that is traced.
      select_range: see `select`.
      tol: must be None: eigenvalues are right to rounding of the greatest.
      key: must be None: no random vectors are taken.

    Returns:
      Ascending eigenvalues, and vectors as columns.
    """
    require(
        tol is None and key is None, "eigh_tridiagonal",
        "nothing is iterated to a tolerance, and nothing is random.", got={"tol": tol, "key": key},
        expected="None",
    )  # fmt: skip
    d, e = inexact("eigh_tridiagonal", d, e)
    require(
        d.ndim == 1 and e.shape == (max(d.size - 1, 0),), "eigh_tridiagonal",
        "the diagonals do not fit.", got={"d": d, "e": e}, expected="shapes (n,) and (n - 1,)",
    )  # fmt: skip
    if dtypes.is_complex(d.dtype) or not d.size:
        x = xn.diag(d) + xn.diag(e, -1) + xn.diag(xn.conj(e), 1)
        *v, w = lax.linalg.eigh(x, symmetrize_input=False)
    else:
        *v, w = eigh_tridiagonal_p.bind(d, e, vectors=not eigvals_only)
    chosen = _choose(w, select, select_range)
    return w[chosen] if eigvals_only else (w[chosen], v[0][:, chosen])


def _choose(w: Array, select: str, limits: tuple[float, float] | None) -> Any:
    require(
        select == "a" if limits is None else select in ("i", "v"), "eigh_tridiagonal",
        "select and select_range do not fit.", got=(select, limits),
        expected="'a' and None, or 'i' or 'v' and a pair",
    )  # fmt: skip
    if limits is None:
        return slice(None)
    low, high = limits
    if select == "i":
        return slice(int(low), int(high) + 1)
    return xn.nonzero((w > low) & (w <= high))[0]


def polar(
    a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return (u, p) with a = u p, or a = p u, orthonormal u and positive semidefinite p.

    Args:
      a: a matrix of shape (m, n): m >= n for the right side, m <= n for the left.
      side: "right" for a = u p, "left" for a = p u.
      method: "qdwh" or "svd"; both factors come of the singular value decomposition.
      eps: must be None: nothing is iterated.
      max_iterations: must be None.

    Differentiable in: a of full rank, to any order, equal singular values included.
    """
    require_choice("polar", "side", side, ("right", "left"))
    require_choice("polar", "method", method, ("qdwh", "svd"))
    require(
        eps is None and max_iterations is None, "polar", "nothing is iterated.",
        got={"eps": eps, "max_iterations": max_iterations}, expected="None",
    )  # fmt: skip
    x = matrix("polar", a)
    u, _, vh = linalg.svd(x, full_matrices=False)
    unitary = u @ vh
    # as products of the unitary factor, since weights of singular vectors have no derivative where
    # singular values are equal
    across = xn.conj(unitary).mT
    p = across @ x if side == "right" else x @ across
    return unitary, (p + xn.conj(p).mT) * 0.5


boundaries(globals())
