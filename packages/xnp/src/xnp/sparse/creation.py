"""Sparse arrays of zeros, and with ones in a diagonal, of any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

import xnp.numpy as xn
from xnp.sparse.bcoo import BCOO, bcoo_fromdense
from xnp.sparse.coordinates import lengths, made, moved_out
from xnp.sparse.formats import BCSR, COO, CSC, CSR
from xprim.descriptions import described
from xprim.sizes import size_of
from xprim.tracebacks import boundary
from xprim.typing import DTypeLike

__all__ = ()

_FORMATS: dict[str, Callable[[BCOO], BCOO | BCSR | COO | CSR | CSC]] = {
    "bcoo": lambda x: x, "bcsr": BCSR.from_bcoo, "csr": CSR.from_bcoo, "csc": CSC.from_bcoo,
    "coo": COO.from_bcoo,
}  # fmt: skip


@overload
def empty(
    shape: Sequence[int], dtype: DTypeLike = ..., index_dtype: DTypeLike = ...,
    sparse_format: Literal['bcoo'] = ..., *, n_batch: int = ..., n_dense: int = ..., nse: int = ...,
) -> BCOO: ...  # fmt: skip
@overload
def empty(
    shape: Sequence[int], dtype: DTypeLike = ..., index_dtype: DTypeLike = ...,
    sparse_format: str = ..., *, n_batch: int = ..., n_dense: int = ..., nse: int = ...,
) -> BCOO | BCSR | COO | CSR | CSC: ...  # fmt: skip
@boundary
def empty(
    shape: Sequence[int], dtype: DTypeLike = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0, nse: int = 0,
) -> BCOO | BCSR | COO | CSR | CSC:  # fmt: skip
    """Return a sparse array of zeros.

    Args:
      shape: of the array.
      dtype: of the values; float32 by default.
      index_dtype: of the indices.
      sparse_format: "bcoo", "bcsr", "csr", "csc" or "coo".
      n_batch: the number of batch dimensions;
      n_dense: and of dense ones.
      nse: how many values there is room for.
    """
    kind = _format("empty", sparse_format)
    shape, n_batch = lengths("empty", shape), size_of(n_batch)
    stop = len(shape) - n_dense
    sparse = shape[n_batch:stop]
    data = xn.zeros((*shape[:n_batch], nse, *shape[stop:]), dtype)
    there = xn.zeros((*shape[:n_batch], nse), bool)
    indices = moved_out(xn.zeros((*there.shape, len(sparse)), index_dtype), there, sparse)
    return kind(made(BCOO, data, indices, sparse, True, True))


@overload
def eye(
    N: int, M: int | None = ..., k: int = ..., dtype: DTypeLike = ..., index_dtype: DTypeLike = ...,
    sparse_format: Literal['bcoo'] = ..., *, n_batch: int = ..., n_dense: int = ...,
) -> BCOO: ...  # fmt: skip
@overload
def eye(
    N: int, M: int | None = ..., k: int = ..., dtype: DTypeLike = ..., index_dtype: DTypeLike = ...,
    sparse_format: str = ..., *, n_batch: int = ..., n_dense: int = ...,
) -> BCOO | BCSR | COO | CSR | CSC: ...  # fmt: skip
@boundary
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0,
) -> BCOO | BCSR | COO | CSR | CSC:  # fmt: skip
    """Return the sparse matrix with ones in a diagonal.

    Args:
      N: the number of rows;
      M: and of columns; `N` by default.
      k: which diagonal, counted upwards.
      dtype: of the values; float32 by default.
      index_dtype: of the indices.
      sparse_format: "bcoo", "bcsr", "csr", "csc" or "coo".
      n_batch: the number of batch dimensions;
      n_dense: and of dense ones.

    Example:
      >>> eye(3, k=1).indices.tolist()
      [[0, 1], [1, 2]]
    """
    kind = _format("eye", sparse_format)
    N, columns = lengths("eye", (N, N if M is None else M))
    k = size_of(k)
    n_batch, n_dense = size_of(n_batch), size_of(n_dense)
    if n_batch or n_dense:
        dense = np.eye(N, columns, k)
        return kind(bcoo_fromdense(xn.asarray(dense, dtype or np.float32), n_batch=n_batch,
                                   n_dense=n_dense, index_dtype=index_dtype))  # fmt: skip
    rows = np.arange(max(0, -k), max(0, -k, min(N, columns - k)))
    indices = np.stack([rows, rows + k], -1)
    data = xn.ones(len(rows), dtype)
    places = xn.asarray(indices, index_dtype)
    return kind(made(BCOO, data, places, (N, columns), True, True))


def _format(operation: str, name: Any) -> Callable[[BCOO], BCOO | BCSR | COO | CSR | CSC]:
    """Return what makes of a `BCOO` an array of a format."""
    if name not in _FORMATS:
        raise ValueError(
            f"{operation}: formats of sparse arrays are {', '.join(map(repr, _FORMATS))}, "
            f"got {described(name)}."
        )
    return _FORMATS[name]
