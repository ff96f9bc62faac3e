"""The collectives that combine values: psum, pmax, pmin, reduce_scatter.

    psum            every member gets the sum over the members of the axes
    pmax, pmin      ... the largest, the smallest
    reduce_scatter  the sum is cut along a dimension, and every member gets its piece

Each member's tangent is its own, so the transpose of `psum` is `psum`: all results depend on every
operand. Semantics: StableHLO specification, sections all_reduce and reduce_scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.primitives.shorthand import bind, converted, div, mul, reshaped, scalar_like
from xpar.named_axes import (
    collective_batch,
    groups_attribute,
    is_mapped,
    replica_groups,
    unbound,
)
from xprim import LINEAR, Primitive, ShapedArray, dtypes, shaped_array, undefined

_CHOICE = "it is not linear"


def _same_shape(
    aval: ShapedArray, *, axes: Any, axis_index_groups: Any
) -> tuple[ShapedArray, ...]:
    return (aval,)


def _all_reduce(op: str) -> Callable[..., Any]:
    def stablehlo_rule(b: Any, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any,
                       axis_index_groups: Any) -> Any:  # fmt: skip
        rows = groups_attribute(replica_groups(b, axes, axis_index_groups))
        return b.op("stablehlo.all_reduce", operands, avals_in, avals_out,
                    f"replica_groups = {rows}", b.reducer(op, avals_in[0].dtype))  # fmt: skip

    return stablehlo_rule


def _numpy(x: Any, *, axes: Any, axis_index_groups: Any) -> Any:
    unbound(axes)


def _sum_shape(aval: ShapedArray, *, axes: Any, axis_index_groups: Any) -> tuple[ShapedArray, ...]:
    if dtypes.is_bool(aval.dtype):
        raise TypeError("psum: does not take operands of dtype bool.")
    return (aval,)


def _sum_on_axis(axis: Any, x: Any, dim: Any, params: Any) -> Any:
    if is_mapped(dim):
        return bind("reduce_sum", x, axes=(dim,)), dim_of_shared()
    return mul(x, scalar_like(x, axis.size)), dim


def dim_of_shared() -> Any:
    """Return the batch dimension of a result that all members share."""
    from xprim import not_mapped

    return not_mapped
