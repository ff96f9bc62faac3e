"""Reductions of windows: reduce_window_sum, _max, _min, and the primitives of their derivatives.

The host evaluates on strided views of all windows. select_and_gather_add and
select_and_scatter_add move tangents and cotangents of the elements that a maximum or minimum
selects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xprim
from xnp.primitives import costs, table
from xnp.primitives.gather import view_strided
from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, ScatterDimensionNumbers
from xnp.primitives.lowering_text import is_split
from xnp.primitives.reductions import greatest, least, total_dtype
from xnp.primitives.shapes import insert, pad_p
from xnp.primitives.sort import comparable, compare_text
from xnp.primitives.table import BOOL, NUMBER, REAL, Kinds, bind, counting, fill, reshape
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, linear_in, shaped_array
from xprim.contracts import BatchAxis, Builder, outline
from xprim.errors import message
from xprim.requirements import require, require_dtype

__all__ = ()


# ----------------------------------------------------------------------------------- window text
# The attributes of StableHLO's operations on windows, and the shape their results have.
#
# A window of `window_dimensions`, its elements `window_dilation` apart, moves in steps of
# `window_strides` over the operand whose elements are `base_dilation` apart, with `padding` (low,
# high) around. Semantics: StableHLO specification, section reduce_window.


def window_attributes(
    dimensions: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[Sequence[int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> str:
    """Return the inside of the attribute dictionary of a window operation."""
    fields = [_array("window_dimensions", dimensions), _array("window_strides", strides)]
    if any(d != 1 for d in base_dilation):
        fields.append(_array("base_dilations", base_dilation))
    if any(d != 1 for d in window_dilation):
        fields.append(_array("window_dilations", window_dilation))
    fields.append(_padding(padding))
    return ", ".join(fields)


def scatter_attributes(
    dimensions: Sequence[int], strides: Sequence[int], padding: Sequence[Sequence[int]]
) -> str:
    """Return the inside of the attribute dictionary of select_and_scatter."""
    return ", ".join(
        [_array("window_dimensions", dimensions), _array("window_strides", strides),
         _padding(padding)]
    )  # fmt: skip


def _array(name: str, values: Sequence[int]) -> str:
    return f"{name} = array<i64: {', '.join(map(str, values))}>"


def _padding(padding: Sequence[Sequence[int]]) -> str:
    rows = ", ".join([f"[{low}, {high}]" for low, high in padding])
    return f"padding = dense<[{rows}]> : tensor<{len(padding)}x2xi64>"


def dilate_size(size: int, dilation: int) -> int:
    """Return the size of a dimension whose elements are `dilation` apart."""
    return (size - 1) * dilation + 1 if size else 0


def window_shape(shape: Sequence[int], params: Any) -> tuple[int, ...]:
    """Return how many places a window has in each dimension."""
    places = []
    for n, w, stride, (low, high), base, dilation in zip(
        shape, params["window_dimensions"], params["window_strides"], params["padding"],
        params["base_dilation"], params["window_dilation"], strict=True,
    ):  # fmt: skip
        covered = dilate_size(n, base) + low + high
        extent = dilate_size(w, dilation)
        places.append((covered - extent) // stride + 1 if covered >= extent else 0)
    return tuple(places)


# ---------------------------------------------------------------------------------- window views
# What the window reductions share: checks, NumPy views of all windows, and batching.

PARAMS = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def check_windows(name: str, aval: ShapedArray, params: Any) -> None:
    """Raise unless each param has a value for each dimension, positive where it must be."""
    for key in PARAMS:
        values = params[key]
        require(
            len(values) == aval.ndim, name,
            "{} must have an element for each dimension of the operand.", key,
            got={"values": values, "operand": aval},
        )  # fmt: skip
        require(
            key == "padding" or all(v >= 1 for v in values), name,
            "{} must have every element be positive, got {}.", key, values, error=TypeError,
        )  # fmt: skip


def windows_shape(name: str, kinds: Kinds) -> Callable[..., tuple[ShapedArray, ...]]:
    """Return the shape rule of a reduction of windows by one operation."""

    def shape_rule(aval: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        require_dtype(name, aval, kinds)
        check_windows(name, aval, params)
        return (shaped_array(window_shape(aval.shape, params), aval.dtype, aval.weak_type),)

    return shape_rule


def pad_operand(x: Any, value: Any, params: Any) -> Any:
    """Return an operand with its dilation and padding filled in."""
    config = tuple([
        (low, high, base - 1)
        for (low, high), base in zip(params["padding"], params["base_dilation"], strict=True)
    ])  # fmt: skip
    if not any(map(any, config)):
        return x
    (out,) = pad_p.rule("numpy")(x, np.asarray(value, x.dtype), padding_config=config)
    return out


def all_windows(x: Any, value: Any, params: Any) -> Any:
    """Return a view of all windows, of shape (places, window), over the padded operand."""
    places = window_shape(x.shape, params)
    x = pad_operand(x, value, params)
    steps = [s * n for s, n in zip(x.strides, params["window_strides"], strict=True)]
    inner = [s * n for s, n in zip(x.strides, params["window_dilation"], strict=True)]
    return view_strided(x, [*places, *params["window_dimensions"]], [*steps, *inner])


def batch_params(params: Any, d: int) -> dict[str, Any]:
    """Return the params with a window of size 1 in a batch dimension at `d`."""
    return {
        key: insert(value, d, (0, 0) if key == "padding" else 1) if key in PARAMS else value
        for key, value in params.items()
    }


def windows_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the batch rule of a window operation on one operand."""

    def batch_rule(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
        (d,) = dims
        return primitive().bind(operands[0], **batch_params(params, d)), (d,)

    return batch_rule


# ----------------------------------------------------------------------------- reduce window sum
# reduce_window_sum: the sum of each window of an array.
#
# Linear. The transpose gives each element the cotangents of the windows it is in: the cotangents,
# spread by the strides, are summed over windows of the same size. Semantics: StableHLO
# specification, section reduce_window, with addition.


def _reduce_window_sum_numpy(x: Any, **params: Any) -> Any:
    windows = all_windows(x, 0, params)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    total = np.add.reduce(windows, axis=axes, dtype=total_dtype(x.dtype))
    return (np.asarray(total).astype(x.dtype, copy=False),)


def _reduce_window_sum_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
) -> Any:
    (aval,), (out,) = avals_in, avals_out
    wide = total_dtype(aval.dtype)
    x = b.convert(operands[0], aval, wide)
    types = [shaped_array(aval.shape, wide), shaped_array((), wide)]
    if not aval.ndim:
        return [operands[0]]
    found = shaped_array(out.shape, wide)
    (total,) = b.op("stablehlo.reduce_window", [x, b.scalar(0, wide)], types, [found],
                    attributes_of(params), b.reducer("stablehlo.add", wide))  # fmt: skip
    return [b.convert(total, found, aval.dtype)]


