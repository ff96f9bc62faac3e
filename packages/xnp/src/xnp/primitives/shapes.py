"""Primitives that change shapes and the order of elements: reshape, transpose, pad, ...

broadcast_in_dim, concatenate, iota, pad, reshape, rev, split, squeeze, transpose; and
dimension_value, the size of a symbolic dimension as an array. All of them are linear, and their
transposes are each other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs
from xnp.primitives.lowering_text import TWO_BITS, upcast
from xnp.primitives.table import NUMBER, bind, broadcast_to, common_dtype, fill, reshape, select
from xprim import LINEAR, NumpyCall, Operand, Primitive, ShapedArray, dimension_names, shaped_array
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.requirements import require, require_axis
from xprim.sharded_types import axes_of_dimensions

__all__ = ()


# ------------------------------------------------------------------------------------ dimensions
# Tuples of dimensions and sizes: insert, leave out, renumber; and the dtype that positions need.


def insert(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """Return a tuple with one more value at a position."""
    return (*values[:position], value, *values[position:])


def without(values: Sequence[Any], position: int) -> tuple[Any, ...]:
    """Return a tuple without the value at a position."""
    return (*values[:position], *values[position + 1 :])


def shift_dims_for_batch(dims: Sequence[int], position: int) -> tuple[int, ...]:
    """Return dimensions as they are numbered after one is inserted at a position."""
    return tuple([d + (d >= position) for d in dims])


def index_dtype_for(size: int) -> np.dtype[Any]:
    """Return the dtype that indices into `size` elements need: int32 where that is enough."""
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


# ------------------------------------------------------------------------------- dimension value
# dimension_value: the number that a symbolic dimension is, as an array.
#
# Its value is known when the program is: it is written as the expression, and read as a constant.


def _dimension_value_shape(*, dimension: Any) -> Any:
    return (shaped_array((), xprim.dtypes.python_scalar_dtype(int), True),)


def _dimension_value_numpy(*, dimension: Any) -> Any:
    raise TypeError(
        f"dimension_value: the symbolic dimension {dimension} has no value outside of the program "
        "that is exported."
    )


def _dimension_value_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: Any
) -> Any:
    kind = f"tensor<i{8 * avals_out[0].dtype.itemsize}>"
    return b.op("stablehlo.constant", [], [], avals_out, f"value = dense<{dimension}> : {kind}")


dimension_value_p = Primitive(
    "dimension_value",
    call_like=True,  # what it gives is of one program, and must not be remembered beyond it
    shape=_dimension_value_shape,
    numpy=_dimension_value_numpy,
    stablehlo=_dimension_value_stablehlo,
    jvp=xprim.ZERO,
    transpose=xprim.undefined("it has no operands"),
    batch=xprim.undefined("it has no operands"),
)


# ------------------------------------------------------------------------------ broadcast in dim
# broadcast_in_dim: repeat an array along new dimensions and along dimensions of size 1.
#
# Dimension `i` of the operand becomes dimension `broadcast_dimensions[i]` of the result.
# Semantics: StableHLO specification, section broadcast_in_dim.


def _broadcast_in_dim_shape(
    aval: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    dims = broadcast_dimensions
    problem = ""
    if len(dims) != aval.ndim:
        problem = "broadcast_dimensions must have length equal to operand ndim"
    elif len(shape) < aval.ndim:
        problem = "target broadcast shape must have equal or higher rank to the operand shape"
    elif not all(0 <= d < len(shape) for d in dims):
        problem = "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions"
    elif any(n not in (1, shape[d]) for n, d in zip(aval.shape, dims, strict=True)):
        problem = (
            "operand dimension sizes must either be 1, or be equal to their corresponding "
            "dimensions in the target broadcast shape"
        )
    elif any(a >= b for a, b in pairwise(dims)):
        problem = "broadcast_dimensions must be strictly increasing"
    require(
        not problem, "broadcast_in_dim", "{}.", problem,
        got={"operand": aval, "shape": shape, "broadcast_dimensions": dims}, error=TypeError,
    )  # fmt: skip
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _broadcast_in_dim_numpy(x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    spread = _place_dimensions(x, shape, broadcast_dimensions) if x.ndim else x
    size = math.prod(shape)
    if size <= _SMALL:  # filling costs a fifth of `np.broadcast_to`
        out = np.empty(shape, x.dtype)
        out[...] = spread
        return (out,)
    if 1 < x.size <= _SHORT and size <= _MEDIUM and x.size == spread.shape[-1] == shape[-1]:
        # NumPy takes up to ten times as long for loops over the short rows of a view.
        return (np.frombuffer(x.tobytes() * (size // x.size), x.dtype).reshape(shape),)
    return (np.broadcast_to(spread, shape),)


_SMALL = 1024
_MEDIUM = 1 << 19
_SHORT = 32


def _place_dimensions(x: Any, shape: Any, dims: Any) -> Any:
    """Return an array with its dimensions at their places among dimensions of size 1."""
    sizes = [1] * len(shape)
    for size, d in zip(x.shape, dims, strict=True):
        sizes[d] = size
    return x.reshape(sizes)


def _broadcast_in_dim_ufunc(
    avals_in: Any, avals_out: Any, *, shape: Any, broadcast_dimensions: Any
) -> NumpyCall | None:
    """Say where the elements stay as they are, and where NumPy would repeat them by itself."""
    if avals_in[0].size == avals_out[0].size:
        return NumpyCall(methodcaller("reshape", shape), (Operand(0),))
    if broadcast_dimensions == tuple(range(len(shape) - len(broadcast_dimensions), len(shape))):
        return NumpyCall(np.broadcast_to, (Operand(0), shape))
    return None


def _broadcast_in_dim_stablehlo(
    b: Builder,
    operands: Any,
    avals_in: Any,
    avals_out: Any,
    *,
    shape: Any,
    broadcast_dimensions: Any,
) -> Any:
    return [b.broadcast(operands[0], avals_in[0], shape, broadcast_dimensions)]


def _broadcast_in_dim_transpose(cts: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    (ct,) = cts
    new = tuple([d for d in range(len(shape)) if d not in broadcast_dimensions])
    stretched = tuple([d for size, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
                       if size != shape[d]])  # fmt: skip
    axes = tuple(sorted(new + stretched))
    if axes:
        ct = xprim.get_primitive("reduce_sum").bind(ct, axes=axes)[0]
    if ct.aval.shape != x.aval.shape:  # the stretched dimensions come back with size 1
        ct = xprim.get_primitive("reshape").bind(ct, new_sizes=x.aval.shape, dimensions=None)[0]
    return (ct,)


def _broadcast_in_dim_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, shape: Any, broadcast_dimensions: Any
) -> Any:
    (x,), (d,) = operands, dims
    x = axis.to_front(x, d)
    outs = broadcast_in_dim_p.bind(
        x,
        shape=(axis.size, *shape),
        broadcast_dimensions=(0, *[i + 1 for i in broadcast_dimensions]),
    )
    return outs, (0,)


def _print(*, shape: Any, broadcast_dimensions: Any) -> dict[str, Any]:
    """Show what the type of the result does not say."""
    return {"broadcast_dimensions": broadcast_dimensions} if broadcast_dimensions else {}


def _broadcast_in_dim_dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    names: list[Any] = [None] * out[0].ndim
    for d, target in enumerate(params["broadcast_dimensions"]):
        names[target] = d if avals[0].shape[d] == out[0].shape[target] else None
    kept = {name for name in names if name is not None}
    operand = tuple([d if d in kept else None for d in range(avals[0].ndim)])
    return dimension_names.Names([operand], [tuple(names)])


broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    shape=_broadcast_in_dim_shape,
    numpy=_broadcast_in_dim_numpy,
    stablehlo=_broadcast_in_dim_stablehlo,
    jvp=LINEAR,
    transpose=_broadcast_in_dim_transpose,
    uses_all=True,
    batch=_broadcast_in_dim_batch,
    physical=xprim.STRUCTURAL,
    print=_print,
    eager=xprim.Eager(costs.view, ufunc=_broadcast_in_dim_ufunc),
    sharding=_broadcast_in_dim_dimensions,
)


# ----------------------------------------------------------------------------------- concatenate
# concatenate: join arrays along one of their dimensions.
#
# Semantics: StableHLO specification, section concatenate.


def _concatenate_shape(*avals: ShapedArray, dimension: int) -> tuple[ShapedArray, ...]:
    require(avals, "concatenate", "needs at least one array, got none.")
    first = avals[0]
    if not 0 <= dimension < first.ndim:
        raise TypeError(message(
            "concatenate", f"there is no dimension {dimension} in operands of rank {first.ndim}.",
            got=_format_avals(avals),
            hint="arrays of rank 0 are joined by stack" if first.ndim == 0 else "",
        ))  # fmt: skip
    dtype = common_dtype("concatenate", avals)
    rest = (*first.shape[:dimension], *first.shape[dimension + 1 :])
    total = 0
    for aval in avals:
        if aval.ndim != first.ndim or rest != (*aval.shape[:dimension],
                                               *aval.shape[dimension + 1 :]):  # fmt: skip
            raise TypeError(message(
                "concatenate", f"the shapes may differ only in dimension {dimension}.",
                got=f"{_format_avals(avals)}",
                expected=f"one rank, and equal sizes but in dimension {dimension}",
            ))  # fmt: skip
        total += aval.shape[dimension]
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    return (shaped_array(shape, dtype, all(a.weak_type for a in avals)),)


def _format_avals(avals: Any) -> str:
    shown = [a.str_long() for a in avals[:8]]
    return ", ".join(shown) + (f", ... ({len(avals)} operands)" if len(avals) > 8 else "")


def _concatenate_numpy(*xs: Any, dimension: int) -> Any:
    return (np.concatenate(xs, dimension),)


def _concatenate_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int
) -> Any:
    if len(operands) == 1:
        return [operands[0]]
    return b.op("stablehlo.concatenate", operands, avals_in, avals_out,
                f"dimension = {dimension} : i64")  # fmt: skip


def _concatenate_transpose(cts: Any, *xs: Any, dimension: int) -> Any:
    (ct,) = cts
    results: list[Any] = []
    start = 0
    low, high = [0] * ct.aval.ndim, list(ct.aval.shape)
    for x in xs:
        stop = start + x.aval.shape[dimension]
        if type(x) is xprim.Linear:
            low[dimension], high[dimension] = start, stop
            results.append(bind("slice", ct, start_indices=tuple(low), limit_indices=tuple(high),
                                strides=None))  # fmt: skip
        else:
            results.append(xprim.Zero(x.aval))
        start = stop
    return tuple(results)


def _concatenate_batch(axis: BatchAxis, operands: Any, dims: Any, *, dimension: int) -> Any:
    d = dims[0]
    if d is xprim.not_mapped or any(other is xprim.not_mapped or other != d for other in dims):
        operands = [axis.to_front(x, k) for x, k in zip(operands, dims, strict=True)]
        d = 0
    return concatenate_p.bind(*operands, dimension=dimension + (d <= dimension)), (d,)


def _concatenate_cost(avals_in: Any, avals_out: Any, *, dimension: int) -> float:
    """Count the pieces of rows: NumPy copies long ones as fast as XLA, and 5 ns go by for each."""
    rows: int = math.prod(avals_out[0].shape[:dimension])
    return 5.0 * len(avals_in) * rows


concatenate_p: Primitive = Primitive(
    "concatenate",
    shape=_concatenate_shape,
    numpy=_concatenate_numpy,
    stablehlo=upcast(_concatenate_stablehlo, TWO_BITS, np.int8),
    jvp=LINEAR,
    transpose=_concatenate_transpose,
    uses_all=True,
    batch=_concatenate_batch,
    physical=xprim.STRUCTURAL,
    eager=_concatenate_cost,
    sharding=dimension_names.alike,
)


# ------------------------------------------------------------------------------------------ iota
# iota: an array that counts 0, 1, 2, ... along one dimension.
#
# Semantics: StableHLO specification, section iota; counts that the dtype cannot hold wrap around.


def _iota_shape(*, dtype: Any, shape: Any, dimension: int) -> tuple[ShapedArray, ...]:
    require(dtype in NUMBER, "iota", "needs a number dtype, got {}.", dtype, error=TypeError)
    if not 0 <= dimension < len(shape):
        raise ValueError(message(
            "iota", f"dimension {dimension} does not exist in the shape {shape}.",
            expected=f"0 <= dimension < {len(shape)}",
        ))  # fmt: skip
    return (shaped_array(shape, dtype),)


def _iota_numpy(*, dtype: Any, shape: Any, dimension: int) -> Any:
    counts = np.arange(shape[dimension]).astype(dtype)
    if len(shape) == 1:
        return (counts,)
    ones = [1] * len(shape)
    ones[dimension] = -1
    return (np.broadcast_to(counts.reshape(ones), shape),)


def _iota_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int,
               **_: Any) -> Any:  # fmt: skip
    return b.op("stablehlo.iota", [], [], avals_out, f"iota_dimension = {dimension} : i64")


iota_p: Primitive = Primitive(
    "iota",
    shape=_iota_shape,
    numpy=_iota_numpy,
    stablehlo=_iota_stablehlo,
    jvp=xprim.ZERO,
    transpose=xprim.undefined("it has no operands"),
    batch=xprim.undefined("it has no operands"),
)


# ------------------------------------------------------------------------------------------- pad
# pad: put a padding value before, after and between the elements; negative edges crop.
#
# `padding_config` holds `(low, high, interior)` for each dimension: element `i` of the operand
# comes to `low + i * (interior + 1)`, elements outside the result are dropped. Semantics:
# StableHLO specification, section pad.


def _pad_shape(aval: ShapedArray, value: ShapedArray, *, padding_config: Any) -> Any:
    dtype = common_dtype("pad", (aval, value))
    require(not value.ndim, "pad", "padding_value must be a scalar.", got=value)
    require(
        len(padding_config) == aval.ndim, "pad",
        "padding_config must have one (low, high, interior) for each dimension.",
        got={"padding_config": padding_config, "operand": aval},
    )  # fmt: skip
    shape = tuple([_size(n, c) for n, c in zip(aval.shape, padding_config, strict=True)])
    if any(c[2] < 0 for c in padding_config) or any(n < 0 for n in shape):
        raise ValueError(message(
            "pad", "interior padding in padding_config must be nonnegative."
            if any(c[2] < 0 for c in padding_config)
            else "Dimension size after padding is not at least 0.",
            got=f"{padding_config} for {aval.str_long()}, giving sizes {shape}",
        ))  # fmt: skip
    return (shaped_array(shape, dtype, aval.weak_type and value.weak_type),)


def _size(size: int, config: tuple[int, int, int]) -> int:
    low, high, interior = config
    return low + high + (size + (size - 1) * interior if size else 0)


@functools.lru_cache(maxsize=4096)
def _plan(shape: Any, padding_config: Any) -> tuple[Any, Any, Any]:
    """Return the result's shape, which elements of the operand stay, and where they go."""
    sizes = tuple([_size(n, c) for n, c in zip(shape, padding_config, strict=True)])
    source, target = [], []
    for n, size, (low, _, interior) in zip(shape, sizes, padding_config, strict=True):
        step = interior + 1
        first = -(low // step) if low < 0 else 0
        last = min(n, -((low - size) // step))  # one past the last element that stays
        if last <= first:
            return sizes, None, None
        source.append(slice(first, last))
        target.append(slice(low + first * step, low + (last - 1) * step + 1, step))
    return sizes, tuple(source), tuple(target)


def _pad_numpy(x: Any, value: Any, *, padding_config: Any) -> Any:
    sizes, source, target = _plan(x.shape, padding_config)
    out = np.empty(sizes, x.dtype)
    if source is None or any(t.step != 1 for t in target):
        out[...] = value
    else:
        _fill_edges(out, value, target)
    if source is not None:
        out[target] = x[source]
    return (out,)


def _fill_edges(out: Any, value: Any, target: tuple[slice, ...]) -> None:
    """Fill what lies before and behind a block, an axis after the other, each element once."""
    for d, kept in enumerate(target):
        inside = target[:d]
        out[(*inside, slice(None, kept.start))] = value
        out[(*inside, slice(kept.stop, None))] = value


def _pad_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, padding_config: Any
) -> Any:
    if not any(map(any, padding_config)):
        return [operands[0]]
    low, high, interior = (
        f"array<i64: {', '.join(map(str, column))}>" for column in zip(*padding_config, strict=True)
    )
    return b.op("stablehlo.pad", operands, avals_in, avals_out,
                f"edge_padding_low = {low}, edge_padding_high = {high}, "
                f"interior_padding = {interior}")  # fmt: skip


def _pad_transpose(cts: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    (ct,) = cts
    cropped = tuple([(-low, -high, 0) for low, high, _ in padding_config])
    x_bar = pad_p.bind(ct, fill((), 0, ct.aval.dtype), padding_config=cropped)[0]
    if any(interior for _, _, interior in padding_config):
        x_bar = bind(
            "slice", x_bar, start_indices=(0,) * ct.aval.ndim, limit_indices=x_bar.aval.shape,
            strides=tuple([interior + 1 for _, _, interior in padding_config]),
        )  # fmt: skip
    value_bar: Any = xprim.Zero(value.aval)
    if type(value) is xprim.Linear:
        value_bar = bind("sub", _total(ct), _total(x_bar))
    return (x_bar if type(x) is xprim.Linear else xprim.Zero(x.aval)), value_bar


def _total(x: Any) -> Any:
    return bind("reduce_sum", x, axes=tuple(range(x.aval.ndim)))


def _pad_batch(axis: BatchAxis, operands: Any, dims: Any, *, padding_config: Any) -> Any:
    (x, value), (d, d_value) = operands, dims
    if d_value is xprim.not_mapped:
        return pad_p.bind(x, value, padding_config=insert(padding_config, d, (0, 0, 0))), (d,)
    x = axis.to_front(x, d)
    truth = np.dtype(bool)
    no, yes = fill((), False, truth), fill((), True, truth)
    # as weak as the array, or the result would not be
    zero = xprim.scalar_array(0, x.aval.dtype, x.aval.weak_type)
    config = ((0, 0, 0), *padding_config)
    padded = pad_p.bind(x, zero, padding_config=config)[0]
    inside = broadcast_to(no, x.aval.shape[1:], ())
    outside = pad_p.bind(inside, yes, padding_config=padding_config)[0]
    shape = padded.aval.shape
    outside = broadcast_to(outside, shape, tuple(range(1, len(shape))))
    return (select(outside, broadcast_to(value, shape, (0,)), padded),), (0,)


pad_p: Primitive = Primitive(
    "pad",
    shape=_pad_shape,
    numpy=_pad_numpy,
    stablehlo=_pad_stablehlo,
    jvp=LINEAR,
    transpose=_pad_transpose,
    batch=_pad_batch,
    physical=xprim.STRUCTURAL,
    sharding=dimension_names.alike,
)


# --------------------------------------------------------------------------------------- reshape
# reshape: the same elements in row-major order under another shape.
#
# Semantics: StableHLO specification, section reshape. `dimensions` is always None (the public
# function transposes first on request); it is kept because jaxprs show it.


def _reshape_shape(
    aval: ShapedArray, *, new_sizes: Any, dimensions: Any
) -> tuple[ShapedArray, ...]:
    out = shaped_array(new_sizes, aval.dtype, aval.weak_type)
    if out.size != aval.size:
        raise TypeError(message(
            "reshape", f"the number of elements changes from {aval.size} to {out.size}.",
            got=f"{aval.str_long()} to shape {new_sizes}",
            expected=f"a shape of {aval.size} elements",
        ))  # fmt: skip
    return (out,)


def _reshape_numpy(x: Any, *, new_sizes: Any, dimensions: Any) -> Any:
    return (x.reshape(new_sizes),)


def _reshape_ufunc(avals_in: Any, avals_out: Any, **_: Any) -> NumpyCall:
    return NumpyCall(methodcaller("reshape", avals_out[0].shape), (Operand(0),))


def _reshape_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_: Any) -> Any:
    if avals_in[0].shape == avals_out[0].shape:
        return [operands[0]]
    return b.op("stablehlo.reshape", operands, avals_in, avals_out)


def _reshape_transpose(cts: Any, x: Any, *, new_sizes: Any, dimensions: Any) -> Any:
    return reshape_p.bind(cts[0], new_sizes=x.aval.shape, dimensions=None)


def _reshape_batch(
    axis: BatchAxis, operands: Any, dims: Any, *, new_sizes: Any, dimensions: Any
) -> Any:
    x = axis.to_front(operands[0], dims[0])
    return reshape_p.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None), (0,)


def _reshape_dimensions(avals: Any, out: Any, params: Any) -> list[list[Any]] | None:
    """Return by which axes the result is cut; None where that is not clear.

    Runs of dimensions of equal size correspond. What cuts the first dimensions of a run cuts those
    of the result, in the same order.
    """
    if params.get("dimensions") is not None or avals[0].type_sharding is None:
        return None
    sizes, parts = avals[0].type_sharding.mesh.shape, axes_of_dimensions(avals[0])
    found: list[Any] = []
    for source, target in _runs(avals[0].shape, out[0].shape):
        axes = _axes_of_run([avals[0].shape[d] for d in source], [parts[d] for d in source])
        placed = None if axes is None else _place([out[0].shape[d] for d in target], axes, sizes)
        if placed is None:
            return None
        found += placed
    return [found]


def _runs(source: Sequence[int], target: Sequence[int]) -> list[tuple[range, range]]:
    """Return the shortest runs of dimensions of two shapes that have the same elements."""
    runs, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        start, left, right = (i, j), 1, 1
        while True:
            if left <= right and i < len(source):
                left *= source[i]
                i += 1
            elif j < len(target):
                right *= target[j]
                j += 1
            else:
                left *= source[i]
                i += 1
            if left == right:
                break
        runs.append((range(start[0], i), range(start[1], j)))
    return runs


def _axes_of_run(shape: Sequence[int], parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """Return the axes that cut the first dimensions of a run; None where they cut others."""
    axes: list[Any] = []
    is_past = False
    for n, part in zip(shape, parts, strict=True):
        if part and is_past:
            return None
        is_past = is_past or (n > 1 and not part)
        axes += part
    return tuple(axes)


def _place(shape: Sequence[int], axes: Sequence[Any], sizes: Any) -> list[Any] | None:
    """Return by which of the axes each dimension is cut, the first ones first."""
    rest, placed = list(axes), []
    for n in shape:
        own: list[Any] = []
        while rest and n > 1 and not n % sizes[rest[0]]:
            n //= sizes[rest[0]]
            own.append(rest.pop(0))
        if rest and n > 1:
            return None
        placed.append(tuple(own) or None)
    return None if rest else placed


reshape_p: Primitive = Primitive(
    "reshape",
    shape=_reshape_shape,
    numpy=_reshape_numpy,
    stablehlo=_reshape_stablehlo,
    jvp=LINEAR,
    transpose=_reshape_transpose,
    uses_all=True,
    batch=_reshape_batch,
    physical=xprim.STRUCTURAL,
    eager=xprim.Eager(costs.view, ufunc=_reshape_ufunc),
    sharding=_reshape_dimensions,
)


# ------------------------------------------------------------------------------------------- rev
# rev: reverse the order of elements along some dimensions.
#
# Semantics: StableHLO specification, section reverse.


def _rev_shape(aval: ShapedArray, *, dimensions: Any) -> tuple[ShapedArray, ...]:
    require(
        len(set(dimensions)) == len(dimensions) and all(0 <= d < aval.ndim for d in dimensions),
        "rev", "dimensions must be distinct and within the operand's {}.", aval.ndim,
        got={"dimensions": dimensions, "operand": aval}, error=TypeError,
    )  # fmt: skip
    return (aval,)


def _rev_numpy(x: Any, *, dimensions: Any) -> Any:
    backwards = [slice(None)] * x.ndim
    for d in dimensions:
        backwards[d] = slice(None, None, -1)
    return (x[tuple(backwards)],) if dimensions else (x,)


def _rev_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimensions: Any
) -> Any:
    if not dimensions:
        return [operands[0]]
    return b.op("stablehlo.reverse", operands, avals_in, avals_out,
                f"dimensions = array<i64: {', '.join(map(str, dimensions))}>")  # fmt: skip


def _rev_transpose(cts: Any, x: Any, *, dimensions: Any) -> Any:
    return rev_p.bind(cts[0], dimensions=dimensions)


def _rev_batch(axis: BatchAxis, operands: Any, dims: Any, *, dimensions: Any) -> Any:
    return rev_p.bind(operands[0], dimensions=shift_dims_for_batch(dimensions, dims[0])), dims


rev_p: Primitive = Primitive(
    "rev",
    shape=_rev_shape,
    numpy=_rev_numpy,
    stablehlo=_rev_stablehlo,
    jvp=LINEAR,
    transpose=_rev_transpose,
    uses_all=True,
    batch=_rev_batch,
    physical=xprim.STRUCTURAL,
    eager=costs.view,
    sharding=dimension_names.alike,
)


# ----------------------------------------------------------------------------------------- split
# split: cut an array along one dimension into parts of given sizes.
#
# In StableHLO it is one slice for each part; the transpose joins the cotangents.


def _split_shape(aval: ShapedArray, *, sizes: Any, axis: int) -> tuple[ShapedArray, ...]:
    require_axis("split", axis, aval)
    if any(n < 0 for n in sizes) or sum(sizes) != aval.shape[axis]:
        raise ValueError(message(
            "split", "Sizes passed to split must be nonnegative." if any(n < 0 for n in sizes)
            else f"Sum of sizes {sum(sizes)} must be equal to the size of the axis.",
            got=f"{sizes} along axis {axis} of {aval.str_long()}",
            expected=f"a sum of {aval.shape[axis]}, not {sum(sizes)}",
        ))  # fmt: skip
    before, after = aval.shape[:axis], aval.shape[axis + 1 :]
    return tuple([shaped_array((*before, n, *after), aval.dtype, aval.weak_type) for n in sizes])


def _split_numpy(x: Any, *, sizes: Any, axis: int) -> Any:
    lead = (slice(None),) * axis
    parts, start = [], 0
    for n in sizes:
        parts.append(x[(*lead, slice(start, start + n))])
        start += n
    return tuple(parts)


def _split_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, sizes: Any, axis: int
) -> Any:
    low, high = [0] * avals_in[0].ndim, list(avals_in[0].shape)
    ones = ", ".join(["1"] * len(low))
    results: list[str] = []
    for aval in avals_out:
        high[axis] = low[axis] + aval.shape[axis]
        results += b.op(
            "stablehlo.slice", operands, avals_in, [aval],
            f"start_indices = array<i64: {', '.join(map(str, low))}>, "
            f"limit_indices = array<i64: {', '.join(map(str, high))}>, "
            f"strides = array<i64: {ones}>",
        )  # fmt: skip
        low[axis] = high[axis]
    return results


