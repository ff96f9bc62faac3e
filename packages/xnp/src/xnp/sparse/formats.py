"""Matrices by rows and by coordinates: `BCSR`, `CSR`, `CSC`, `COO`, and `sparsify`."""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np

import xnp.numpy as xn
import xprim
import xtree
from xnp import lax
from xnp.primitives.control_flow import split_at
from xnp.primitives.precision import PrecisionLike
from xnp.sparse import dimensions, layouts
from xnp.sparse.bcoo import BCOO, bcoo_fromdense
from xnp.sparse.layouts import is_there, lengths, make_unchecked, move_out, places, without_zeros
from xprim import Array, ClosedJaxpr, Equation, as_array, shaped_array, trace_to_closed
from xprim.avals import size_of
from xprim.errors import described, message
from xprim.jaxpr import interpret
from xprim.requirements import require
from xprim.tracebacks import boundary
from xprim.transformed import check_function, flat_arrays, transforming
from xprim.typing import ArrayLike, DTypeLike
from xtree.boundaries import boundary_methods

__all__ = ()


# --------------------------------------------------------------------------------------- formats
# Matrices by rows and by coordinates: `BCSR`, `CSR`, `CSC`, `COO`.
#
# These say in other words what a `BCOO` says, for programs that have their matrices so:
#
#     COO         values, their rows and their columns
#     CSR, CSC    values, row by row (column by column), the column of each, where each row begins
#     BCSR        CSR with batch dimensions in front and dense ones behind
#
# Everything is computed as a `BCOO`: the row of each value takes a sum over all values. What lies
# behind the end of the last row is not there.


@boundary_methods
class JAXSparse(abc.ABC):
    """What sparse arrays of all formats are instances of; the name is that of JAX."""

    __array_priority__ = 101  # above arrays: NumPy's operators give way
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    data: Any

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The lengths of all dimensions."""

    @abc.abstractmethod
    def to_bcoo(self) -> BCOO:
        """Return the array as `BCOO`."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Return the array with its dimensions in another order."""

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """How many values there are, for each element of the batch."""
        return self.to_bcoo().nse

    @property
    def T(self) -> Any:
        """The array with its dimensions in backward order."""
        return self.transpose()

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return self.to_bcoo().todense()

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """Return the sum over axes, sparse unless it is over all of them."""
        return self.to_bcoo().sum(axis)

    def block_until_ready(self) -> Self:
        """Wait until the parts are computed."""
        for part in xtree.leaves(self):
            part.block_until_ready()
        return self

    def __repr__(self) -> str:
        try:
            return f"{type(self).__name__}({self.dtype.name}{list(self.shape)}, nse={self.nse})"
        except (AttributeError, IndexError, TypeError, ValueError):  # a pytree of other things
            return f"{type(self).__name__}({', '.join(map(repr, xtree.leaves(self)))})"

    def __len__(self) -> int:
        return self.shape[0]

    def __neg__(self) -> Any:
        return -self.to_bcoo()

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return abs(self.to_bcoo())

    def __pow__(self, n: Any) -> Any:
        return self.to_bcoo() ** n

    def __truediv__(self, other: Any) -> Any:
        return self.to_bcoo() / as_bcoo(other)

    def __matmul__(self, other: Any) -> Any:
        return self.to_bcoo() @ as_bcoo(other)

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()

    def __mul__(self, other: Any) -> Any:
        return self.to_bcoo() * as_bcoo(other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self.to_bcoo() + as_bcoo(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.to_bcoo() - as_bcoo(other)

    def __rsub__(self, other: Any) -> Any:
        return other - self.to_bcoo()

    def __getitem__(self, index: Any) -> BCOO:
        return self.to_bcoo()[index]


JAXSparse.register(BCOO)


def as_bcoo(x: Any) -> Any:
    """Return a sparse array of any format as `BCOO`, and anything else as it is."""
    return x.to_bcoo() if isinstance(x, JAXSparse) else x


@boundary_methods
class Matrix(JAXSparse):
    """A matrix without dimensions of a batch or dense ones."""

    @classmethod
    @abc.abstractmethod
    def from_bcoo(cls, arr: BCOO) -> Any:
        """Return a `BCOO` of two sparse dimensions alone in this format."""

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Self:
        """Return the elements of a matrix that are not zero; see `bcoo_fromdense`."""
        found: Self = cls.from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype))
        return found