def attributes_of(params: Any) -> str:
    """Return the attributes of stablehlo.reduce_window for the params of a primitive."""
    return window_attributes(
        params["window_dimensions"], params["window_strides"], params["padding"],
        params["base_dilation"], params["window_dilation"],
    )  # fmt: skip


def _reduce_window_sum_transpose(
    cts: Any,
    x: Any,
    *,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> Any:
    (ct,) = cts
    config = []
    for n, w, stride, (low, _), base, dilation, places in zip(
        x.aval.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation,
        ct.aval.shape, strict=True,
    ):  # fmt: skip
        before = dilate_size(w, dilation) - 1 - low
        after = dilate_size(n, base) + low - dilate_size(places, stride)
        config.append((before, after, stride - 1))
    spread = bind("pad", ct, fill((), 0, ct.aval.dtype), padding_config=tuple(config))
    return reduce_window_sum_p.bind(
        spread, window_dimensions=window_dimensions, window_strides=base_dilation,
        padding=((0, 0),) * x.aval.ndim, base_dilation=(1,) * x.aval.ndim,
        window_dilation=window_dilation,
    )  # fmt: skip


reduce_window_sum_p: Primitive = Primitive(
    "reduce_window_sum",
    shape=windows_shape("reduce_window_sum", NUMBER),
    numpy=_reduce_window_sum_numpy,
    stablehlo=_reduce_window_sum_stablehlo,
    jvp=xprim.LINEAR,
    transpose=_reduce_window_sum_transpose,
    batch=windows_batch(lambda: reduce_window_sum_p),
    eager=costs.reduction,
    sharding=dimension_names.alike,
)


# ------------------------------------------------------------------------- select and gather add
# select_and_gather_add: for each window, the tangent of the element that the window selects.
#
# Operands are tangents and the elements to select by; `select_prim` is the comparison that says
# that the first of two elements is kept (`ge` selects the greatest, `le` the least, the first of
# equals); padding has tangent 0. Linear in the tangents; the transpose is
# `select_and_scatter_add`.


def _select_and_gather_add_shape(
    tangents: ShapedArray, operand: ShapedArray, *, select_prim: Any, **params: Any
) -> tuple[ShapedArray, ...]:
    require(
        tangents.shape == operand.shape, "select_and_gather_add",
        "tangents and operand must have one shape.", got=(tangents, operand), error=TypeError,
    )  # fmt: skip
    check_windows("select_and_gather_add", operand, params)
    return (shaped_array(window_shape(operand.shape, params), tangents.dtype),)


def worst_for(select_prim: Any, dtype: np.dtype[Any]) -> Any:
    """Return the element that is selected last."""
    return (least if select_prim.name == "ge" else greatest)(dtype)


def select_elements(operand: Any, select_prim: Any, params: Any) -> Any:
    """Return for each window the number of the element it selects, in row-major order."""
    windows = all_windows(operand, worst_for(select_prim, operand.dtype), params)
    ndim = operand.ndim
    rows = windows.reshape(*windows.shape[:ndim], math.prod(windows.shape[ndim:]))
    find = np.argmax if select_prim.name == "ge" else np.argmin
    return find(comparable(rows)[0], axis=ndim)


def _select_and_gather_add_numpy(
    tangents: Any, operand: Any, *, select_prim: Any, **params: Any
) -> Any:
    chosen = select_elements(operand, select_prim, params)
    ndim = operand.ndim
    windows = all_windows(tangents, 0, params)
    rows = windows.reshape(*windows.shape[:ndim], math.prod(windows.shape[ndim:]))
    return (np.take_along_axis(rows, chosen[..., None], ndim)[..., 0],)


def _select_and_gather_add_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, select_prim: Any, **params: Any
) -> Any:
    (dots, x), (dots_aval, aval), (out,) = operands, avals_in, avals_out
    if not aval.ndim:
        return [dots]
    element, dot = shaped_array((), aval.dtype), shaped_array((), dots_aval.dtype)
    flag = shaped_array((), np.dtype(bool))

    def select(inner: Builder, names: Any) -> Any:
        a, a_dot, c, c_dot = names
        how = "FLOAT" if dtypes.is_floating(aval.dtype) else ""
        kept = compare_text(inner, select_prim.name.upper(), a, c, element, how)
        return [
            inner.op("stablehlo.select", [kept, a, c], [flag, element, element], [element])[0],
            inner.op("stablehlo.select", [kept, a_dot, c_dot], [flag, dot, dot], [dot])[0],
        ]

    inits = [b.scalar(worst_for(select_prim, aval.dtype), aval.dtype), b.scalar(0, dot.dtype)]
    results = b.op(
        "stablehlo.reduce_window", [x, dots, *inits], [aval, dots_aval, element, dot],
        [shaped_array(out.shape, aval.dtype), out],
        window_attributes(*[params[key] for key in PARAMS]),
        b.region([element, dot, element, dot], select, [element, dot]),
    )  # fmt: skip
    return results[1:]


