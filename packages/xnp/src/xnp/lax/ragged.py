"""Products of matrices in groups of rows of different sizes: `ragged_dot`, `ragged_dot_general`.

A mixture of experts sends `group_sizes[g]` rows to expert g. The rows lie one group after the other
in one *ragged* dimension, and each group meets its own matrix. Written for compilers, which want
fixed shapes: every group is the whole array with the rows of the others set to 0.

Neighbours: `contractions` has the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xnp.docstrings import complete
from xnp.lax.contractions import DotDimensionNumbers, PrecisionLike, dot_general
from xnp.placing import placed
from xnp.primitives.operations import (
    bind,
    broadcasted,
    converted,
    filled,
    iota,
    moved,
    selected,
    transposed,
)
from xprim import Array, as_array, dtypes
from xprim.errors import message
from xprim.sizes import size_of
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, ShardingLike

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]

__dir__ = __all__.copy


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
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

    Returns:
      An array of shape (m, n).

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
      out_sharding: how the result lies: a sharding, or a partition spec over the mesh set.

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
    ragged, prefix, group_dims = _checked(x, y, sizes, numbers, group_offset)
    (contracting, other), (batch, other_batch) = [
        [_dims(d, z.aval.ndim) for d, z in zip(pair, (x, y), strict=True)]
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
        return placed(moved(result, len(batch), 0), out_sharding, what)
    dims = (((0, *within), (*group_dims, *other)), (mapped, other_batch))
    return dot_general(groups, y, dims, precision, preferred_element_type,
                       out_sharding=out_sharding)  # fmt: skip


def _groups(x: Any, sizes: Any, ragged: int, prefix: tuple[int, ...]) -> Any:
    """Return a stack of the array for each group, with zeros where the others are."""
    whole = (sizes.aval.shape[-1], *x.aval.shape)
    counts = converted(sizes, dtypes.int32)
    ends = bind("cumsum", counts, axis=counts.aval.ndim - 1, reverse=False)
    starts = bind("sub", ends, counts)
    # from (*prefix, groups) to the dimensions of the stack, groups first and the prefix in order
    order = sorted(range(len(prefix)), key=prefix.__getitem__) if counts.aval.ndim > 1 else []
    dims = (0, *[prefix[i] + 1 for i in order])
    place = iota(whole, ragged + 1)
    bounds = [broadcasted(transposed(b, (len(order), *order)), whole, dims) for b in (starts, ends)]
    mask = bind("and", bind("ge", place, bounds[0]), bind("lt", place, bounds[1]))
    stack = broadcasted(x, whole, tuple(range(1, len(whole))))
    return selected(mask, stack, filled(whole, 0, x.aval.dtype))


def _checked(x: Any, y: Any, sizes: Any, numbers: Any, offset: Any) -> tuple[
    int, tuple[int, ...], tuple[int, ...]
]:  # fmt: skip
    """Return the ragged dimension of `lhs`, those its groups may differ in, and those of `rhs`."""
    what = "ragged_dot_general"
    if offset is not None:
        raise NotImplementedError(f"{what}: group_offset must be None.")
    ragged = _dims(numbers.lhs_ragged_dimensions, x.aval.ndim)
    group_dims = _dims(numbers.rhs_group_dimensions, y.aval.ndim)
    if len(ragged) != 1:
        raise TypeError(f"{what}: lhs must have one ragged dimension, got {ragged}.")
    (of_lhs, of_rhs), (batch, of_batch) = numbers.dot_dimension_numbers
    contracting, batch = _dims(of_lhs, x.aval.ndim), _dims(batch, x.aval.ndim)
    taken = (*_dims(of_rhs, y.aval.ndim), *_dims(of_batch, y.aval.ndim))
    is_free = ragged[0] not in (*contracting, *batch)
    if len(group_dims) != int(is_free) or any(d in taken for d in group_dims):
        raise TypeError(message(
            what, "rhs has a group dimension exactly if the ragged dimension is free, and it is "
            "neither contracted nor mapped.",
            got=f"lhs_ragged_dimensions={ragged}, rhs_group_dimensions={group_dims}",
        ))  # fmt: skip
    prefix = _prefix(x.aval.ndim, ragged[0], contracting, batch)
    wanted = (*[x.aval.shape[d] for d in prefix], *sizes.aval.shape[-1:])
    if not dtypes.is_integer(sizes.aval.dtype) or sizes.aval.shape not in (wanted, wanted[-1:]):
        raise TypeError(message(
            what, "group_sizes must be integers, one for each group, or so for each index of the "
            "dimensions before.", got=sizes.aval.str_long(),
            expected=f"a shape of {wanted[-1:]} or {wanted}",
        ))  # fmt: skip
    if is_free and y.aval.shape[group_dims[0]] != wanted[-1]:
        raise TypeError(message(
            what, "rhs must have an index of its group dimension for each group.",
            got=f"rhs: {y.aval.str_long()}, group_sizes: {sizes.aval.str_long()}",
        ))  # fmt: skip
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


def _dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    found = [size_of(d) for d in dims]
    if not all(-ndim <= d < ndim for d in found):
        raise TypeError(f"ragged_dot_general: there are {ndim} dimensions, got {tuple(found)}.")
    return tuple([d % ndim for d in found])


complete(globals())
boundaries(globals())
