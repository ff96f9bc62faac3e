"""Products of vectors, matrices and tensors; operands of `xnp.linalg`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp import lax
from xnp.numpy.dispatch import axis_of, check_ranks
from xnp.numpy.rearranging import trace as array_trace
from xnp.placing import compute_as
from xnp.primitives import table
from xnp.primitives.linear_systems import solve_p
from xnp.primitives.matrices import eye, mt
from xnp.primitives.table import broadcast_to, convert, fill, move_dim, mul, reshape, slice_dim, sub
from xprim import Array, as_array, dtypes, promotion
from xprim.errors import ShapeError, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "matmul", "vecdot", "outer", "tensordot", "multi_dot", "matrix_power", "cross",
    "matrix_transpose", "diagonal", "trace",
]  # fmt: skip

__dir__ = __all__.copy


# -------------------------------------------------------------------------------------- operands
# Operands of the functions of this package: promotion and broadcasting.


def promote(name: str, *values: Any, inexact: bool = False) -> list[Any]:
    """Return operands as arrays of one dtype, by the rules of promotion.

    Args:
      name: what errors call the function.
      values: arrays, NumPy arrays, Python scalars.
      inexact: whether integers and booleans become the default float dtype.
    """
    arrays = [as_array(v, what=f"{name}: operand {i}") for i, v in enumerate(values)]
    dtype = promotion.result_type(*arrays)
    if inexact:
        dtype = dtypes.to_inexact_dtype(dtype)
    return [convert(x, dtype) for x in arrays]


def matrix(name: str, value: Any, *, square: bool = False) -> Any:
    """Return one operand as floating matrices, or raise a ValueError."""
    (x,) = promote(name, value, inexact=True)
    require(
        x.ndim >= 2, name, "the operand must have at least two dimensions.", got=x,
        error=ShapeError,
    )  # fmt: skip
    require(
        not square or x.shape[-1] == x.shape[-2], name, "the matrix must be square.", got=x,
        error=ShapeError,
    )  # fmt: skip
    return x


def broadcast_batches(name: str, *arrays: Any, core: Sequence[int]) -> list[Any]:
    """Broadcast the leading dimensions of arrays, whose last `core[i]` ones are their own."""
    batches = [x.shape[: x.ndim - k] for x, k in zip(arrays, core, strict=True)]
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        raise ValueError(message(
            name, "the batch dimensions cannot be broadcast.",
            got=f"{' and '.join(x.aval.str_long() for x in arrays)}",
        )) from None  # fmt: skip
    return [_broadcast(x, (*batch, *x.shape[x.ndim - k :]))
            for x, k in zip(arrays, core, strict=True)]  # fmt: skip


def _broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    return broadcast_to(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


# -------------------------------------------------------------------------------------- products
# Products of vectors, matrices and tensors, and what is read off a matrix.


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Multiply matrices; vectors are rows on the left and columns on the right.

    NumPy's takes `out` and `where` as well.

    Args:
      x1: of shape (..., m, k) or (k,).
      x2: of shape (..., k, n) or (k,); leading dimensions are broadcast.
      precision: see `lax.dot_general`.
      preferred_element_type: see `lax.dot_general`.

    Returns:
      An array (..., m, n), without m or n where that operand is a vector.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: the shapes of the operands do not fit together; unknown `precision`.

    Example:
      >>> import numpy as np
      >>> np.asarray(matmul(np.float32([[1, 2]]), np.float32([3, 4])))
      array([11.], dtype=float32)
    """
    x, y = promote("matmul", x1, x2)
    if not x.ndim or not y.ndim:
        raise ValueError(message(
            "matmul", "the operands must have at least one dimension.",
            got=f"{x.aval.str_long()} and {y.aval.str_long()}", hint="use x * y",
        ))  # fmt: skip
    k, rows = x.shape[-1], y.shape[-min(y.ndim, 2)]
    if k != rows:
        raise ShapeError(message(
            "matmul", f"the contracted dimensions differ: {k} and {rows}.",
            got=f"{x.aval.str_long()} and {y.aval.str_long()}",
        ))  # fmt: skip
    x_core, y_core = min(x.ndim, 2), min(y.ndim, 2)
    x_batch, y_batch = x.ndim - x_core, y.ndim - y_core
    if x_batch and y_batch:
        x, y = broadcast_batches("matmul", x, y, core=(x_core, y_core))
        x_batch = y_batch = x.ndim - x_core
    shared = tuple(range(x_batch)) if x_batch and y_batch else ()
    numbers = (((x.ndim - 1,), (y_batch,)), (shared, shared))
    result = lax.dot_general(x, y, numbers, precision, preferred_element_type)
    if y_batch and not shared and x_core == 2:  # (m, batch..., n)
        result = move_dim(result, 0, y_batch)
    return result


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Sum conj(x1) x2 along an axis; the other dimensions are broadcast.

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array.
        x2: another; the dimensions but the axis are broadcast.
        axis: the axis of the vectors.
        precision: how exactly products are computed; None for the default.
        preferred_element_type: the dtype in which sums are kept and returned.

    Returns:
        An array without the axis.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: the shapes of the operands do not fit together;
            `axis` is out of bounds;
            unknown `precision`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.vecdot(xnp.array([1.0, 2.0]), xnp.array([3.0, 4.0]))
        Array(11., dtype=float32)
    """
    x, y = promote("vecdot", x1, x2)
    x = move_dim(x, axis_of(axis, x.ndim, "vecdot"), x.ndim - 1)
    y = move_dim(y, axis_of(axis, y.ndim, "vecdot"), y.ndim - 1)
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"vecdot: the contracted dimensions differ: {x.shape[-1]} and {y.shape[-1]}."
        )
    check_ranks("vecdot", x, y, core=(1, 1))
    x, y = broadcast_batches("vecdot", x, y, core=(1, 1))
    x = lax.conj(x) if dtypes.is_complex(x.dtype) else x
    batch, last = tuple(range(x.ndim - 1)), (x.ndim - 1,)
    return lax.dot_general(x, y, ((last, last), (batch, batch)), precision, preferred_element_type)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return all products x1[i] x2[j] of two vectors.

    Args:
        x1: a vector of m elements.
        x2: a vector of n elements.

    Returns:
        An array (m, n).

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.outer(xnp.array([1, 2]), xnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    x, y = promote("outer", x1, x2)
    require(x.ndim == 1 and y.ndim == 1, "outer", "the operands must be vectors.", got=(x, y))
    return lax.dot_general(x, y, (((), ()), ((), ())))


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[Any] = 2,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Sum products over pairs of axes.

    Args:
      x1: an array.
      x2: an array.
      axes: a number k, for the last k axes of x1 and the first k of x2; or a pair of axes, or of
        sequences of axes.
      precision: see `lax.dot_general`.
      preferred_element_type: see `lax.dot_general`.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
        An array with the dimensions of both that are not summed over.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: the shapes of the operands do not fit together;
            `axes` are out of bounds;
            unknown `precision`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.tensordot(xnp.array([[4.0, 2.0], [2.0, 3.0]]),
        ...     xnp.array([[4.0, 2.0], [2.0, 3.0]]), axes=2)
        Array(33., dtype=float32)
    """
    if out_sharding is not None:
        return compute_as(out_sharding, tensordot, x1, x2, axes=axes, precision=precision,
                           preferred_element_type=preferred_element_type)  # fmt: skip
    x, y = promote("tensordot", x1, x2)
    if isinstance(axes, Sequence):
        first, second = [
            [axis_of(a, z.ndim, "tensordot")
             for a in (given if isinstance(given, Sequence) else [given])]
            for given, z in zip(axes, (x, y), strict=True)
        ]  # fmt: skip
    else:
        count = operator.index(axes)
        first, second = list(range(x.ndim - count, x.ndim)), list(range(count))
    numbers = ((tuple(first), tuple(second)), ((), ()))
    return lax.dot_general(x, y, numbers, precision, preferred_element_type)


