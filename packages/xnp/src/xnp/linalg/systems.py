"""Factorisations, linear systems, inverses, least squares, determinants, norms and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from xnp import lax
from xnp.linalg.products import broadcast_batches, diagonal, matmul, matrix, promote
from xnp.numpy.creation import asarray
from xnp.numpy.dispatch import array_of, axis_of, cast, check_ranks, several_axes, wide
from xnp.primitives import matrices, table
from xnp.primitives.linear_systems import det_p, pivots_of, solve_p
from xnp.primitives.matrices import adjoint, conj, eye, real, real_dtype
from xnp.primitives.qr import geqrf_p
from xnp.primitives.svd import pinv_p, svd_p
from xnp.primitives.table import broadcast_to, convert, fill, reshape, select, slice_dim, sum_axes
from xprim import Array, JaxprTracer, Zero, as_array, custom_jvp_call_p, dtypes
from xprim.errors import ShapeError, message
from xprim.requirements import require, require_choice
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Axis

__all__ = [
    "SlogdetResult", "solve", "inv", "pinv", "lstsq", "slogdet", "det", "tensorinv", "tensorsolve",
    "norm", "vector_norm", "matrix_norm", "cond", "matrix_rank", "QRResult", "EigResult",
    "EighResult", "SVDResult", "cholesky", "qr", "eig", "eigvals", "eigh", "eigvalsh", "svd",
    "svdvals",
]  # fmt: skip

__dir__ = __all__.copy


# ----------------------------------------------------------------------------------- factorisations
# Factorisations of matrices, and singular values and eigenvalues alone.


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
    return SVDResult(matrices.matmul(v, selector), s, adjoint(matrices.matmul(signed, selector)))


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


# --------------------------------------------------------------------------------------- systems
# Linear systems, inverses, least squares and determinants.


class SlogdetResult(NamedTuple):
    """The sign (a phase, for complex matrices) and the logarithm of |det|."""

    sign: Array
    logabsdet: Array


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve a x = b.

    A singular matrix gives infinities or NaN, where NumPy raises an error.

    Args:
      a: square matrices of shape (..., n, n).
      b: right sides: matrices of shape (..., n, k), or one vector (n,).

    Returns:
      x, of the broadcast shape of b; inf or NaN where a is singular.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import numpy as np
      >>> np.asarray(solve(np.float32([[2, 0], [0, 4]]), np.float32([2, 2])))
      array([1. , 0.5], dtype=float32)

    Differentiable in: a, b.
    """
    x, y = promote("solve", a, b, inexact=True)
    x = matrix("solve", x, square=True)
    is_vector = y.ndim == 1
    if is_vector:
        y = reshape(y, (*y.shape, 1))
    require(
        y.ndim and y.shape[-2] == x.shape[-1], "solve", "the operands do not fit.",
        got={"a": x, "b": y}, expected="as many rows of b as columns of a",
    )  # fmt: skip
    x, y = broadcast_batches("solve", x, y, core=(2, 2))
    result = solve_p.bind(x, y)[0]
    x_of_y: Array = reshape(result, result.shape[:-1]) if is_vector else result
    return x_of_y


