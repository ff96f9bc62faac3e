"""The sparse array that users meet, and how one is made of a dense one and the other way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import xnp.numpy as xn
import xtree
from xnp.numpy import index_entries
from xnp.numpy.dispatch import axes_of
from xnp.numpy.index_entries import NewAxis, Position, Positions, Span, entries_of, index_arrays
from xnp.sparse import dimensions, layouts
from xnp.sparse.layouts import Coordinates, make_unchecked, mask_padding, places, with_data
from xprim import Array, ConcreteArray, dtypes
from xprim.errors import ConcretizationTypeError, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike
from xtree.boundaries import boundary_methods

__all__ = ()


@boundary_methods
class BCOO(Coordinates):
    """An array most of whose elements are zero: the others, in coordinates.

    Args:
      args: `(data, indices)`: values, of shape [batch..., nse, dense...], and where they are,
        integers of shape [batch..., nse, number of sparse dimensions]. Values of equal indices are
        added; one with an index out of range is left out.
      shape: of the array: batch, sparse and dense dimensions.
      indices_sorted: promises that indices ascend.
      unique_indices: promises that no two are equal.

    Raises:
      ValueError: parts that do not fit together.

    Example:
      >>> import xnp
      >>> m = BCOO.fromdense(xnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 4.0]]))
      >>> m, m.data.tolist(), m.indices.tolist()
      (BCOO(float32[2, 3], nse=3), [2.0, 1.0, 4.0], [[0, 1], [1, 0], [1, 2]])
      >>> (m @ xnp.array([1.0, 10.0, 100.0])).tolist()
      [20.0, 401.0]
    """

    __array_priority__ = 101  # above arrays: NumPy's operators give way
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, args: tuple[Any, Any], *, shape: Sequence[int], indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:  # fmt: skip
        self.data, self.indices = map(xn.asarray, args)
        shape = layouts.lengths("BCOO", shape)
        _check_parts(self.data, self.indices, shape)
        n = self.indices.ndim - 2
        self.sparse_shape = shape[n : n + self.indices.shape[-1]]
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.batch_shape != shape[:n]:  # both have 1 where the batch is longer
            self.indices = xn.broadcast_to(self.indices, (*shape[:n], *self.indices.shape[n:]))

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:  # fmt: skip
        """Return the elements of an array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return a matrix of `scipy.sparse`.

        Args:
          mat: the matrix, of any format.
          index_dtype: of the indices; int32 by default.
          n_dense: the number of dense dimensions;
          n_batch: and of batch dimensions. If not 0, the zeros that this needs are stored.
        """
        if n_dense or n_batch:
            return bcoo_fromdense(mat.toarray(), n_dense=n_dense, n_batch=n_batch,
                                  index_dtype=index_dtype or np.int32)  # fmt: skip
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], -1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return bcoo_todense(self)

    def to_bcoo(self) -> BCOO:
        """Return the array itself; other formats have the same method."""
        return self

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:  # fmt: skip
        """Return the array with other numbers of batch and dense dimensions.

        See `bcoo_update_layout`.
        """
        return dimensions.bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return the array with values of equal indices added, sorted; see `bcoo_sum_duplicates`.

        Args:
          nse: how many values the result has room for; by default as many as it needs, which is
            not known while tracing.
          remove_zeros: whether values that are 0 are left out.
        """
        return layouts.bcoo_sum_duplicates(
            layouts.without_zeros(self) if remove_zeros else self, nse
        )

    def sort_indices(self) -> BCOO:
        """Return the array with ascending indices."""
        return layouts.bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return the array with its dimensions in another order, by default backwards."""
        order = range(self.ndim)[::-1] if axes is None else axes
        return layouts.bcoo_transpose(self, permutation=order)

    T = property(transpose, doc="The array with its dimensions in backward order.")

    def reshape(self, *args: Any) -> BCOO:
        """Return the array with another shape; batch, sparse and dense lengths stay apart."""
        sizes = list(args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args)
        if -1 in sizes:
            rest = math.prod(n for n in sizes if n != -1)
            sizes[sizes.index(-1)] = self.size // max(rest, 1)
        return layouts.bcoo_reshape(self, new_sizes=sizes)

    def astype(self, dtype: Any) -> BCOO:
        """Return the array with values of another dtype."""
        return with_data(self, self.data.astype(dtype))

    def block_until_ready(self) -> BCOO:
        """Wait until the parts are computed."""
        for part in (self.data, self.indices):
            part.block_until_ready()
        return self

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """Return the sum over axes, sparse unless it is over all of them."""
        total = layouts.bcoo_reduce_sum(self, axes=axes_of(axis, self.ndim, "BCOO.sum"))
        return total.todense() if total.ndim == 0 else total

    def __repr__(self) -> str:
        try:
            parts = [f"{self.dtype.name}{list(self.shape)}", f"nse={self.nse}"]
        except (AttributeError, IndexError, TypeError, ValueError):  # a pytree of other things
            return f"BCOO(data={self.data!r}, indices={self.indices!r})"
        parts += [f"{n}={getattr(self, n)}" for n in ("n_batch", "n_dense") if getattr(self, n)]
        return f"BCOO({', '.join(parts)})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> BCOO:
        """Return a part, by what `numpy.ndarray` takes; arrays along sparse dimensions alone."""
        entries = _entries(index, self.shape)
        if any(isinstance(entry, Positions) for entry in entries):
            return _at_arrays(self, entries)
        dims = [entry for entry in entries if not isinstance(entry, NewAxis)]
        dropped = [d for d, entry in enumerate(dims) if isinstance(entry, Position)]
        part = layouts.squeeze_dimensions(_slice(self, dims), dropped)
        if len(dims) == len(entries):
            return part
        stays = [entry for entry in entries if not isinstance(entry, Position)]
        sizes = list(part.shape)
        for d, entry in enumerate(stays):
            if isinstance(entry, NewAxis):
                sizes.insert(d, 1)
        return layouts.bcoo_reshape(part, new_sizes=sizes)

    def __neg__(self) -> BCOO:
        return with_data(self, -self.data)

    def __abs__(self) -> BCOO:
        unique = layouts.with_unique_indices(self)
        return with_data(unique, xn.abs(unique.data))

    def __pow__(self, n: Any) -> BCOO:
        """Return the powers of the elements, by a number greater than 0."""
        is_positive = isinstance(n, (int, float, np.number)) and n > 0
        require(
            is_positive, "BCOO", "a power that is not a number greater than 0 fills the zeros.",
            got=n, hint="x.todense() ** n", error=TypeError,
        )  # fmt: skip
        unique = layouts.with_unique_indices(self)
        return with_data(unique, unique.data**n)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Coordinates):
            return layouts.bcoo_multiply_sparse(*dimensions.broadcast(self, other))
        return with_data(self, layouts.bcoo_multiply_dense(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        require(
            not isinstance(other, Coordinates), "BCOO",
            "the quotient of sparse arrays is not sparse: x.todense() / y", error=TypeError,
        )  # fmt: skip
        return with_data(self, layouts.bcoo_multiply_dense(self, 1 / xn.asarray(other)))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Coordinates):
            return layouts.add_sparse(*dimensions.broadcast(self, other))
        return self.todense() + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)


def _slice(mat: BCOO, entries: Sequence[Any]) -> BCOO:
    """Return the elements at a `Position` or a `Span` of each dimension, all dimensions there."""
    turned = [d for d, entry in enumerate(entries) if isinstance(entry, Span) and entry.step < 0]
    bounds = list(map(_ascending_bounds, entries))
    starts, stops, steps = ([b[i] for b in bounds] for i in range(3))
    part = layouts.bcoo_slice(mat, start_indices=starts, limit_indices=stops, strides=steps)
    return layouts.bcoo_rev(part, turned) if turned else part


def _ascending_bounds(entry: Position | Span) -> tuple[int, int, int]:
    """Return the start, the stop and the step of the elements of a dimension, from low to high."""
    if isinstance(entry, Position):
        return entry.value, entry.value + 1, 1
    if not entry.size:
        return 0, 0, 1
    ends = sorted([entry.start, entry.start + entry.step * (entry.size - 1)])
    return ends[0], ends[1] + 1, abs(entry.step) if entry.size > 1 else 1


def _at_arrays(mat: BCOO, entries: Sequence[Any]) -> BCOO:
    """Return a part where an entry is an array: integers beside it are arrays, as in NumPy."""
    arrays = index_arrays(entries)
    require(
        not any(isinstance(entry, NewAxis) for entry in entries)
        and mat.n_batch == 0 and max(arrays) < mat.n_sparse, "BCOO",
        "an array of indices must be for a sparse dimension of an array without dimensions of a "
        "batch, and without None beside it.", got=mat, hint="index x.todense()", error=TypeError,
    )  # fmt: skip
    every = [Span(0, 1, n) for n in mat.shape]
    spans = [every[d] if d in arrays else entry for d, entry in enumerate(entries)]
    return layouts.gather_elements(_slice(mat, spans), arrays)


def _entries(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the entries of an index, with a `Position` for an integer array of rank 0."""
    parts = index if isinstance(index, tuple) else (index,)
    static = tuple([
        int(i) if isinstance(i, ConcreteArray) and not i.ndim and dtypes.is_integer(i.dtype) else i
        for i in parts
    ])  # fmt: skip
    try:
        return list(entries_of(static, shape, checks_arrays=True))
    except index_entries.FlagsInIndex:
        raise TypeError(message(
            "BCOO", "a single boolean must be True, and without arrays of indices beside it.",
            hint="index x.todense()",
        )) from None  # fmt: skip