def multi_dot(arrays: Sequence[Any], *, precision: lax.PrecisionLike = None) -> Array:
    """Multiply several matrices in the order that needs the fewest operations.

    NumPy's takes `out` as well.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: see `lax.dot_general`.

    Returns:
        The product, as `matmul` of all of them gives it.

    Raises:
        ValueError: unknown `precision`.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.multi_dot([xnp.array([[4.0, 2.0], [2.0, 3.0]]), xnp.array([[4.0, 2.0], [2.0,
        ...     3.0]]), xnp.ones(2)])
        Array([34., 27.], dtype=float32)
    """
    xs = promote("multi_dot", *arrays)
    require(len(xs) >= 2, "multi_dot", "there must be at least two arrays, got {}.", len(xs))
    ends = (0, len(xs) - 1)
    require(
        not any(x.ndim != 2 and not (x.ndim == 1 and i in ends) for i, x in enumerate(xs)),
        "multi_dot", "the arrays must be matrices; the first and last, or vectors.",
    )  # fmt: skip
    sizes = [1 if xs[0].ndim == 1 else xs[0].shape[0], *[x.shape[0] for x in xs[1:]],
             1 if xs[-1].ndim == 1 else xs[-1].shape[1]]  # fmt: skip
    sizes[1] = xs[0].shape[-1]
    split = _best_order(sizes)

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = split[i, j]
        return matmul(product(i, k), product(k + 1, j), precision=precision)

    result: Array = product(*ends)
    return result


