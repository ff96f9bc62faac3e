"""pad: put a padding value before, after and between the elements; negative edges crop.

`padding_config` holds `(low, high, interior)` for each dimension: element `i` of the operand comes
to `low + i * (interior + 1)`, elements outside the result are dropped.
Semantics: StableHLO specification, section pad.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xnp.primitives.dimensions import inserted
from xnp.primitives.operations import bind, broadcasted, filled, reshaped, selected
from xnp.primitives.split_programs import is_split
from xnp.primitives.table import common_dtype
from xprim import (
    LINEAR,
    STRUCTURAL,
    Linear,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    not_mapped,
    scalar_array,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(aval: ShapedArray, value: ShapedArray, *, padding_config: Any) -> Any:
    dtype = common_dtype("pad", (aval, value))
    if value.ndim:
        raise ValueError(message(
            "pad", "the padding value must be of rank 0.", got=value.str_long(),
        ))  # fmt: skip
    if len(padding_config) != aval.ndim:
        raise ValueError(message(
            "pad", "padding_config must have one (low, high, interior) for each dimension.",
            got=f"{padding_config} for {aval.str_long()}",
        ))  # fmt: skip
    shape = tuple([_size(n, c) for n, c in zip(aval.shape, padding_config, strict=True)])
    if any(c[2] < 0 for c in padding_config) or any(n < 0 for n in shape):
        raise ValueError(message(
            "pad", "interior padding and the resulting sizes must not be negative.",
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


def _numpy(x: Any, value: Any, *, padding_config: Any) -> Any:
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


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, padding_config: Any
) -> Any:
    if not any(map(any, padding_config)):
        return [operands[0]]
    if is_split(b) and any(
        min(low, high) < 0 or interior for low, high, interior in padding_config
    ):
        steps = functools.partial(_in_steps, padding_config=padding_config)
        plain = [shaped_array(a.shape, a.dtype) for a in avals_in]
        return b.traced(steps, operands, plain, ("pad", padding_config))
    low, high, interior = (
        f"array<i64: {', '.join(map(str, column))}>" for column in zip(*padding_config, strict=True)
    )
    return b.op("stablehlo.pad", operands, avals_in, avals_out,
                f"edge_padding_low = {low}, edge_padding_high = {high}, "
                f"interior_padding = {interior}")  # fmt: skip


def _in_steps(x: Any, value: Any, *, padding_config: Any) -> Any:
    """Put values between the elements, then cut edges off, then add edges.

    Where a dimension is cut over devices, XLA (jaxlib 0.10.2 to 0.12) pads rightly at edges alone:
    with values between elements, or an edge that is cut off, the pieces have wrong values or wrong
    sizes, or the process ends.
    """
    x, edges = _spaced(x, value, padding_config)
    cuts = [_cut(n, low, high) for n, (low, high) in zip(x.shape, edges, strict=True)]
    starts, limits, config = zip(*cuts, strict=True)
    x = bind("slice", x, start_indices=starts, limit_indices=limits, strides=None)
    return pad_p.bind(x, value, padding_config=config)


def _spaced(x: Any, value: Any, padding_config: Any) -> tuple[Any, list[tuple[int, int]]]:
    """Put values behind each element, in a dimension of its own; return what edges are left."""
    behind = [interior if n > 1 else 0 for n, (_, _, interior)
              in zip(x.shape, padding_config, strict=True)]  # fmt: skip
    edges = [(low, high - k) for (low, high, _), k in zip(padding_config, behind, strict=True)]
    if not any(behind):
        return x, edges
    joined = [n * (k + 1) for n, k in zip(x.shape, behind, strict=True)]
    config = tuple([edge for k in behind for edge in ((0, 0, 0), (0, k, 0))])
    x = reshaped(x, [size for n in x.shape for size in (n, 1)])
    return reshaped(pad_p.bind(x, value, padding_config=config)[0], joined), edges


def _cut(n: int, low: int, high: int) -> tuple[int, int, tuple[int, int, int]]:
    """Return from where to where the elements of a dimension stay, and its edges then."""
    start = min(max(-low, 0), n)
    limit = max(min(n + high, n), start)
    if start == limit:
        return start, limit, (n + low + high, 0, 0)
    return start, limit, (max(low, 0), max(high, 0), 0)


def _transpose(cts: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    (ct,) = cts
    cropped = tuple([(-low, -high, 0) for low, high, _ in padding_config])
    x_bar = pad_p.bind(ct, filled((), 0, ct.aval.dtype), padding_config=cropped)[0]
    if any(interior for _, _, interior in padding_config):
        x_bar = bind(
            "slice", x_bar, start_indices=(0,) * ct.aval.ndim, limit_indices=x_bar.aval.shape,
            strides=tuple([interior + 1 for _, _, interior in padding_config]),
        )  # fmt: skip
    value_bar: Any = Zero(value.aval)
    if type(value) is Linear:
        value_bar = bind("sub", _total(ct), _total(x_bar))
    return (x_bar if type(x) is Linear else Zero(x.aval)), value_bar


def _total(x: Any) -> Any:
    return bind("reduce_sum", x, axes=tuple(range(x.aval.ndim)))


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, padding_config: Any) -> Any:
    (x, value), (d, d_value) = operands, dims
    if d_value is not_mapped:
        return pad_p.bind(x, value, padding_config=inserted(padding_config, d, (0, 0, 0))), (d,)
    x = axis.to_front(x, d)
    truth = np.dtype(bool)
    no, yes = filled((), False, truth), filled((), True, truth)
    # as weak as the array, or the result would not be
    zero = scalar_array(0, x.aval.dtype, x.aval.weak_type)
    config = ((0, 0, 0), *padding_config)
    padded = pad_p.bind(x, zero, padding_config=config)[0]
    inside = broadcasted(no, x.aval.shape[1:], ())
    outside = pad_p.bind(inside, yes, padding_config=padding_config)[0]
    shape = padded.aval.shape
    outside = broadcasted(outside, shape, tuple(range(1, len(shape))))
    return (selected(outside, broadcasted(value, shape, (0,)), padded),), (0,)


pad_p: Primitive = Primitive(
    "pad",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    dimensions=dimension_names.alike,
)
