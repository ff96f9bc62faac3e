"""Factorisations: cholesky, lu, qr, svd, eigh, eigh_tridiagonal, polar.

Neighbours: `xnp.lax.linalg` has them as primitives, `systems` those that are kept for solving.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.operands import matrix, promoted
from xnp.numpy.promoting import inexact
from xnp.scipy.linalg.systems import cholesky_factor
from xprim import Array
from xprim.errors import message
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = ["cholesky", "eigh", "eigh_tridiagonal", "lu", "polar", "qr", "qr_multiply", "svd"]

__dir__ = __all__.copy


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return the triangular U with a = U^H U, or L with a = L L^H.

    Args:
      a: Hermitian positive definite matrices (..., n, n), of which one triangle is read.
      lower: whether it is the lower one, and L is returned.
      overwrite_a: means nothing here.
      check_finite: means nothing here.

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
      overwrite_a: means nothing here.
      check_finite: means nothing here.

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
      overwrite_a: means nothing here.
      lwork: means nothing here.
      mode: "full" for a square q, "economic" for one of min(m, n) columns, "r" for (r,) alone.
      pivoting: whether (q, r, p) with a[:, p] = q r is returned, the diagonal of r not increasing.
      check_finite: means nothing here.
    """
    del overwrite_a, lwork, check_finite
    if mode not in ("full", "economic", "r"):
        raise ValueError(message(
            "qr", "there is no such mode.", got=f"{mode!r}", expected="'full', 'economic' or 'r'",
        ))  # fmt: skip
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
      overwrite_a: means nothing here.
      overwrite_c: means nothing here.
    """
    del overwrite_a, overwrite_c
    if mode not in ("left", "right"):
        raise ValueError(message(
            "qr_multiply", "there is no such mode.", got=f"{mode!r}", expected="'left' or 'right'",
        ))  # fmt: skip
    x, y = promoted("qr_multiply", a, c, inexact=True)
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
      overwrite_a: means nothing here.
      check_finite: means nothing here.
      lapack_driver: must be "gesdd", the one there is.
    """
    del overwrite_a, check_finite
    if lapack_driver != "gesdd":
        raise ValueError(message(
            "svd", "there is no such driver.", got=f"{lapack_driver!r}", expected="'gesdd'",
        ))  # fmt: skip
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
      overwrite_a: means nothing here.
      overwrite_b: means nothing here.
      turbo: means nothing here.
      eigvals: must be None.
      type: which problem is solved: 1 for a v = b v w, 2 for a b v = v w, 3 for b a v = v w.
      check_finite: means nothing here.

    Returns:
      Ascending real eigenvalues; vectors are columns, with v^H b v the identity (type 3: b^-1).

    Differentiable in: a, b, where eigenvalues are distinct.
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    if eigvals is not None or type not in (1, 2, 3):
        raise ValueError(message(
            "eigh", "there is no such problem.", got=f"eigvals={eigvals!r}, type={type!r}",
            expected="eigvals=None, type 1, 2 or 3",
        ))  # fmt: skip
    if b is None:
        x = matrix("eigh", a, square=True)
        v, w = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
        return w if eigvals_only else (w, v)
    x, y = promoted("eigh", a, b, inexact=True)
    factor = cholesky_factor("eigh", y, lower)
    factor = factor if lower else xn.conj(factor).mT
    x = _hermitian(matrix("eigh", x, square=True), lower)
    reduced = _reduced(x, factor) if type == 1 else xn.conj(factor).mT @ x @ factor
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


def _reduced(x: Any, factor: Array) -> Any:
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
    if tol is not None or key is not None:
        raise ValueError(message(
            "eigh_tridiagonal", "nothing is iterated to a tolerance, and nothing is random.",
            got=f"tol={tol!r}, key={key!r}", expected="None",
        ))  # fmt: skip
    d, e = inexact("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.shape != (max(d.size - 1, 0),):
        raise ValueError(message(
            "eigh_tridiagonal", "the diagonals do not fit.",
            got=f"d: {d.aval.str_long()}, e: {e.aval.str_long()}",
            expected="shapes (n,) and (n - 1,)",
        ))  # fmt: skip
    x = xn.diag(d) + xn.diag(e, -1) + xn.diag(xn.conj(e), 1)
    v, w = lax.linalg.eigh(x, symmetrize_input=False)
    chosen = _chosen(w, select, select_range)
    return w[chosen] if eigvals_only else (w[chosen], v[:, chosen])


def _chosen(w: Array, select: str, limits: tuple[float, float] | None) -> Any:
    if select == "a" and limits is None:
        return slice(None)
    if select not in ("i", "v") or limits is None:
        raise ValueError(message(
            "eigh_tridiagonal", "select and select_range do not fit.",
            got=f"{select!r}, {limits!r}", expected="'a' and None, or 'i' or 'v' and a pair",
        ))  # fmt: skip
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

    Differentiable in: a, where its singular values are distinct.
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        raise ValueError(message(
            "polar", "there is no such side or method.", got=f"{side!r}, {method!r}",
            expected="'right' or 'left', and 'qdwh' or 'svd'",
        ))  # fmt: skip
    if eps is not None or max_iterations is not None:
        raise ValueError(message(
            "polar", "nothing is iterated.", got=f"eps={eps}, max_iterations={max_iterations}",
            expected="None",
        ))  # fmt: skip
    u, s, vh = linalg.svd(matrix("polar", a), full_matrices=False)
    s = s.astype(u.dtype)
    if side == "right":
        return u @ vh, (xn.conj(vh).mT * s[..., None, :]) @ vh
    return u @ vh, (u * s[..., None, :]) @ xn.conj(u).mT


boundaries(globals())
