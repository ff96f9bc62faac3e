"""Matrices in the last two dimensions of arrays: checks, batch rules, and formulas of rules."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from xnp.primitives.precision import Precision
from xnp.primitives.table import (
    bind,
    broadcasted,
    converted,
    filled,
    iota,
    mul,
    reshaped,
    selected,
)
from xprim import (
    Primitive,
    ShapedArray,
    dtypes,
    not_mapped,
    scalar_array,
)
from xprim.contracts import BatchAxis
from xprim.errors import ShapeError
from xprim.requirements import require

__all__ = ()

LETTER = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}
_FULL = (Precision.HIGHEST, Precision.HIGHEST)
_REAL: dict[Any, Any] = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part."""
    found: np.dtype[Any] = _REAL.get(dtype, dtype)
    return found


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the complex dtype of the same precision."""
    return dtypes.to_complex_dtype(dtype)


def checked(
    name: str, aval: ShapedArray, *, square: bool = False, narrow: Container[Any] = ()
) -> tuple[Any, int, int]:
    """Return (batch shape, rows, columns) of a matrix, or raise.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, nor one of `narrow`.
      ValueError: there are fewer than two dimensions, or the matrix is not square.
    """
    require(
        aval.dtype in LETTER or aval.dtype in narrow, name, "does not take operands of dtype {}.",
        aval.dtype, expected="float32, float64, complex64 or complex128", error=TypeError,
    )  # fmt: skip
    require(
        aval.ndim >= 2, name,
        "the operand must be a matrix, or a batch of matrices in its last two dimensions.",
        got=aval,
    )  # fmt: skip
    *batch, m, n = aval.shape
    require(not square or m == n, name, "the matrix must be square.", got=aval, error=ShapeError)
    return tuple(batch), m, n


def matrix_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a primitive that keeps leading dimensions."""

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        fronts = [axis.to_front(x, d) for x, d in zip(operands, dims, strict=True)]
        outs = primitive().bind(*fronts, **params)
        return outs, (0,) * len(outs)

    return batch_rule


def matrix_batch_of_sides(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a primitive that applies matrices to its last operand.

    Matrices that all members share are applied, and factorised, once: the members' right-hand sides
    are further columns of one, or rows where they are multiplied from the right.
    """
    one_each = matrix_batch(primitive)

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        (*matrices, sides), (*shared, dim) = operands, dims
        if axis.mesh_axes or axis.sharding or any(d is not not_mapped for d in shared):
            return one_each(axis, operands, dims, **params)
        is_left = params.get("left", params.get("left_side", True))
        at = sides.aval.ndim - (2 if is_left else 3)
        moved = axis.move(sides, dim, at)
        shape = moved.aval.shape
        joined = reshaped(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
        (out,) = primitive().bind(*matrices, joined, **params)
        return (reshaped(out, shape),), (at,)

    return batch_rule


# -------------------------------------------------------------------------------------- formulas


def mt(x: Any) -> Any:
    """Return the transpose of matrices."""
    n = x.aval.ndim
    return bind("transpose", x, permutation=(*range(n - 2), n - 1, n - 2))


def conj(x: Any) -> Any:
    """Return the complex conjugate; real arrays are their own."""
    return bind("conj", x, input_dtype=x.aval.dtype) if dtypes.is_complex(x.aval.dtype) else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose."""
    return conj(mt(x))


def matmul(x: Any, y: Any) -> Any:
    """Return the product of matrices with equal batch dimensions, in full precision."""
    n = x.aval.ndim
    batch = tuple(range(n - 2))
    return bind("dot_general", x, y, dimension_numbers=(((n - 1,), (n - 2,)), (batch, batch)),
                precision=_FULL, preferred_element_type=None)  # fmt: skip


def compared(shape: tuple[int, ...], name: str, k: int = 0) -> Any:
    """Return where `row + k` compares so with `column`, for matrices of a shape."""
    rows, columns = iota(shape, len(shape) - 2), iota(shape, len(shape) - 1)
    if k:
        rows = bind("add", rows, scalar_array(k, dtypes.int32))
    return bind(name, rows, columns)


def tril(x: Any, k: int = 0) -> Any:
    """Return the lower triangle up to diagonal k, zeros above."""
    shape = x.aval.shape
    return selected(compared(shape, "ge", k), x, filled(shape, 0, x.aval.dtype))


def triu(x: Any, k: int = 0) -> Any:
    """Return the upper triangle from diagonal k on, zeros below."""
    shape = x.aval.shape
    return selected(compared(shape, "le", k), x, filled(shape, 0, x.aval.dtype))


def eye(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return identity matrices (of any shape of matrices)."""
    return converted(compared(shape, "eq"), dtype)


def lower_half(x: Any) -> Any:
    """Return the lower triangle with the diagonal halved.

    For any x, `h + adjoint(h)` of the result h is the Hermitian matrix with that lower triangle.
    """
    shape, dtype = x.aval.shape, x.aval.dtype
    below = converted(compared(shape, "gt"), dtype)
    half = mul(eye(shape, dtype), scalar_array(0.5, dtype))
    return mul(x, bind("add", below, half))


def diagonal(x: Any) -> Any:
    """Return the main diagonal of square matrices as vectors."""
    n = x.aval.ndim
    masked = mul(x, eye(x.aval.shape, x.aval.dtype))
    return bind("reduce_sum", masked, axes=(n - 2,))


def as_rows(v: Any, count: int) -> Any:
    """Repeat vectors as all rows of matrices of `count` rows: the result at (i, j) is v[j]."""
    n = v.aval.ndim
    shape = (*v.aval.shape[:-1], count, v.aval.shape[-1])
    return broadcasted(v, shape, (*range(n - 1), n))


def as_columns(v: Any, count: int) -> Any:
    """Repeat vectors as all columns of matrices of `count` columns: at (i, j) stands v[i]."""
    n = v.aval.ndim
    return broadcasted(v, (*v.aval.shape, count), tuple(range(n)))


def real(x: Any) -> Any:
    """Return the real part."""
    return bind("real", x) if dtypes.is_complex(x.aval.dtype) else x