def _select_and_gather_add_transpose(
    cts: Any, tangents: Any, operand: Any, *, select_prim: Any, **params: Any
) -> Any:
    (ct,) = cts
    ones = (1,) * operand.aval.ndim
    if params["base_dilation"] == params["window_dilation"] == ones:
        plain = {key: params[key] for key in PARAMS[:3]}
        dots = bind("select_and_scatter_add", ct, operand, select_prim=select_prim, **plain)
    else:
        dots = _scatter(ct, operand, select_prim, params)
    return dots, Zero(operand.aval)


def _scatter(ct: Any, operand: Any, select_prim: Any, params: Any) -> Any:
    """Find the number of the element of each window in the operand, and add there.

    Numbers start at 1: 0 is that of padding, which is left out.
    """
    shape, size = operand.aval.shape, operand.aval.size
    numbers = reshape(counting(size, np.int32), shape)
    numbers = bind("add", numbers, fill(shape, 1, np.dtype(np.int32)))
    chosen = select_and_gather_add_p.bind(numbers, operand, select_prim=select_prim, **params)[0]
    flat = bind(
        "scatter_add", fill((size + 1,), 0, ct.aval.dtype), reshape(chosen, (ct.aval.size, 1)),
        reshape(ct, (ct.aval.size,)),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)), indices_are_sorted=False,
        unique_indices=False, mode=PROMISE_IN_BOUNDS,
    )  # fmt: skip
    inside = bind("slice", flat, start_indices=(1,), limit_indices=(size + 1,), strides=None)
    return reshape(inside, shape)