def _matmul(a: Any, b: Any) -> Any:
    a, b = [x if isinstance(x, Coordinates) else xn.asarray(x) for x in (a, b)]
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
        raise ValueError(message(
            "BCOO", "@ takes vectors and matrices.", got=f"shapes {a.shape} and {b.shape}",
            hint="bcoo_dot_general, or vmap",
        ))  # fmt: skip
    return layouts.bcoo_dot_general(a, b, dimension_numbers=(((a.ndim - 1,), (0,)), ((), ())))


def _flatten(mat: BCOO) -> tuple[Any, Any]:
    return (mat.data, mat.indices), (mat.sparse_shape, mat.indices_sorted, mat.unique_indices)


xtree.register_pytree_node(BCOO, _flatten, lambda kept, parts: make_unchecked(BCOO, *parts, *kept))


def _check_parts(data: Any, indices: Any, shape: Sequence[int]) -> None:
    n = indices.ndim - 2
    fits = (
        n >= 0 and data.ndim > n and indices.dtype.kind in "iu"
        and data.ndim - 1 + indices.shape[-1] == len(shape)
        and data.shape[n] == indices.shape[n]
        and data.shape[n + 1 :] == tuple(shape[n + indices.shape[-1] :])
        and all(m in (1, shape[d]) for x in (data, indices) for d, m in enumerate(x.shape[:n]))
    )  # fmt: skip
    if not fits:
        raise ValueError(message(
            "BCOO", "data, indices and shape do not fit together.",
            got=f"data: {data.dtype.name}{list(data.shape)}, indices: "
            f"{indices.dtype.name}{list(indices.shape)}, shape: {tuple(shape)}",
            expected="data[batch..., nse, dense...], integer indices[batch..., nse, k], and a "
            "shape of batch, k sparse and dense lengths",
        ))  # fmt: skip


