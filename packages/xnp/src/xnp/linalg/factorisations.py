"""Factorisations of matrices, and singular values and eigenvalues alone."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from xnp import lax
from xnp.linalg.products import matrix
from xnp.primitives.matrices import adjoint, matmul
from xnp.primitives.qr import geqrf_p
from xprim import Array
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike

__all__ = [
    "QRResult", "EigResult", "EighResult", "SVDResult", "cholesky", "qr", "eig", "eigvals", "eigh",
    "eigvalsh", "svd", "svdvals",
]  # fmt: skip

__dir__ = __all__.copy


class QRResult(NamedTuple):
    """The factors Q and R of `qr`."""

    Q: Array
    R: Array


class EigResult(NamedTuple):
    """What `eig` returns: vectors are columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns: eigenvalues ascend, vectors are columns."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """What `svd` returns: singular values descend, vectors are columns of U and rows of Vh."""

    U: Array
    S: Array
    Vh: Array


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with a = L L^H, or with `upper` the L^H of it.

    A matrix that is not positive definite gives NaN, where NumPy raises an error.

    Args:
      a: Hermitian positive definite matrices.
      upper: whether the upper triangular factor is returned.
      symmetrize_input: whether to take (a + a^H) / 2; otherwise one triangle alone is read.

    Returns:
      NaN where a is not positive definite.

    Differentiable in: a.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.cholesky(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
        Array([[2.   , 0.   ],
               [1.   , 1.414]], dtype=float32)
    """
    x = matrix("cholesky", a, square=True)
    if upper and not symmetrize_input:
        x = adjoint(x)
    result = lax.linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(result) if upper else result


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw"] = ...) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"] = ...) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = ...) -> QRResult | Array: ...
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array:
    """Return (Q, R) with a = Q R.

    Args:
      a: matrices of shape (..., m, n).
      mode: `"reduced"` for min(m, n) columns of Q, `"complete"` (or `"full"`) for a square Q,
        `"r"` for R alone, `"raw"` for the transposed reflectors and their factors, as LAPACK's
        `geqrf` leaves them.

    Returns:
        A `QRResult` with `Q` and `R`, or R alone for the mode "r".

    Raises:
        TypeError: `a` is not an array.
        ValueError: unknown `mode`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> abs(linalg.qr(xnp.array([[4.0, 2.0], [2.0, 3.0]])).R).round(3)
        Array([[4.472, 3.13 ],
               [0.   , 1.789]], dtype=float32)
    """
    x = matrix("qr", a)
    mode = "complete" if mode == "full" else mode
    require_choice("qr", "mode", mode, ("reduced", "complete", "r", "raw"))
    if mode == "raw":
        packed, taus = geqrf_p.bind(x)
        return QRResult(packed.mT, taus)
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def eig(a: ArrayLike) -> EigResult:
    """Return the eigenvalues w and right eigenvectors v of square matrices: a v = v diag(w).

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.

    Returns:
        An `EigResult` of complex arrays: `eigenvalues` (..., n) and `eigenvectors`
        (..., n, n), in columns of length 1.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.eig(xnp.array([[4.0, 2.0], [2.0, 3.0]])).eigenvalues.shape
        (2,)
    """
    x = matrix("eig", a, square=True)
    w, v = lax.linalg.eig(x, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues of square matrices, complex and in no particular order.

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.

    Returns:
        A complex array (..., n).

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.eigvals(xnp.array([[4.0, 2.0], [2.0, 3.0]])).shape
        (2,)
    """
    x = matrix("eigvals", a, square=True)
    return lax.linalg.eig(
        x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]  # fmt: skip


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return the eigenvalues w and eigenvectors v of Hermitian matrices: a v = v diag(w).

    The mean of the matrix and its adjoint is decomposed, where NumPy reads one triangle alone.

    Args:
      a: the matrices.
      UPLO: `"L"` or `"U"`, the triangle to read when `symmetrize_input` is off; None for `"L"`.
      symmetrize_input: whether to take (a + a^H) / 2 first.

    Returns:
        An `EighResult`: real `eigenvalues` (..., n), ascending, and `eigenvectors`
        (..., n, n), in columns of length 1.

    Raises:
        TypeError: `a` is not an array.
        ValueError: unknown `UPLO`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.eigh(xnp.array([[4.0, 2.0], [2.0, 3.0]])).eigenvalues.round(3)
        Array([1.438, 5.562], dtype=float32)
    """
    x = matrix("eigh", a, square=True)
    require(UPLO in (None, "L", "U"), "eigh", "UPLO must be 'L' or 'U'.", got=UPLO)
    v, w = lax.linalg.eigh(x, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the ascending eigenvalues of Hermitian matrices; see `eigh`.

    The mean of the matrix and its adjoint is decomposed, where NumPy reads one triangle alone.

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.
        UPLO: which triangle is read, "L" or "U".
        symmetrize_input: whether the mean of the matrix and its conjugate transpose is
            taken first.

    Returns:
        A real array (..., n).

    Raises:
        TypeError: `a` is not an array.
        ValueError: unknown `UPLO`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.eigvalsh(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
        Array([1.438, 5.562], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Literal[True] = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> SVDResult: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Literal[False] = ...,
    hermitian: bool = ..., subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...  # fmt: skip
@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: bool = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array | SVDResult: ...  # fmt: skip
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:  # fmt: skip
    """Return (U, S, Vh) with a = U diag(S) Vh, or S alone.

    Args:
      a: matrices of shape (..., m, n).
      full_matrices: whether U and Vh are square.
      compute_uv: whether the vectors are returned.
      hermitian: whether a is Hermitian; that needs less work.
      subset_by_index: the half-open range of singular values to return; None for all.

    Returns:
        An `SVDResult` with `U`, the descending singular values `S` and `Vh`, or S
        alone without `compute_uv`.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.svd(xnp.array([[4.0, 2.0], [2.0, 3.0]])).S.round(3)
        Array([5.562, 1.438], dtype=float32)
    """
    x = matrix("svd", a, square=hermitian)
    if hermitian and subset_by_index is None:
        return _hermitian_svd(x, compute_uv)
    if not compute_uv:
        return lax.linalg.svd(x, compute_uv=False, subset_by_index=subset_by_index)
    return SVDResult(*lax.linalg.svd(
        x, full_matrices=full_matrices, subset_by_index=subset_by_index
    ))  # fmt: skip


def _hermitian_svd(x: Any, compute_uv: bool) -> Array | SVDResult:
    # a = V diag(w) V^H, so s = |w| and U = V, Vh = sign(w) V^H, in the order of descending |w|
    v, w = lax.linalg.eigh(x)
    last = w.ndim - 1
    sizes = lax.neg(lax.abs(w))
    places = lax.broadcasted_iota("int32", w.shape, last)
    key, order = lax.sort((sizes, places), dimension=last, num_keys=1)
    s = lax.neg(key)
    if not compute_uv:
        return s
    columns = lax.broadcast_in_dim(order, v.shape, (*range(last), last + 1))
    rows = lax.broadcasted_iota("int32", v.shape, last)
    selector = lax.convert_element_type(lax.eq(rows, columns), v.dtype)
    signs = lax.broadcast_in_dim(lax.sign(w), v.shape, (*range(last), last + 1))
    signed = lax.mul(v, lax.convert_element_type(signs, v.dtype))
    return SVDResult(matmul(v, selector), s, adjoint(matmul(signed, selector)))


def svdvals(x: ArrayLike, /) -> Array:
    """Return the descending singular values of matrices.

    Args:
        x: a matrix, or several: all dimensions but the last two are batches.

    Returns:
        A real array (..., min(m, n)).

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.svdvals(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
        Array([5.562, 1.438], dtype=float32)
    """
    result: Array = svd(x, compute_uv=False)
    return result


boundaries(globals())
