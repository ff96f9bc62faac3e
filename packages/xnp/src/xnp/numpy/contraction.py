"""Products of vectors and matrices: dot, matmul, tensordot, inner, outer, vdot, einsum, ...

All become one `dot_general`, with transposes of the result where its dimensions stand elsewhere.
Floats of 16 bits are summed in float32; `precision` and `preferred_element_type` are those of
`xnp.lax.dot_general`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from xnp.numpy import dispatch
from xnp.numpy.dispatch import array_of, cast, common_shape, dispatch_on, promote, several_axes
from xnp.numpy.rearranging import diagonal
from xnp.numpy.reductions import sum as summed
from xnp.numpy.shaping import permute
from xnp.placing import compute_as
from xnp.primitives.precision import PrecisionLike, holds_products, normal_precision
from xnp.primitives.table import bind, broadcast_to, reshape
from xprim import Array, dtypes, shaped_array
from xprim.errors import ArgumentError, ShapeError, described, message
from xprim.requirements import require, static_int
from xprim.tracebacks import boundaries, boundary, shorten
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = [
    "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot",
    "vecmat", "einsum", "einsum_path",
]  # fmt: skip

__dir__ = __all__.copy


def dot_general(
    x: Any, y: Any, contracting: Any, batch: Any = ((), ()), precision: Any = None,
    preferred: Any = None,
) -> Array:  # fmt: skip
    """Bind `dot_general` for Arrays of one dtype; a dtype that cannot hold products is cast to."""
    held = None if preferred is None or not holds_products(x.aval.dtype, preferred) else preferred
    result = bind(
        "dot_general", x, y, dimension_numbers=(contracting, batch),
        precision=normal_precision(precision), preferred_element_type=held,
    )  # fmt: skip
    return result if held is preferred else cast(result, preferred)


def _check_requested_type(preferred: Any, operation: str) -> Any:
    return None if preferred is None else dtypes.requested_dtype(preferred, operation)


def _mismatch(operation: str, x: Any, y: Any, sizes: tuple[int, int], rule: str) -> TypeError:
    hint = ""
    if x.aval.ndim == y.aval.ndim == 2 and x.aval.shape[1] == y.aval.shape[1]:
        hint = f"y.T has shape {list(y.aval.shape[::-1])}"
    return ShapeError(message(
        operation, f"the contracted dimensions differ: {sizes[0]} and {sizes[1]}.",
        got=f"x: {x.aval.str_long()}, y: {y.aval.str_long()}", expected=rule, hint=hint,
    ))  # fmt: skip


@dispatch_on(2)
def _dot(a: Any, b: Any, precision: Any, preferred: Any) -> Array:
    a, b = promote("dot", a, b)
    ranks = a.aval.ndim, b.aval.ndim
    if 0 in ranks:
        result = bind("mul", a, b)
        return result if preferred is None else bind(
            "convert_element_type", result, new_dtype=preferred, weak_type=False)  # fmt: skip
    d = 0 if ranks[1] == 1 else ranks[1] - 2
    if a.aval.shape[-1] != b.aval.shape[d]:
        rule = "x.shape[-1] == y.shape[0]" if ranks[1] <= 2 and d == 0 else (
            "x.shape[-1] == y.shape[-2]")  # fmt: skip
        raise _mismatch("dot", a, b, (a.aval.shape[-1], b.aval.shape[d]), rule)
    return dot_general(a, b, ((ranks[0] - 1,), (d,)), ((), ()), precision, preferred)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the sum of products over the last dimension of `a` and the last but one of `b`.

    NumPy's takes `out` as well.

    Args:
      a: an array; of vectors and matrices the usual products.
      b: an array; of one dimension, that one is contracted.
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the remaining dimensions of `a`, then those of `b`, of the dtype that the two
      promote to.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import xnp
      >>> xnp.dot(xnp.array([1., 2.]), xnp.array([3., 4.]))
      Array(11., dtype=float32)
    """
    try:
        preferred = preferred_element_type  # which few ask for: a call less for the others
        if out_sharding is not None:
            return compute_as(out_sharding, dot, a, b, precision=precision,
                               preferred_element_type=preferred)  # fmt: skip
        dtype = None if preferred is None else _check_requested_type(preferred, "dot")
        return _dot(a, b, precision, dtype)
    except Exception as error:
        shorten(error)
        raise


