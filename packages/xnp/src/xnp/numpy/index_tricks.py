"""Positions: ix_, index expressions, r_ and c_, diagonals, triangles, flat indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xnp.numpy.creation import array, asarray, shape_of
from xnp.numpy.dispatch import array_of
from xnp.numpy.ranges import arange, check_slice, linspace
from xnp.numpy.selection import nonzero, where
from xnp.numpy.shaping import concatenate
from xnp.primitives.table import reshape
from xprim import Array, ConcreteArray, dtypes, from_numpy, promotion
from xprim.errors import ConcretizationTypeError, brief, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, Arrays, DimSize, DTypeLike, DuckTypedArray, ShapeLike

__all__ = [
    "c_", "diag_indices", "diag_indices_from", "index_exp", "ix_", "mask_indices", "r_",
    "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unravel_index",
]  # fmt: skip

__dir__ = __all__.copy

index_exp, s_ = np.index_exp, np.s_


def _positions(*hosts: Any) -> tuple[Array, ...]:
    dtype = dtypes.python_scalar_dtype(int)
    return tuple([from_numpy(h.astype(dtype), copy=False) for h in hosts])


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return index arrays of the grid over vectors: the k-th has its elements along dimension k.

    Args:
      *args: vectors of integers, or of booleans, which stand for the places that are True.

    Returns:
      A tuple of arrays of as many dimensions as there are vectors.

    Example:
      >>> import xnp
      >>> xnp.arange(9).reshape(3, 3)[xnp.ix_(xnp.array([0, 2]), xnp.array([1]))]
      Array([[1],
             [7]], dtype=int32)
    """
    results = []
    for k, x in enumerate(args):
        x = asarray(x)
        require(x.ndim == 1, "ix_", "takes vectors, got {}.", x)
        if dtypes.is_bool(x.dtype):
            (x,) = nonzero(x)
        if not x.size:
            x = x.astype(dtypes.python_scalar_dtype(int))
        results.append(reshape(x, tuple([x.size if d == k else 1 for d in range(len(args))])))
    return tuple(results)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the positions of the main diagonal of an array of `ndim` dimensions of size `n`.

    Args:
      n: the size of each dimension.
      ndim: the number of dimensions.

    Returns:
      A tuple of `ndim` equal vectors of integers.

    Raises:
        ValueError: `n` is negative.

    Example:
      >>> import xnp
      >>> xnp.diag_indices(3)
      (Array([0, 1, 2], dtype=int32), Array([0, 1, 2], dtype=int32))
    """
    size, rank = static_int(n, "diag_indices", "n"), static_int(ndim, "diag_indices", "ndim")
    require(
        size >= 0 and rank >= 0, "diag_indices", "n and ndim must not be negative, got {} and {}.",
        size, rank,
    )  # fmt: skip
    return _positions(*[np.arange(size)] * rank)


def diag_indices_from(arr: DuckTypedArray) -> tuple[Array, ...]:
    """Return the positions of the main diagonal of an array of equal sizes.

    Args:
      arr: an array of two dimensions or more, all of one size.

    Returns:
      A tuple of as many equal vectors of integers as `arr` has dimensions.

    Example:
      >>> import xnp
      >>> xnp.diag_indices_from(xnp.ones((2, 2)))
      (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = arr.shape if hasattr(arr, "shape") else array_of(arr, "diag_indices_from").shape
    require(
        len(shape) >= 2 and len(set(shape)) == 1, "diag_indices_from",
        "takes arrays of equal sizes, got {}.", shape,
    )  # fmt: skip
    return diag_indices(shape[0], len(shape))


def _triangle(operation: str, of_host: Any, n: Any, k: Any, m: Any) -> tuple[Array, Array]:
    rows = static_int(n, operation, "the number of rows")
    columns = rows if m is None else static_int(m, operation, "the number of columns")
    positions = of_host(rows, static_int(k, operation, "the diagonal"), columns)
    return _positions(*positions)  # type: ignore[return-value]


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the positions on and below diagonal `k` of a matrix of `n` rows, `m` columns.

    Args:
        n: the number of rows.
        k: the diagonal: 0 for the main one, positive for one above it.
        m: the number of columns; None for as many as rows.

    Returns:
        Two vectors of integers, the rows and the columns, in the order of the
        elements.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _triangle("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the positions on and above diagonal `k` of a matrix of `n` rows, `m` columns.

    Args:
        n: the number of rows.
        k: the diagonal: 0 for the main one, positive for one above it.
        m: the number of columns; None for as many as rows.

    Returns:
        Two vectors of integers, the rows and the columns, in the order of the
        elements.

    Raises:
        TypeError: `m` is not an array.

    Example:
        >>> import xnp
        >>> xnp.triu_indices(2, k=1)
        (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    return _triangle("triu_indices", np.triu_indices, n, k, m)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the positions on and below diagonal `k` of a matrix.

    Args:
        arr: a matrix; only its shape counts.
        k: the diagonal: 0 for the main one, positive for one above it.

    Returns:
        Two vectors of integers, the rows and the columns, in the order of the
        elements.

    Raises:
        TypeError: `arr` is not an array.

    Example:
        >>> import xnp
        >>> xnp.tril_indices_from(xnp.ones((2, 2)))
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Return the positions on and above diagonal `k` of a matrix.

    Args:
        arr: a matrix; only its shape counts.
        k: the diagonal: 0 for the main one, positive for one above it.

    Returns:
        Two vectors of integers, the rows and the columns, in the order of the
        elements.

    Raises:
        TypeError: `arr` is not an array.

    Example:
        >>> import xnp
        >>> xnp.triu_indices_from(xnp.ones((2, 2)), k=1)
        (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix_shape(operation: str, arr: Any) -> tuple[int, int]:
    shape = array_of(arr, operation).shape
    if len(shape) != 2:
        raise ValueError(message(operation, "takes a matrix.", got=f"an array of shape {shape}"))
    return shape


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: DimSize = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Return the positions that a function such as `triu` leaves in a matrix of ones.

    Args:
      n: the number of rows and of columns.
      mask_func: a function of a matrix and `k` that puts zeros in some places.
      k: passed to the function.
      size: how many positions to return, which a function under `jit` needs; None for all.

    Returns:
      Two vectors of integers, the rows and the columns.

    Raises:
        ValueError: `n` is negative; `size` is negative.

    Example:
      >>> import xnp
      >>> xnp.mask_indices(2, xnp.triu)
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    sizes = shape_of((n, n), "mask_indices")
    rows, columns = nonzero(mask_func(array(np.ones(sizes, np.int32)), k), size=size)
    return rows, columns


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """Return the position in each dimension of flat positions into a shape.

    Args:
      indices: integers; negative ones count from the end, those out of bounds are moved inside.
      shape: an int or a sequence of ints, a vector of them too, which
        may be traced.

    Returns:
      A tuple of arrays of the dtype of `indices`, one for each dimension. Nothing is raised for
      positions out of bounds, as NumPy does.

    Raises:
        ValueError: a length of `shape` is negative.

    Example:
      >>> import xnp
      >>> xnp.unravel_index(xnp.array([2, 3]), (2, 3))
      (Array([0, 1], dtype=int32), Array([2, 0], dtype=int32))
    """
    rest = asarray(indices)
    require(
        dtypes.is_integer(rest.dtype), "unravel_index", "takes integers, got {}.", rest,
        error=TypeError,
    )  # fmt: skip
    sizes = _sizes_maybe_traced(shape)
    places = []
    for n in reversed(sizes):
        rest, place = divmod(rest, n)
        places.append((place, n))
    # what is left says how often the whole shape was passed: 0, or -1 for one from the end
    above, below = rest > 0, rest < -1 if dtypes.is_signed_integer(rest.dtype) else rest < 0
    return tuple([
        where(above, asarray(n - 1, rest.dtype), where(below, asarray(0, rest.dtype), place))
        for place, n in reversed(places)
    ])  # fmt: skip


def _sizes_maybe_traced(shape: Any) -> Sequence[Any]:
    """Return the sizes of a shape, an int, a sequence or a vector; any of it may be traced."""
    given = list(shape) if isinstance(shape, list | tuple) else [shape]
    if not any(isinstance(n, Array) and not isinstance(n, ConcreteArray) for n in given):
        return shape_of(shape, "unravel_index")
    if isinstance(shape, Array) and shape.ndim == 1:
        given = list(shape)
    for n in given:
        aval = array_of(n, "unravel_index").aval
        require(
            not aval.shape and dtypes.is_integer(aval.dtype), "unravel_index",
            "the shape must be integers.", got=aval,
            expected="an int, a sequence of ints, or a vector of them", error=TypeError,
        )  # fmt: skip
    return given


def ravel_multi_index(
    multi_index: Arrays,
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike = None,
) -> Array:
    """Return flat positions into a shape from positions in each dimension.

    Args:
      multi_index: integers for each dimension.
      dims: the shape.
      mode: for positions out of bounds: "wrap", "clip", "ignore", which leaves them, or "raise",
        which needs concrete ones.
      order: "C" or "F", which dimension runs fastest.
      dtype: the integer dtype of the result; None for that of the positions. It must hold the last
        place.

    Returns:
      Integers in the shape that the positions have in common.

    Raises:
        TypeError: `dtype` names no dtype.
        ValueError: unknown `mode`.

    Example:
      >>> import xnp
      >>> xnp.ravel_multi_index((xnp.array([0, 1]), xnp.array([2, 0])), (2, 3))
      Array([2, 3], dtype=int32)
    """
    sizes = shape_of(dims, "ravel_multi_index")
    parts = [asarray(p) for p in multi_index]
    require(
        len(parts) == len(sizes), "ravel_multi_index", "{} positions for {} dimensions.",
        len(parts), len(sizes),
    )  # fmt: skip
    require(
        mode in ("raise", "wrap", "clip", "ignore"), "ravel_multi_index",
        "mode must be 'raise', 'wrap', 'clip' or 'ignore', got {!r}.", mode,
    )  # fmt: skip
    pairs = [(_inside(p, n, mode), n) for p, n in zip(parts, sizes, strict=True)]
    wanted = promotion.result_type(*parts, 0) if dtype is None else dtypes.as_dtype(dtype)
    require(
        dtypes.is_integer(wanted) and math.prod(sizes) - 1 <= dtypes.iinfo(wanted).max,
        "ravel_multi_index", "{} does not hold the positions of {}.", wanted.name, sizes,
        hint="name an integer dtype that does, dtype='int32'",
    )  # fmt: skip
    total = array(0, wanted)
    for p, n in pairs if order == "C" else pairs[::-1]:
        total = total * n + p.astype(wanted)
    return total


def _inside(positions: Any, size: int, mode: str) -> Any:
    """Return positions within a dimension, as a mode of `ravel_multi_index` brings them there."""
    if mode == "raise":
        if not isinstance(positions, ConcreteArray):
            raise ConcretizationTypeError(
                positions, "ravel_multi_index", "The error occurred because ravel_multi_index was "
                "jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' instead."
            )  # fmt: skip
        host = np.asarray(positions)
        require(
            not host.size or (host.min() >= 0 and host.max() < size), "ravel_multi_index",
            "a position is out of bounds: invalid entry in coordinates array.",
        )  # fmt: skip
    if mode in ("raise", "ignore"):
        return positions
    return positions % size if mode == "wrap" else positions.clip(0, size - 1)


class _Joiner:
    """The class of `r_` and `c_`: slices and arrays in brackets are joined.

    A string in front gives up to three numbers, as in NumPy: the axis to join along, the least
    number of dimensions, and where the dimensions of smaller arrays go; or "r" or "c", which make
    of a vector a matrix of one row or one column.
    """

    def __init__(self, name: str, axis: int, rank: int, one: int) -> None:
        self.name, self.axis, self.rank, self.one = name, axis, rank, one

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, rank, one = self.axis, self.rank, self.one
        directive = parts.pop(0) if parts and isinstance(parts[0], str) else ""
        if directive and directive not in ("r", "c"):
            axis, rank, one = self._numbers(directive)
        if any(isinstance(p, str) for p in parts):
            raise ValueError(message(self.name, "a string must come first.", got=brief(key)))
        joined = concatenate([self._part(p, rank, one) for p in parts], axis)
        if directive in ("r", "c") and joined.ndim == 1:
            joined = reshape(joined, (1, joined.size) if directive == "r" else (joined.size, 1))
        return joined

    def _numbers(self, directive: str) -> tuple[int, int, int]:
        words = directive.split(",")
        try:
            numbers = [int(n) for n in words[:3]]
        except ValueError as error:
            raise ValueError(message(
                self.name, f"could not understand directive {directive!r}.",
                expected="'r', 'c', or up to three integers: 'axis,ndim,place'",
            )) from error  # fmt: skip
        axis, rank, one = (*numbers, *(self.axis, self.rank, self.one)[len(numbers) :])
        return axis, rank, one

    def _part(self, part: Any, rank: int, one: int) -> Any:
        if isinstance(part, slice):
            check_slice(part, self.name)
            start = 0 if part.start is None else part.start
            if isinstance(part.step, complex):
                x = linspace(start, part.stop, int(abs(part.step)))
            else:
                x = arange(start, part.stop, part.step)
        else:
            x = asarray(part)
        if not x.ndim:
            x = reshape(x, (1,))
        if x.ndim >= rank:
            return x
        missing = rank - x.ndim
        before = min(one if one >= 0 else one + missing + 1, missing)
        return reshape(x, (*(1,) * before, *x.shape, *(1,) * (missing - before)))

    def __repr__(self) -> str:
        return f"xnp.{self.name}"


r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)


boundaries(globals())
