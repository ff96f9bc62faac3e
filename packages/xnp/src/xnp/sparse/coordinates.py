"""What a sparse array is: values, and the indices where they are.

An array of shape (batch..., sparse..., dense...) has for each element of the batch `nse` values,
each a dense array, at indices of the sparse dimensions:

    data     [batch..., nse, dense...]       indices     [batch..., nse, number of sparse dims]

The shape follows from the two arrays and the lengths of the sparse dimensions, which is all that
the pytree keeps beside them: so `vmap` over the leading axis of both sees arrays of a smaller
batch. Values of equal indices are added; what has an index out of range is not there, which is how
lists of different lengths fill one array.

Neighbours: `bcoo` has the class that users meet, `layouts` and `products` what is done to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import xnp.numpy as xn
from xprim import Array
from xprim.errors import message
from xprim.static_sizes import static_int
from xtree.boundaries import boundary_methods

__all__ = ()

C = TypeVar("C", bound="Coordinates")
Shape = tuple[int, ...]


def lengths(name: str, shape: Sequence[int]) -> Shape:
    """Return the lengths of a shape, which are not negative."""
    found = tuple([static_int(n, f"{name}: a length of shape") for n in shape])
    if any(n < 0 for n in found):
        raise ValueError(message(
            name, "the lengths of a shape are not negative.", got=f"shape={found}",
        ))  # fmt: skip
    return found


@boundary_methods
class Coordinates:
    """Values with the indices where they are."""

    data: Any
    indices: Any
    sparse_shape: Shape
    indices_sorted: bool
    unique_indices: bool

    def like(
        self: C, data: Any, indices: Any, sparse_shape: Sequence[int], *, is_sorted: bool = False,
        is_unique: bool = False,
    ) -> C:  # fmt: skip
        """Return an array of the same class, its parts unchecked."""
        return made(type(self), data, indices, tuple(sparse_shape), is_sorted, is_unique)

    @property
    def batch_shape(self) -> Shape:
        """The lengths of the batch dimensions; one of `data` and `indices` may have 1 in place."""
        n = self.n_batch
        pairs = zip(self.data.shape[:n], self.indices.shape[:n], strict=True)
        return tuple([b if a == 1 else a for a, b in pairs])

    @property
    def dense_shape(self) -> Shape:
        """The lengths of the dense dimensions."""
        return tuple(self.data.shape[self.n_batch + 1 :])

    @property
    def shape(self) -> Shape:
        """The lengths of all dimensions."""
        return (*self.batch_shape, *self.sparse_shape, *self.dense_shape)

    @property
    def nse(self) -> int:
        """How many values there are for each element of the batch."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return len(self.indices.shape) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return len(self.sparse_shape)

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return len(self.data.shape) - 1 - self.n_batch

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.n_batch + self.n_sparse + self.n_dense

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype


def made(
    cls: type[C], data: Any, indices: Any, sparse_shape: Shape, is_sorted: bool, is_unique: bool
) -> C:
    """Return an object of the class, its parts unchecked: they may be anything in a pytree."""
    made = object.__new__(cls)
    made.data, made.indices, made.sparse_shape = data, indices, sparse_shape
    made.indices_sorted, made.unique_indices = is_sorted, is_unique
    return made


def full(mat: Coordinates) -> tuple[Array, Array]:
    """Return data and indices, both with the whole batch."""
    data = xn.broadcast_to(mat.data, (*mat.batch_shape, mat.nse, *mat.dense_shape))
    return data, xn.broadcast_to(mat.indices, (*mat.batch_shape, mat.nse, mat.n_sparse))


def places(indices: Array) -> tuple[Array, ...]:
    """Return an index array for each batch and sparse dimension, all of shape [batch..., nse]."""
    rows = indices.shape[:-1]
    numbers = [xn.arange(n, dtype=indices.dtype) for n in rows[:-1]]
    batch = [
        xn.broadcast_to(with_unit_dims(x, len(rows) - d - 1), rows) for d, x in enumerate(numbers)
    ]
    return (*batch, *[indices[..., i] for i in range(indices.shape[-1])])


def is_there(indices: Array, sparse_shape: Sequence[int]) -> Array:
    """Return which values have indices in range: bool[batch..., nse]."""
    bounds = xn.asarray(tuple(sparse_shape), indices.dtype)
    return xn.all((indices >= 0) & (indices < bounds), axis=-1)


def known(mat: Coordinates) -> tuple[Array, Array]:
    """Return data and indices with the whole batch, data 0 where the index is out of range."""
    data, indices = full(mat)
    there = is_there(indices, mat.sparse_shape)
    return xn.where(with_unit_dims(there, mat.n_dense), data, xn.zeros((), data.dtype)), indices


def moved_out(indices: Array, there: Array, sparse_shape: Sequence[int]) -> Array:
    """Return indices with those that are not there one beyond the end in each dimension."""
    ends = xn.asarray(tuple(sparse_shape), indices.dtype)
    moved: Array = xn.where(with_unit_dims(there, 1), indices, ends)
    return moved


def with_unit_dims(x: Array, count: int) -> Array:
    """Return an array with dimensions of length 1 behind."""
    wide: Array = x.reshape(*x.shape, *[1] * count)
    return wide