@dispatch_on(2)
def _matmul(a: Any, b: Any, precision: Any, preferred: Any) -> Array:
    a, b = promote("matmul", a, b)
    for x in (a, b):
        if not x.aval.ndim:
            raise ValueError(message(
                "matmul", "the operands must have a dimension at least.",
                got=f"x: {a.aval.str_long()}, y: {b.aval.str_long()}",
                hint="write x * y for a factor of rank 0",
            ))  # fmt: skip
    ranks = a.aval.ndim, b.aval.ndim
    d = 0 if ranks[1] == 1 else ranks[1] - 2
    if a.aval.shape[-1] != b.aval.shape[d]:
        rule = "x.shape[-1] == y.shape[0]" if ranks[1] <= 2 and d == 0 else (
            "x.shape[-1] == y.shape[-2]")  # fmt: skip
        raise _mismatch("matmul", a, b, (a.aval.shape[-1], b.aval.shape[d]), rule)
    if ranks[1] <= 2:
        return dot_general(a, b, ((ranks[0] - 1,), (d,)), ((), ()), precision, preferred)
    if ranks[0] <= 2:
        # the free dimension of `a` comes first in the product and belongs before the last
        result = dot_general(a, b, ((ranks[0] - 1,), (d,)), ((), ()), precision, preferred)
        if ranks[0] == 1:
            return result
        rest = result.aval.ndim
        return permute(result, (*range(1, rest - 1), 0, rest - 1))
    return _batch_matmul(a, b, precision, preferred)


