"""Matrices in the last two dimensions: checks, batch rules, formulas; small ones by arithmetic."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

import numpy as np

from xnp.primitives import table
from xnp.primitives.precision import Precision
from xnp.primitives.table import bind, broadcast_to, fill, iota, item, mul, select, stack_first
from xprim import (
    Primitive,
    ShapedArray,
    dtypes,
    not_mapped,
    scalar_array,
    trace_to_closed,
)
from xprim.contracts import BatchAxis, Builder, is_in_loop, outline
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


def check_matrix(
    name: str, aval: ShapedArray, *, square: bool = False, narrow: Container[Any] = ()
) -> tuple[Any, int, int]:
    """Return (batch shape, rows, columns) of a matrix, or raise.

    Raises:
      TypeError: the dtype is not float32, float64, complex64 or complex128, nor one of `narrow`.
      ValueError: there are fewer than two dimensions, or the matrix is not square.
    """
    require(
        aval.dtype in LETTER or aval.dtype in narrow, name, "does not accept dtype {}.",
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
        front = sides.aval.ndim - (2 if is_left else 3)
        # what is sharded stays first of the dimensions that become one
        at = front if sides.aval.type_sharding is None else front + 1
        moved = axis.move(sides, dim, at)
        shape = moved.aval.shape
        count = shape[front] * shape[front + 1]
        joined = table.reshape(moved, (*shape[:front], count, *shape[front + 2 :]))
        (out,) = primitive().bind(*matrices, joined, **params)
        return (table.reshape(out, shape),), (at,)

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


def compare_positions(shape: tuple[int, ...], name: str, k: int = 0) -> Any:
    """Return where `row + k` compares so with `column`, for matrices of a shape."""
    rows, columns = iota(shape, len(shape) - 2), iota(shape, len(shape) - 1)
    if k:
        rows = bind("add", rows, scalar_array(k, dtypes.int32))
    return bind(name, rows, columns)


def tril(x: Any, k: int = 0) -> Any:
    """Return the lower triangle up to diagonal k, zeros above."""
    shape = x.aval.shape
    return select(compare_positions(shape, "ge", k), x, fill(shape, 0, x.aval.dtype))


def triu(x: Any, k: int = 0) -> Any:
    """Return the upper triangle from diagonal k on, zeros below."""
    shape = x.aval.shape
    return select(compare_positions(shape, "le", k), x, fill(shape, 0, x.aval.dtype))


def eye(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return identity matrices (of any shape of matrices)."""
    return table.convert(compare_positions(shape, "eq"), dtype)


def lower_half(x: Any) -> Any:
    """Return the lower triangle with the diagonal halved.

    For any x, `h + adjoint(h)` of the result h is the Hermitian matrix with that lower triangle.
    """
    shape, dtype = x.aval.shape, x.aval.dtype
    below = table.convert(compare_positions(shape, "gt"), dtype)
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
    return broadcast_to(v, shape, (*range(n - 1), n))


def as_columns(v: Any, count: int) -> Any:
    """Repeat vectors as all columns of matrices of `count` columns: at (i, j) stands v[i]."""
    n = v.aval.ndim
    return broadcast_to(v, (*v.aval.shape, count), tuple(range(n)))


def real(x: Any) -> Any:
    """Return the real part."""
    return bind("real", x) if dtypes.is_complex(x.aval.dtype) else x


# ----------------------------------------------------------------------------------- small matrices
# Factorisations of small matrices as plain arithmetic, for compiled CPU programs.
#
# A call of LAPACK costs as much as the elimination of a matrix of a few rows, once for each matrix
# of a batch, and a loop with a call in its body cannot be one kernel of XLA's. The formulas here
# are written out for each column, on arrays whose batch is innermost, (rows, columns, *batch), so
# that a step is one vector operation over all matrices. Rows are exchanged as LAPACK does: pivots
# agree.
#
# Each step is a function that XLA does not inline. What it inlines it fuses with each use, and the
# rows of a matrix have several uses in each step: the work would grow as a power of the columns.

MOST_ROWS = 4
"""Beyond, the kernels of the steps take much longer to compile than the calls that they replace."""

_LEAST_BATCH = 128
"""The number of matrices from which formulas run in a fraction of the time, whatever they are."""

Values = tuple[list[str], Sequence[ShapedArray]]
"""Names in the text of a program, and the abstract values of these."""


def formula_rule(
    write: Callable[..., Values], otherwise: Callable[..., Any], *, rows_alone: int = 0
) -> Callable[..., Any]:
    """Return the `stablehlo` rule that has the formula of small real matrices on the CPU.

    Args:
      write: from the builder, the operands as `Values` and the params to the results.
      otherwise: the rule for other matrices and platforms.
      rows_alone: a matrix of at most so many rows has the formula outside of loops and large
        batches, too. It runs no faster there, so this is for what compiles in less time than calls.
    """

    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
        if not _has_formula(b, avals_in[0], rows_alone) or avals_out[0].size == 0:
            return otherwise(b, operands, avals_in, avals_out, **params)
        return write(b, (list(operands), avals_in), **params)[0]

    return rule


