"""Matrix products: `dot`, `dot_general`, `batch_matmul`, `ragged_dot`, `scaled_dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xnp import placing
from xnp.placing import compute_as
from xnp.primitives import table
from xnp.primitives.dot_general import dot_general_p
from xnp.primitives.precision import (
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    PrecisionLike,
    normal_precision,
)
from xnp.primitives.table import bind, broadcast_to, convert, fill, iota, move_dim, mul, reshape
from xprim import Array, as_array, dtypes
from xprim.avals import size_of
from xprim.errors import ShapeError, message
from xprim.requirements import require
from xprim.tracebacks import boundaries, boundary
from xprim.typing import ArrayLike, DTypeLike, ShardingLike
from xtree.namespaces import namespace

__all__ = [
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike",
    "batch_matmul", "dot", "dot_general", "dot_general_p", "RaggedDotDimensionNumbers",
    "ragged_dot", "ragged_dot_general", "scaled_dot",
]  # fmt: skip


# ---------------------------------------------------------------------------------- contractions
# Matrix products: `dot`, `dot_general`, `batch_matmul`.

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

_VECTOR_PRODUCTS = {
    (1, 1): (((0,), (0,)), ((), ())),
    (1, 2): (((0,), (0,)), ((), ())),
    (2, 1): (((1,), (0,)), ((), ())),
    (2, 2): (((1,), (0,)), ((), ())),
}


def dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None, *,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Sum products of two arrays over contracted dimensions.

    Args:
      lhs: an array.
      rhs: an array. Of two dtypes the complex one, or that of the greater range, then of more
        digits, then of more bits, holds the result.
      dimension_numbers: `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`, each a
        sequence of dimensions; pairs of dimensions have equal sizes.
      precision: how exactly hardware with a choice computes; None takes the option
        `default_matmul_precision`.
      preferred_element_type: the dtype of sums and result; None for that of the operands.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array whose dimensions are the batch dimensions, then the free dimensions of `lhs`, then
      those of `rhs`. Dtypes of 16 bits and fewer are summed in float32 and rounded once; integers
      wrap around; booleans are joined by "or". A sum over no elements is zero.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import numpy as np
      >>> x = np.ones((5, 2, 3), np.float32)
      >>> dot_general(x, x, (([2], [2]), ([0], [0]))).shape
      (5, 2, 2)

    Differentiable in: lhs, rhs.
    Source: StableHLO specification, section dot_general.
    """
    if out_sharding is not None:
        return compute_as(out_sharding, dot_general, lhs, rhs, dimension_numbers, precision,
                           preferred_element_type)  # fmt: skip
    lhs, rhs = as_array(lhs, what="dot_general: lhs"), as_array(rhs, what="dot_general: rhs")
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(message(
            "dot_general", "dimension_numbers must be ((lhs contracting, rhs contracting), (lhs "
            "batch, rhs batch)).", got=f"{dimension_numbers!r}",
        )) from None  # fmt: skip
    numbers = ((_contractions_dims(lc, lhs.ndim), _contractions_dims(rc, rhs.ndim)),
               (_contractions_dims(lb, lhs.ndim), _contractions_dims(rb, rhs.ndim)))  # fmt: skip
    return _product(lhs, rhs, numbers, precision, preferred_element_type)