@boundary_methods
class COO(Matrix):
    """A sparse matrix as values, their rows and their columns.

    Args:
      args: `(data, row, col)`: vectors of one length. Values of equal places are added; one out of
        range is left out.
      shape: the numbers of rows and columns.
      rows_sorted: promises that rows ascend.
      cols_sorted: promises that columns do within each row.

    Example:
      >>> m = COO.fromdense(np.float32([[0, 2, 0], [1, 0, 4]]))
      >>> m, m.row.tolist(), m.col.tolist(), (m @ np.float32([1, 10, 100])).tolist()
      (COO(float32[2, 3], nse=3), [0, 1, 1], [1, 0, 2], [20.0, 401.0])
    """

    shape: tuple[int, ...] = ()

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.row, self.col = map(xn.asarray, args)
        self.shape = _matrix_shape("COO", shape)
        if not self.data.shape == self.row.shape == self.col.shape or self.data.ndim != 1:
            raise ValueError(message(
                "COO", "data, row and col must be vectors of one length.",
                got=f"shapes {self.data.shape}, {self.row.shape} and {self.col.shape}",
            ))  # fmt: skip
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """Return a `BCOO` of two sparse dimensions alone as `COO`."""
        _check_matrix(cls.__name__, arr)
        return cls((arr.data, arr.indices[:, 0], arr.indices[:, 1]), shape=arr.shape,
                   rows_sorted=arr.indices_sorted, cols_sorted=arr.indices_sorted)  # fmt: skip

    def to_bcoo(self) -> BCOO:
        """Return the matrix as `BCOO`."""
        indices = xn.stack([self.row, self.col], -1)
        is_sorted = self.rows_sorted and self.cols_sorted
        return make_unchecked(BCOO, self.data, indices, self.shape, is_sorted, False)

    @property
    def nse(self) -> int:
        """How many values there are."""
        return int(self.data.shape[0])

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Return the transpose of the matrix; `axes` may be None or (1, 0)."""
        _check_transposed(axes)
        return COO((self.data, self.col, self.row), shape=self.shape[::-1])


@boundary_methods
class Compressed(JAXSparse):
    """Values row by row, the column of each, and where each row begins."""

    data: Any
    indices: Any
    indptr: Any
    sparse_shape: tuple[int, ...]
    indices_sorted: bool
    unique_indices: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of all dimensions: batch, rows and columns, dense."""
        n = len(self.indices.shape) - 1
        return (*self.indices.shape[:n], *self.sparse_shape, *self.data.shape[n + 1 :])

    @property
    def nse(self) -> int:
        """How many values there are, for each element of the batch."""
        return int(self.indices.shape[-1])

    def by_rows(self) -> BCOO:
        """Return the matrix of these rows as `BCOO`."""
        rows = rows_of(self.indptr, self.nse, self.indices.dtype)
        pairs = xn.stack([rows, self.indices], -1)
        shape = self.sparse_shape[::-1] if isinstance(self, CSC) else self.sparse_shape
        pairs = move_out(pairs, is_there(pairs, shape), shape)
        return make_unchecked(
            BCOO, self.data, pairs, shape, self.indices_sorted, self.unique_indices
        )

    def to_bcoo(self) -> BCOO:
        """Return the array as `BCOO`."""
        return self.by_rows()


