"""reduce_window_sum: the sum of each window of an array.

Linear. The transpose gives each element the cotangents of the windows it is in: the cotangents,
spread by the strides, are summed over windows of the same size.
Semantics: StableHLO specification, section reduce_window, with addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.operations import bind, filled
from xnp.primitives.reductions import total_dtype
from xnp.primitives.table import NUMBER
from xnp.primitives.window_text import dilated, window_attributes
from xnp.primitives.window_views import (
    all_windows,
    has_holes,
    windows_batch,
    windows_shape,
    with_holes_filled,
)
from xprim import LINEAR, Primitive, dimension_names, shaped_array
from xprim.contracts import Builder

__all__ = ()


def _numpy(x: Any, **params: Any) -> Any:
    windows = all_windows(x, 0, params)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    total = np.add.reduce(windows, axis=axes, dtype=total_dtype(x.dtype))
    return (np.asarray(total).astype(x.dtype, copy=False),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any) -> Any:
    (aval,), (out,) = avals_in, avals_out
    wide = total_dtype(aval.dtype)
    x = b.convert(operands[0], aval, wide)
    types = [shaped_array(aval.shape, wide), shaped_array((), wide)]
    if not aval.ndim:
        return [operands[0]]
    if has_holes(b, params):
        return with_holes_filled(b, reduce_window_sum_p, operands, avals_in, 0, params)
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


def _transpose(cts: Any, x: Any, *, window_dimensions: Any, window_strides: Any, padding: Any,
               base_dilation: Any, window_dilation: Any) -> Any:  # fmt: skip
    (ct,) = cts
    config = []
    for n, w, stride, (low, _), base, dilation, places in zip(
        x.aval.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation,
        ct.aval.shape, strict=True,
    ):  # fmt: skip
        before = dilated(w, dilation) - 1 - low
        after = dilated(n, base) + low - dilated(places, stride)
        config.append((before, after, stride - 1))
    spread = bind("pad", ct, filled((), 0, ct.aval.dtype), padding_config=tuple(config))
    return reduce_window_sum_p.bind(
        spread, window_dimensions=window_dimensions, window_strides=base_dilation,
        padding=((0, 0),) * x.aval.ndim, base_dilation=(1,) * x.aval.ndim,
        window_dilation=window_dilation,
    )  # fmt: skip


reduce_window_sum_p: Primitive = Primitive(
    "reduce_window_sum",
    shape=windows_shape("reduce_window_sum", NUMBER),
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=windows_batch(lambda: reduce_window_sum_p),
    cost=costs.reduction,
    dimensions=dimension_names.alike,
)
