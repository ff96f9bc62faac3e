"""slice: the elements from start to limit in steps of the stride, in each dimension.

All bounds are static; `strides` None means steps of 1.
Semantics: StableHLO specification, section slice.
"""

from __future__ import annotations

import builtins
import functools
from typing import Any

from xnp.primitives import costs
from xnp.primitives.corresponding_dimensions import slice_dimensions
from xnp.primitives.dimensions import inserted
from xnp.primitives.operations import bind, filled
from xprim import LINEAR, STRUCTURAL, Primitive, ShapedArray, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(
    aval: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any
) -> tuple[ShapedArray, ...]:
    steps = (1,) * aval.ndim if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps) == aval.ndim:
        raise TypeError(message(
            "slice", "start, limit and stride must be given for each dimension of the operand.",
            got=f"starts {start_indices}, limits {limit_indices}, strides {strides} for "
            f"{aval.str_long()}",
        ))  # fmt: skip
    if any(s <= 0 for s in steps):
        raise TypeError(f"slice: strides must be positive, got {steps}.")
    for low, high, size in zip(start_indices, limit_indices, aval.shape, strict=True):
        if not 0 <= low <= high <= size:
            raise TypeError(message(
                "slice", "the bounds must lie within the operand.",
                got=f"starts {start_indices}, limits {limit_indices} for {aval.str_long()}",
                expected="0 <= start <= limit <= size in each dimension",
            ))  # fmt: skip
    shape = tuple([
        -((low - high) // step)
        for low, high, step in zip(start_indices, limit_indices, steps, strict=True)
    ])  # fmt: skip
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


@functools.lru_cache(maxsize=4096)
def _plan(start_indices: Any, limit_indices: Any, strides: Any) -> tuple[Any, ...]:
    """Return the slices of Python that say the same."""
    steps = (None,) * len(start_indices) if strides is None else strides
    return tuple(map(builtins.slice, start_indices, limit_indices, steps))


def _numpy(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    # the ellipsis keeps the result of a slice of rank 0 an array
    return (x[(*_plan(start_indices, limit_indices, strides), ...)],)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, start_indices: Any,
               limit_indices: Any, strides: Any) -> Any:  # fmt: skip
    if avals_in[0].shape == avals_out[0].shape:
        return [operands[0]]
    start, limit, step = (
        f"array<i64: {', '.join(map(str, values))}>"
        for values in (start_indices, limit_indices, strides or (1,) * len(start_indices))
    )
    return b.op("stablehlo.slice", operands, avals_in, avals_out,
                f"start_indices = {start}, limit_indices = {limit}, strides = {step}")  # fmt: skip


def _transpose(cts: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    (ct,) = cts
    steps = (1,) * x.aval.ndim if strides is None else strides
    config = []
    for size, low, step, count in zip(x.aval.shape, start_indices, steps, ct.aval.shape,
                                      strict=True):  # fmt: skip
        covered = (count - 1) * step + 1 if count else 0
        config.append((low, size - low - covered, step - 1))
    return (bind("pad", ct, filled((), 0, ct.aval.dtype), padding_config=tuple(config)),)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, start_indices: Any, limit_indices: Any,
           strides: Any) -> Any:  # fmt: skip
    (x,), (d,) = operands, dims
    outs = slice_p.bind(
        x,
        start_indices=inserted(start_indices, d, 0),
        limit_indices=inserted(limit_indices, d, axis.size),
        strides=None if strides is None else inserted(strides, d, 1),
    )
    return outs, (d,)


slice_p: Primitive = Primitive(
    "slice",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    cost=costs.nothing,
    dimensions=slice_dimensions,
)