def dot(
    lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike = None,
    out_sharding: ShardingLike = None,
) -> Array:  # fmt: skip
    """Multiply vectors and matrices; with `dimension_numbers`, the same as `dot_general`.

    Args:
      lhs: a vector or a matrix.
      rhs: a vector or a matrix.
      dimension_numbers: see `dot_general`.
      precision: see `dot_general`.
      preferred_element_type: see `dot_general`.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of the remaining dimensions, those of `lhs` first: a 0-d one for two vectors.

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import numpy as np
      >>> float(np.asarray(dot(np.float32([1, 2]), np.float32([3, 4]))))
      11.0
    """
    if out_sharding is not None:
        return compute_as(out_sharding, dot, lhs, rhs, dimension_numbers=dimension_numbers,
                           precision=precision,
                           preferred_element_type=preferred_element_type)  # fmt: skip
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    lhs, rhs = as_array(lhs, what="dot: lhs"), as_array(rhs, what="dot: rhs")
    numbers = _VECTOR_PRODUCTS.get((lhs.aval.ndim, rhs.aval.ndim))
    if numbers is None or lhs.aval.shape[-1] != rhs.aval.shape[0]:
        raise _bad_dot(lhs, rhs)
    return _product(lhs, rhs, numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiply matrices in the last two dimensions, once for each index of the leading ones.

    Args:
      lhs: of shape (..., m, k).
      rhs: of shape (..., k, n), with the same leading dimensions.
      precision: see `dot_general`.

    Returns:
      An array of shape (..., m, n).

    Raises:
        TypeError: an operand is not an array.
        ValueError: unknown `precision`.

    Example:
      >>> import numpy as np
      >>> batch_matmul(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
      (2, 3, 5)
    """
    lhs, rhs = as_array(lhs, what="batch_matmul: lhs"), as_array(rhs, what="batch_matmul: rhs")
    ndim = lhs.ndim
    require(
        ndim == rhs.ndim and ndim >= 2, "batch_matmul",
        "the operands must have the same number of dimensions, two at least.",
        got={"lhs": lhs, "rhs": rhs},
    )  # fmt: skip
    batch = tuple(range(ndim - 2))
    return _product(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision, None)


def _product(lhs: Any, rhs: Any, numbers: Any, precision: Any, preferred: Any) -> Array:
    if preferred is not None:
        preferred = dtypes.requested_dtype(preferred, "dot_general")
    result: Array = dot_general_p.bind(
        lhs, rhs, dimension_numbers=numbers, precision=normal_precision(precision),
        preferred_element_type=preferred,
    )[0]  # fmt: skip
    return result


def _contractions_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    found = [size_of(d) for d in dims]
    return tuple([d + ndim if -ndim <= d < 0 else d for d in found])


def _bad_dot(lhs: Any, rhs: Any) -> TypeError:
    got = f"lhs: {lhs.aval.str_long()}, rhs: {rhs.aval.str_long()}"
    if not 1 <= lhs.ndim <= 2 or not 1 <= rhs.ndim <= 2:
        return TypeError(message(
            "dot", "the operands must be vectors or matrices.", got=got,
            hint="lax.dot_general contracts dimensions of arrays of any rank",
        ))  # fmt: skip
    return ShapeError(message(
        "dot", f"the contracted dimensions differ: {lhs.shape[-1]} and {rhs.shape[0]}.", got=got,
        expected="lhs.shape[-1] == rhs.shape[0]",
))  # fmt: skip


# ---------------------------------------------------------------------------------------- ragged
# Products of matrices in groups of rows of different sizes: `ragged_dot`, `ragged_dot_general`.
#
# A mixture of experts sends `group_sizes[g]` rows to expert g. The rows lie one group after the
# other in one *ragged* dimension, and each group meets its own matrix. Written for compilers,
# which want fixed shapes: every group is the whole array with the rows of the others set to 0.


class RaggedDotDimensionNumbers(NamedTuple):
    """Which dimensions of a ragged product are contracted, mapped, ragged, and number the groups.

    Attributes:
      dot_dimension_numbers: `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`.
      lhs_ragged_dimensions: the one dimension of `lhs` that is cut into groups.
      rhs_group_dimensions: the one dimension of `rhs` that counts groups, when the ragged dimension
        is neither contracted nor mapped; else none.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    group_offset: None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Multiply each group of rows by the matrix of the group.

    Args:
      lhs: an array of shape (m, k), its rows one group after the other.
      rhs: an array of shape (g, k, n), a matrix for each group.
      group_sizes: g integers, how many rows each group has; rows beyond their sum give 0.
      precision: as for `dot_general`.
      preferred_element_type: the dtype of the result, as for `dot_general`.
      group_offset: must be None.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      An array of shape (m, n).

    Raises:
        TypeError: an operand is not an array;
            `preferred_element_type` names no dtype;
            `out_sharding` is not a sharding.
        ValueError: unknown `precision`.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> rows, matrices = np.float32([[1], [2], [3]]), np.float32([[[10]], [[100]]])
      >>> np.asarray(lax.ragged_dot(rows, matrices, np.array([1, 2]))).tolist()
      [[10.0], [200.0], [300.0]]

    Differentiable in: lhs, rhs.
    """
    return ragged_dot_general(lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type,
                              group_offset, out_sharding)  # fmt: skip


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    group_offset: None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Contract arrays of which a dimension of `lhs` lies in groups.

    Args:
      lhs: an array with one ragged dimension. If that is free, each group meets its own part of
        `rhs`, along the group dimension; if it is contracted, each group gives a result of its own;
        if it is mapped, this is `dot_general`.
      rhs: an array.
      group_sizes: an integer for each group, how many indices of the ragged dimension it has. Or of
        shape (..., groups): other sizes for each index of the mapped dimensions and of those free
        (or contracted) ones of `lhs` that come before the ragged one, if it is free (contracted).
      ragged_dot_dimension_numbers: which dimensions are which.
      precision: as for `dot_general`.
      preferred_element_type: as for `dot_general`.
      group_offset: must be None.
      out_sharding: a sharding of the result, or a partition spec over the context mesh.

    Returns:
      The result of `dot_general`; where the ragged dimension is contracted, a stack of such with a
      leading dimension of groups.

    Raises:
      TypeError: dimension numbers or sizes that do not go together.

    Example:
      >>> import numpy as np
      >>> from xnp import lax
      >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
      >>> weights = np.stack([np.eye(2), 3 * np.eye(2)])
      >>> lax.ragged_dot_general(np.ones((3, 2)), weights, np.int32([1, 2]), numbers).tolist()
      [[1.0, 1.0], [3.0, 3.0], [3.0, 3.0]]

    Differentiable in: lhs, rhs.
    """
    what = "ragged_dot_general"
    x, y = as_array(lhs, what=f"{what}: lhs"), as_array(rhs, what=f"{what}: rhs")
    sizes = as_array(group_sizes, what=f"{what}: group_sizes")
    numbers = ragged_dot_dimension_numbers
    ragged, prefix, group_dims = _check(x, y, sizes, numbers, group_offset)
    (contracting, other), (batch, other_batch) = [
        [_check_ragged_dims(d, z.aval.ndim) for d, z in zip(pair, (x, y), strict=True)]
        for pair in numbers.dot_dimension_numbers
    ]
    if ragged in batch:
        dims = ((contracting, other), (batch, other_batch))
        return dot_general(x, y, dims, precision, preferred_element_type, out_sharding=out_sharding)
    groups = _groups(x, sizes, ragged, prefix)
    within = tuple([d + 1 for d in contracting])
    mapped = tuple([d + 1 for d in batch])
    if ragged in contracting:
        dims = ((within, other), (mapped, other_batch))
        result = dot_general(groups, y, dims, precision, preferred_element_type)
        # the dimension of groups is the first free one, behind the mapped ones
        return placing.place(move_dim(result, len(batch), 0), out_sharding, what)
    dims = (((0, *within), (*group_dims, *other)), (mapped, other_batch))
    return dot_general(groups, y, dims, precision, preferred_element_type,
                       out_sharding=out_sharding)  # fmt: skip


def _groups(x: Any, sizes: Any, ragged: int, prefix: tuple[int, ...]) -> Any:
    """Return a stack of the array for each group, with zeros where the others are."""
    whole = (sizes.aval.shape[-1], *x.aval.shape)
    counts = convert(sizes, dtypes.int32)
    ends = bind("cumsum", counts, axis=counts.aval.ndim - 1, reverse=False)
    starts = bind("sub", ends, counts)
    # from (*prefix, groups) to the dimensions of the stack, groups first and the prefix in order
    order = sorted(range(len(prefix)), key=prefix.__getitem__) if counts.aval.ndim > 1 else []
    dims = (0, *[prefix[i] + 1 for i in order])
    place = iota(whole, ragged + 1)
    bounds = [
        broadcast_to(table.permute(b, (len(order), *order)), whole, dims) for b in (starts, ends)
    ]
    mask = bind("and", bind("ge", place, bounds[0]), bind("lt", place, bounds[1]))
    stack = broadcast_to(x, whole, tuple(range(1, len(whole))))
    return table.select(mask, stack, fill(whole, 0, x.aval.dtype))


_GROUPS_BY_KIND = {
    True: ("exactly one rhs group dimension", "noncontracting"),
    False: ("zero group dimensions in the rhs", "contracting or batch"),
}  # by whether the ragged dimension is in the result


def _check(x: Any, y: Any, sizes: Any, numbers: Any, offset: Any) -> tuple[
    int, tuple[int, ...], tuple[int, ...]
]:  # fmt: skip
    """Return the ragged dimension of `lhs`, those its groups may differ in, and those of `rhs`."""
    what = "ragged_dot_general"
    require(offset is None, what, "group_offset must be None.", error=NotImplementedError)
    require(
        len(numbers.lhs_ragged_dimensions) == 1, what,
        "ragged_dot_general expects exactly one lhs ragged dimension, got {}.",
        tuple(numbers.lhs_ragged_dimensions), error=TypeError,
    )  # fmt: skip
    require(
        0 <= numbers.lhs_ragged_dimensions[0] < x.aval.ndim, what,
        "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less than "
        "the number of axes of the lhs, got {}.", numbers.lhs_ragged_dimensions[0],
        error=TypeError,
    )  # fmt: skip
    ragged = _check_ragged_dims(numbers.lhs_ragged_dimensions, x.aval.ndim)
    group_dims = _check_ragged_dims(numbers.rhs_group_dimensions, y.aval.ndim)
    (of_lhs, of_rhs), (batch, of_batch) = numbers.dot_dimension_numbers
    contracting, batch = (
        _check_ragged_dims(of_lhs, x.aval.ndim),
        _check_ragged_dims(batch, x.aval.ndim),
    )
    taken = (*_check_ragged_dims(of_rhs, y.aval.ndim), *_check_ragged_dims(of_batch, y.aval.ndim))
    is_free = ragged[0] not in (*contracting, *batch)
    require(
        all(d not in taken for d in group_dims), what,
        "ragged_dot_general requires rhs group dimension numbers to be distinct from contracting "
        "and batch dimensions.", got={"rhs_group_dimensions": group_dims}, error=TypeError,
    )  # fmt: skip
    require(
        len(group_dims) == int(is_free), what,
        "ragged_dot_general requires {} when lhs ragged dimension is {}.",
        *_GROUPS_BY_KIND[is_free],
        got={"lhs_ragged_dimensions": ragged, "rhs_group_dimensions": group_dims}, error=TypeError,
    )  # fmt: skip
    prefix = _prefix(x.aval.ndim, ragged[0], contracting, batch)
    wanted = (*[x.aval.shape[d] for d in prefix], *sizes.aval.shape[-1:])
    if not dtypes.is_integer(sizes.aval.dtype) or sizes.aval.shape not in (wanted, wanted[-1:]):
        raise TypeError(message(
            what, f"expected group_sizes to have shape {wanted}, got {sizes.aval.shape}.",
            got=sizes.aval.str_long(),
            expected=f"integers of the shape {wanted}, or {wanted[-1:]} for all of them",
        ))  # fmt: skip
    require(
        not is_free or y.aval.shape[group_dims[0]] == wanted[-1], what,
        "expected rhs group dimension size to be {}, got {}.", wanted[-1],
        y.aval.shape[group_dims[0]] if is_free else 0,
        got={"rhs": y, "group_sizes": sizes}, error=TypeError,
    )  # fmt: skip
    return ragged[0], prefix, group_dims


def _prefix(
    ndim: int, ragged: int, contracting: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the dimensions of `lhs` in each index of which the groups may have other sizes.

    They are the mapped ones, and those of the ragged dimension's own kind that come before it.
    """
    if ragged in batch:
        return batch[: batch.index(ragged)]
    if ragged in contracting:
        return (*batch, *contracting[: contracting.index(ragged)])
    return (*batch, *[d for d in range(ragged) if d not in contracting and d not in batch])


def _check_ragged_dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    found = [size_of(d) for d in dims]
    if not all(-ndim <= d < ndim for d in found):
        raise TypeError(f"ragged_dot_general: there are {ndim} dimensions, got {tuple(found)}.")
    return tuple([d % ndim for d in found])


# ------------------------------------------------------------------------------- scaled products
# Products of arrays in narrow formats whose blocks have scales: scaled_dot.
#
# A block-scaled array is a pair: elements in a format of 4 or 8 bits, and one scale for each
# block of them along the contracted dimension. Source: Open Compute Project, OCP Microscaling
# Formats (MX) Specification 1.0 (2023).


@boundary
def scaled_dot(
    lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None, dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the product of `lhs * lhs_scale` and `rhs * rhs_scale`, each scale for a block.

    Args:
      lhs: an array of two dimensions or more, mostly of a dtype of 4 or 8 bits.
      rhs: the same.
      lhs_scale: scales of the shape of lhs, but for contracted dimensions, whose sizes divide those
        of lhs: each scale is for that many elements in a row. None for ones.
      rhs_scale: scales of rhs.
      dimension_numbers: contracted and batch dimensions, as for `dot_general`; None for the matrix
        product of the last two, all before being batches.
      preferred_element_type: the dtype of the work and of the result; None for bfloat16.

    Returns:
      An array of the shape that `dot_general` gives.

    Raises:
        TypeError: an operand is not an array; `preferred_element_type` names no dtype.

    Example:
      >>> import xnp
      >>> x, scale = xnp.ones((2, 4)), xnp.array([[1.0, 2.0], [4.0, 8.0]])
      >>> scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type="float32").tolist()
      [[6.0, 6.0], [24.0, 24.0]]

    Differentiable in: lhs, rhs and their scales, where these are of a floating dtype.
    """
    x, y = as_array(lhs, what="scaled_dot: lhs"), as_array(rhs, what="scaled_dot: rhs")
    if dimension_numbers is None:
        require(
            x.ndim >= 2 and y.ndim == x.ndim, "scaled_dot",
            "the operands must have the same number of dimensions, two at least.",
            got={"lhs": x, "rhs": y},
        )  # fmt: skip
        batch = tuple(range(x.ndim - 2))
        dimension_numbers = ((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)
    wanted = dtypes.bfloat16 if preferred_element_type is None else dtypes.requested_dtype(
        preferred_element_type, "scaled_dot")  # fmt: skip
    (of_lhs, of_rhs), _ = dimension_numbers
    x = _multiply_scales(x, lhs_scale, of_lhs, wanted, "lhs")
    y = _multiply_scales(y, rhs_scale, of_rhs, wanted, "rhs")
    return dot_general(x, y, dimension_numbers, preferred_element_type=wanted)


def _multiply_scales(x: Any, scale: Any, contracted: Sequence[int], dtype: Any, name: str) -> Any:
    """Return the product of elements and the scales of their blocks, in a dtype."""
    x = convert(x, dtype)
    if scale is None:
        return x
    scale = as_array(scale, what=f"scaled_dot: {name}_scale")
    shape, sizes = x.aval.shape, scale.aval.shape
    if len(sizes) != len(shape) or not all(
        n == m or (d in contracted and m and n % m == 0)
        for d, (n, m) in enumerate(zip(shape, sizes, strict=True))
    ):
        raise ValueError(message(
            "scaled_dot", f"the scales do not fit {name}.",
            got=f"{name}: {x.aval.str_long()}, {name}_scale: {scale.aval.str_long()}",
            expected="equal sizes, or, in contracted dimensions, sizes that divide",
        ))  # fmt: skip
    blocks: list[int] = []
    places: list[int] = []
    for n, m in zip(shape, sizes, strict=True):
        places.append(len(blocks))
        blocks += [m] if n == m else [m, n // m]
    spread = broadcast_to(convert(scale, dtype), blocks, places)
    return mul(x, reshape(spread, shape))


namespace(globals()).close()

boundaries(
    globals(), names=["batch_matmul", "dot", "dot_general", "ragged_dot", "ragged_dot_general"]
)
