"""dynamic_slice: a window of static size at a start that is known when the program runs.

Operands are the array and one integer scalar for each of its dimensions. Starts are moved so that
the window lies inside. Semantics: StableHLO specification, section dynamic_slice.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.corresponding_dimensions import slice_dimensions
from xnp.primitives.dimensions import inserted
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers
from xnp.primitives.operations import bind, broadcasted, concatenated, converted, filled, reshaped
from xnp.primitives.table import common_dtype
from xprim import (
    STRUCTURAL,
    Primitive,
    ShapedArray,
    Zero,
    dtypes,
    linear_in,
    not_mapped,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def check_starts(name: str, aval: ShapedArray, starts: Any, window: Any) -> None:
    """Raise unless there is an integer scalar for each dimension and the window fits."""
    if len(starts) != aval.ndim or any(s.ndim for s in starts):
        raise TypeError(message(
            name, "needs a start of rank 0 for each dimension of the operand.",
            got=f"{', '.join(s.str_long() for s in starts) or 'none'} for {aval.str_long()}",
        ))  # fmt: skip
    if starts and not dtypes.is_integer(common_dtype(name, starts)):
        raise TypeError(f"{name}: the starts must be integers, not {starts[0].dtype.name}.")
    if len(window) != aval.ndim or any(
        not 0 <= w <= n for w, n in zip(window, aval.shape, strict=False)
    ):
        raise TypeError(message(
            name, "the window does not fit into the operand.",
            got=f"a window of shape {tuple(window)} in {aval.str_long()}",
        ))  # fmt: skip


def clamped(shape: Any, window: Any, starts: Any) -> tuple[Any, ...]:
    """Return the slices of a window moved inside an array of a shape."""
    slices = []
    for n, w, start in zip(shape, window, starts, strict=True):
        low = min(max(int(start), 0), n - w)
        slices.append(slice(low, low + w))
    return (*slices, ...)


def window_at(x: Any, starts: Any, window: Any) -> Any:
    """Return where one window of an array lies: what a `windows` rule says."""
    parts = [reshaped(converted(s, dtypes.int32), (1,)) for s in starts]
    vector = concatenated(parts, 0) if parts else filled((0,), 0, dtypes.int32)
    return vector, tuple(range(x.aval.ndim)), window


def stacked(axis: BatchAxis, starts: Any, dims: Any) -> Any:
    """Return starts, of which some are mapped, as one array of index vectors [batch, rank]."""
    columns = []
    for start, d in zip(starts, dims, strict=True):
        if d is not_mapped:
            columns.append(broadcasted(start, (axis.size, 1), ()))
        else:
            columns.append(reshaped(start, (axis.size, 1)))
    return columns[0] if len(columns) == 1 else bind("concatenate", *columns, dimension=1)


def _shape(aval: ShapedArray, *starts: ShapedArray, slice_sizes: Any) -> tuple[ShapedArray, ...]:
    check_starts("dynamic_slice", aval, starts, slice_sizes)
    return (shaped_array(slice_sizes, aval.dtype, aval.weak_type),)


def _numpy(x: Any, *starts: Any, slice_sizes: Any) -> Any:
    return (x[clamped(x.shape, slice_sizes, starts)],)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, slice_sizes: Any
) -> Any:
    if not slice_sizes:
        return [operands[0]]
    return b.op("stablehlo.dynamic_slice", operands, avals_in, avals_out,
                f"slice_sizes = array<i64: {', '.join(map(str, slice_sizes))}>")  # fmt: skip


def _transpose(cts: Any, x: Any, *starts: Any, slice_sizes: Any) -> Any:
    zeros = filled(x.aval.shape, 0, cts[0].aval.dtype)
    x_bar = bind("dynamic_update_slice", zeros, cts[0], *starts)
    return (x_bar, *[Zero(s.aval) for s in starts])


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, slice_sizes: Any) -> Any:
    (x, *starts), (d, *start_dims) = operands, dims
    if all(k is not_mapped for k in start_dims):
        starts = inserted(starts, d, filled((), 0, _index_dtype(starts)))
        outs = dynamic_slice_p.bind(x, *starts, slice_sizes=inserted(slice_sizes, d, axis.size))
        return outs, (d,)
    rank = len(slice_sizes)
    numbers = GatherDimensionNumbers(tuple(range(1, rank + 1)), (), tuple(range(rank)))
    sizes = slice_sizes
    if d is not not_mapped:
        x = axis.to_front(x, d)
        numbers = GatherDimensionNumbers(
            numbers.offset_dims, (), tuple(range(1, rank + 1)), (0,), (0,)
        )
        sizes = (min(axis.size, 1), *slice_sizes)
    out = bind(
        "gather", x, stacked(axis, starts, start_dims), dimension_numbers=numbers,
        slice_sizes=sizes, indices_are_sorted=False, unique_indices=False, mode=CLIP,
        fill_value=None,
    )  # fmt: skip
    return (out,), (0,)


def _index_dtype(starts: Any) -> Any:
    return starts[0].aval.dtype if starts else dtypes.int32


dynamic_slice_p: Primitive = Primitive(
    "dynamic_slice",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=linear_in(0),
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    windows=lambda x, *starts, slice_sizes: window_at(x, starts, slice_sizes),
    dimensions=slice_dimensions,
)