def _has_formula(b: Builder, aval: ShapedArray, rows_alone: int) -> bool:
    *batch, rows, columns = aval.shape
    if b.platform != "cpu" or not dtypes.is_floating(aval.dtype):
        return False
    if not all(type(n) is int and 0 < n <= MOST_ROWS for n in (rows, columns)):
        return False
    if max(rows, columns) <= rows_alone or is_in_loop(b):
        return True
    return any(type(n) is not int for n in batch) or math.prod(batch) >= _LEAST_BATCH


def _step(b: Builder, step: Callable[..., Sequence[Any]], operands: Values, *key: Any) -> Values:
    """Write a function of Arrays and of `key` as one that is not inlined."""
    names, avals = operands
    closed = _trace_step(step, key, tuple(avals))
    name = f"small_{step.__name__.strip('_')}"
    results = outline(b, lambda inner, xs: inner.inline(closed, xs), names, avals,
                      closed.out_avals, (name, *key), name)  # fmt: skip
    return results, closed.out_avals


@functools.lru_cache(maxsize=256)
def _trace_step(
    step: Callable[..., Any], key: tuple[Any, ...], avals: tuple[ShapedArray, ...]
) -> Any:
    """Return the program of a step, which all small systems of these shapes share."""
    return trace_to_closed(partial(step, *key), avals)


# ------------------------------------------------------------------------------- batch innermost


def _batch_last(x: Any) -> Any:
    """Return matrices (*batch, rows, columns) as (rows, columns, *batch)."""
    return table.permute(x, (x.aval.ndim - 2, x.aval.ndim - 1, *range(x.aval.ndim - 2)))


def _batch_first(x: Any, dims: int) -> Any:
    """Return arrays of so many dimensions, which are the first ones, with their batch first."""
    return table.permute(x, (*range(dims, x.aval.ndim), *range(dims)))


def _along(entry: Any, like: Any) -> Any:
    """Repeat (*dims) over the first dimension of an array (n, *dims)."""
    return broadcast_to(entry, like.aval.shape, range(1, like.aval.ndim))


def _over_columns(x: Any, like: Any) -> Any:
    """Repeat (rows, *batch) over the columns of an array (rows, columns, *batch)."""
    return broadcast_to(x, like.aval.shape, (0, *range(2, like.aval.ndim)))


def _outer(column: Any, row: Any, like: Any) -> Any:
    """Return the products of (rows, *batch) and (columns, *batch)."""
    return mul(_over_columns(column, like), _along(row, like))


def _with_column(x: Any, j: int, column: Any, later: Any) -> Any:
    """Return x with another column j, and the columns after it of another array."""
    place = iota(x.aval.shape, 1)
    at = fill(place.aval.shape, j, dtypes.int32)
    found = select(bind("gt", place, at), later, x)
    return select(bind("eq", place, at), _over_columns(column, x), found)


def _equals(x: Any, number: int) -> Any:
    return bind("eq", x, fill(x.aval.shape, number, x.aval.dtype))


# ---------------------------------------------------------------------------------- elimination


def _eliminate(b: Builder, x: Values, rows: int, columns: int) -> tuple[Values, Values]:
    """Write L and U in one array, from (rows, columns and more, *batch), and the pivots."""
    names, avals = [], []
    for j in range(min(rows - 1, columns)):
        (name, pivot), (aval, pivot_aval) = _step(b, _clear_column, x, j)
        x = [name], [aval]
        names.append(pivot)
        avals.append(pivot_aval)
    return x, (names, avals)


def _clear_column(j: int, x: Any) -> list[Any]:
    """Exchange row j with that of the greatest entry, and clear the column below it.

    The factors take the place of what they clear. Where all entries are zero the column stays.
    """
    n = x.aval.shape[0]
    first = item(x, j)
    best = bind("abs", item(first, j))
    pivot = fill(best.aval.shape, j, dtypes.int32)
    for i in range(j + 1, n):
        size = bind("abs", item(item(x, i), j))
        is_greater = bind("gt", size, best)
        best = select(is_greater, size, best)
        pivot = select(is_greater, fill(pivot.aval.shape, i, dtypes.int32), pivot)
    top = first
    for i in range(j + 1, n):
        top = select(_along(_equals(pivot, i), first), item(x, i), top)

    below = table.slice_dim(x, 0, j + 1, n)
    column = item(below, j, 1)
    number = iota(column.aval.shape, 0)
    offset = fill(column.aval.shape, j + 1, dtypes.int32)
    is_pivot = bind("eq", bind("add", number, offset), _along(pivot, column))
    below = select(_over_columns(is_pivot, below), _along(first, below), below)
    column, divisor = item(below, j, 1), _along(item(top, j), column)
    factor = select(_equals(divisor, 0), column, table.div(column, divisor))
    changed = _with_column(below, j, factor, table.sub(below, _outer(factor, top, below)))
    parts = [
        *([table.slice_dim(x, 0, 0, j)] if j else []),
        table.reshape(top, (1, *top.aval.shape)),
        changed,
    ]
    return [table.join(parts, 0), pivot]