@boundary
def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:  # fmt: skip
    """Return the elements of an array that are not zero.

    Args:
      mat: an array of any dtype.
      nse: how many there is room for, for each element of the batch; by default as many as there
        are, which is not known while tracing. What finds no room is lost.
      n_batch: how many leading dimensions are batch;
      n_dense: and how many trailing ones are stored whole where any element is not zero.
      index_dtype: of the indices.

    Example:
      >>> import xnp
      >>> bcoo_fromdense(xnp.eye(3), n_batch=1).indices[:, 0].tolist()
      [[0], [1], [2]]
    """
    mat = xn.asarray(mat)
    require(
        n_batch >= 0 and n_dense >= 0 and n_batch + n_dense <= mat.ndim, "bcoo_fromdense",
        "n_batch={} and n_dense={} do not fit the shape {}.", n_batch, n_dense, mat.shape,
    )  # fmt: skip
    stop = mat.ndim - n_dense
    batch, sparse = mat.shape[:n_batch], mat.shape[n_batch:stop]
    stored = xn.any(mat != 0, axis=tuple(range(stop, mat.ndim))).reshape(*batch, math.prod(sparse))
    if nse is None:
        try:
            nse = int(xn.max(xn.count_nonzero(stored, axis=-1), initial=0))
        except ConcretizationTypeError:
            raise ValueError(message(
                "bcoo_fromdense", "how many elements are not zero is not known while tracing.",
                hint="say how many there is room for: bcoo_fromdense(x, nse=8)",
            )) from None  # fmt: skip
    count = static_int(nse, "bcoo_fromdense: nse")
    order = xn.argsort(~stored, axis=-1, stable=True)[..., :count]
    there = xn.take_along_axis(stored, order, axis=-1)
    columns = xn.unravel_index(order, sparse) if sparse else ()
    indices = xn.stack(columns, -1) if columns else xn.zeros((*order.shape, 0), np.int32)
    lacking = count - order.shape[-1]  # more room than elements
    if lacking > 0:
        pads = [(0, 0)] * n_batch + [(0, lacking)]
        indices, there = xn.pad(indices, [*pads, (0, 0)]), xn.pad(there, pads)
    indices = layouts.move_out(indices.astype(index_dtype), there, sparse)
    at = mat.at[places(indices)] if stop else None
    data = xn.broadcast_to(mat, (count, *mat.shape)) if at is None else (
        at.get(mode="fill", fill_value=0))  # fmt: skip
    data = xn.where(layouts.with_unit_dims(there, n_dense), data, xn.zeros((), mat.dtype))
    return make_unchecked(BCOO, data, indices, tuple(sparse), True, True)


