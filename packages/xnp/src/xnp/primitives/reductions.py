"""Reductions over axes: sums.

`axes` is a sorted tuple of non-negative ints. Semantics: StableHLO specification, section reduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.table import NUMBER, Kinds
from xprim import LINEAR, Primitive, ShapedArray, get_primitive, shaped_array


def reduction_shape(name: str, kinds: Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a reduction."""

    def shape_rule(aval: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
        if aval.dtype not in kinds:
            raise TypeError(f"{name}: does not take operands of dtype {aval.dtype.name}.")
        if len(set(axes)) != len(axes) or any(not 0 <= a < aval.ndim for a in axes):
            raise ValueError(
                f"{name}: axes must be distinct and within the operand's {aval.ndim} dimensions."
                f"\n  got       {axes}"
            )
        shape = tuple([n for i, n in enumerate(aval.shape) if i not in axes])
        return (shaped_array(shape, aval.dtype, aval.weak_type),)

    return shape_rule


def reduction_stablehlo(op: str, init: Callable[[np.dtype[Any]], Any]) -> Callable[..., Any]:
    """Return the rule of a reduction by one operation, from the dtype's neutral element."""

    def stablehlo_rule(
        b: Any, operands: Any, avals_in: Any, avals_out: Any, *, axes: Any
    ) -> Any:
        (x,), (aval,) = operands, avals_in
        start = b.scalar(init(aval.dtype), aval.dtype)
        scalar = shaped_array((), aval.dtype)
        dimensions = f"dimensions = array<i64: {', '.join(map(str, axes))}>" if axes else (
            "dimensions = array<i64>")  # fmt: skip
        return b.op("stablehlo.reduce", [x, start], [aval, scalar], avals_out, dimensions,
                    b.reducer(op, aval.dtype))  # fmt: skip

    return stablehlo_rule


def reduction_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a reduction: the axes move past the batch dimension."""

    def batch_rule(axis: Any, operands: Any, dims: Any, *, axes: Any) -> Any:
        (x,), (d,) = operands, dims
        moved = tuple([a + (a >= d) for a in axes])
        out = d - sum([a < d for a in moved])
        return primitive().bind(x, axes=moved), (out,)

    return batch_rule


def _sum_numpy(x: Any, *, axes: Any) -> Any:
    return (np.add.reduce(x, axis=axes, dtype=x.dtype),)


def _sum_transpose(cts: Any, x: Any, *, axes: Any) -> Any:
    kept = tuple([i for i in range(x.aval.ndim) if i not in axes])
    return get_primitive("broadcast_in_dim").bind(
        cts[0], shape=x.aval.shape, broadcast_dimensions=kept
    )


reduce_sum_p = Primitive(
    "reduce_sum",
    shape=reduction_shape("reduce_sum", NUMBER),
    numpy=_sum_numpy,
    stablehlo=reduction_stablehlo("stablehlo.add", lambda dtype: 0),
    jvp=LINEAR,
    transpose=_sum_transpose,
    batch=reduction_batch(lambda: reduce_sum_p),
)