def rows_of(indptr: Any, nse: int, dtype: Any) -> Any:
    """Return the row of each of `nse` values: how many rows end before it."""
    batch = indptr.shape[:-1]
    ends = xn.clip(indptr[..., 1:], 0, nse)
    counts = xn.zeros((*batch, nse + 1), dtype).at[places(ends[..., None])].add(1, mode="drop")
    return xn.cumsum(counts, axis=-1, dtype=dtype)[..., :nse]


def beginnings_of(rows: Any, count: int) -> Any:
    """Return where each of `count` rows begins and the last one ends, of rows that ascend."""
    counts = xn.zeros((*rows.shape[:-1], count), rows.dtype)
    counts = counts.at[places(rows[..., None])].add(1, mode="drop")
    first = xn.zeros((*rows.shape[:-1], 1), rows.dtype)
    return xn.concatenate([first, xn.cumsum(counts, axis=-1, dtype=rows.dtype)], -1)


@boundary_methods
class BCSR(Compressed):
    """A sparse matrix row by row, with batch dimensions in front and dense ones behind.

    Args:
      args: `(data, indices, indptr)`: values, of shape [batch..., nse, dense...], the column of
        each, and where each row begins and the last one ends, [batch..., rows + 1].
      shape: of the array: batch, rows, columns, dense.
      indices_sorted: promises that the columns of each row ascend.
      unique_indices: promises that none is there twice.

    Example:
      >>> m = BCSR.fromdense(np.float32([[0, 2, 0], [1, 0, 4]]))
      >>> m, m.indices.tolist(), m.indptr.tolist()
      (BCSR(float32[2, 3], nse=3), [1, 0, 2], [0, 1, 3])
      >>> (m @ np.float32([1, 10, 100])).tolist()
      [20.0, 401.0]
    """

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.indices, self.indptr = map(xn.asarray, args)
        n = self.indices.ndim - 1
        sizes = lengths("BCSR", shape)
        self.sparse_shape = sizes[n : n + 2]
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        fits = (
            len(self.sparse_shape) == 2 and self.shape == sizes
            and self.data.shape[: n + 1] == self.indices.shape
            and self.indptr.shape == (*sizes[:n], sizes[n] + 1)
        )  # fmt: skip
        if not fits:
            raise ValueError(message(
                type(self).__name__, "data, indices, indptr and shape do not fit together.",
                got=f"shapes {self.data.shape}, {self.indices.shape}, {self.indptr.shape} and "
                f"shape: {sizes}",
                expected="data[batch..., nse, dense...], indices[batch..., nse], "
                "indptr[batch..., rows + 1], and a shape of batch, rows, columns and dense lengths",
            ))  # fmt: skip

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
        """Return the elements of an array that are not zero; see `bcoo_fromdense`."""
        return cls.from_bcoo(bcoo_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        ))  # fmt: skip

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Return a `BCOO` of two sparse dimensions as `BCSR`."""
        if arr.n_sparse != 2:
            raise ValueError(f"{cls.__name__}: there must be two sparse dimensions, got {arr!r}.")
        arr = arr.sort_indices()
        batch, rows = arr.batch_shape, arr.sparse_shape[0]
        data = xn.broadcast_to(arr.data, (*batch, arr.nse, *arr.dense_shape))
        indices = xn.broadcast_to(arr.indices, (*batch, arr.nse, 2))
        parts = data, indices[..., 1], beginnings_of(indices[..., 0], rows)
        made: BCSR = _compress(BCSR, (arr.sparse_shape, True, arr.unique_indices), parts)
        return made

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Return a matrix of `scipy.sparse`; see `BCOO.from_scipy_sparse`."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(
            mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        ))  # fmt: skip

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return len(self.indices.shape) - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions: rows and columns."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return len(self.data.shape) - 1 - self.n_batch

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return the array with values of equal places added; see `BCOO.sum_duplicates`."""
        arr = self.to_bcoo()
        return self.from_bcoo(
            layouts.bcoo_sum_duplicates(without_zeros(arr) if remove_zeros else arr, nse)
        )

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """Return the array with rows and columns exchanged, by default; see `BCOO.transpose`."""
        return self.from_bcoo(self.to_bcoo().transpose(axes))