@boundary
def bcoo_todense(mat: Coordinates) -> Array:
    """Return a sparse array with its zeros.

    Example:
      >>> bcoo_todense(bcoo_fromdense(np.eye(2))).tolist()
      [[1.0, 0.0], [0.0, 1.0]]
    """
    data, indices = mask_padding(mat)
    if not mat.n_batch + mat.n_sparse:
        return xn.sum(data, axis=0)
    out: Array = xn.zeros(mat.shape, mat.dtype).at[places(indices)].add(data, mode="drop")
    return out


@boundary
def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the indices of a sparse one.

    Args:
      sparr: whose indices are taken.
      arr: an array of the same shape.
      assume_unique: whether each element is taken once for each index that names it; if not, once,
        at the first. By default what `sparr` promises.
    """
    arr = xn.asarray(arr)
    require(
        arr.shape == sparr.shape, "bcoo_extract", "the shapes differ: {} and {}.", sparr.shape,
        arr.shape,
    )  # fmt: skip
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    if not unique:
        sparr = layouts.bcoo_sum_duplicates(sparr, sparr.nse)
    _, indices = mask_padding(sparr)
    data = arr.at[places(indices)].get(mode="fill", fill_value=0)
    return sparr.like(data, indices, sparr.sparse_shape, is_sorted=sparr.indices_sorted,
                      is_unique=unique or sparr.unique_indices)  # fmt: skip


@boundary
def todense(arr: BCOO | ArrayLike) -> Array:
    """Return a sparse array with its zeros, and a dense one as it is."""
    dense: Any = getattr(arr, "todense", None)
    other: Any = arr
    return xn.asarray(other) if dense is None else dense()
