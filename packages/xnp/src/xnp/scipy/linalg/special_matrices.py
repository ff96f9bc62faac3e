"""Matrices with a name, and those that vectors make.

Source: G. Golub and C. Van Loan, Matrix computations (2013); N. Higham, The test matrix toolbox
(1995); forms and names are SciPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp.linalg.operands import promoted
from xnp.numpy.promoting import array_of, check_ranks, inexact
from xprim import Array, dtypes
from xprim.errors import message
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip

__dir__ = __all__.copy


def _size(n: Any, operation: str, least: int = 0) -> int:
    size = static_int(n, operation, "n")
    if size < least:
        raise ValueError(message(
            operation, "the size is too small.", got=f"{n}", expected=f"{least} or more",
        ))  # fmt: skip
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
    blocks = [xn.atleast_2d(x) for x in promoted("block_diag", *arrs)]
    wrong = [x for x in blocks if x.ndim != 2]
    if wrong:
        raise ValueError(message(
            "block_diag", "takes matrices, vectors and numbers.", got=wrong[0].aval.str_long(),
        ))  # fmt: skip
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
    column, row = promoted("toeplitz", c, r)
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
    column, row = promoted("hankel", c, r)
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
    if not x.ndim or x.shape[-1] < 2:
        raise ValueError(message(
            "companion", "takes two coefficients or more.", got=x.aval.str_long(),
        ))  # fmt: skip
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
    if not x.ndim or not x.shape[-1]:
        raise ValueError(message(
            "fiedler_companion", "takes one coefficient or more.", got=x.aval.str_long(),
        ))  # fmt: skip
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
    first, rest = promoted("leslie", f, s)
    if not first.ndim or not rest.ndim or not 2 <= first.shape[-1] == rest.shape[-1] + 1:
        raise ValueError(message(
            "leslie", "the vectors do not fit.",
            got=f"f: {first.aval.str_long()}, s: {rest.aval.str_long()}",
            expected="shapes (..., n) and (..., n - 1), n of 2 or more",
        ))  # fmt: skip
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
    if mode not in ("full", "same", "valid") or not m:
        raise ValueError(message(
            "convolution_matrix", "there is no such mode, or no element.",
            got=f"{mode!r}, {x.aval.str_long()}", expected="'full', 'same' or 'valid'",
        ))  # fmt: skip
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
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(message(
            "dft", "there is no such scale.", got=f"{scale!r}", expected="None, 'sqrtn', 'n'",
        ))  # fmt: skip
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
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(message(
            operation, "there is no such kind.", got=f"{kind!r}",
            expected="'symmetric', 'lower' or 'upper'",
        ))  # fmt: skip
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


boundaries(globals())
