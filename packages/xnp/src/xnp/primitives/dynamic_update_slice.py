"""dynamic_update_slice: replace a window of an array, at a start known when the program runs.

Operands are the array, the update, and one integer scalar for each dimension. Starts are moved so
that the window lies inside. It is linear in array and update together.
Semantics: StableHLO specification, section dynamic_update_slice.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.dimensions import inserted
from xnp.primitives.dynamic_slice import check_starts, clamped, stacked, window_at
from xnp.primitives.index_modes import CLIP, ScatterDimensionNumbers
from xnp.primitives.operations import bind, filled
from xnp.primitives.table import common_dtype
from xprim import (
    STRUCTURAL,
    Linear,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    linear_in,
    not_mapped,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder

__all__ = ()


def _shape(aval: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> tuple[ShapedArray, ...]:
    dtype = common_dtype("dynamic_update_slice", (aval, update))
    check_starts("dynamic_update_slice", aval, starts, update.shape)
    return (shaped_array(aval.shape, dtype, aval.weak_type and update.weak_type),)


def _numpy(x: Any, update: Any, *starts: Any) -> Any:
    out = x.copy()
    out[clamped(x.shape, update.shape, starts)] = update
    return (out,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    if not avals_in[0].ndim:
        return [operands[1]]
    x, update, *starts = operands
    if b.platform == "cpu" and avals_in[1].size > 1:
        # XLA would merge the update into a loop that writes over the array, and, where it is made
        # of that array (reversed, say), read elements that are written already. The barrier holds
        # from jaxlib 0.11 on; jaxlib 0.10 takes it away too early.
        (update,) = b.op("stablehlo.optimization_barrier", [update], [avals_in[1]], [avals_in[1]])
    return b.op("stablehlo.dynamic_update_slice", [x, update, *starts], avals_in, avals_out)


def _transpose(cts: Any, x: Any, update: Any, *starts: Any) -> Any:
    (ct,) = cts
    shape, dtype = update.aval.shape, ct.aval.dtype
    x_bar: Any = Zero(x.aval)
    update_bar: Any = Zero(update.aval)
    if type(x) is Linear:
        x_bar = dynamic_update_slice_p.bind(ct, filled(shape, 0, dtype), *starts)[0]
    if type(update) is Linear:
        update_bar = bind("dynamic_slice", ct, *starts, slice_sizes=shape)
    return (x_bar, update_bar, *[Zero(s.aval) for s in starts])


def _batch(axis: BatchAxis, operands: Any, dims: Any) -> Any:
    (x, update, *starts), (d, d_update, *start_dims) = operands, dims
    if all(k is not_mapped for k in start_dims):
        if d is not_mapped or d != d_update:
            x, update = axis.to_front(x, d), axis.to_front(update, d_update)
            d = 0
        start = filled((), 0, starts[0].aval.dtype if starts else dtypes.int32)
        return dynamic_update_slice_p.bind(x, update, *inserted(starts, d, start)), (d,)
    x, update = axis.to_front(x, d), axis.to_front(update, d_update)
    inner = tuple(range(1, x.aval.ndim))
    numbers = ScatterDimensionNumbers(inner, (), inner, (0,), (0,))
    out = bind(
        "scatter", x, stacked(axis, starts, start_dims), update, dimension_numbers=numbers,
        indices_are_sorted=True, unique_indices=True, mode=CLIP,
    )  # fmt: skip
    return (out,), (0,)


dynamic_update_slice_p: Primitive = Primitive(
    "dynamic_update_slice",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=linear_in(0, 1),
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    windows=lambda x, update, *starts: window_at(x, starts, update.aval.shape),
    dimensions=dimension_names.alike,
)
