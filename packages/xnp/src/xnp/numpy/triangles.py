"""Matrices of ones by the diagonal: eye, identity, tri; and the triangles of a matrix.

A mask of a small matrix whose diagonal is known is a constant, any other is made by comparing row
and column numbers. Neighbours: `ranges` counts, `rearranging` reads and writes diagonals.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.array_making import TRIANGLES
from xnp.numpy.creation import counting
from xnp.numpy.dispatch import dispatched
from xnp.numpy.promoting import array_of, bind, broadcasted, cast, converted, scalar_like, selected
from xnp.placing import on_device
from xprim import Array, Tracer, as_array, dtypes, from_numpy
from xprim.errors import ShapeError
from xprim.static_sizes import static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DeviceLike, DimSize, DTypeLike

__all__ = ["eye", "identity", "tri", "tril", "triu"]

__dir__ = __all__.copy

_SMALL = 4096  # elements that may be a constant of a staged program


def eye(
    N: int,
    M: int | None = None,
    k: DimSize = 0,
    dtype: DTypeLike = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Return a matrix of ones on diagonal `k` and zeros elsewhere.

    Args:
      N: the number of rows.
      M: the number of columns; None for as many.
      k: 0 for the main diagonal, positive for one above it; may be a traced integer.
      dtype: of the result; None for the default floating dtype.
      device: where the array shall be; None for the default.

    Returns:
      A matrix; the default dtype is float32, where NumPy has float64.

    Example:
      >>> import xnp
      >>> xnp.eye(2, 3, k=1)
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    rows = static_int(N, "eye", "the number of rows")
    columns = rows if M is None else static_int(M, "eye", "the number of columns")
    k = _offset(k, "eye")
    wanted = dtypes.python_scalar_dtype(float) if dtype is None else (
        dtypes.requested_dtype(dtype, "eye"))  # fmt: skip
    if rows < 0 or columns < 0:
        raise ShapeError(f"eye: dimensions must not be negative, got {rows} and {columns}.")
    if type(rows * columns) is int and rows * columns <= _SMALL and isinstance(k, int):
        result = cast(from_numpy(np.eye(rows, columns, k, dtype=bool), copy=False), wanted)
    else:
        shape = (rows, columns)
        i = bind("add", counting(shape, 0, dtypes.int32), converted(as_array(k), dtypes.int32))
        result = cast(bind("eq", i, counting(shape, 1, dtypes.int32)), wanted)
    return on_device(result, device, "eye")


def _offset(k: Any, operation: str) -> int | Array:
    """Return the number of a diagonal: an int, or an integer scalar that is traced."""
    if not isinstance(k, Tracer) or k.concrete() is not None:
        return static_int(k, operation, "k")
    if k.aval.shape or not dtypes.is_integer(k.aval.dtype):
        raise TypeError(f"{operation}: k must be an integer, got {k.aval.strong().str_long()}.")
    return k


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """Return the identity matrix of `n` rows.

    Args:
      n: the number of rows and of columns.
      dtype: of the result; None for the default floating dtype.

    Returns:
      A matrix.

    Example:
      >>> import xnp
      >>> xnp.identity(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: DimSize = 0, dtype: DTypeLike = None) -> Array:
    """Return a matrix of ones on and below diagonal `k`, zeros above.

    Args:
      N: the number of rows.
      M: the number of columns; None for as many.
      k: 0 for the main diagonal, positive for one above it.
      dtype: of the result; None for the default floating dtype.

    Returns:
      A matrix.

    Example:
      >>> import xnp
      >>> xnp.tri(2, 3)
      Array([[1., 0., 0.],
             [1., 1., 0.]], dtype=float32)
    """
    rows = static_int(N, "tri", "the number of rows")
    columns = rows if M is None else static_int(M, "tri", "the number of columns")
    wanted = dtypes.python_scalar_dtype(float) if dtype is None else (
        dtypes.requested_dtype(dtype, "tri"))  # fmt: skip
    return cast(_below(rows, columns, k), wanted)


def _below(rows: int, columns: int, k: Any) -> Array:
    """Return the mask of the elements on and below a diagonal, which may be a traced number."""
    offset = _offset(k, "tri")
    if type(rows * columns) is int and rows * columns <= _SMALL and isinstance(offset, int):
        return from_numpy(np.tri(rows, columns, offset, bool), copy=False)
    i = counting((rows, columns), 0, dtypes.int32)
    return bind("ge", bind("add", i, converted(as_array(offset), dtypes.int32)),
                counting((rows, columns), 1, dtypes.int32))  # fmt: skip


def _triangle(operation: str, keeps_below: bool) -> Any:
    @dispatched(1)
    def written(m: Any, k: int) -> Array:
        m = array_of(m, operation)
        if m.aval.ndim < 2:
            raise ValueError(f"{operation}: takes matrices, got {m.aval.str_long()}.")
        rows, columns = m.aval.shape[-2:]
        mask = broadcasted(_below(rows, columns, k if keeps_below else k - 1), m.aval.shape)
        zero = scalar_like(m, 0)
        return selected(mask, m, zero) if keeps_below else selected(mask, zero, m)

    return written


_tril, _triu = _triangle("tril", True), _triangle("triu", False)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices (last two dimensions) with zeros above diagonal `k`."""
    return _tril(m, operator.index(k))  # type: ignore[no-any-return]


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices (last two dimensions) with zeros below diagonal `k`."""
    return _triu(m, operator.index(k))  # type: ignore[no-any-return]


complete(globals(), TRIANGLES)


boundaries(globals())