def _split_transpose(cts: Any, x: Any, *, sizes: Any, axis: int) -> Any:
    parts = [fill(ct.aval.shape, 0, x.aval.dtype) if type(ct) is xprim.Zero else ct for ct in cts]
    return (parts[0] if len(parts) == 1 else bind("concatenate", *parts, dimension=axis),)


def _split_batch(batch: Any, operands: Any, dims: Any, *, sizes: Any, axis: int) -> Any:
    (x,), (d,) = operands, dims
    outs = split_p.bind(x, sizes=sizes, axis=axis + (d <= axis))
    return outs, (d,) * len(outs)


split_p: Primitive = Primitive(
    "split",
    shape=_split_shape,
    numpy=_split_numpy,
    stablehlo=_split_stablehlo,
    jvp=LINEAR,
    transpose=_split_transpose,
    batch=_split_batch,
    physical=xprim.STRUCTURAL,
    eager=costs.view,
    sharding=dimension_names.alike,
)


# --------------------------------------------------------------------------------------- squeeze
# squeeze: drop dimensions of size 1.
#
# `dimensions` is a sorted tuple of non-negative ints. In StableHLO it is a reshape.


def _squeeze_shape(aval: ShapedArray, *, dimensions: Any) -> tuple[ShapedArray, ...]:
    require(
        len(set(dimensions)) == len(dimensions), "squeeze", "dimensions are not unique.",
        got=dimensions,
    )  # fmt: skip
    require(
        all(0 <= d < aval.ndim for d in dimensions),
        "squeeze", "dimensions must be distinct and within the operand's {}.", aval.ndim,
        got={"dimensions": dimensions, "operand": aval},
    )  # fmt: skip
    if any(aval.shape[d] != 1 for d in dimensions):
        raise ValueError(message(
            "squeeze", "cannot select an axis to squeeze out which has size not equal to one.",
            got=f"dimensions {dimensions} of {aval.str_long()}",
        ))  # fmt: skip
    shape = tuple([n for d, n in enumerate(aval.shape) if d not in dimensions])
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _squeeze_numpy(x: Any, *, dimensions: Any) -> Any:
    return (x.squeeze(dimensions),)