def both_in_front(axis: BatchAxis, operands: Any, dims: Any) -> tuple[Any, Any, int]:
    """Return two operands with one batch dimension, and where it is."""
    (x, y), (d, e) = operands, dims
    if d is xprim.not_mapped or d != e:
        return axis.to_front(x, d), axis.to_front(y, e), 0
    return x, y, d


def _select_and_gather_add_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    tangents, operand, d = both_in_front(axis, operands, dims)
    return select_and_gather_add_p.bind(tangents, operand, **batch_params(params, d)), (d,)


select_and_gather_add_p: Primitive = Primitive(
    "select_and_gather_add",
    shape=_select_and_gather_add_shape,
    numpy=_select_and_gather_add_numpy,
    stablehlo=_select_and_gather_add_stablehlo,
    jvp=linear_in(0),
    transpose=_select_and_gather_add_transpose,
    batch=_select_and_gather_add_batch,
    sharding=dimension_names.alike,
)


# ------------------------------------------------------------------------------- window extremal
# What reduce_window_max and reduce_window_min share.
#
# The derivative of a window is that of the element it takes; `select_and_gather_add` finds it.
# Semantics: StableHLO specification, section reduce_window, with maximum or minimum.


@xprim.primitive_maker
def window_extremal(name: str, ufunc: np.ufunc, op: str, neutral: Any, select: str) -> Primitive:
    """Define reduce_window_max or reduce_window_min.

    Args:
      name: of the primitive.
      ufunc: NumPy's operation.
      op: StableHLO's operation.
      neutral: from a dtype to its neutral element.
      select: the comparison that says that the first of two elements is kept.
    """

    def numpy_rule(x: Any, **params: Any) -> Any:
        windows = all_windows(x.astype(total_dtype(x.dtype), copy=False), neutral(x.dtype), params)
        found = ufunc.reduce(windows, axis=tuple(range(x.ndim, 2 * x.ndim)))
        return (np.asarray(found).astype(x.dtype, copy=False),)

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        (aval,) = avals_in
        if not aval.ndim:
            return [operands[0]]
        operands = [operands[0], b.scalar(neutral(aval.dtype), aval.dtype)]
        avals = [aval, shaped_array((), aval.dtype)]
        region = b.reducer(op, aval.dtype)
        return b.op(
            "stablehlo.reduce_window", operands, avals, avals_out, attributes_of(params), region
        )

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = primitive.bind(x, **params)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        dots = select_and_gather_add_p.bind(
            x_dot, x, select_prim=xprim.get_primitive(select), **params
        )
        return outs, dots

    primitive = Primitive(
        name,
        shape=windows_shape(name, REAL | BOOL),
        numpy=numpy_rule,
        stablehlo=stablehlo_rule,
        jvp=jvp_rule,
        transpose=xprim.undefined("it is not linear"),
        batch=windows_batch(lambda: primitive),
        eager=costs.reduction,
        sharding=dimension_names.alike,
    )
    return primitive


# ----------------------------------------------------------------------------- reduce window max
# reduce_window_max: the greatest element of each window of an array; NaN wins.

reduce_window_max_p = window_extremal(
    "reduce_window_max", np.maximum, "stablehlo.maximum", least, "ge"
)