@boundary_methods
class CSR(Matrix, Compressed):
    """A sparse matrix row by row.

    Args:
      args: `(data, indices, indptr)`: values, the column of each, and where each row begins and
        the last one ends.
      shape: the numbers of rows and columns.

    Example:
      >>> m = CSR.fromdense(np.float32([[0, 2, 0], [1, 0, 4]]))
      >>> m.T, m.T.todense().tolist()
      (CSC(float32[3, 2], nse=3), [[0.0, 1.0], [2.0, 0.0], [0.0, 4.0]])
    """

    indices_sorted = unique_indices = False

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = map(xn.asarray, args)
        self.sparse_shape = _matrix_shape(type(self).__name__, shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Any:
        """Return a `BCOO` of two sparse dimensions alone row by row."""
        _check_matrix(cls.__name__, arr)
        rows = BCSR.from_bcoo(arr)
        return cls((rows.data, rows.indices, rows.indptr), shape=rows.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Return the transpose, of the same parts, as `CSC`; `axes` may be None or (1, 0)."""
        _check_transposed(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.sparse_shape[::-1])


@boundary_methods
class CSC(CSR):
    """A sparse matrix column by column.

    Args:
      args: `(data, indices, indptr)`: values, the row of each, and where each column begins and
        the last one ends.
      shape: the numbers of rows and columns.

    Example:
      >>> m = CSC.fromdense(np.float32([[0, 2, 0], [1, 0, 4]]))
      >>> m.data.tolist(), m.indices.tolist(), m.indptr.tolist()
      ([1.0, 2.0, 4.0], [1, 0, 1], [0, 1, 2, 3])
    """

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Any:
        """Return a `BCOO` of two sparse dimensions alone column by column."""
        _check_matrix(cls.__name__, arr)
        return CSR.from_bcoo(arr.T).T

    def to_bcoo(self) -> BCOO:
        """Return the matrix as `BCOO`."""
        return self.by_rows().transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Return the transpose, of the same parts, as `CSR`; `axes` may be None or (1, 0)."""
        _check_transposed(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.sparse_shape[::-1])


def _matrix_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = lengths(name, shape)
    require(len(sizes) == 2, name, "there must be rows and columns, got shape {}.", sizes)
    return sizes


def _check_matrix(name: str, arr: BCOO) -> None:
    require(
        (arr.n_batch, arr.n_sparse, arr.n_dense) == (0, 2, 0), name,
        "there must be two dimensions, both sparse, got {!r}.", arr,
    )  # fmt: skip


def _check_transposed(axes: Any) -> None:
    require(
        axes is None or [a % 2 for a in axes] == [1, 0], "transpose",
        "axes of this format are exchanged alone, got {}.", axes,
    )  # fmt: skip


def _compress(cls: Any, kept: Any, parts: Any) -> Any:
    """Return an object of a class of rows, its parts unchecked: they may be anything in a tree."""
    out = object.__new__(cls)
    out.data, out.indices, out.indptr = parts
    out.sparse_shape, out.indices_sorted, out.unique_indices = kept
    return out


def _coo(kept: Any, parts: Any) -> COO:
    out = object.__new__(COO)
    out.data, out.row, out.col = parts
    out.shape, out.rows_sorted, out.cols_sorted = kept
    return out


xtree.register_pytree_node(
    COO, lambda m: ((m.data, m.row, m.col), (m.shape, m.rows_sorted, m.cols_sorted)), _coo
)


def _flat_rows(mat: Compressed) -> tuple[Any, Any]:
    kept = mat.sparse_shape, mat.indices_sorted, mat.unique_indices
    return (mat.data, mat.indices, mat.indptr), kept


for _cls in (BCSR, CSR, CSC):
    xtree.register_pytree_node(_cls, _flat_rows, functools.partial(_compress, _cls))


# -------------------------------------------------------------------------------------- creation
# Sparse arrays of zeros, and with ones in a diagonal, of any format.

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
    indices = move_out(xn.zeros((*there.shape, len(sparse)), index_dtype), there, sparse)
    return kind(make_unchecked(BCOO, data, indices, sparse, True, True))


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
    return kind(make_unchecked(BCOO, data, places, (N, columns), True, True))


def _format(operation: str, name: Any) -> Callable[[BCOO], BCOO | BCSR | COO | CSR | CSC]:
    """Return what makes of a `BCOO` an array of a format."""
    if name not in _FORMATS:
        raise ValueError(
            f"{operation}: formats of sparse arrays are {', '.join(map(repr, _FORMATS))}, "
            f"got {described(name)}."
        )
    return _FORMATS[name]


# --------------------------------------------------------------------------------- row functions
# Functions of the formats `BCSR`, `CSR` and `COO`, under the names they have in JAX.


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
    pairs = move_out(pairs, is_there(pairs, shape), shape)
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
    return layouts.bcoo_dot_general(
        as_bcoo(lhs), as_bcoo(rhs), dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@boundary
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Return sparse arrays joined along a dimension; see `bcoo_concatenate`."""
    return BCSR.from_bcoo(
        layouts.bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension)
    )


@boundary
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Return a sparse array repeated along new dimensions; see `bcoo_broadcast_in_dim`.

    Raises:
      ValueError: the result has not two sparse dimensions, such as where one is new between them.
    """
    made = dimensions.bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    require(
        made.n_sparse == 2, "bcsr_broadcast_in_dim",
        "the result would have {} sparse dimensions, not 2.", made.n_sparse,
        got=f"{mat!r}, shape {tuple(shape)}, broadcast_dimensions {tuple(broadcast_dimensions)}",
    )  # fmt: skip
    return BCSR.from_bcoo(made)


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


# ----------------------------------------------------------------------------------------- sparsify
# Functions of arrays, given sparse ones: `sparsify`.
#
# The function is staged for the shapes and dtypes of its arguments, and its program is run on
# them, sparse where they are. An operation that has a sparse operand needs a row in the table
# below; every other one is run as it is.


@boundary
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that takes sparse arrays where `f` takes arrays.

    Args:
      f: a function of pytrees of arrays. What it does to a sparse one is computed from the values
        that are stored: products, sums, transposes, reshapes, slices, concatenations, functions of
        elements that leave 0 alone, and branches and loops of these. Anything else is a TypeError.
      use_tracer: taken for programs written for JAX, where it chooses between two ways to do the
        same.

    Returns:
      The function; its results are sparse where they are made of sparse arrays alone.

    Raises:
      TypeError: for an operation that would fill the zeros.

    Example:
      >>> import xnp
      >>> from xnp.sparse import BCOO
      >>> m = BCOO.fromdense(xnp.array([[0.0, 2.0], [3.0, 0.0]]))
      >>> sparsify(lambda m, v: xnp.sin(2 * m).T @ v)(m, xnp.ones(2)).round(4).tolist()
      [-0.2793999910354614, -0.7567999958992004]
      >>> sparsify(xnp.tanh)(m)
      BCOO(float32[2, 2], nse=2)
    """
    check_function(f, "sparsify")

    @transforming(f, "sparsify")
    def call_sparse(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = xtree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, JAXSparse))
        leaves = list(map(as_bcoo, leaves))
        values = [x if _is_sparse(x) else as_array(x) for x in leaves]
        out_tree: Any = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal out_tree
            positional, named = xtree.unflatten(tree, arrays)
            results, out_tree = flat_arrays(f(*positional, **named), "sparsify")
            return results

        avals = [shaped_array(x.shape, x.dtype) if _is_sparse(x) else x.aval for x in values]
        results = _run(trace_to_closed(flat, avals), values)
        return xtree.unflatten(out_tree, results)

    return call_sparse


def _is_sparse(x: Any) -> bool:
    return isinstance(x, layouts.Coordinates)


def _run(program: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """Run a program on arrays and sparse arrays."""
    return interpret(program.jaxpr, program.consts, values, _apply)


def _apply(eqn: Equation, operands: Sequence[Any]) -> Any:
    """Return the results of an equation."""
    if not any(map(_is_sparse, operands)):
        return eqn.primitive.evaluate(operands, eqn.params)
    name = eqn.primitive.name
    if "inline" in eqn.primitive.rules:
        return _run(eqn.params["jaxpr"], operands)
    if name == "custom_jvp_call":
        return _run(eqn.params["call"], operands)
    if name == "checkpoint":
        return _bind_again(eqn, operands)
    if name in _KEEP_ZERO:
        return [_of_elements(eqn, *operands)]
    if name in _OF_PROGRAMS:
        return _OF_PROGRAMS[name](*operands, **eqn.params)
    if name in _RULES:
        return [_RULES[name](*operands, **eqn.params)]
    raise TypeError(message(
        "sparsify", f"{name} has no rule for sparse arrays.",
        got=", ".join(map(_describe, operands)),
        hint="give it the dense array, x.todense(), or apply sparsify to parts",
    ))  # fmt: skip


def _bind_again(eqn: Equation, operands: Sequence[Any]) -> Any:
    """Bind a call whose program is one of the components of the sparse arrays."""
    leaves, tree = xtree.flatten(list(operands))
    out_tree: Any = None

    def of_components(*arrays: Any) -> list[Any]:
        nonlocal out_tree
        results = _run(eqn.params["jaxpr"], xtree.unflatten(tree, arrays))
        flat, out_tree = flat_arrays(results, "sparsify")
        return flat

    program = trace_to_closed(of_components, [x.aval for x in leaves])
    outs = eqn.primitive.bind(*leaves, **{**eqn.params, "jaxpr": program})
    return xtree.unflatten(out_tree, outs)


def _describe(x: Any) -> str:
    return repr(x) if _is_sparse(x) else str(x.aval.str_short())


# functions of elements with f(0) = 0; those that are linear take values of equal indices apart
_LINEAR = frozenset(["neg", "convert_element_type", "real", "imag", "copy"])
_KEEP_ZERO = _LINEAR | frozenset([
    "abs", "sign", "sin", "sinh", "tan", "tanh", "asin", "asinh", "atan", "atanh", "sqrt", "cbrt",
    "expm1", "log1p", "integer_pow", "square", "floor", "ceil", "round", "erf", "conj",
])  # fmt: skip


def _of_elements(eqn: Equation, x: Any) -> Any:
    """Return a function of elements, applied to the values."""
    if eqn.params.get("y", 1) <= 0:
        raise TypeError(message(
            "sparsify", f"the power {eqn.params['y']} of the zeros is not 0.", got=f"{x!r}",
        ))  # fmt: skip
    if eqn.primitive.name not in _LINEAR:
        x = layouts.with_unique_indices(x)
    (data,) = eqn.primitive.bind(x.data, **eqn.params)
    return layouts.with_data(x, data)


def _mul(x: Any, y: Any, **_: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        return layouts.bcoo_multiply_sparse(*dimensions.broadcast(x, y))
    return layouts.with_data(x, layouts.bcoo_multiply_dense(x, y)) if _is_sparse(x) else _mul(y, x)


def _div(x: Any, y: Any) -> Any:
    require(
        not _is_sparse(y), "sparsify", "div by a sparse array divides by its zeros.", got=y,
        error=TypeError,
    )  # fmt: skip
    return _mul(x, 1 / y)


def _add(x: Any, y: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        return layouts.add_sparse(*dimensions.broadcast(x, y))
    x, y = (v.todense() if _is_sparse(v) else v for v in (x, y))
    return x + y


def _sub(x: Any, y: Any) -> Any:
    return _add(x, layouts.with_data(y, -y.data) if _is_sparse(y) else -y)


def _reduce_sum(x: Any, *, axes: Any, **_: Any) -> Any:
    total = layouts.bcoo_reduce_sum(x, axes=axes)
    return total if total.n_sparse else total.todense()


def _reshape(x: Any, *, new_sizes: Any, **params: Any) -> Any:
    order = params.get("dimensions")
    x = x if order is None else _transpose(x, permutation=order)
    if not layouts.keeps_kinds_apart(x, new_sizes):
        x = dimensions.all_sparse(x)
    return layouts.bcoo_reshape(x, new_sizes=new_sizes)


def _transpose(x: Any, *, permutation: Any) -> Any:
    n, stop = x.n_batch, x.n_batch + x.n_sparse
    kinds = [(d >= n) + (d >= stop) for d in permutation]
    x = x if kinds == sorted(kinds) else dimensions.all_sparse(x)
    return layouts.bcoo_transpose(x, permutation=permutation)


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, precision: Any = None,
                 preferred_element_type: Any = None, **_: Any) -> Any:  # fmt: skip
    return layouts.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> Any:
    return layouts.bcoo_slice(
        x, start_indices=start_indices, limit_indices=limit_indices, strides=strides
    )


def _concatenate(*operands: Any, dimension: int) -> Any:
    if all(map(_is_sparse, operands)):
        return layouts.bcoo_concatenate(dimensions.alike(*operands), dimension=dimension)
    return xn.concatenate([x.todense() if _is_sparse(x) else x for x in operands], dimension)


def _pow(x: Any, y: Any) -> Any:
    require(
        _is_sparse(x) and isinstance(y, xprim.ConcreteArray) and y.ndim == 0, "sparsify",
        "pow of a sparse array needs a number as exponent, known while it is staged.", got=(x, y),
        error=TypeError,
    )  # fmt: skip
    return x ** y.item()


# Control flow: what is carried and chosen are trees of which a sparse array is a part.


def _cond(index: Any, *operands: Any, branches: Any, batching: Any = None, **_: Any) -> Any:
    functions = [functools.partial(_run, branch) for branch in branches]
    return lax.switch(index, functions, operands, batching=batching)


def _while(*operands: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
           body_nconsts: int, **_: Any) -> Any:  # fmt: skip
    of_test, of_body, carry = split_at(operands, cond_nconsts, body_nconsts)
    return lax.while_loop(
        lambda carry: _run(cond_jaxpr, (*of_test, *carry))[0],
        lambda carry: _run(body_jaxpr, (*of_body, *carry)), carry,
    )  # fmt: skip


def _scan(*operands: Any, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
          reverse: bool, unroll: Any, num_stops: int = 0) -> Any:  # fmt: skip
    stops, consts, first, xs = split_at(operands, num_stops, num_consts, num_carry)

    def step(carry: Any, x: Any) -> Any:
        return split_at(_run(jaxpr, (*consts, *carry, *x)), num_carry)

    carry, ys = lax.scan(
        step, first, xs, length, reverse, unroll, lengths=stops[0] if stops else None,
    )  # fmt: skip
    return [*carry, *ys]


def _squeeze(x: Any, **params: Any) -> Any:
    return layouts.squeeze_dimensions(x, [d % x.ndim for d in params["dimensions"]])


def _broadcast_in_dim(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    return dimensions.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions
    )


def _gather(x: Any, starts: Any, **params: Any) -> Any:
    require(not _is_sparse(starts), "sparsify", "gather at sparse indices.", got=starts,
            error=TypeError)  # fmt: skip
    return dimensions.gather(x, starts, **params)


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Any, **_: Any) -> Any:
    return layouts.bcoo_dynamic_slice(x, starts, slice_sizes)


def _pad(x: Any, value: Any, *, padding_config: Any) -> Any:
    return dimensions.pad(x, value, padding_config=padding_config)


def _conv_general_dilated(x: Any, y: Any, **params: Any) -> Any:
    x, y = [v if _is_sparse(v) else bcoo_fromdense(v, nse=v.size) for v in (x, y)]
    return dimensions.convolve(x, y, **params)


_RULES: dict[str, Callable[..., Any]] = {
    "mul": _mul, "div": _div, "add": _add, "sub": _sub, "dot_general": _dot_general,
    "reduce_sum": _reduce_sum, "reshape": _reshape, "slice": _slice, "squeeze": _squeeze,
    "concatenate": _concatenate, "transpose": _transpose, "rev": layouts.bcoo_rev,
    "pow": _pow, "broadcast_in_dim": _broadcast_in_dim, "gather": _gather, "pad": _pad,
    "dynamic_slice": _dynamic_slice, "conv_general_dilated": _conv_general_dilated,
}  # fmt: skip
_OF_PROGRAMS: dict[str, Callable[..., Any]] = {"cond": _cond, "while": _while, "scan": _scan}


@boundary
def bcoo_gather(
    operand: BCOO, start_indices: ArrayLike, dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Sequence[int], *, unique_indices: bool = False, indices_are_sorted: bool = False,
    mode: Any = None, fill_value: Any = None,
) -> BCOO:  # fmt: skip
    """Return slices of a sparse array, joined as `lax.gather` does.

    Args:
      operand: the array.
      start_indices: where slices begin, integers of shape [batch..., coordinates].
      dimension_numbers: what each dimension is.
      slice_sizes: the length of a slice along each dimension of the array.
      unique_indices: promises that slices do not overlap;
      indices_are_sorted: and that they ascend.
      mode: what is read out of range: "clip", "promise_in_bounds" or "fill".
      fill_value: with "fill", which must be 0 unless no slice is out of range.

    Returns:
      An array whose dimensions are all sparse, with room for the values in each slice.

    Raises:
      TypeError: it would be filled with a number that is not 0.

    Example:
      >>> from xnp import lax
      >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
      >>> bcoo_gather(eye(3), [[2], [0]], rows, (1, 3), mode="clip").todense().tolist()
      [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    found: BCOO = sparsify(
        lambda x, starts: lax.gather(
            x, starts, dimension_numbers, tuple(slice_sizes), unique_indices=unique_indices,
            indices_are_sorted=indices_are_sorted, mode=mode, fill_value=fill_value,
        )
    )(operand, xn.asarray(start_indices))  # fmt: skip
    return found


@boundary
def bcoo_conv_general_dilated(
    lhs: BCOO, rhs: BCOO, *, window_strides: Sequence[int], padding: Any,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
) -> BCOO:  # fmt: skip
    """Return the convolution of two sparse arrays, as `lax.conv_general_dilated` has it.

    Args:
      lhs: the array;
      rhs: and the kernel.
      window_strides: for each dimension of space the step of the window.
      padding: "SAME", "VALID", or how many zeros are before and behind.
      lhs_dilation: how far apart elements of `lhs` are; 1 by default.
      rhs_dilation: and those of `rhs`.
      dimension_numbers: what each dimension is, as for `lax.conv_general_dilated`.
      feature_group_count: how many groups the features are in.
      batch_group_count: how many groups the examples are in.
      precision: taken for programs written for JAX; each product of two numbers is rounded once.
      preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
      An array whose dimensions are all sparse, with a value for each pair of values.

    Example:
      >>> x = BCOO.fromdense(np.array([[[1.0, 0.0, 2.0]]], np.float32))
      >>> bcoo_conv_general_dilated(x, x, window_strides=[1], padding=[(2, 2)]).todense().tolist()
      [[[2.0, 0.0, 5.0, 0.0, 2.0]]]
    """
    found: BCOO = sparsify(
        lambda x, y: lax.conv_general_dilated(
            x, y, tuple(window_strides), padding, lhs_dilation, rhs_dilation, dimension_numbers,
            feature_group_count, batch_group_count, precision, preferred_element_type,
        )
    )(lhs, rhs)  # fmt: skip
    return found