def _squeeze_ufunc(avals_in: Any, avals_out: Any, **_: Any) -> NumpyCall:
    return NumpyCall(methodcaller("reshape", avals_out[0].shape), (Operand(0),))


def _squeeze_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimensions: Any
) -> Any:
    if not dimensions:
        return [operands[0]]
    return b.op("stablehlo.reshape", operands, avals_in, avals_out)


def _squeeze_transpose(cts: Any, x: Any, *, dimensions: Any) -> Any:
    return (reshape(cts[0], x.aval.shape),)


def _squeeze_batch(axis: BatchAxis, operands: Any, dims: Any, *, dimensions: Any) -> Any:
    (x,), (d,) = operands, dims
    # the batch dimension may come to stand behind some that are dropped
    moved = shift_dims_for_batch(dimensions, d)
    return squeeze_p.bind(x, dimensions=moved), (d - sum([m < d for m in moved]),)


squeeze_p: Primitive = Primitive(
    "squeeze",
    shape=_squeeze_shape,
    numpy=_squeeze_numpy,
    stablehlo=_squeeze_stablehlo,
    jvp=LINEAR,
    transpose=_squeeze_transpose,
    uses_all=True,
    batch=_squeeze_batch,
    physical=xprim.STRUCTURAL,
    eager=xprim.Eager(costs.view, ufunc=_squeeze_ufunc),
    sharding=dimension_names.without("dimensions"),
)