# ----------------------------------------------------------------------------- reduce window min
# reduce_window_min: the least element of each window of an array; NaN wins.

reduce_window_min_p = window_extremal(
    "reduce_window_min", np.minimum, "stablehlo.minimum", greatest, "le"
)


# ------------------------------------------------------------------------ select and scatter add
# select_and_scatter_add: add a source value to the element that each window selects.
#
# Operands are a source with a value for each window, and the elements to select by; `select_prim`
# is `ge` (the greatest) or `le` (the least, the first of equals). Linear in the source; the
# transpose is `select_and_gather_add`. Semantics: StableHLO specification, section
# select_and_scatter.


def _full(params: Any) -> dict[str, Any]:
    ones = (1,) * len(params["window_dimensions"])
    return {**params, "base_dilation": ones, "window_dilation": ones}


def _select_and_scatter_add_shape(
    source: ShapedArray, operand: ShapedArray, *, select_prim: Any, **params: Any
) -> tuple[ShapedArray, ...]:
    dtype = table.common_dtype("select_and_scatter_add", (source, operand))
    full = _full(params)
    check_windows("select_and_scatter_add", operand, full)
    places = window_shape(operand.shape, full)
    if source.shape != places:
        raise TypeError(message(
            "select_and_scatter_add", "the source must have a value for each window.",
            got=f"{source.str_long()} for the windows of {operand.str_long()}",
            expected=f"shape {places}",
        ))  # fmt: skip
    return (shaped_array(operand.shape, dtype),)


def _select_and_scatter_add_numpy(
    source: Any, operand: Any, *, select_prim: Any, **params: Any
) -> Any:
    if not operand.ndim:
        return (source,)
    chosen = select_elements(operand, select_prim, _full(params))
    offsets = np.unravel_index(chosen, params["window_dimensions"])
    positions, inside = [], np.ones(chosen.shape, bool)
    for d, (offset, stride, (low, _)) in enumerate(
        zip(offsets, params["window_strides"], params["padding"], strict=True)
    ):
        places = np.arange(chosen.shape[d]).reshape(-1, *[1] * (chosen.ndim - d - 1))
        position = places * stride + offset - low
        inside &= (position >= 0) & (position < operand.shape[d])
        positions.append(position)
    out = np.zeros(operand.shape, total_dtype(operand.dtype))
    np.add.at(out, tuple([p[inside] for p in positions]), source[inside].astype(out.dtype))
    return (out.astype(operand.dtype, copy=False),)


def _select_and_scatter_add_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, select_prim: Any, **params: Any
) -> Any:
    (source, x), (source_aval, aval) = operands, avals_in
    if not aval.ndim:
        return [source]
    if b.platform == "cpu" and not is_split(b) and _are_tiles(aval, **params):
        return [_at_selected_of_tiles(b, operands, avals_in, select_prim, params)]
    element, flag = shaped_array((), aval.dtype), shaped_array((), np.dtype(bool))
    how = "FLOAT" if dtypes.is_floating(aval.dtype) else ""
    select = b.region(
        [element, element],
        lambda inner, v: [compare_text(inner, select_prim.name.upper(), v[0], v[1], element, how)],
        [flag],
    )
    attributes = scatter_attributes(
        params["window_dimensions"], params["window_strides"], params["padding"]
    )
    return b.op(
        "stablehlo.select_and_scatter", [x, source, b.scalar(0, aval.dtype)],
        [aval, source_aval, element], avals_out, attributes,
        b.regions(select, b.reducer("stablehlo.add", aval.dtype)),
    )  # fmt: skip


# XLA for the CPU makes eight kernels of a scatter by windows, with the indices of each element.
# Where few elements make a window and windows lie side by side, comparing them makes two.

_MOST_OF_A_TILE = 16


def _are_tiles(
    aval: ShapedArray, *, window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
) -> bool:  # fmt: skip
    """Return whether small windows cover an operand, each element once."""
    if type(aval.size) is not int or not aval.size or any(map(any, padding)):
        return False
    sizes = zip(aval.shape, window_dimensions, strict=True)
    is_covered = all(n % w == 0 for n, w in sizes)
    is_small = math.prod(window_dimensions) <= _MOST_OF_A_TILE
    return is_covered and is_small and tuple(window_dimensions) == tuple(window_strides)