def _best_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each chain (dynamic programming over its length)."""
    count = len(sizes) - 1
    cost, split = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                       for k in range(i, j)]  # fmt: skip
            cost[i, j], split[i, j] = min(options)
    return split


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Multiply square matrices n times by themselves; negative powers are those of the inverse.

    A singular matrix gives infinities or NaN, where NumPy raises an error.

    Args:
        a: a matrix, or several: all dimensions but the last two are batches.
        n: a Python integer; negative powers are those of the inverse.

    Returns:
        An array of the shape of a.

    Raises:
        TypeError: `a` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.matrix_power(xnp.array([[4.0, 2.0], [2.0, 3.0]]), 2)
        Array([[20., 14.],
               [14., 13.]], dtype=float32)
    """
    (x,) = promote("matrix_power", a, inexact=n < 0)
    require(
        x.ndim >= 2 and x.shape[-1] == x.shape[-2], "matrix_power", "the matrix must be square.",
        got=x, error=ShapeError,
    )  # fmt: skip
    power = operator.index(n)
    if power < 0:
        x, power = solve_p.bind(x, eye(x.shape, x.dtype))[0], -power
    result = None
    while power:
        if power & 1:
            result = x if result is None else matmul(result, x)
        power >>= 1
        x = matmul(x, x) if power else x
    return eye(x.shape, x.dtype) if result is None else result  # type: ignore[no-any-return]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three elements along an axis.

    Args:
        x1: an array with three elements along the axis.
        x2: another; the other dimensions are broadcast.
        axis: the axis of the vectors.

    Returns:
        An array of the shape that the operands have in common.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together; `axis` is out of bounds.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.cross(xnp.array([1.0, 0.0, 0.0]), xnp.array([0.0, 1.0, 0.0]))
        Array([0., 0., 1.], dtype=float32)
    """
    x, y = promote("cross", x1, x2)
    places = axis_of(axis, x.ndim, "cross"), axis_of(axis, y.ndim, "cross")
    require(
        x.shape[places[0]] == 3 and y.shape[places[1]] == 3, "cross",
        "axis {} must have three elements.", axis, got=(x, y),
    )  # fmt: skip
    check_ranks("cross", x, y, core=(1, 1))
    x, y = move_dim(x, places[0], x.ndim - 1), move_dim(y, places[1], y.ndim - 1)
    x, y = broadcast_batches("cross", x, y, core=(1, 1))
    last = x.ndim - 1

    def turn(z: Any, by: int) -> Any:
        return table.join([slice_dim(z, last, by, 3), slice_dim(z, last, 0, by)], last)

    result = sub(mul(turn(x, 1), turn(y, 2)), mul(turn(x, 2), turn(y, 1)))
    return move_dim(result, last, axis_of(axis, x.ndim, "cross"))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two dimensions.

    Args:
        x: an array of two dimensions or more.

    Returns:
        An array with the last two exchanged.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.matrix_transpose(xnp.zeros((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = as_array(x, what="matrix_transpose: x")
    require(x.ndim >= 2, "matrix_transpose", "there must be two dimensions.", got=x)
    return mt(x)  # type: ignore[no-any-return]


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices, `offset` above the main one.

    Args:
        x: a matrix, or several: all dimensions but the last two are batches.
        offset: which diagonal; negative ones are below the main one.

    Returns:
        An array with the batch dimensions and the elements of the diagonal behind
        them. (`xnp.diagonal` takes the first two axes.)

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.diagonal(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
        Array([4., 3.], dtype=float32)
    """
    x = as_array(x, what="diagonal: x")
    require(x.ndim >= 2, "diagonal", "there must be two dimensions.", got=x)
    offset = static_int(offset, "diagonal", "the offset")
    m, n = x.shape[-2:]
    last = x.ndim - 1
    start_row, start_column = max(-offset, 0), max(offset, 0)
    count = max(min(m - start_row, n - start_column), 0)
    if not count:
        return fill((*x.shape[:-2], 0), 0, x.dtype)
    # of the square block, elements 0, k + 1, 2 (k + 1), ... in the order of memory
    block = slice_dim(x, last - 1, start_row, start_row + count)
    block = slice_dim(block, last, start_column, start_column + count)
    flat = reshape(block, (*x.shape[:-2], count * count))
    return slice_dim(flat, last - 1, 0, count * count, count + 1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """Sum the diagonals of matrices, `offset` above the main one.

    The sum of booleans and small integers is of the default integer dtype, unless `dtype` says
    otherwise.

    Args:
        x: a matrix, or several: all dimensions but the last two are batches.
        offset: which diagonal; negative ones are below the main one.
        dtype: of the sums; None for that of the elements.

    Returns:
        An array of the batch dimensions.

    Raises:
        TypeError: `x` is not an array; `dtype` names no dtype.

    Example:
        >>> import xnp
        >>> from xnp import linalg
        >>> linalg.trace(xnp.array([[4.0, 2.0], [2.0, 3.0]]))
        Array(7., dtype=float32)
    """
    (x,) = promote("trace", x)
    wanted = None if dtype is None else dtypes.requested_dtype(dtype, "trace")
    return array_trace(x, offset, -2, -1, wanted)


boundaries(globals())
