"""Slices: at static positions, and at positions that are known when the program runs."""

from __future__ import annotations

import builtins
import functools
from typing import Any

import xprim
from xnp.primitives import costs, table
from xnp.primitives.gather import slice_dimensions
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers, ScatterDimensionNumbers
from xnp.primitives.shapes import insert
from xnp.primitives.table import bind, broadcast_to, common_dtype, convert, fill, reshape
from xprim import STRUCTURAL, Checks, Primitive, ShapedArray, Zero, dtypes, not_mapped, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require

__all__ = ()


# ----------------------------------------------------------------------------------------- slice
# slice: the elements from start to limit in steps of the stride, in each dimension.
#
# All bounds are static; `strides` None means steps of 1. Semantics: StableHLO specification,
# section slice.


def _slice_shape(
    aval: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any
) -> tuple[ShapedArray, ...]:
    steps = (1,) * aval.ndim if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps) == aval.ndim:
        raise TypeError(message(
            "slice", "start, limit and stride must be given for each dimension of the operand.",
            got=f"starts {start_indices}, limits {limit_indices}, strides {strides} for "
            f"{aval.str_long()}",
        ))  # fmt: skip
    require(
        all(s > 0 for s in steps), "slice", "strides must be positive, got {}.", steps,
        error=TypeError,
    )  # fmt: skip
    for low, high, size in zip(start_indices, limit_indices, aval.shape, strict=True):
        if not 0 <= low <= high <= size:
            raise TypeError(message(
                "slice", "the bounds must be within the operand.",
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


def _slice_numpy(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    # the ellipsis keeps the result of a slice of rank 0 an array
    return (x[(*_plan(start_indices, limit_indices, strides), ...)],)


def _slice_stablehlo(
    b: Builder,
    operands: Any,
    avals_in: Any,
    avals_out: Any,
    *,
    start_indices: Any,
    limit_indices: Any,
    strides: Any,
) -> Any:
    if avals_in[0].shape == avals_out[0].shape:
        return [operands[0]]
    start, limit, step = (
        f"array<i64: {', '.join(map(str, values))}>"
        for values in (start_indices, limit_indices, strides or (1,) * len(start_indices))
    )
    return b.op("stablehlo.slice", operands, avals_in, avals_out,
                f"start_indices = {start}, limit_indices = {limit}, strides = {step}")  # fmt: skip


def _slice_transpose(
    cts: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any
) -> Any:
    (ct,) = cts
    steps = (1,) * x.aval.ndim if strides is None else strides
    config = []
    for size, low, step, count in zip(x.aval.shape, start_indices, steps, ct.aval.shape,
                                      strict=True):  # fmt: skip
        covered = (count - 1) * step + 1 if count else 0
        config.append((low, size - low - covered, step - 1))
    return (bind("pad", ct, fill((), 0, ct.aval.dtype), padding_config=tuple(config)),)


def _slice_batch(
    axis: BatchAxis,
    operands: Any,
    dims: Any,
    *,
    start_indices: Any,
    limit_indices: Any,
    strides: Any,
) -> Any:
    (x,), (d,) = operands, dims
    outs = slice_p.bind(
        x,
        start_indices=insert(start_indices, d, 0),
        limit_indices=insert(limit_indices, d, axis.size),
        strides=None if strides is None else insert(strides, d, 1),
    )
    return outs, (d,)


slice_p: Primitive = Primitive(
    "slice",
    shape=_slice_shape,
    numpy=_slice_numpy,
    stablehlo=_slice_stablehlo,
    jvp=xprim.LINEAR,
    transpose=_slice_transpose,
    batch=_slice_batch,
    physical=STRUCTURAL,
    eager=costs.view,
    sharding=slice_dimensions,
)


# --------------------------------------------------------------------------------- dynamic slice
# dynamic_slice: a window of static size at a start that is known when the program runs.
#
# Operands are the array and one integer scalar for each of its dimensions. Starts are moved so
# that the window lies inside. Semantics: StableHLO specification, section dynamic_slice.


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


def clamp_window(shape: Any, window: Any, starts: Any) -> tuple[Any, ...]:
    """Return the slices of a window moved inside an array of a shape."""
    slices = []
    for n, w, start in zip(shape, window, starts, strict=True):
        low = min(max(int(start), 0), n - w)
        slices.append(slice(low, low + w))
    return (*slices, ...)


def window_at(x: Any, starts: Any, window: Any) -> Any:
    """Return where one window of an array lies: what a `windows` rule says."""
    parts = [reshape(convert(s, dtypes.int32), (1,)) for s in starts]
    vector = table.join(parts, 0) if parts else fill((0,), 0, dtypes.int32)
    return vector, tuple(range(x.aval.ndim)), window


def stack_starts(axis: BatchAxis, starts: Any, dims: Any) -> Any:
    """Return starts, of which some are mapped, as one array of index vectors [batch, rank]."""
    columns = []
    for start, d in zip(starts, dims, strict=True):
        if d is not_mapped:
            columns.append(broadcast_to(start, (axis.size, 1), ()))
        else:
            columns.append(reshape(start, (axis.size, 1)))
    return columns[0] if len(columns) == 1 else bind("concatenate", *columns, dimension=1)


def _dynamic_slice_shape(
    aval: ShapedArray, *starts: ShapedArray, slice_sizes: Any
) -> tuple[ShapedArray, ...]:
    check_starts("dynamic_slice", aval, starts, slice_sizes)
    return (shaped_array(slice_sizes, aval.dtype, aval.weak_type),)


def _dynamic_slice_numpy(x: Any, *starts: Any, slice_sizes: Any) -> Any:
    return (x[clamp_window(x.shape, slice_sizes, starts)],)


def _dynamic_slice_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, slice_sizes: Any
) -> Any:
    if not slice_sizes:
        return [operands[0]]
    return b.op("stablehlo.dynamic_slice", operands, avals_in, avals_out,
                f"slice_sizes = array<i64: {', '.join(map(str, slice_sizes))}>")  # fmt: skip


def _dynamic_slice_transpose(cts: Any, x: Any, *starts: Any, slice_sizes: Any) -> Any:
    zeros = fill(x.aval.shape, 0, cts[0].aval.dtype)
    x_bar = bind("dynamic_update_slice", zeros, cts[0], *starts)
    return (x_bar, *[Zero(s.aval) for s in starts])


def _dynamic_slice_batch(axis: BatchAxis, operands: Any, dims: Any, *, slice_sizes: Any) -> Any:
    (x, *starts), (d, *start_dims) = operands, dims
    if all(k is not_mapped for k in start_dims):
        starts = insert(starts, d, fill((), 0, _index_dtype(starts)))
        outs = dynamic_slice_p.bind(x, *starts, slice_sizes=insert(slice_sizes, d, axis.size))
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
        "gather", x, stack_starts(axis, starts, start_dims), dimension_numbers=numbers,
        slice_sizes=sizes, indices_are_sorted=False, unique_indices=False, mode=CLIP,
        fill_value=None,
    )  # fmt: skip
    return (out,), (0,)


def _index_dtype(starts: Any) -> Any:
    return starts[0].aval.dtype if starts else dtypes.int32


dynamic_slice_p: Primitive = Primitive(
    "dynamic_slice",
    shape=_dynamic_slice_shape,
    numpy=_dynamic_slice_numpy,
    stablehlo=_dynamic_slice_stablehlo,
    jvp=xprim.linear_in(0),
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    physical=STRUCTURAL,
    checks=Checks(windows=lambda x, *starts, slice_sizes: window_at(x, starts, slice_sizes)),
    sharding=slice_dimensions,
)


# -------------------------------------------------------------------------- dynamic update slice
# dynamic_update_slice: replace a window of an array, at a start known when the program runs.
#
# Operands are the array, the update, and one integer scalar for each dimension. Starts are moved
# so that the window lies inside. It is linear in array and update together. Semantics: StableHLO
# specification, section dynamic_update_slice.


def _dynamic_update_slice_shape(
    aval: ShapedArray, update: ShapedArray, *starts: ShapedArray
) -> tuple[ShapedArray, ...]:
    dtype = common_dtype("dynamic_update_slice", (aval, update))
    check_starts("dynamic_update_slice", aval, starts, update.shape)
    return (shaped_array(aval.shape, dtype, aval.weak_type and update.weak_type),)


def _dynamic_update_slice_numpy(x: Any, update: Any, *starts: Any) -> Any:
    out = x.copy()
    out[clamp_window(x.shape, update.shape, starts)] = update
    return (out,)


def _dynamic_update_slice_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any
) -> Any:
    if not avals_in[0].ndim:
        return [operands[1]]
    x, update, *starts = operands
    if b.platform == "cpu" and avals_in[1].size > 1:
        # XLA would merge the update into a loop that writes over the array, and, where it is made
        # of that array (reversed, say), read elements that are written already. The barrier holds
        # from jaxlib 0.11 on; jaxlib 0.10 takes it away too early.
        (update,) = b.op("stablehlo.optimization_barrier", [update], [avals_in[1]], [avals_in[1]])
    return b.op("stablehlo.dynamic_update_slice", [x, update, *starts], avals_in, avals_out)


