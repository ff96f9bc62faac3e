"""What the cumulative operations share: shape, evaluation, lowering and batching.

Element i of the result combines elements 0 to i along `axis`, with `reverse` those from i to the
end. In StableHLO it is a window reduction whose windows reach to the edge, which XLA turns into a
scan of logarithmic depth. Neighbours: `cumsum`, `cumprod`, `cummax`, `cummin`, `cumlogsumexp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives.reductions import total_dtype
from xnp.primitives.table import Kinds
from xnp.primitives.window_text import window_attributes
from xprim import Primitive, ShapedArray, shaped_array
from xprim.contracts import Builder

__all__ = ()


def cumulative_shape(name: str, kinds: Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a cumulative operation."""

    def shape_rule(aval: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
        if aval.dtype not in kinds:
            raise TypeError(f"{name}: does not take operands of dtype {aval.dtype.name}.")
        if not 0 <= axis < aval.ndim:
            raise ValueError(f"{name}: there is no axis {axis} in {aval.str_long()}.")
        return (aval,)

    return shape_rule


def cumulative_numpy(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the NumPy rule of a cumulative operation by a ufunc."""

    def numpy_rule(x: Any, *, axis: int, reverse: bool) -> Any:
        wide = total_dtype(x.dtype)  # small types are kept in a wider one and rounded once
        given = np.flip(x, axis) if reverse else x
        found = ufunc.accumulate(given.astype(wide, copy=False), axis=axis, dtype=wide)
        return ((np.flip(found, axis) if reverse else found).astype(x.dtype, copy=False),)

    return numpy_rule


def cumulative_stablehlo(
    reducer: Callable[[Any, ShapedArray], str], neutral: Callable[[np.dtype[Any]], Any]
) -> Callable[..., Any]:
    """Return the lowering: `reducer(builder, scalar aval)` writes the region."""

    def stablehlo_rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, axis: int,
                       reverse: bool) -> Any:  # fmt: skip
        (aval,) = avals_in
        size = aval.shape[axis]
        if not aval.size:
            return [operands[0]]
        wide = shaped_array(aval.shape, total_dtype(aval.dtype))
        scalar = shaped_array((), wide.dtype)
        x = b.convert(operands[0], aval, wide.dtype)
        ones = (1,) * aval.ndim
        window, padding = list(ones), [(0, 0)] * aval.ndim
        window[axis] = size
        padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
        start = b.scalar(neutral(wide.dtype), wide.dtype)
        (found,) = b.op(
            "stablehlo.reduce_window", [x, start], [wide, scalar], [wide],
            window_attributes(tuple(window), ones, padding, ones, ones), reducer(b, scalar),
        )  # fmt: skip
        return [b.convert(found, wide, aval.dtype)]

    return stablehlo_rule


def cumulative_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a cumulative operation."""

    def batch_rule(batch: Any, operands: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        (d,) = dims
        outs = primitive().bind(operands[0], axis=axis + (d <= axis), reverse=reverse)
        return outs, (d,)

    return batch_rule
