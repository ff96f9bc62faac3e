"""Functions of the formats `BCSR`, `CSR` and `COO`, under the names they have in JAX.

Neighbours: `formats` has the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
from xnp.primitives.precision import PrecisionLike
from xnp.sparse.coordinates import is_there, moved_out, places
from xnp.sparse.formats import BCSR, COO, CSR, as_bcoo, rows_of
from xnp.sparse.layouts import bcoo_concatenate
from xnp.sparse.products import bcoo_dot_general
from xprim import Array
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike

__all__ = ()


@boundary
def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:  # fmt: skip
    """Return the elements of an array that are not zero, row by row; see `bcoo_fromdense`.

    Args:
      mat: an array of any dtype.
      nse: how many there is room for, for each element of the batch.
      n_batch: how many leading dimensions are batch;
      n_dense: and how many trailing ones are dense; two are between.
      index_dtype: of the indices.

    Example:
      >>> bcsr_fromdense(np.eye(3)).indptr.tolist()
      [0, 1, 2, 3]
    """
    return BCSR.fromdense(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )  # fmt: skip


@boundary
def bcsr_todense(mat: BCSR) -> Array:
    """Return a sparse array with its zeros."""
    return mat.todense()


@boundary
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return a sparse array with values of equal places added; see `bcoo_sum_duplicates`."""
    return mat.sum_duplicates(nse, remove_zeros=False)


@boundary
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at places that are given row by row.

    Args:
      indices: the columns, [batch..., nse].
      indptr: where rows begin and the last one ends, [batch..., rows + 1].
      mat: the array, of shape [batch..., rows, columns, dense...].

    Returns:
      An array of shape [batch..., nse, dense...], 0 for what is out of range.
    """
    columns, x = xn.asarray(indices), xn.asarray(mat)
    rows = rows_of(xn.asarray(indptr), columns.shape[-1], columns.dtype)
    pairs = xn.stack([rows, columns], -1)
    shape = x.shape[columns.ndim - 1 : columns.ndim + 1]
    pairs = moved_out(pairs, is_there(pairs, shape), shape)
    return x.at[places(pairs)].get(mode="fill", fill_value=0)


@boundary
def bcsr_dot_general(
    lhs: BCSR | Array, rhs: Array, *, dimension_numbers: Any, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Any:  # fmt: skip
    """Return the sum of products over some dimensions; see `bcoo_dot_general`.

    Args:
      lhs: an array; at least one of the two is sparse.
      rhs: an array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      precision: as in `lax.dot_general`.
      preferred_element_type: the dtype of the result; by default that of both by promotion.
    """
    return bcoo_dot_general(
        as_bcoo(lhs), as_bcoo(rhs), dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@boundary
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Return sparse arrays joined along a dimension; see `bcoo_concatenate`."""
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


@boundary
def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """Return the elements of a matrix that are not zero, row by row; see `bcoo_fromdense`."""
    made: CSR = CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)
    return made


@boundary
def csr_todense(mat: CSR) -> Array:
    """Return a sparse matrix with its zeros."""
    return mat.todense()


@boundary
def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a sparse matrix, or of its transpose, and a vector."""
    return _product(mat, v, transpose)


@boundary
def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a sparse matrix, or of its transpose, and a matrix."""
    return _product(mat, B, transpose)


@boundary
def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """Return the elements of a matrix that are not zero; see `bcoo_fromdense`."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


@boundary
def coo_todense(mat: COO) -> Array:
    """Return a sparse matrix with its zeros."""
    return mat.todense()


@boundary
def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a sparse matrix, or of its transpose, and a vector."""
    return _product(mat, v, transpose)


@boundary
def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a sparse matrix, or of its transpose, and a matrix."""
    return _product(mat, B, transpose)


def _product(mat: Any, other: Any, transpose: bool) -> Array:
    product: Array = (mat.T if transpose else mat) @ xn.asarray(other)
    return product