def lu(b: Builder, operands: Values) -> Values:
    """Write L and U in one matrix, the pivots, and the permutation."""
    rows, columns = operands[1][0].shape[-2:]
    x, pivots = _eliminate(b, _step(b, _pack, operands), rows, columns)
    return _step(b, _lu_results, (x[0] + pivots[0], [*x[1], *pivots[1]]), min(rows, columns))


def _pack(*matrices: Any) -> list[Any]:
    """Return matrices side by side, their batch innermost."""
    return [_batch_last(table.join(matrices, matrices[0].aval.ndim - 1))]


def _lu_results(count: int, x: Any, *pivots: Any) -> list[Any]:
    rows, *_ = x.aval.shape
    batch = x.aval.shape[2:]
    # the last row of a square matrix has none to be exchanged with
    found = [*pivots, *[fill(batch, j, dtypes.int32) for j in range(len(pivots), count)]]
    order = [fill(batch, i, dtypes.int32) for i in range(rows)]
    for j, pivot in enumerate(pivots):
        top = order[j]
        for i in range(j + 1, rows):
            is_pivot = _equals(pivot, i)
            top = select(is_pivot, order[i], top)
            order[i] = select(is_pivot, order[j], order[i])
        order[j] = top
    return [_batch_first(x, 2), *[_batch_first(stack_first(each), 1) for each in (found, order)]]


def solve(b: Builder, operands: Values) -> Values:
    """Write A^-1 B by elimination with exchanges of rows."""
    n = operands[1][0].shape[-1]
    x, _ = _eliminate(b, _step(b, _pack, operands), n, n)
    return _step(b, _solution, x, n)


def _solution(n: int, x: Any) -> list[Any]:
    """Return the solution for what elimination has left: triangular factors and right sides."""
    rows = [item(x, i) for i in range(n)]
    entries = [[item(row, j) for j in range(n)] for row in rows]
    right = [table.slice_dim(row, 0, n, row.aval.shape[0]) for row in rows]
    return [_batch_first(stack_first(_substitute(entries, right, lower=False, unit=False)), 2)]


# ------------------------------------------------------------------------------------ triangles


def _substitute(entries: Any, right: list[Any], *, lower: bool, unit: bool) -> list[Any]:
    """Return the rows of the solution of a triangular system, given its entries (row, column)."""
    n = len(right)
    found: dict[int, Any] = {}
    for i in range(n) if lower else range(n - 1, -1, -1):
        row = right[i]
        for j, x in found.items():
            row = table.sub(row, mul(_along(entries[i][j], row), x))
        found[i] = row if unit else table.div(row, _along(entries[i][i], row))
    return [found[i] for i in range(n)]


def triangular_solve(b: Builder, operands: Values, **params: Any) -> Values:
    """Write the solution of op(A) X = B or X op(A) = B."""
    flags = ("left_side", "lower", "transpose_a", "unit_diagonal")
    return _step(b, _triangular_solution, operands, *[params[flag] for flag in flags])


def _triangular_solution(
    left_side: bool, lower: bool, transpose_a: bool, unit: bool, a: Any, b: Any
) -> list[Any]:
    a, right = _batch_last(a), _batch_last(b)
    by = 0 if left_side else 1  # X op(A) = B is op(A)^T X^T = B^T
    right = [item(right, i, by) for i in range(right.aval.shape[by])]
    n = len(right)
    entries = [[item(item(a, i), j) for j in range(n)] for i in range(n)]
    if transpose_a == left_side:
        entries, lower = [list(column) for column in zip(*entries, strict=True)], not lower
    x = stack_first(_substitute(entries, right, lower=lower, unit=unit))
    if not left_side:
        x = table.permute(x, (1, 0, *range(2, x.aval.ndim)))
    return [_batch_first(x, 2)]


def cholesky(b: Builder, operands: Values) -> Values:
    """Write the lower triangular factor, NaN in its triangle where A is not positive definite."""
    x = _step(b, _pack, operands)
    n = operands[1][0].shape[-1]
    for j in range(n):
        x = _step(b, _factor_column, x, j)
    return _step(b, _lower_factor, x)


def _factor_column(j: int, x: Any) -> list[Any]:
    """Return x with column j of the factor, and the columns after it without their share of it."""
    column = item(x, j, 1)
    column = table.div(column, _along(bind("sqrt", item(column, j), accuracy=None), column))
    return [_with_column(x, j, column, table.sub(x, _outer(column, column, x)))]


def _lower_factor(x: Any) -> list[Any]:
    shape, dtype = x.aval.shape, x.aval.dtype
    is_definite: Any = None
    for j in range(shape[0]):
        pivot = item(item(x, j), j)  # the root of a number below zero is NaN
        is_positive = bind("gt", pivot, fill(pivot.aval.shape, 0, dtype))
        is_definite = is_positive if j == 0 else bind("and", is_definite, is_positive)
    mask = broadcast_to(is_definite, shape, range(2, len(shape)))
    shown = select(mask, x, fill(shape, float("nan"), dtype))
    is_lower = bind("ge", iota(shape, 0), iota(shape, 1))
    return [_batch_first(select(is_lower, shown, fill(shape, 0, dtype)), 2)]