def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices; inf or NaN where they are singular.

    A singular matrix gives infinities or NaN, where NumPy raises an error.

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.

    Returns:
        An array of the shape of a.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.inv(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
        Array([[ 0.375, -0.25 ],
               [-0.25 ,  0.5  ]], dtype=float32)
    """
    x = matrix("inv", a, square=True)
    result: Array = solve_p.bind(x, eye(x.shape, x.dtype))[0]
    return result


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Return the Moore-Penrose inverses of matrices.

    Args:
      a: matrices of shape (..., m, n).
      rtol: singular values up to this times the largest one count as zero; a number, or an array
        with one for each matrix, whose shape broadcasts with (...); several for one matrix give as
        many inverses, where NumPy refuses them. None for 10 max(m, n) times the precision of the
        dtype.
      hermitian: whether the matrices are Hermitian; they are then made exactly so.
      rcond: an older name of `rtol`.

    Differentiable in: a, where its rank does not change; the derivative is that of a matrix whose
    cut singular values are zeros, as they are but for rounding unless `rtol` is large.

    Returns:
        An array (..., n, m) for matrices (..., m, n).

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.pinv(xnp.array([[2.0], [0.0]]))
        Array([[0.5, 0. ]], dtype=float32)
    """
    x = matrix("pinv", a, square=hermitian)
    if hermitian:
        x = lax.mul(lax.add(x, adjoint(x)), table.scalar_like(x, 0.5))
    check_one_bound("pinv", "rtol", rtol, "rcond", rcond)
    cut = rtol if rtol is not None else rcond
    if cut is None:
        cut = 10 * max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
    bounds = bounds_of("pinv", cut, x, 2, real_dtype(x.dtype))
    result: Array = pinv_p.bind(broadcast_to(x, (*bounds.shape, *x.shape[-2:])), bounds)[0]
    return result


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the least-squares solution of a x = b, of least norm where it is not unique.

    Args:
      a: a matrix of shape (m, n).
      b: right sides, of shape (m,) or (m, k).
      rcond: singular values up to this times the largest one count as zero; None for max(m, n)
        times the precision of the dtype.
      numpy_resid: whether the residuals are an empty array where NumPy's are: for a rank below n,
        or m <= n. This needs the value of the rank, so it cannot be traced.

    Returns:
      (x, residuals, rank, singular values).

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.lstsq(xnp.array([[1.0], [1.0]]), xnp.array([1.0, 3.0]))[0].round(3)
        Array([2.], dtype=float32)
    """
    x, y = promote("lstsq", a, b, inexact=True)
    require(
        x.ndim == 2 and y.ndim in (1, 2) and x.shape[0] == y.shape[0], "lstsq",
        "a must be a matrix, b a vector or a matrix with as many rows.", got={"a": x, "b": y},
    )  # fmt: skip
    m, n = x.shape
    columns = reshape(y, (m, 1)) if y.ndim == 1 else y
    eps = float(dtypes.finfo(x.dtype).eps)
    cut = bounds_of("lstsq", max(m, n) * eps if rcond is None else rcond, x, 2, real_dtype(x.dtype))
    require(not cut.ndim, "lstsq", "rcond must be a number.", got=cut, error=ShapeError)
    cut = select(lax.lt(cut, table.scalar_like(cut, 0)), table.scalar_like(cut, eps), cut)
    s = _values_beside_pinv(x)
    rank = rank_of(s, cut)
    solution = matmul(pinv(x, cut), columns)
    difference = lax.abs(lax.sub(columns, matmul(x, solution)))
    residuals = sum_axes(lax.mul(difference, difference), (0,))
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = fill((0,), 0, residuals.dtype)
    if y.ndim == 1:
        solution = reshape(solution, (n,))
    return solution, residuals, rank, s


def _values_beside_pinv(x: Any) -> Any:
    """Return the singular values: in a program that is staged, from the decomposition of `pinv`.

    The compiler makes one of two equal decompositions. At once the values alone are quicker, and a
    derivative asks for no derivatives of singular vectors.
    """
    if type(x) is JaxprTracer:
        return svd_p.bind(x, full_matrices=False, compute_uv=True)[0]
    return lax.linalg.svd(x, compute_uv=False)


def rank_of(s: Any, rtol: Any) -> Any:
    """Return how many of descending singular values exceed `rtol` times the first one."""
    s, bounds = beside_bounds(s, rtol)
    if not s.shape[-1]:
        return fill(s.shape[:-1], 0, dtypes.int32)
    first = slice_dim(s, s.ndim - 1, 0, 1)
    return count_above(s, lax.mul(broadcast_to(first, s.shape, tuple(range(s.ndim))), bounds))


def beside_bounds(s: Any, bound: Any) -> tuple[Any, Any]:
    """Return singular values and the bound of each, of one shape; both are repeated to it."""
    bounds = bounds_of("matrix_rank", bound, s, 1, s.dtype)
    shape = (*bounds.shape, s.shape[-1])
    return broadcast_to(s, shape), broadcast_to(bounds, shape, tuple(range(bounds.ndim)))


def check_one_bound(operation: str, one: str, first: Any, other: str, second: Any) -> None:
    """Refuse a bound that is given under both of its names."""
    require(
        first is None or second is None, operation, "{} and {} both say what counts as zero.", one,
        other, expected="one of them",
    )  # fmt: skip


def bounds_of(name: str, bound: Any, x: Any, core: int, dtype: np.dtype[Any]) -> Any:
    """Return a bound for each matrix, or for each of more that the shape of the bounds asks for.

    Args:
      name: the function that errors name.
      bound: a number or an array.
      x: what the bounds are for, an array whose last `core` dimensions are those of each.
      core: see `x`.
      dtype: of the result.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.
    """
    batch = x.shape[: x.ndim - core]
    bounds = convert(asarray(bound), dtype)
    try:
        shape = np.broadcast_shapes(bounds.shape, batch)
    except ValueError:
        raise ShapeError(message(
            name, "there must be one bound, or one for each matrix.",
            got=bounds.aval.str_long(), expected=f"a shape that broadcasts with {batch}",
        )) from None  # fmt: skip
    check_ranks(name, bounds, x, core=(0, core), made=(1,))
    return broadcast_to(bounds, shape)


def count_above(s: Any, bounds: Any) -> Any:
    """Return how many singular values of each matrix exceed their bounds."""
    integer = dtypes.canonicalize_dtype(int)
    return sum_axes(convert(lax.gt(s, bounds), integer), (s.ndim - 1,))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the sign and the logarithm of the absolute value of determinants.

    Args:
      a: square matrices.
      method: `"lu"` or None for the LU factorisation, `"qr"` for that into Q and R.

    Returns:
      (0, -inf) where a matrix is singular.

    Differentiable in: a.

    Raises:
        TypeError: `a` is not an array.
        ValueError: unknown `method`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.slogdet(xnp.array([[4.0, 2.0], [2.0, 3.0]])).logabsdet.round(3)
        Array(2.079, dtype=float32)
    """
    require_choice("slogdet", "method", method, (None, "lu", "qr"))
    x = matrix("slogdet", a, square=True)
    sign, values = (_of_qr if method == "qr" else pivots_of)(wide(x))
    sizes = lax.abs(values)
    last = (values.ndim - 1,)
    logs = sum_axes(lax.log(sizes), last)
    sign = lax.mul(sign, lax.reduce_prod(lax.sign(values), last))
    narrow = dtypes.itemsize_bits(x.dtype) < 32
    return SlogdetResult(*[cast(v, x.dtype) if narrow else v for v in (sign, logs)])


def _of_qr(x: Any) -> tuple[Any, Any]:
    """Return the determinant of Q, of absolute value 1, and the diagonal of R."""
    q, r = lax.linalg.qr(x)
    return slogdet(q).sign, diagonal(r)


def det(a: ArrayLike) -> Array:
    """Return determinants of square matrices.

    Differentiable in: a to any order, also where it is singular; where the rank of more than four
    rows is smaller by more than four, to the fourth order.

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.

    Returns:
        An array of the batch dimensions, of the dtype of a.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.det(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
        Array(8., dtype=float32)
    """
    x = matrix("det", a, square=True)
    n = x.shape[-1]
    if n and n <= 3:
        return _small_det(x, n)  # type: ignore[no-any-return]
    return cast(det_p.bind(wide(x))[0], x.dtype)


def _small_det(x: Any, n: int) -> Any:
    """Expand a determinant along its first row: a polynomial, smooth at singular matrices too."""
    row = x.ndim - 2

    def entry(i: int, j: int) -> Any:
        found = slice_dim(slice_dim(x, row, i, i + 1), row + 1, j, j + 1)
        return reshape(found, x.shape[:-2])

    def minor(i: int, columns: tuple[int, ...]) -> Any:
        if len(columns) == 1:
            return entry(i, columns[0])
        total = None
        for k, j in enumerate(columns):
            term = lax.mul(entry(i, j), minor(i + 1, columns[:k] + columns[k + 1 :]))
            if total is None:
                total = term
            else:
                total = lax.sub(total, term) if k % 2 else lax.add(total, term)
        return total

    return minor(0, tuple(range(n)))


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of `x -> tensordot(a, x, a.ndim - ind)`: the first `ind` axes are rows.

    A singular matrix gives infinities or NaN, where NumPy raises an error.

    Args:
        a: an array; the sizes of its first `ind` axes and of the others have one
            product.
        ind: how many axes are those of the results.

    Returns:
        An array whose shape is that of a with the two groups of axes exchanged.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.tensorinv(xnp.eye(6).reshape(2, 3, 6), ind=2).shape
        (6, 2, 3)
    """
    (x,) = promote("tensorinv", a, inexact=True)
    if not 0 < ind < max(x.ndim, 1) or math.prod(x.shape[:ind]) != math.prod(x.shape[ind:]):
        raise ValueError(message(
            "tensorinv", "the first `ind` dimensions must hold as many elements as the others.",
            got=f"{x.aval.str_long()}, ind={ind}",
        ))  # fmt: skip
    size = math.prod(x.shape[:ind])
    inverse = inv(reshape(x, (size, size)))
    return reshape(inverse, (*x.shape[ind:], *x.shape[:ind]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve `tensordot(a, x, x.ndim) == b` for x.

    A singular matrix gives infinities or NaN, where NumPy raises an error.

    Args:
      a: an array whose first dimensions are those of b.
      b: the right side.
      axes: axes of a to move to its end first.

    Returns:
        An array of the dimensions of a that are not those of b.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `axes` are out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.tensorsolve(xnp.eye(6).reshape(2, 3, 6), xnp.ones((2, 3))).shape
        (6,)
    """
    x, y = promote("tensorsolve", a, b, inexact=True)
    for axis in axes or ():
        x = table.move_dim(x, axis_of(axis, x.ndim, "tensorsolve"), x.ndim - 1)
    shape = x.shape[y.ndim :]
    require(
        math.prod(shape) == y.size and math.prod(x.shape[: y.ndim]) == y.size, "tensorsolve",
        "the operands do not fit.", got={"a": x, "b": y},
    )  # fmt: skip
    flat = solve(reshape(x, (y.size, y.size)), reshape(y, (y.size,)))
    return reshape(flat, shape)


# ----------------------------------------------------------------------------------------- norms
# Norms of vectors and matrices, condition numbers and ranks.
#
# The derivative of a norm at zero is zero where the norm has a subgradient of zero there.


def norm(
    x: ArrayLike,
    ord: float | str | None = None,  # noqa: A002 - NumPy's name
    axis: Axis = None,
    keepdims: bool = False,
) -> Array:
    """Return the norm of vectors or matrices.

    Args:
      x: an array.
      ord: the order. None for the root of the sum of squares; for vectors any number, inf or -inf;
        for matrices `"fro"`, `"nuc"`, 1, -1, 2, -2, inf or -inf.
      axis: one axis for vectors, a pair for matrices; None for all elements, or, with `ord`, all
        axes of an array of one or two dimensions.
      keepdims: whether the axes stay, with size 1.

    Returns:
      A real array without the axes, or with them in size 1 for `keepdims`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
      >>> import numpy as np
      >>> float(np.asarray(norm(np.float32([3, 4]))))
      5.0

    Differentiable in: x.
    """
    (y,) = promote("norm", x, inexact=True)
    if axis is None and ord is None:
        return vector_norm(y, keepdims=keepdims)
    axes = _axes_of(y, axis)
    if len(axes) == 1:
        return vector_norm(y, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(message(
            "norm", "the axes must be one (vectors) or two different ones (matrices).",
            got=f"{axes} for {y.aval.str_long()}",
        ))  # fmt: skip
    kept = [i for i in range(y.ndim) if i not in axes]
    arranged = lax.transpose(y, (*kept, *axes))
    result = matrix_norm(arranged, ord="fro" if ord is None else ord)
    return _restore(result, y.shape, axes) if keepdims else result


def _axes_of(y: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(y.ndim))
    given = axis if several_axes(axis) else (axis,)
    return tuple([axis_of(a, y.ndim, "norm") for a in given])


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    ord: float | str | None = 2,  # noqa: A002
) -> Array:
    """Return `(sum |x|^ord)^(1/ord)` over an axis, several, or all elements.

    `ord` inf and -inf give the greatest and the least `|x|`, 0 the number of elements not zero.

    Args:
        x: an array.
        axis: the axis or axes of the vectors; None takes all elements as one.
        keepdims: whether the axes stay, with size 1.
        ord: the order, a number or an infinity.

    Returns:
        A real array without the axes.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.vector_norm(xnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    (y,) = promote("vector_norm", x)
    if not dtypes.is_inexact(y.dtype):
        y = convert(y, dtypes.python_scalar_dtype(float))
    if axis is None:
        axes = tuple(range(y.ndim))
    else:
        given = axis if several_axes(axis) else (axis,)
        axes = tuple(sorted([axis_of(a, y.ndim, "vector_norm") for a in given]))
    require(not isinstance(ord, str), "vector_norm", "the order must be a number.", got=ord)
    result = _power_norm(y, axes, ord)
    return _restore(result, y.shape, axes) if keepdims else result  # type: ignore[no-any-return]


def _power_norm(x: Any, axes: tuple[int, ...], order: Any) -> Any:
    if order == 2:
        return _root(sum_axes(_square_size(x), axes))
    sizes = lax.abs(x)
    largest = float(dtypes.finfo(sizes.dtype).max)  # greater orders are infinite in the dtype
    if order > largest:
        return _greatest(sizes, axes)
    if order < -largest:
        return _least(sizes, axes)
    if order == 0:
        zero = lax.full_like(sizes, 0)
        return sum_axes(convert(lax.ne(sizes, zero), sizes.dtype), axes)
    if order == 1:
        return sum_axes(sizes, axes)
    power = lax.pow(sizes, lax.full_like(sizes, order))
    total = sum_axes(power, axes)
    return lax.pow(total, lax.full_like(total, 1 / order))


def _greatest(sizes: Any, axes: tuple[int, ...]) -> Any:
    """Return the greatest of numbers that are not negative; 0 where there is none."""
    if math.prod([sizes.shape[d] for d in axes]):
        return lax.reduce_max(sizes, axes)
    return sum_axes(sizes, axes)


def _least(sizes: Any, axes: tuple[int, ...]) -> Any:
    if not math.prod([sizes.shape[d] for d in axes]):
        raise ValueError(message(
            "norm", "the least of no elements is not defined.",
            got=f"{sizes.aval.str_long()}, axes {axes}",
        ))  # fmt: skip
    return lax.reduce_min(sizes, axes)


def _square_size(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        re, im = lax.real(x), lax.imag(x)
        return lax.add(lax.mul(re, re), lax.mul(im, im))
    return lax.mul(x, x)


def _root(x: Any) -> Any:
    """Return the square root, whose derivative at zero is taken for zero."""
    zero = lax.full_like(x, 0)
    is_zero = lax.eq(x, zero)
    return select(is_zero, zero, lax.sqrt(select(is_zero, lax.full_like(x, 1), x)))


def matrix_norm(
    x: ArrayLike,
    /,
    *,
    keepdims: bool = False,
    ord: float | str | None = "fro",  # noqa: A002
) -> Array:
    """Return a norm of matrices.

    Args:
      x: matrices of shape (..., m, n).
      keepdims: whether the last two dimensions stay, with size 1.
      ord: `"fro"` root of the sum of squares, `"nuc"` sum of the singular values, 1 and -1 greatest
        and least sum of a column, inf and -inf of a row, 2 and -2 greatest and least singular
        value.

    Returns:
        A real array of the batch dimensions (with two of size 1 behind them for
        `keepdims`).

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.matrix_norm(xnp.array([[4.0, 2.0], [2.0, 3.0]])).round(3)
        Array(5.745, dtype=float32)
    """
    y = matrix("matrix_norm", x)
    require_choice("matrix_norm", "order", ord, _MATRIX_NORMS)
    result = _MATRIX_NORMS[ord](y)
    axes = (y.ndim - 2, y.ndim - 1)
    return _restore(result, y.shape, axes) if keepdims else result  # type: ignore[no-any-return]


def _by_sums(pick: Callable[..., Any], axis: int) -> Callable[[Any], Any]:
    """Return the norm that picks among the sums of `|x|` along one of the last two axes."""
    return lambda x: pick(sum_axes(lax.abs(x), (x.ndim + axis,)), (x.ndim - 2,))


def _by_values(pick: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: pick(svdvals(x), (x.ndim - 2,))


# The derivative of the sum of the singular values of A = U diag(s) V^H is Re tr (U V^H)^H dA. That
# of the values by themselves has none in turn where they are equal (`equal_values`). Source: G.
# Watson, Characterization of the subdifferential of some matrix norms (1992), example 2.


def _nuclear(x: Any, *known: Any) -> tuple[Any, ...]:
    """Return the nuclear norm; `known` are the norm itself and U V^H."""
    return (known[0] if known else sum_axes(svdvals(x), (x.ndim - 2,)),)


def _nuclear_jvp(primals: Any, tangents: Any) -> Any:
    x, *known = primals
    if not known:
        s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True)
        known = [sum_axes(s, (x.ndim - 2,)), matmul(u, vh)]
    outs = custom_jvp_call_p.bind(x, *known, call=_nuclear, jvp=_nuclear_jvp)
    if type(tangents[0]) is Zero:
        return outs, (Zero(outs[0].aval),)
    products = real(lax.mul(conj(known[1]), tangents[0]))
    return outs, (sum_axes(products, (x.ndim - 2, x.ndim - 1)),)


_MATRIX_NORMS: dict[Any, Callable[[Any], Any]] = {
    "fro": lambda x: _root(sum_axes(_square_size(x), (x.ndim - 2, x.ndim - 1))),
    "nuc": lambda x: custom_jvp_call_p.bind(x, call=_nuclear, jvp=_nuclear_jvp)[0],
    1: _by_sums(_greatest, -2),
    -1: _by_sums(_least, -2),
    math.inf: _by_sums(_greatest, -1),
    -math.inf: _by_sums(_least, -1),
    2: _by_values(_greatest),
    -2: _by_values(_least),
}


def _restore(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return reshape(x, [1 if i in axes else n for i, n in enumerate(shape)])


def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Return the condition number: the norm of matrices times the norm of their inverses.

    Args:
      x: matrices; square ones unless p is None, 2 or -2.
      p: the norm, as `ord` of `matrix_norm`; None for 2.

    Returns:
      A real array of the batch dimensions; infinity for singular matrices, NaN for those that
      have a NaN.

    Raises:
      TypeError: `x` is not an array.

    Example:
      >>> import numpy as np
      >>> cond(np.zeros((2, 2), np.float32)).item()
      inf
    """
    operand = as_array(x, what="cond: x")
    require(
        0 not in operand.shape[-2:], "cond",
        "there is no condition number of a matrix without elements.",
    )  # fmt: skip
    found = _condition(operand, p)
    broken = lax.reduce_or(lax.ne(operand, operand), (operand.ndim - 2, operand.ndim - 1))
    unbounded = lax.bitwise_and(lax.ne(found, found), lax.bitwise_not(broken))
    return lax.select(unbounded, lax.full_like(found, math.inf), found)


def _condition(x: Array, p: float | str | None) -> Array:
    """Return a condition number by its formula, which is NaN where 0 / 0 or 0 * inf comes up."""
    if p in (None, 2, -2):
        s = svdvals(x)
        last = s.ndim - 1
        largest, least = lax.reduce_max(s, (last,)), lax.reduce_min(s, (last,))
        return lax.div(least, largest) if p == -2 else lax.div(largest, least)
    y = matrix("cond", x, square=True)
    return lax.mul(matrix_norm(y, ord=p), matrix_norm(inv(y), ord=p))


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Return how many singular values exceed a bound.

    Args:
      M: matrices of shape (..., m, n), or a vector or number, whose rank is 1 but for zeros.
      rtol: the bound relative to the greatest singular value, a number or an array with one for
        each matrix, whose shape broadcasts with (...); None for max(m, n) times the precision of
        the dtype.
      hermitian: whether M is Hermitian; that needs less work.
      tol: the absolute bound, instead of `rtol`.

    Returns:
        An int32 array of the batch dimensions.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.matrix_rank(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
        Array(2, dtype=int32)
    """
    check_one_bound("matrix_rank", "rtol", rtol, "tol", tol)
    operand = array_of(M, "matrix_rank")
    rows = operand if operand.ndim >= 2 else reshape(operand, (1, operand.size))
    x = matrix("matrix_rank", rows, square=hermitian)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        result: Array = count_above(*beside_bounds(s, tol))
        return result
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
    return rank_of(s, rtol)  # type: ignore[no-any-return]


boundaries(globals())
