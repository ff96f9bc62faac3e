"""Functions of matrices, matrices with a name: expm, sqrtm, solve_sylvester, toeplitz, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

import xnp.numpy as xn
from xnp import lax, linalg
from xnp.linalg.products import broadcast_batches, matrix, promote
from xnp.numpy.dispatch import array_of, check_ranks, inexact
from xnp.scipy.linalg.factorisations import schur
from xprim import Array, dtypes
from xprim.errors import message
from xprim.requirements import require, require_choice, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike

__all__ = [
    "solve_sylvester", "block_diag", "circulant", "companion", "convolution_matrix", "dft",
    "fiedler", "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert",
    "invpascal", "leslie", "pascal", "toeplitz", "expm", "expm_frechet", "funm", "sqrtm",
]  # fmt: skip

__dir__ = __all__.copy


# ------------------------------------------------------------------------------------- sylvester
# Sylvester's equation A X + X B = C: solve_sylvester.
#
# With the complex Schur forms A = U R U^H, B = V S V^H it is R Y + Y S = U^H C V for Y = U^H X V,
# and column j of Y solves a triangular system with R + S[j, j]. Source: R. Bartels, G. Stewart,
# Algorithm 432, Solution of the matrix equation AX + XB = C (1972).


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve A X + X B = C.

    Args:
      A: square matrices of shape (..., m, m).
      B: square matrices of shape (..., n, n).
      C: right sides of shape (..., m, n); all batches are broadcast.
      method: "schur", or "eigen" for eigenvectors, which is faster, and less exact where these are
        nearly dependent.
      tol: how near to zero the sum of an eigenvalue of A and one of B may come; where it is nearer,
        X is NaN, since there is no solution, or more than one.

    Returns:
      X, of the shape of C, real where all operands are.

    Example:
      >>> import numpy as np
      >>> a, b = np.array([[1.0]], np.float32), np.array([[2.0]], np.float32)
      >>> solve_sylvester(a, b, np.array([[6.0]], np.float32)).round(3).tolist()
      [[2.0]]

    Differentiable in: A, B, C.
    """
    require_choice("solve_sylvester", "method", method, ("schur", "eigen"))
    a, b, c = promote("solve_sylvester", A, B, C, inexact=True)
    a = matrix("solve_sylvester", a, square=True)
    b = matrix("solve_sylvester", b, square=True)
    c = matrix("solve_sylvester", c)
    require(
        c.shape[-2:] == (a.shape[-1], b.shape[-1]), "solve_sylvester", "the operands do not fit.",
        got={"A": a, "B": b, "C": c}, expected="C.shape[-2:] == (A.shape[-1], B.shape[-1])",
    )  # fmt: skip
    a, b, c = broadcast_batches("solve_sylvester", a, b, c, core=(2, 2, 2))
    found = _by_schur_forms if method == "schur" else _by_eigenvectors

    def solve(_: Any, right: Any) -> Any:
        return found(a, b, right, tol)

    def solve_transposed(_: Any, right: Any) -> Any:
        # A^T X + X B^T = C is B X^T + X^T A = C^T
        return found(b, a, right.mT, tol).mT

    def product(x: Any) -> Any:
        return a @ x + x @ b

    result: Array = lax.custom_linear_solve(product, c, solve, solve_transposed)
    return result