# ------------------------------------------------------------------------------------- transpose
# transpose: permute the dimensions.
#
# Dimension `i` of the result is dimension `permutation[i]` of the operand. Semantics: StableHLO
# specification, section transpose.


def _transpose_shape(aval: ShapedArray, *, permutation: Any) -> tuple[ShapedArray, ...]:
    if len(permutation) != aval.ndim or set(permutation) != set(range(aval.ndim)):
        raise TypeError(message(
            "transpose", "the permutation must name each dimension of the operand once.",
            got=f"{permutation} for {aval.str_long()}",
            expected=f"a permutation of {tuple(range(aval.ndim))}",
        ))  # fmt: skip
    shape = tuple([aval.shape[i] for i in permutation])
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _transpose_numpy(x: Any, *, permutation: Any) -> Any:
    return (x.transpose(permutation),)


def _transpose_ufunc(avals_in: Any, avals_out: Any, *, permutation: Any) -> NumpyCall:
    return NumpyCall(np.ndarray.transpose, (Operand(0), permutation))


def _transpose_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, permutation: Any
) -> Any:
    if permutation == tuple(range(len(permutation))):
        return [operands[0]]
    inside = f": {', '.join(map(str, permutation))}"
    return b.op("stablehlo.transpose", operands, avals_in, avals_out,
                f"permutation = array<i64{inside}>")  # fmt: skip


def _transpose_transpose(cts: Any, x: Any, *, permutation: Any) -> Any:
    inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
    return transpose_p.bind(cts[0], permutation=tuple(inverse))


def _transpose_batch(axis: BatchAxis, operands: Any, dims: Any, *, permutation: Any) -> Any:
    (d,) = dims
    return transpose_p.bind(operands[0], permutation=(d, *shift_dims_for_batch(permutation, d))), (
        0,
    )


def _transpose_dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    operand = dimension_names.numbered(avals[0])
    return dimension_names.Names([operand], [tuple(params["permutation"])])


transpose_p: Primitive = Primitive(
    "transpose",
    shape=_transpose_shape,
    numpy=_transpose_numpy,
    stablehlo=_transpose_stablehlo,
    jvp=LINEAR,
    transpose=_transpose_transpose,
    uses_all=True,
    batch=_transpose_batch,
    physical=xprim.STRUCTURAL,
    eager=xprim.Eager(costs.view, ufunc=_transpose_ufunc),
    sharding=_transpose_dimensions,
)
