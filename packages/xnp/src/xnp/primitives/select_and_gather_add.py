"""select_and_gather_add: for each window, the tangent of the element that the window selects.

Operands are tangents and the elements to select by; `select_prim` is the comparison that says that
the first of two elements is kept (`ge` selects the greatest, `le` the least, the first of equals);
padding has tangent 0. Linear in the tangents; the transpose is `select_and_scatter_add`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xnp.primitives.index_modes import PROMISE_IN_BOUNDS, ScatterDimensionNumbers
from xnp.primitives.operations import bind, counting, filled, reshaped
from xnp.primitives.reductions import greatest, least
from xnp.primitives.sort import comparable, compare_text
from xnp.primitives.split_programs import held_whole
from xnp.primitives.window_text import window_attributes, window_shape
from xnp.primitives.window_views import PARAMS, all_windows, batched_params, check_windows
from xprim import (
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
from xprim.errors import message

__all__ = ()


def _shape(
    tangents: ShapedArray, operand: ShapedArray, *, select_prim: Any, **params: Any
) -> tuple[ShapedArray, ...]:
    if tangents.shape != operand.shape:
        raise TypeError(message(
            "select_and_gather_add", "tangents and operand must have one shape.",
            got=f"{tangents.str_long()} and {operand.str_long()}",
        ))  # fmt: skip
    check_windows("select_and_gather_add", operand, params)
    return (shaped_array(window_shape(operand.shape, params), tangents.dtype),)


def worst_for(select_prim: Any, dtype: np.dtype[Any]) -> Any:
    """Return the element that is selected last."""
    return (least if select_prim.name == "ge" else greatest)(dtype)


def selected(operand: Any, select_prim: Any, params: Any) -> Any:
    """Return for each window the number of the element it selects, in row-major order."""
    windows = all_windows(operand, worst_for(select_prim, operand.dtype), params)
    ndim = operand.ndim
    rows = windows.reshape(*windows.shape[:ndim], math.prod(windows.shape[ndim:]))
    find = np.argmax if select_prim.name == "ge" else np.argmin
    return find(comparable(rows)[0], axis=ndim)


def _numpy(tangents: Any, operand: Any, *, select_prim: Any, **params: Any) -> Any:
    chosen = selected(operand, select_prim, params)
    ndim = operand.ndim
    windows = all_windows(tangents, 0, params)
    rows = windows.reshape(*windows.shape[:ndim], math.prod(windows.shape[ndim:]))
    return (np.take_along_axis(rows, chosen[..., None], ndim)[..., 0],)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, select_prim: Any,
               **params: Any) -> Any:  # fmt: skip
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

    # Cut windows of two operands have wrong values in XLA (jaxlib 0.10.2 to 0.12.0.1), or end the
    # process. So all devices compute all of them.
    x, dots = held_whole(b, [x, dots], [aval, dots_aval])
    inits = [b.scalar(worst_for(select_prim, aval.dtype), aval.dtype), b.scalar(0, dot.dtype)]
    results = b.op(
        "stablehlo.reduce_window", [x, dots, *inits], [aval, dots_aval, element, dot],
        [shaped_array(out.shape, aval.dtype), out],
        window_attributes(*[params[key] for key in PARAMS]),
        b.region([element, dot, element, dot], select, [element, dot]),
    )  # fmt: skip
    return held_whole(b, results[1:], [out])


def _transpose(cts: Any, tangents: Any, operand: Any, *, select_prim: Any, **params: Any) -> Any:
    (ct,) = cts
    ones = (1,) * operand.aval.ndim
    if params["base_dilation"] == params["window_dilation"] == ones:
        plain = {key: params[key] for key in PARAMS[:3]}
        dots = bind("select_and_scatter_add", ct, operand, select_prim=select_prim, **plain)
    else:
        dots = _scattered(ct, operand, select_prim, params)
    return dots, Zero(operand.aval)


def _scattered(ct: Any, operand: Any, select_prim: Any, params: Any) -> Any:
    """Find the number of the element of each window in the operand, and add there.

    Numbers start at 1: 0 is that of padding, which is left out.
    """
    shape, size = operand.aval.shape, operand.aval.size
    numbers = reshaped(counting(size, np.int32), shape)
    numbers = bind("add", numbers, filled(shape, 1, np.dtype(np.int32)))
    chosen = select_and_gather_add_p.bind(numbers, operand, select_prim=select_prim, **params)[0]
    flat = bind(
        "scatter_add", filled((size + 1,), 0, ct.aval.dtype), reshaped(chosen, (ct.aval.size, 1)),
        reshaped(ct, (ct.aval.size,)),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)), indices_are_sorted=False,
        unique_indices=False, mode=PROMISE_IN_BOUNDS,
    )  # fmt: skip
    inside = bind("slice", flat, start_indices=(1,), limit_indices=(size + 1,), strides=None)
    return reshaped(inside, shape)


def both_in_front(axis: BatchAxis, operands: Any, dims: Any) -> tuple[Any, Any, int]:
    """Return two operands with one batch dimension, and where it is."""
    (x, y), (d, e) = operands, dims
    if d is not_mapped or d != e:
        return axis.to_front(x, d), axis.to_front(y, e), 0
    return x, y, d


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    tangents, operand, d = both_in_front(axis, operands, dims)
    return select_and_gather_add_p.bind(tangents, operand, **batched_params(params, d)), (d,)


select_and_gather_add_p: Primitive = Primitive(
    "select_and_gather_add",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=linear_in(0),
    transpose=_transpose,
    batch=_batch,
    dimensions=dimension_names.alike,
)