def _dynamic_update_slice_transpose(cts: Any, x: Any, update: Any, *starts: Any) -> Any:
    (ct,) = cts
    shape, dtype = update.aval.shape, ct.aval.dtype
    x_bar: Any = Zero(x.aval)
    update_bar: Any = Zero(update.aval)
    if type(x) is xprim.Linear:
        x_bar = dynamic_update_slice_p.bind(ct, fill(shape, 0, dtype), *starts)[0]
    if type(update) is xprim.Linear:
        update_bar = bind("dynamic_slice", ct, *starts, slice_sizes=shape)
    return (x_bar, update_bar, *[Zero(s.aval) for s in starts])


def _dynamic_update_slice_batch(axis: BatchAxis, operands: Any, dims: Any) -> Any:
    (x, update, *starts), (d, d_update, *start_dims) = operands, dims
    if all(k is not_mapped for k in start_dims):
        if d is not_mapped or d != d_update:
            x, update = axis.to_front(x, d), axis.to_front(update, d_update)
            d = 0
        start = fill((), 0, starts[0].aval.dtype if starts else dtypes.int32)
        return dynamic_update_slice_p.bind(x, update, *insert(starts, d, start)), (d,)
    x, update = axis.to_front(x, d), axis.to_front(update, d_update)
    inner = tuple(range(1, x.aval.ndim))
    numbers = ScatterDimensionNumbers(inner, (), inner, (0,), (0,))
    out = bind(
        "scatter", x, stack_starts(axis, starts, start_dims), update, dimension_numbers=numbers,
        indices_are_sorted=True, unique_indices=True, mode=CLIP,
    )  # fmt: skip
    return (out,), (0,)


dynamic_update_slice_p: Primitive = Primitive(
    "dynamic_update_slice",
    shape=_dynamic_update_slice_shape,
    numpy=_dynamic_update_slice_numpy,
    stablehlo=_dynamic_update_slice_stablehlo,
    jvp=xprim.linear_in(0, 1),
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
    physical=STRUCTURAL,
    checks=Checks(windows=lambda x, update, *starts: window_at(x, starts, update.aval.shape)),
    sharding=xprim.dimension_names.alike,
)
