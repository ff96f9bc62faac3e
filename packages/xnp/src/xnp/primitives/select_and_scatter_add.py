"""select_and_scatter_add: add a source value to the element that each window selects.

Operands are a source with a value for each window, and the elements to select by; `select_prim` is
`ge` (the greatest) or `le` (the least, the first of equals). Linear in the source; the transpose is
`select_and_gather_add`. Semantics: StableHLO specification, section select_and_scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.operations import bind
from xnp.primitives.reductions import total_dtype
from xnp.primitives.select_and_gather_add import both_in_front, selected
from xnp.primitives.sort import compare_text
from xnp.primitives.table import common_dtype
from xnp.primitives.window_text import scatter_attributes, window_shape
from xnp.primitives.window_views import batched_params, check_windows
from xprim import (
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    linear_in,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _full(params: Any) -> dict[str, Any]:
    ones = (1,) * len(params["window_dimensions"])
    return {**params, "base_dilation": ones, "window_dilation": ones}


def _shape(
    source: ShapedArray, operand: ShapedArray, *, select_prim: Any, **params: Any
) -> tuple[ShapedArray, ...]:
    dtype = common_dtype("select_and_scatter_add", (source, operand))
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


def _numpy(source: Any, operand: Any, *, select_prim: Any, **params: Any) -> Any:
    if not operand.ndim:
        return (source,)
    chosen = selected(operand, select_prim, _full(params))
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


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, select_prim: Any,
               **params: Any) -> Any:  # fmt: skip
    (source, x), (source_aval, aval) = operands, avals_in
    if not aval.ndim:
        return [source]
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


def _transpose(cts: Any, source: Any, operand: Any, **params: Any) -> Any:
    return bind("select_and_gather_add", cts[0], operand, **_full(params)), Zero(operand.aval)


def _batch(axis: BatchAxis, operands: Any, dims: Any, **params: Any) -> Any:
    source, operand, d = both_in_front(axis, operands, dims)
    outs = select_and_scatter_add_p.bind(source, operand, **batched_params(params, d))
    return outs, (d,)


select_and_scatter_add_p: Primitive = Primitive(
    "select_and_scatter_add",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=linear_in(0),
    transpose=_transpose,
    batch=_batch,
    dimensions=dimension_names.alike,
)