def _by_schur_forms(a: Any, b: Any, c: Any, tol: float) -> Any:
    (r, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    right = xn.conj(u).mT @ c.astype(u.dtype) @ v
    x = u @ solve_triangular_sylvester(r, s, right) @ xn.conj(v).mT
    values = xn.diagonal(r, 0, -2, -1), xn.diagonal(s, 0, -2, -1)
    return _real_where(c.dtype, _mark_undetermined(x, *values, tol))


def solve_triangular_sylvester(r: Any, s: Any, right: Any) -> Any:
    """Solve R Y + Y S = F for upper triangular matrices R and S."""
    columns = right.shape[-1]
    if not right.size:
        return xn.zeros_like(right)
    identity = xn.eye(r.shape[-1], dtype=r.dtype)

    def step(j: Any, y: Any) -> Any:
        column = lax.dynamic_slice_in_dim(s, j, 1, -1)
        own = lax.dynamic_slice_in_dim(column, j, 1, -2)
        rest = lax.dynamic_slice_in_dim(right, j, 1, -1) - y @ column
        found = lax.linalg.triangular_solve(r + own * identity, rest, left_side=True)
        return lax.dynamic_update_slice_in_dim(y, found, j, -1)

    return lax.fori_loop(0, columns, step, xn.zeros_like(right))


def _by_eigenvectors(a: Any, b: Any, c: Any, tol: float) -> Any:
    (p, u), (q, v) = linalg.eig(a), linalg.eig(b)
    right = linalg.solve(u, c.astype(u.dtype) @ v)
    y = right / (p[..., :, None] + q[..., None, :])
    x = linalg.solve(v.mT, (u @ y).mT).mT
    return _real_where(c.dtype, _mark_undetermined(x, p, q, tol))


def _mark_undetermined(x: Any, p: Any, q: Any, tol: float) -> Any:
    """Return X, or NaN where an eigenvalue p is next to one of -q."""
    near = (xn.abs(p[..., :, None] + q[..., None, :]) < tol).any((-2, -1), keepdims=True)
    return xn.where(near, math.nan, x)


def _real_where(dtype: Any, x: Any) -> Any:
    return x if dtypes.is_complex(dtype) else x.real


# ------------------------------------------------------------------------------ special matrices
# Matrices with a name, and those that vectors make.
#
# Source: G. Golub and C. Van Loan, Matrix computations (2013); N. Higham, The test matrix toolbox
# (1995); forms and names are SciPy's.


def _size(n: Any, operation: str, least: int = 0) -> int:
    size = static_int(n, operation, "n")
    if size < least:
        raise ValueError(message(
            operation, "the size is too small.", got=f"{n}", expected=f"{least} or more",
        ))  # fmt: skip
    np.empty((size, size))  # raises where such a matrix is more than memory holds
    return size


def _default(values: Any) -> Array:
    return xn.asarray(values, dtypes.canonicalize_dtype(float))


def block_diag(*arrs: Any) -> Array:
    """Return a matrix with matrices on its diagonal, and zeros elsewhere.

    Args:
      *arrs: matrices, vectors (a row each) or numbers; without any an empty matrix of shape (1, 0).
    """
    if not arrs:
        return xn.zeros((1, 0))
    blocks = [xn.atleast_2d(x) for x in promote("block_diag", *arrs)]
    wrong = [x for x in blocks if x.ndim != 2]
    require(not wrong, "block_diag", "takes matrices, vectors and numbers.", got=tuple(wrong))
    width, place, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(xn.pad(x, ((0, 0), (place, width - place - x.shape[1]))))
        place += x.shape[1]
    return xn.concatenate(rows)


def _read(vector: Array, places: Any) -> Array:
    result: Array = vector[places]
    return result


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrix of constant diagonals with a first column and row.

    Args:
      c: the first column, raveled, or a batch of them of shape (..., m).
      r: the first row, whose first element is not read; None for the conjugate of c.

    Returns:
      An array of shape (..., m, n).
    """
    c = xn.atleast_1d(array_of(c, "toeplitz"))
    r = xn.conj(c) if r is None else xn.atleast_1d(array_of(r, "toeplitz"))
    column, row = promote("toeplitz", c, r)
    check_ranks("toeplitz", column, row, core=(1, 1))
    m, n = column.shape[-1], row.shape[-1]
    batch = xn.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column, row = xn.broadcast_to(column, (*batch, m)), xn.broadcast_to(row, (*batch, n))
    values = xn.concatenate([column[..., ::-1], row[..., 1:]], -1)
    result: Array = values[..., np.arange(n) - np.arange(m)[:, None] + m - 1]
    return result


def circulant(c: ArrayLike) -> Array:
    """Return matrices (..., n, n) whose first columns are c, each further one turned by one."""
    c = xn.atleast_1d(array_of(c, "circulant"))
    n = c.shape[-1]
    result: Array = c[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]
    return result


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrix of constant antidiagonals with a first column and last row.

    Args:
      c: the first column, a vector.
      r: the last row, whose first element is not read; None for zeros.
    """
    c = array_of(c, "hankel").reshape((-1,))
    r = xn.zeros_like(c) if r is None else array_of(r, "hankel").reshape((-1,))
    column, row = promote("hankel", c, r)
    values = xn.concatenate([column, row[1:]])
    return _read(values, np.arange(column.size)[:, None] + np.arange(row.size))


def companion(a: ArrayLike) -> Array:
    """Return the matrix whose characteristic polynomial has the coefficients a / a[0].

    Args:
      a: coefficients of descending powers, two or more, or a batch of shape (..., n).

    Returns:
      An array of shape (..., n - 1, n - 1).
    """
    (x,) = inexact("companion", a)
    require(x.ndim and x.shape[-1] >= 2, "companion", "takes two coefficients or more.", got=x)
    n = x.shape[-1] - 1
    first = (-x[..., 1:] / x[..., :1])[..., None, :]
    below = xn.broadcast_to(xn.eye(n - 1, n, dtype=x.dtype), (*x.shape[:-1], n - 1, n))
    return xn.concatenate([first, below], -2)


def fiedler(a: ArrayLike) -> Array:
    """Return the symmetric matrices |a_i - a_j|, of shape (..., n, n)."""
    x = xn.atleast_1d(array_of(a, "fiedler"))
    return xn.abs(x[..., :, None] - x[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Return the pentadiagonal matrix whose characteristic polynomial is that of `companion`.

    Args:
      a: coefficients of descending powers, one or more, or a batch of shape (..., n).

    Returns:
      An array of shape (..., n - 1, n - 1).

    Source: M. Fiedler, A note on companion matrices (2003).
    """
    (x,) = inexact("fiedler_companion", a)
    require(x.ndim and x.shape[-1], "fiedler_companion", "takes one coefficient or more.", got=x)
    n = x.shape[-1] - 1
    if n < 2:
        return (-x[..., 1:] / x[..., :1])[..., None][..., :n]
    x = x / x[..., :1]
    place, ones = np.zeros((n, n), int), np.zeros((n, n))
    place[0, 0], ones[1, 0] = 1, 1
    for k in range(2, n + 1):  # the pairs of each power stand above and below the diagonal in turn
        row, column = (k - 1, k - 2) if k % 2 else (k - 2, k - 1)
        place[row, column] = k
    for k in range(2, n):
        row, column = (k, k - 2) if k % 2 else (k - 2, k)
        ones[row, column] = 1
    values = xn.where(place > 0, -x[..., place], 0)
    result: Array = values + xn.asarray(ones, x.dtype)
    return result


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return the matrices of a population by age, with the first row f and s below the diagonal.

    Args:
      f: fecundities, of shape (..., n).
      s: survivals from each age to the next, of shape (..., n - 1).
    """
    first, rest = promote("leslie", f, s)
    require(
        first.ndim and rest.ndim and 2 <= first.shape[-1] == rest.shape[-1] + 1, "leslie",
        "the vectors do not fit.", got={"f": first, "s": rest},
        expected="shapes (..., n) and (..., n - 1), n of 2 or more",
    )  # fmt: skip
    n = first.shape[-1]
    batch = xn.broadcast_shapes(first.shape[:-1], rest.shape[:-1])
    row = xn.broadcast_to(first[..., None, :], (*batch, 1, n))
    diagonal = xn.eye(n - 1, n, dtype=rest.dtype) * rest[..., :, None]
    return xn.concatenate([row, xn.broadcast_to(diagonal, (*batch, n - 1, n))], -2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return the matrix A with A @ v = convolve(a, v, mode) for vectors v of n elements.

    Args:
      a: a vector, or a batch of shape (..., m).
      n: the number of columns, 1 or more.
      mode: "full", "same" or "valid", as of `convolve`.
    """
    size = _size(n, "convolution_matrix", 1)
    x = xn.atleast_1d(array_of(a, "convolution_matrix"))
    m = x.shape[-1]
    require_choice("convolution_matrix", "mode", mode, ("full", "same", "valid"))
    require(m, "convolution_matrix", "the filter is empty.", got=x)
    start, stop = 0, m + size - 1
    if mode == "same":
        start = (min(m, size) - 1) // 2
        stop = start + max(m, size)
    elif mode == "valid":
        start, stop = min(m, size) - 1, max(m, size)
    place = np.arange(start, stop)[:, None] - np.arange(size)
    inside = (place >= 0) & (place < m)
    result: Array = xn.where(inside, x[..., np.where(inside, place, 0)], 0)
    return result


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike = None) -> Array:
    """Return the matrix of the discrete Fourier transform, exp(-2 pi i j k / n).

    Args:
      n: its size.
      scale: None, "sqrtn" to divide by the root of n, "n" to divide by n.
      dtype: a complex dtype; None for the default one.
    """
    size = _size(n, "dft")
    require_choice("dft", "scale", scale, (None, "sqrtn", "n"))
    index = np.outer(np.arange(size), np.arange(size)) % max(size, 1)  # so that angles are small
    values = np.exp(-2j * np.pi * index / max(size, 1))
    values = values / {None: 1, "sqrtn": math.sqrt(max(size, 1)), "n": max(size, 1)}[scale]
    return xn.asarray(values, dtypes.canonicalize_dtype(complex) if dtype is None else dtype)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Return Hadamard's matrix of 1 and -1, by Sylvester's construction; n is a power of two."""
    size = _size(n, "hadamard", 1)
    if size & (size - 1):
        raise ValueError(message("hadamard", "the size must be a power of two.", got=f"{n}"))
    index = np.arange(size)
    ones = index[:, None] & index
    parity = np.zeros_like(ones)
    while ones.any():
        parity, ones = parity ^ (ones & 1), ones >> 1
    return xn.asarray(1 - 2 * parity, dtypes.requested_dtype(dtype, "hadamard"))


def helmert(n: int, full: bool = False) -> Array:
    """Return Helmert's matrix, of orthonormal rows without the first one, or with it (`full`)."""
    size = _size(n, "helmert", 1)
    k = np.arange(size)[:, None].astype(float)
    values = np.tril(np.ones((size, size)), -1) - np.diag(np.arange(size))
    values = values / np.sqrt(np.where(k > 0, k * (k + 1), 1))
    values[0] = 1 / math.sqrt(size)
    return _default(values if full else values[1:])


def hilbert(n: int) -> Array:
    """Return Hilbert's matrix 1 / (i + j + 1)."""
    index = np.arange(_size(n, "hilbert"))
    return _default(1.0 / (index[:, None] + index + 1))


def invhilbert(n: int) -> Array:
    """Return the inverse of Hilbert's matrix, whose elements are whole numbers, as floats."""
    size = _size(n, "invhilbert")
    values = [[(-1) ** (i + j) * (i + j + 1) * math.comb(size + i, size - j - 1)
               * math.comb(size + j, size - i - 1) * math.comb(i + j, i) ** 2
               for j in range(size)] for i in range(size)]  # fmt: skip
    return _default(np.array(values, float).reshape(size, size))


def _binomials(size: int, kind: str | None, operation: str) -> Any:
    require_choice(operation, "kind", kind, (None, "symmetric", "lower", "upper"))
    lower = np.array([[float(math.comb(i, j)) for j in range(size)] for i in range(size)])
    return lower.reshape(size, size)


def pascal(n: int, kind: str | None = None) -> Array:
    """Return Pascal's matrix of binomials.

    Args:
      n: its size.
      kind: "symmetric" (also None), of elements (i + j over i), or its factor "lower" or "upper".
    """
    lower = _binomials(_size(n, "pascal"), kind, "pascal")
    return _default(lower if kind == "lower" else lower.T if kind == "upper" else lower @ lower.T)


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of Pascal's matrix; arguments as of `pascal`."""
    size = _size(n, "invpascal")
    lower = _binomials(size, kind, "invpascal")
    index = np.arange(size)
    lower = lower * (1 - 2 * ((index[:, None] + index) % 2))
    return _default(lower if kind == "lower" else lower.T if kind == "upper" else lower.T @ lower)


# ------------------------------------------------------------------------------ matrix functions
# Functions of matrices: expm, expm_frechet, sqrtm, funm.
#
# Source: N. Higham, The scaling and squaring method for the matrix exponential revisited (2005);
# A. Bjorck, S. Hammarling, A Schur method for the square root of a matrix (1983); B. Parlett, A
# recurrence among the elements of functions of triangular matrices (1976).

# The degree of Pade's approximant, and the norm up to which it is right to rounding (table 2.3; for
# single precision Higham, Functions of matrices (2008), section 10.3).
_DOUBLE = (13, 5.371920351148152)
_SINGLE = (7, 3.925724783138660)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponentials of matrices, sum A^k / k!.

    Args:
      A: square matrices of shape (..., n, n).
      upper_triangular: whether they are so: systems are then solved by substitution.
      max_squarings: how often a result is squared at most; matrices whose norm is more than
        about 4 times 2^max_squarings give NaN.

    Example:
      >>> import numpy as np
      >>> np.asarray(expm(np.zeros((2, 2), np.float32))).tolist()
      [[1.0, 0.0], [0.0, 1.0]]

    Differentiable in: A.
    """
    x = matrix("expm", A, square=True)
    most = static_int(max_squarings, "expm", "max_squarings")
    single = x.dtype in (dtypes.float32, dtypes.complex64)
    degree, limit = _SINGLE if single else _DOUBLE
    norm = xn.abs(lax.stop_gradient(x)).sum(-2).max(-1, initial=0.0)
    ratio = xn.maximum(norm / limit, 1.0)
    count = xn.where(xn.isfinite(norm), xn.ceil(xn.log2(ratio)), 0)
    x = x * (2.0 ** -xn.minimum(count, most + 1)).astype(x.dtype)[..., None, None]
    result = _pade(x, degree, upper_triangular)

    def step(y: Any, k: Any) -> Any:
        square = lax.cond((k < count).any(), lambda y: y @ y, lambda y: y, y)
        return xn.where((k < count)[..., None, None], square, y), None

    result, _ = lax.scan(step, result, xn.arange(most).astype(norm.dtype))
    exact: Array = xn.where((count > most)[..., None, None], math.nan, result)
    return exact


def _pade(x: Any, degree: int, upper_triangular: bool) -> Any:
    """Return Pade's approximant (V - U)^-1 (V + U), with U odd in x, V even."""
    coefficients = [math.factorial(2 * degree - k) / (
        math.factorial(k) * math.factorial(degree - k)) for k in range(degree + 1)]  # fmt: skip
    scale = coefficients[degree]
    c = [v / scale for v in coefficients]
    n = x.shape[-1]
    identity = xn.eye(n, dtype=x.dtype).reshape(*(1,) * (x.ndim - 2), n, n)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    if degree == 7:
        odd = c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * identity
        even = c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * identity
    else:
        odd = x6 @ (c[13] * x6 + c[11] * x4 + c[9] * x2)
        odd = odd + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * identity
        even = x6 @ (c[12] * x6 + c[10] * x4 + c[8] * x2)
        even = even + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * identity
    odd = x @ odd
    if upper_triangular:
        return lax.linalg.triangular_solve(even - odd, even + odd, left_side=True)
    return linalg.solve(even - odd, even + odd)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[True] = ...
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = ..., compute_expm: bool
) -> Array | tuple[Array, Array]: ...
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Return the exponential of A and its derivative in the direction E.

    Both stand in the exponential of the matrix [[A, E], [0, A]].

    Args:
      A: square matrices of shape (..., n, n).
      E: directions, of the same shape.
      method: None, "SPS" or "blockEnlarge"; all give the blocks of that exponential.
      compute_expm: whether the exponential is returned, too.

    Returns:
      (expm(A), derivative), or the derivative alone.

    Source: R. Mathias, A chain rule for matrix functions and applications (1996).
    """
    require_choice("expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    a, e = promote("expm_frechet", A, E, inexact=True)
    a = matrix("expm_frechet", a, square=True)
    require(
        a.shape == e.shape, "expm_frechet", "the direction has another shape than the matrix.",
        got=e, expected=a,
    )  # fmt: skip
    n = a.shape[-1]
    upper = xn.concatenate([a, e], -1)
    lower = xn.concatenate([xn.zeros_like(a), a], -1)
    whole = expm(xn.concatenate([upper, lower], -2))
    derivative = whole[..., :n, n:]
    return (whole[..., :n, :n], derivative) if compute_expm else derivative


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the principal square roots of matrices: S with S S = A.

    Args:
      A: square matrices of shape (..., n, n).
      blocksize: must be 1: columns are found one at a time.

    Returns:
      A complex array of the shape of A, whose eigenvalues have no negative real part. Where there
      is no square root, it holds NaN.

    Example:
      >>> import numpy as np
      >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]], np.float32)).real.round(3).tolist()
      [[2.0, 0.0], [0.0, 3.0]]

    Differentiable in: A, where no two eigenvalues of S sum to zero: dS S + S dS = dA.
    """
    require(blocksize == 1, "sqrtm", "the block size must be 1.", got=blocksize)
    x = matrix("sqrtm", A, square=True)
    x = x.astype(dtypes.to_complex_dtype(x.dtype))
    root = _root(lax.stop_gradient(x))

    def solve(_: Any, guess: Any) -> Any:
        return guess

    def tangent(product: Any, change: Any) -> Any:  # product(dS) = dS S + S dS
        return lax.custom_linear_solve(
            product, change, lambda _, y: solve_sylvester(root, root, y, tol=0.0),
            lambda _, y: solve_sylvester(root.mT, root.mT, y, tol=0.0),
        )  # fmt: skip

    result: Array = lax.custom_root(lambda s: s @ s - x, root, solve, tangent)
    return result


def _root(x: Any) -> Any:
    t, z = schur(x, "complex")
    roots = xn.sqrt(xn.diagonal(t, 0, -2, -1))
    n = x.shape[-1]
    rows = xn.arange(n)[:, None]
    identity = xn.eye(n, dtype=x.dtype)

    def step(j: Any, s: Any) -> Any:
        # above the diagonal of column j:  (S + s_jj) s_j = t_j
        sums = roots + lax.dynamic_slice_in_dim(roots, j, 1, -1)
        none = (sums == 0)[..., None]
        system = s * (1 - identity) + xn.where(none, 1, sums[..., None]) * identity
        right = xn.where(rows < j, lax.dynamic_slice_in_dim(t, j, 1, -1), 0)
        found = lax.linalg.triangular_solve(system, right, left_side=True)
        found = xn.where(none & (rows < j) & (found != 0), math.nan, found)
        return s + xn.where(xn.arange(n)[None] == j, found, 0)

    s = lax.fori_loop(1, n, step, roots[..., None] * identity) if n > 1 else (
        roots[..., None] * identity)  # fmt: skip
    return z @ s @ xn.conj(z).mT


@overload
def funm(A: ArrayLike, func: Callable[[Array], Array], disp: Literal[True] = ...) -> Array: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: Literal[False] = ...
) -> tuple[Array, Array]: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = ...
) -> tuple[Array, Array] | Array: ...
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> tuple[Array, Array] | Array:
    """Return a function of matrices, by its values at their eigenvalues.

    Args:
      A: square matrices of shape (..., n, n).
      func: takes the eigenvalues, a complex array of shape (..., n), and returns as many values; an
        elementwise function that is analytic there.
      disp: whether the function of A is returned alone; else with an estimate of its relative
        error, of shape (...).

    Returns:
      A complex array of the shape of A. Where eigenvalues are equal it is wrong unless A is normal:
      the estimate is 1 then.

    Example:
      >>> import numpy as np
      >>> import xnp
      >>> funm(np.array([[0.0, 0.0], [0.0, 1.0]], np.float32), xnp.exp).real.round(3).tolist()
      [[1.0, 0.0], [0.0, 2.7179999351501465]]
    """
    x = matrix("funm", A, square=True)
    n = x.shape[-1]
    t, z = schur(x, "complex")
    values = xn.diagonal(t, 0, -2, -1)
    found = xn.asarray(func(values)).astype(t.dtype)
    rows, identity = xn.arange(n)[:, None], xn.eye(n, dtype=t.dtype)

    def step(j: Any, f: Any) -> Any:
        # above the diagonal of column j:  (T - t_jj) f_j = (F - f_jj) t_j,  since F and T commute
        gaps = values - lax.dynamic_slice_in_dim(values, j, 1, -1)
        gaps = xn.where(gaps == 0, 1, gaps)
        system = t * (1 - identity) + gaps[..., None] * identity
        column = xn.where(rows < j, lax.dynamic_slice_in_dim(t, j, 1, -1), 0)
        right = f @ column - column * lax.dynamic_slice_in_dim(found, j, 1, -1)[..., None]
        f_j = lax.linalg.triangular_solve(system, right, left_side=True)
        return f + xn.where((rows < j) & (xn.arange(n)[None] == j), f_j, 0)

    f = found[..., None] * identity
    f = lax.fori_loop(1, n, step, f) if n > 1 else f
    result = z @ f @ xn.conj(z).mT
    return result if disp else (result, _funm_error(t, values, result))


def _funm_error(t: Any, values: Any, result: Any) -> Any:
    """Return eps times the norm of what is above the diagonal, by the least gap of eigenvalues."""
    n = values.shape[-1]
    eps = float(xn.finfo(t.dtype).eps)
    gaps = xn.abs(values[..., :, None] - values[..., None, :])
    gaps = xn.where(xn.eye(n, dtype=bool), math.inf, gaps)
    least = gaps.min((-2, -1), initial=math.inf)
    least = xn.where(least == 0, eps, least)
    norm = xn.abs(xn.triu(t, 1)).sum(-2).max(-1, initial=0.0)
    error = xn.clip(eps / least * norm, eps, 1.0)
    return xn.where(xn.isfinite(result).all((-2, -1)), error, math.inf)


boundaries(globals())
