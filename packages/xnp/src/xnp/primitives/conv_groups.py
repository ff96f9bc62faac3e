"""Batches and features of convolutions in groups: how they are merged, and moved to one another.

Neighbours: `conv_general_dilated` is the primitive.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.operations import bind, reshaped, transposed

__all__ = ()


def by_groups_of_features(
    lhs: Any, rhs: Any, *, batch_group_count: int, **params: Any
) -> list[Any]:
    """Convolve with the groups of the batch as groups of features, which is the same.

    XLA (jaxlib 0.10.2 to 0.12) computes wrong values, or ends the process, where the batch in
    groups, or what it is convolved with, is cut over devices.
    """
    spec = params["dimension_numbers"].lhs_spec
    params["feature_group_count"] = batch_group_count  # one of the two counts is 1
    lhs = regrouped(lhs, spec[0], spec[1], batch_group_count)
    return [bind("conv_general_dilated", lhs, rhs, batch_group_count=1, **params)]


def regrouped(x: Any, source: int, target: int, groups: int) -> Any:
    """Move the outer factor `groups` of one dimension to be the outer factor of another one."""
    if groups == 1:
        return x
    shape = list(x.aval.shape)
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    at = target + (target > source)
    order = [d for d in range(len(split)) if d != source]
    order.insert(order.index(at), source)
    shape[source] //= groups
    shape[target] *= groups
    return reshaped(transposed(reshaped(x, split), order), shape)


def merged(x: Any, dim: int, groups: int = 1) -> Any:
    """Merge the batch dimension 0 into dimension `dim` (numbered without it), inside of groups."""
    size, *shape = x.aval.shape
    split = (size, *shape[:dim], groups, shape[dim] // groups, *shape[dim + 1 :])
    order = [*range(1, dim + 2), 0, *range(dim + 2, len(split))]
    shape[dim] *= size
    return reshaped(transposed(reshaped(x, split), order), shape)


def unmerged(x: Any, dim: int, size: int, groups: int = 1) -> Any:
    """Undo `_merged`: bring the batch back to dimension 0."""
    shape = list(x.aval.shape)
    shape[dim] //= size
    split = (*shape[:dim], groups, size, shape[dim] // groups, *shape[dim + 1 :])
    order = [dim + 1, *[d for d in range(len(split)) if d != dim + 1]]
    return reshaped(transposed(reshaped(x, split), order), (size, *shape))