def _at_selected_of_tiles(
    b: Builder, operands: Any, avals: Any, select_prim: Any, params: Any
) -> str:
    """Write the source of each tile at its selected element, and 0 at the others."""
    (source, x), (places, aval) = operands, avals
    tile = tuple(params["window_dimensions"])
    numbers = places.update(dtype=np.dtype(np.int32))

    def select_numbers(inner: Builder, names: Any) -> list[str]:
        return [_select_of_tiles(inner, names[0], aval, numbers, select_prim, tile)]

    key = ("selected_of_tiles", select_prim.name, tile)
    (found,) = outline(b, select_numbers, [x], [aval], [numbers], key, "selected_of_tiles")
    shape = tuple([size for pair in zip(places.shape, tile, strict=True) for size in pair])
    wide, of_numbers, truth = [
        shaped_array(shape, dtype) for dtype in (places.dtype, numbers.dtype, np.dtype(bool))
    ]
    even, odd = range(0, len(shape), 2), range(1, len(shape), 2)
    order = np.arange(math.prod(tile), dtype=np.int32).reshape(tile)
    of_tile = shaped_array(tile, order.dtype)
    number = b.broadcast(b.constant(order, of_tile), of_tile, shape, odd)
    found = b.broadcast(found, numbers, shape, even)
    source = b.broadcast(source, places, shape, even)
    zero = b.constant(0, wide)
    how = "FLOAT" if dtypes.is_floating(aval.dtype) else ""
    is_found = compare_text(b, "EQ", found, number, of_numbers)
    is_not_zero = compare_text(b, "NE", source, zero, wide, how)  # sums with 0 are never -0
    (is_moved,) = b.op("stablehlo.and", [is_found, is_not_zero], [truth, truth], [truth])
    (tiles,) = b.op(
        "stablehlo.select", [is_moved, source, zero], [truth, wide, wide], [wide]
    )  # fmt: skip
    return b.op("stablehlo.reshape", [tiles], [wide], [aval])[0]


def _select_of_tiles(
    b: Builder, x: str, aval: ShapedArray, numbers: ShapedArray, select_prim: Any,
    tile: tuple[int, ...],
) -> str:  # fmt: skip
    """Write the number of the element that each tile selects, in the order of the tile."""
    places, truth = numbers.update(dtype=aval.dtype), numbers.update(dtype=np.dtype(bool))
    how = "FLOAT" if dtypes.is_floating(aval.dtype) else ""
    found, best = b.constant(0, numbers), ""
    for k, offset in enumerate(np.ndindex(*tile)):
        (own,) = b.op("stablehlo.slice", [x], [aval], [places], ", ".join([
            _array("start_indices", offset), _array("limit_indices", aval.shape),
            _array("strides", tile),
        ]))  # fmt: skip
        if not k:
            best = own
            continue
        kept = compare_text(b, select_prim.name.upper(), best, own, places, how)
        (best,) = b.op(
            "stablehlo.select", [kept, best, own], [truth, places, places], [places]
        )  # fmt: skip
        (found,) = b.op(
            "stablehlo.select", [kept, found, b.constant(k, numbers)], [truth, numbers, numbers],
            [numbers],
        )  # fmt: skip
    return found


def _select_and_scatter_add_transpose(cts: Any, source: Any, operand: Any, **params: Any) -> Any:
    return bind("select_and_gather_add", cts[0], operand, **_full(params)), Zero(operand.aval)


def _select_and_scatter_add_batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    source, operand, d = both_in_front(axis, operands, dims)
    outs = select_and_scatter_add_p.bind(source, operand, **batch_params(params, d))
    return outs, (d,)


select_and_scatter_add_p: Primitive = Primitive(
    "select_and_scatter_add",
    shape=_select_and_scatter_add_shape,
    numpy=_select_and_scatter_add_numpy,
    stablehlo=_select_and_scatter_add_stablehlo,
    jvp=linear_in(0),
    transpose=_select_and_scatter_add_transpose,
    batch=_select_and_scatter_add_batch,
    sharding=dimension_names.alike,
)