def _batch_matmul(a: Any, b: Any, precision: Any, preferred: Any) -> Array:
    lead = [x.aval.shape[:-2] for x in (a, b)]
    try:
        batch = common_shape("matmul", [shaped_array(s, dtypes.int32) for s in lead])
    except ShapeError:
        raise ShapeError(message(
            "matmul", f"the batch dimensions do not broadcast: {lead[0]} and {lead[1]}.",
            got=f"x: {a.aval.str_long()}, y: {b.aval.str_long()}",
            expected="all dimensions but the last two equal or 1",
        )) from None  # fmt: skip
    if lead[0] != lead[1]:
        a = broadcast_to(a, (*batch, *a.aval.shape[-2:]))
        b = broadcast_to(b, (*batch, *b.aval.shape[-2:]))
    n = len(batch)
    dims = tuple(range(n))
    return dot_general(a, b, ((n + 1,), (n,)), (dims, dims), precision, preferred)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the product of matrices in the last two dimensions; the leading ones broadcast.

    NumPy's takes `out` and `where` as well.

    Args:
      a: an array of one dimension (a row) or more.
      b: an array of one dimension (a column) or more.
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the broadcast leading dimensions, and the rows of `a` and columns of `b` where
      they have any; of the dtype that the two promote to.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import xnp
      >>> xnp.matmul(xnp.array([[1, 2], [3, 4]]), xnp.array([[1, 0], [1, 1]]))
      Array([[3, 2],
             [7, 4]], dtype=int32)
    """
    try:
        if out_sharding is not None:
            return compute_as(out_sharding, matmul, a, b, precision=precision,
                               preferred_element_type=preferred_element_type)  # fmt: skip
        return _matmul(a, b, precision, _check_requested_type(preferred_element_type, "matmul"))
    except Exception as error:
        shorten(error)
        raise


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of matrices (last two dimensions) with vectors (last dimension).

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array; see above which dimensions are contracted.
        x2: an array; the other dimensions of the two broadcast.

    Returns:
        An array of the broadcast dimensions, then those of the vectors that result.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.matvec(xnp.array([[1, 2], [3, 4]]), xnp.array([1, 1]))
        Array([3, 7], dtype=int32)
    """
    x1, x2 = array_of(x1, "matvec"), array_of(x2, "matvec")
    _check_dimensions("matvec", x1, x2, (2, 1))
    columns = matmul(x1, reshape(x2, (*x2.aval.shape, 1)))
    return drop_last_dimension(columns)  # type: ignore[no-any-return]


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of conjugated vectors (last dimension) with matrices (last two).

    NumPy's takes `out` and `where` as well.

    Args:
        x1: an array; see above which dimensions are contracted.
        x2: an array; the other dimensions of the two broadcast.

    Returns:
        An array of the broadcast dimensions, then those of the vectors that result.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes of the operands do not fit together.

    Example:
        >>> import xnp
        >>> xnp.vecmat(xnp.array([1, 1]), xnp.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
    """
    x1, x2 = array_of(x1, "vecmat"), array_of(x2, "vecmat")
    _check_dimensions("vecmat", x1, x2, (1, 2))
    rows = _conjugate(x1)
    shape = rows.aval.shape
    product = matmul(reshape(rows, (*shape[:-1], 1, shape[-1])), x2)
    return reshape(product, (*product.shape[:-2], product.shape[-1]))


def _check_dimensions(operation: str, x1: Any, x2: Any, least: tuple[int, int]) -> None:
    """Raise a ShapeError unless operands have the dimensions that a product is about."""
    if x1.aval.ndim < least[0] or x2.aval.ndim < least[1]:
        raise ShapeError(message(
            operation, "an operand has too few dimensions.",
            got=f"x1: {x1.aval.str_long()}, x2: {x2.aval.str_long()}",
            expected=f"x1.ndim >= {least[0]} and x2.ndim >= {least[1]}",
        ))  # fmt: skip


def drop_last_dimension(x: Any) -> Any:
    """Drop a last dimension of size 1."""
    return reshape(x, x.aval.shape[:-1])


def _conjugate(x: Any) -> Any:
    dtype = x.aval.dtype
    return bind("conj", x, input_dtype=dtype) if dtypes.is_complex(dtype) else x


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """Return the sum of products of all elements, those of `a` conjugated.

    Args:
        a: an array.
        b: an array.
        precision: how exactly hardware with a choice computes.
        preferred_element_type: the dtype of sums and result; None for the one that
            the arrays promote to.

    Returns:
        An array of the remaining dimensions of `a`, then those of `b`; a 0-d one
        where none are left.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `precision`.

    Example:
        >>> import xnp
        >>> xnp.vdot(xnp.array([1 + 2j]), xnp.array([3j]))
        Array(6.+3.j, dtype=complex64)
    """
    a, b = promote("vdot", a, b)
    a, b = reshape(_conjugate(a), (a.aval.size,)), reshape(b, (b.aval.size,))
    return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:  # fmt: skip
    """Return sums of products along an axis, `x1` conjugated; the other dimensions broadcast.

    NumPy's takes `out` and `where` as well.

    Args:
      x1: an array of vectors, which are conjugated.
      x2: an array of vectors.
      axis: the dimension of the vectors.
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result; None for the one that the arrays promote
        to.

    Returns:
      An array of the broadcast dimensions without the axis.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: the shapes of the operands do not fit together;
            `axis` is out of bounds;
            unknown `precision`.

    Example:
      >>> import xnp
      >>> xnp.vecdot(xnp.array([[1, 2], [3, 4]]), xnp.array([1, 1]))
      Array([3, 7], dtype=int32)
    """
    x, y = promote("vecdot", x1, x2)
    dispatch.check_ranks("vecdot", x, y, core=(1, 1))
    x, y = [_last(v, axis) for v in (x, y)]
    if x.aval.shape[-1] != y.aval.shape[-1]:
        raise ShapeError(message(
            "vecdot",
            f"the contracted dimensions differ: {x.aval.shape[-1]} and {y.aval.shape[-1]}.",
            got=f"x: {x.aval.str_long()}, y: {y.aval.str_long()}",
        ))  # fmt: skip
    shape = common_shape("vecdot", [x.aval, y.aval])
    x, y = broadcast_to(_conjugate(x), shape), broadcast_to(y, shape)
    n = len(shape) - 1
    dims = tuple(range(n))
    preferred = _check_requested_type(preferred_element_type, "vecdot")
    return dot_general(x, y, ((n,), (n,)), (dims, dims), precision, preferred)


def _last(x: Any, axis: int) -> Any:
    d = dispatch.axis_of(axis, x.aval.ndim, "vecdot")
    return permute(x, (*[i for i in range(x.aval.ndim) if i != d], d))


def tensordot(
    a: ArrayLike, b: ArrayLike, axes: int | Sequence[Any] = 2, *, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None, out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Return the sum of products over several dimensions.

    Args:
      a: an array.
      b: an array.
      axes: how many of the last dimensions of `a` meet the first of `b`, or a pair of the
        dimensions of each (ints or sequences).
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the remaining dimensions of `a`, then those of `b`, of the dtype that the two
      promote to.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: `axes` are out of bounds; unknown `precision`.

    Example:
      >>> import xnp
      >>> xnp.tensordot(xnp.ones((2, 3, 4)), xnp.ones((3, 4, 5))).shape
      (2, 5)
    """
    if out_sharding is not None:
        return compute_as(out_sharding, tensordot, a, b, axes, precision=precision,
                           preferred_element_type=preferred_element_type)  # fmt: skip
    a, b = promote("tensordot", a, b)
    ranks = a.aval.ndim, b.aval.ndim
    if several_axes(axes):
        _check_pair(axes)
        first, second = [
            dispatch.axes_of(x, r, "tensordot") for x, r in zip(axes, ranks, strict=True)
        ]
    else:
        count = static_int(axes, "tensordot", "axes")
        if not 0 <= count <= min(ranks):
            raise ShapeError(f"tensordot: axes={count} needs as many dimensions, got {ranks}.")
        first, second = tuple(range(ranks[0] - count, ranks[0])), tuple(range(count))
    sizes = [tuple([x.aval.shape[d] for d in dims]) for x, dims in ((a, first), (b, second))]
    if sizes[0] != sizes[1]:
        raise ShapeError(message(
            "tensordot", f"the contracted dimensions differ: {sizes[0]} and {sizes[1]}.",
            got=f"x: {a.aval.str_long()}, y: {b.aval.str_long()}, axes {axes}",
        ))  # fmt: skip
    preferred = _check_requested_type(preferred_element_type, "tensordot")
    return dot_general(a, b, (first, second), ((), ()), precision, preferred)


def _check_pair(axes: Any) -> None:
    """Raise an ArgumentError unless axes are a pair that names as many dimensions twice."""
    sizes = [len(x) if several_axes(x) else 1 for x in axes]
    if isinstance(axes, str) or len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ArgumentError(message(
            "tensordot", "axes must be a number, or a pair with as many axes of each operand.",
            got=f"axes={axes}", expected="for example axes=2, (0, 1), or ([1, 2], [0, 1])",
        ))  # fmt: skip


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """Return the sum of products over the last dimensions.

    Args:
        a: an array.
        b: an array.
        precision: how exactly hardware with a choice computes.
        preferred_element_type: the dtype of sums and result; None for the one that
            the arrays promote to.

    Returns:
        An array of the remaining dimensions of `a`, then those of `b`; a 0-d one
        where none are left.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.
        ValueError: unknown `precision`.

    Example:
        >>> import xnp
        >>> xnp.inner(xnp.array([[1, 2], [3, 4]]), xnp.array([1, 1]))
        Array([3, 7], dtype=int32)
    """
    a, b = promote("inner", a, b)
    if not a.aval.ndim or not b.aval.ndim:
        return bind("mul", a, b)
    if a.aval.shape[-1] != b.aval.shape[-1]:
        sizes = a.aval.shape[-1], b.aval.shape[-1]
        raise _mismatch("inner", a, b, sizes, "x.shape[-1] == y.shape[-1]")
    preferred = _check_requested_type(preferred_element_type, "inner")
    dims = ((a.aval.ndim - 1,), (b.aval.ndim - 1,))
    return dot_general(a, b, dims, ((), ()), precision, preferred)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Return the products of every element of `a` with every element of `b`, as a matrix.

    Args:
      a: an array; it is flattened.
      b: an array; it is flattened.
      out: not supported, must be None.

    Returns:
      A matrix with a row for each element of `a`.

    Raises:
        TypeError: an operand is not an array; `out` is given.

    Example:
      >>> import xnp
      >>> xnp.outer(xnp.array([1, 2]), xnp.array([1, 10]))
      Array([[ 1, 10],
             [ 2, 20]], dtype=int32)
    """
    dispatch.no_out("outer", out)
    a, b = promote("outer", a, b)
    rows, columns = a.aval.size, b.aval.size
    a = bind("broadcast_in_dim", reshape(a, (rows,)), shape=(rows, columns),
             broadcast_dimensions=(0,))  # fmt: skip
    return bind("mul", a, broadcast_to(reshape(b, (columns,)), (rows, columns)))


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: `b` times every element of `a`, as blocks.

    Args:
      a: an array.
      b: an array; of the two, the one with fewer dimensions gets ones in front.

    Returns:
      An array whose size in each dimension is the product of theirs.

    Raises:
        TypeError: an operand is not an array.

    Example:
      >>> import xnp
      >>> xnp.kron(xnp.array([1, 10]), xnp.array([1, 2]))
      Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = promote("kron", a, b)
    rank = max(a.aval.ndim, b.aval.ndim)
    shapes = [(*(1,) * (rank - x.aval.ndim), *x.aval.shape) for x in (a, b)]
    pairs = list(zip(*shapes, strict=True))
    full = tuple([n for pair in pairs for n in pair])
    a = bind("broadcast_in_dim", reshape(a, shapes[0]), shape=full,
             broadcast_dimensions=tuple(range(0, 2 * rank, 2))) if rank else a  # fmt: skip
    b = bind("broadcast_in_dim", reshape(b, shapes[1]), shape=full,
             broadcast_dimensions=tuple(range(1, 2 * rank, 2))) if rank else b  # fmt: skip
    return reshape(bind("mul", a, b), tuple([m * n for m, n in pairs]))


# ------------------------------------------------------------------------------------------- einsum
# Sums of products written as text: `einsum("ij,jk->ik", a, b)` for any number of operands.
#
# The operands are joined two at a time, each pair by one `dot_general`; which pair comes next is
# decided by a greedy search (the smallest growth of memory, then the fewest operations), or from
# the left. Labels of one operand alone are summed before, repeated labels read the diagonal.

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@boundary
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Return the sum of products over labelled dimensions.

    Args:
      subscripts: a label for each dimension of each operand and of the result, as "ij,jk->ik";
        without "->" the labels that occur once, in alphabetical order. "..." stands for further
        dimensions, which broadcast. Or the first operand, with lists of ints as labels behind each.
      *operands: the arrays.
      out: not supported, must be None.
      optimize: "auto", "greedy", "optimal" or True search for a good order of pairs; False takes
        operands from the left; or a path as `einsum_path` returns it.
      precision: how exactly hardware with a choice computes.
      preferred_element_type: the dtype of sums and result.
      _dot_general: what joins a pair in place of `lax.dot_general`, with its arguments: as
        libraries give one that multiplies in fewer bits.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array whose dimensions are the labels of the result, of the dtype that the operands promote
      to. Where NumPy may return a view of its operand, this is an array of its own.

    Raises:
        TypeError: `out` is given;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import xnp
      >>> xnp.einsum("i,i->", xnp.array([1., 2.]), xnp.array([3., 4.]))
      Array(11., dtype=float32)
    """
    dispatch.no_out("einsum", out)
    if out_sharding is not None:
        return compute_as(out_sharding, einsum, subscripts, *operands, optimize=optimize,
                           precision=precision,
                           preferred_element_type=preferred_element_type,
                           _dot_general=_dot_general)  # fmt: skip
    join = dot_general if _dot_general is None else _by_keywords(_dot_general)
    return _contract(subscripts, operands, optimize, precision, preferred_element_type, join)


def _by_keywords(product: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function with the arguments of `lax.dot_general` as `contraction` has it."""

    def join(x: Array, y: Array, contracted: Any, batch: Any, precision: Any, dtype: Any) -> Array:
        dimensions = (contracted, batch)
        dtype = x.dtype if dtype is None else dtype  # that of the result, as in JAX
        return product(x, y, dimensions, precision=precision, preferred_element_type=dtype)

    return join


def _contract(
    subscripts: Any, operands: Any, optimize: Any, precision: Any, preferred_element_type: Any,
    join: Callable[..., Array] = dot_general,
) -> Array:  # fmt: skip
    """Contract operands pair by pair."""
    terms, result, arrays = _parse(subscripts, operands)
    arrays = promote("einsum", *arrays)
    preferred = None if preferred_element_type is None else (
        dtypes.requested_dtype(preferred_element_type, "einsum"))  # fmt: skip
    sizes = _sizes(terms, arrays)
    pairs = [
        _simplify(t, x, _labels_to_keep(i, terms, result))
        for i, (t, x) in enumerate(zip(terms, arrays, strict=True))
    ]
    for step in _path(optimize, [t for t, _ in pairs], result, sizes):
        chosen = [pairs[i] for i in step]
        pairs = [p for i, p in enumerate(pairs) if i not in step]
        while len(chosen) > 1:
            (left, x), (right, y) = chosen[:2]
            rest = "".join([t for t, _ in (*pairs, *chosen[2:])]) + result
            chosen = [_join(left, x, right, y, rest, precision, preferred, join), *chosen[2:]]
        pairs.append(chosen[0])
    ((labels, x),) = pairs
    contracted: Array = _arrange(labels, x, result, sizes, preferred)
    return contracted


@boundary
def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: Any,
    optimize: bool | str | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[Any], str]:
    """Return the order in which `einsum` would join pairs of operands, and a text about it.

    Args:
      subscripts: as for `einsum`.
      *operands: the arrays; only their shapes count.
      optimize: "auto", "greedy", "optimal" or True search for a good order of pairs; False takes
        operands from the left; or a path, which is returned.

    Returns:
      A list `["einsum_path", (i, j), ...]` of positions in the list of what is left, where each
      result is appended, and a description.

    Example:
      >>> import xnp
      >>> a, b, c = xnp.ones((2, 9)), xnp.ones((9, 9)), xnp.ones((9, 3))
      >>> xnp.einsum_path("ij,jk,kl->il", a, b, c)[0]
      ['einsum_path', (0, 1), (0, 1)]
    """
    terms, result, arrays = _parse(subscripts, operands)
    sizes = _sizes(terms, arrays)
    path = _path(optimize, terms, result, sizes)
    text = f"{','.join(terms)}->{result}: " + ", ".join(map(str, path))
    return ["einsum_path", *path], text


# --- the text -------------------------------------------------------------------------------------


def _parse(subscripts: Any, operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """Return the labels of each operand, those of the result, and the operands."""
    if not isinstance(subscripts, str):
        subscripts, operands = _of_lists((subscripts, *operands))
    arrays = [array_of(x, "einsum") for x in operands]
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    require(
        len(terms) == len(arrays), "einsum", "{!r} has terms for {} operands, but {} came.",
        subscripts, len(terms), len(arrays),
    )  # fmt: skip
    used = set(text)
    spare = [c for c in _LETTERS if c not in used]
    rank = max([_ellipsis_rank(t, x) for t, x in zip(terms, arrays, strict=True)])
    shared = "".join(spare[:rank])
    terms = [_expand(t, x, shared, subscripts) for t, x in zip(terms, arrays, strict=True)]
    everything = "".join(terms)
    if arrow:
        result = right.replace("...", shared)
    else:
        once = sorted({c for c in everything if everything.count(c) == 1} - set(shared))
        result = shared + "".join(once)
    _check_labels(subscripts, terms, result)
    return terms, result, arrays


def _of_lists(items: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the text form of operands with lists of labels."""
    count = len(items) // 2
    labels: dict[int, int] = {}

    def text(part: Any) -> str:
        names = [
            label if label is Ellipsis else labels.setdefault(label, len(labels))
            for label in _integers(part)
        ]
        require(
            len(labels) <= len(_LETTERS), "einsum", "there may be {} labels, got {}.",
            len(_LETTERS), len(labels),
        )  # fmt: skip
        return "".join(["..." if name is Ellipsis else _LETTERS[name] for name in names])

    terms = [text(items[2 * i + 1]) for i in range(count)]
    arrow = f"->{text(items[-1])}" if len(items) % 2 else ""
    if not arrow:  # NumPy's order of the result: by the numbers
        order = sorted(labels)
        ranks = {_LETTERS[labels[n]]: _LETTERS[i] for i, n in enumerate(order)}
        terms = ["".join([ranks.get(c, c) for c in t]) for t in terms]
    return ",".join(terms) + arrow, [items[2 * i] for i in range(count)]


def _integers(part: Any) -> list[Any]:
    """Return the labels of a list, each an int or `...`."""
    try:
        return [label if label is Ellipsis else operator.index(label) for label in part]
    except TypeError:
        raise TypeError(message(
            "einsum", "behind each operand must stand a list of its labels, which are integers.",
            got=described(part), hint="labels in words go first: einsum('ij,jk->ik', a, b)",
        )) from None  # fmt: skip


def _ellipsis_rank(term: str, x: Any) -> int:
    return x.aval.ndim - len(term.replace("...", "")) if "..." in term else 0


def _expand(term: str, x: Any, shared: str, subscripts: str) -> str:
    if "..." in term:
        rank = _ellipsis_rank(term, x)
        term = term.replace("...", shared[len(shared) - rank :] if rank > 0 else "")
    require(
        len(term) == x.aval.ndim, "einsum",
        "the term {!r} of {!r} names {} dimensions, the operand has {}.", term, subscripts,
        len(term), x.aval.ndim, got=x,
    )  # fmt: skip
    return term


def _check_labels(subscripts: str, terms: list[str], result: str) -> None:
    known = set("".join(terms))
    for c in result:
        require(c in known, "einsum", "the label {!r} of the result is in no operand.", c)
    require(
        len(set(result)) == len(result), "einsum", "a label occurs twice in the result of {!r}.",
        subscripts,
    )  # fmt: skip


def _sizes(terms: list[str], arrays: list[Any]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.aval.shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and n not in (1, known):
                shown = ", ".join(
                    f"{t}: {a.aval.str_long()}" for t, a in zip(terms, arrays, strict=True)
                )
                raise ShapeError(message(
                    "einsum", f"the dimensions with label {label!r} have sizes {known} and {n}.",
                    got=shown,
                ))  # fmt: skip
            sizes[label] = n if known == 1 else known
    return sizes


# --- the order ------------------------------------------------------------------------------------


def _path(optimize: Any, terms: list[str], result: str, sizes: dict[str, int]) -> list[Any]:
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        return [tuple(step) for step in optimize[1:]]
    if isinstance(optimize, list | tuple) and optimize and not isinstance(optimize[0], str):
        return [tuple(step) for step in optimize]
    if optimize is False or len(terms) <= 2:
        return [tuple(range(len(terms)))]
    return _greedy_path([frozenset(t) for t in terms], frozenset(result), sizes)


def _greedy_path(sets: list[Any], result: Any, sizes: dict[str, int]) -> list[Any]:
    path = []
    while len(sets) > 1:
        pairs = itertools.combinations(range(len(sets)), 2)
        steps = [_contraction(sets, i, j, result, sizes) for i, j in pairs]
        cost, kept = min(steps, key=operator.itemgetter(0))
        i, j = cost[2:]
        path.append((i, j))
        sets = [*[s for k, s in enumerate(sets) if k not in (i, j)], kept]
    return path


def _contraction(sets: list[Any], i: int, j: int, result: Any, sizes: dict[str, int]) -> Any:
    """Return the cost of contracting two operands, and the labels that are kept."""
    joined = sets[i] | sets[j]
    kept = joined & result.union(*[s for k, s in enumerate(sets) if k not in (i, j)])
    growth = _volume(kept, sizes) - _volume(sets[i], sizes) - _volume(sets[j], sizes)
    return (growth, _volume(joined, sizes), i, j), kept


def _volume(labels: Any, sizes: dict[str, int]) -> int:
    return math.prod([sizes[c] for c in labels])


# --- the products ---------------------------------------------------------------------------------


def _labels_to_keep(i: int, terms: list[str], result: str) -> str:
    return "".join([t for k, t in enumerate(terms) if k != i]) + result


def _simplify(labels: str, x: Any, wanted: str) -> tuple[str, Any]:
    """Read diagonals of repeated labels and sum over labels that no other operand has."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            sizes = x.aval.shape[i], x.aval.shape[j]
            require(
                sizes[0] == sizes[1], "einsum", "the dimensions of a diagonal have sizes {}.",
                sizes,
            )  # fmt: skip
            x = array_of(diagonal(x, 0, i, j), "einsum")
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + c
    alone = tuple([i for i, c in enumerate(labels) if c not in wanted])
    if alone:
        x = summed(x, alone, x.aval.dtype)
        labels = "".join([c for i, c in enumerate(labels) if i not in alone])
    return labels, x


def _join(
    left: str, x: Any, right: str, y: Any, rest: str, precision: Any, preferred: Any,
    join: Callable[..., Array],
) -> tuple[str, Any]:  # fmt: skip
    """Join two operands by one product, over the labels that no other operand needs."""
    # a size 1 that broadcasts is dropped where the other operand has the label
    left, x = _without_ones(left, x, right, y)
    right, y = _without_ones(right, y, left, x)
    left, x = _simplify(left, x, right + rest)
    right, y = _simplify(right, y, left + rest)
    batch = [c for c in left if c in right and c in rest]
    summed_labels = [c for c in left if c in right and c not in rest]
    dims = [
        (tuple([labels.index(c) for c in summed_labels]), tuple([labels.index(c) for c in batch]))
        for labels in (left, right)
    ]
    (lc, lb), (rc, rb) = dims
    product = join(x, y, (lc, rc), (lb, rb), precision, preferred)
    free = [[c for c in labels if c not in batch and c not in summed_labels]
            for labels in (left, right)]  # fmt: skip
    return "".join([*batch, *free[0], *free[1]]), product


def _without_ones(labels: str, x: Any, others: str, y: Any) -> tuple[str, Any]:
    ones = tuple([
        i for i, c in enumerate(labels)
        if x.aval.shape[i] == 1 and c in others and y.aval.shape[others.index(c)] != 1
    ])  # fmt: skip
    if not ones:
        return labels, x
    x = bind("squeeze", x, dimensions=ones)
    return "".join([c for i, c in enumerate(labels) if i not in ones]), x


def _arrange(labels: str, x: Any, result: str, sizes: dict[str, int], preferred: Any) -> Any:
    labels, x = _simplify(labels, x, result)
    x = permute(x, tuple([labels.index(c) for c in result]))
    x = broadcast_to(x, tuple([sizes[c] for c in result]))
    if preferred is not None and x.aval.dtype != preferred:
        x = bind("convert_element_type", x, new_dtype=preferred, weak_type=False)
    return x


boundaries(globals())
