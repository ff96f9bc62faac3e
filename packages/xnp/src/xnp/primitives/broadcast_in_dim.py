"""broadcast_in_dim: repeat an array along new dimensions and along dimensions of size 1.

Dimension `i` of the operand becomes dimension `broadcast_dimensions[i]` of the result.
Semantics: StableHLO specification, section broadcast_in_dim.
"""

from __future__ import annotations

import math
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from xnp.primitives import costs
from xprim import (
    LINEAR,
    STRUCTURAL,
    NumpyCall,
    Operand,
    Primitive,
    ShapedArray,
    dimension_names,
    get_primitive,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(
    aval: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    dims = broadcast_dimensions
    if len(dims) != aval.ndim or any(a >= b for a, b in pairwise(dims)):
        raise TypeError(message(
            "broadcast_in_dim", "broadcast_dimensions must name one dimension of the result for "
            "each of the operand's, in increasing order.", got=f"{dims} for {aval.str_long()}",
        ))  # fmt: skip
    for size, d in zip(aval.shape, dims, strict=True):
        if not 0 <= d < len(shape) or size not in (1, shape[d]):
            raise TypeError(message(
                "broadcast_in_dim", "the operand does not fit the result.",
                got=f"{aval.str_long()} to shape {shape} with dimensions {dims}",
                expected="each operand dimension of size 1 or of the result's size",
            ))  # fmt: skip
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _numpy(x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    spread = _spread(x, shape, broadcast_dimensions) if x.ndim else x
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


def _spread(x: Any, shape: Any, dims: Any) -> Any:
    """Return an array with its dimensions at their places among dimensions of size 1."""
    sizes = [1] * len(shape)
    for size, d in zip(x.shape, dims, strict=True):
        sizes[d] = size
    return x.reshape(sizes)


def _ufunc(
    avals_in: Any, avals_out: Any, *, shape: Any, broadcast_dimensions: Any
) -> NumpyCall | None:
    """Say where the elements stay as they are, and where NumPy would repeat them by itself."""
    if avals_in[0].size == avals_out[0].size:
        return NumpyCall(methodcaller("reshape", shape), (Operand(0),))
    if broadcast_dimensions == tuple(range(len(shape) - len(broadcast_dimensions), len(shape))):
        return NumpyCall(np.broadcast_to, (Operand(0), shape))
    return None


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, shape: Any,
               broadcast_dimensions: Any) -> Any:  # fmt: skip
    return [b.broadcast(operands[0], avals_in[0], shape, broadcast_dimensions)]


def _transpose(cts: Any, x: Any, *, shape: Any, broadcast_dimensions: Any) -> Any:
    (ct,) = cts
    new = tuple([d for d in range(len(shape)) if d not in broadcast_dimensions])
    stretched = tuple([d for size, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
                       if size != shape[d]])  # fmt: skip
    axes = tuple(sorted(new + stretched))
    if axes:
        ct = get_primitive("reduce_sum").bind(ct, axes=axes)[0]
    if ct.aval.shape != x.aval.shape:  # the stretched dimensions come back with size 1
        ct = get_primitive("reshape").bind(ct, new_sizes=x.aval.shape, dimensions=None)[0]
    return (ct,)


def _batch(
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


def _printed(*, shape: Any, broadcast_dimensions: Any) -> dict[str, Any]:
    """Show what the type of the result does not say."""
    return {"broadcast_dimensions": broadcast_dimensions} if broadcast_dimensions else {}


def _dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    names: list[Any] = [None] * out[0].ndim
    for d, target in enumerate(params["broadcast_dimensions"]):
        names[target] = d if avals[0].shape[d] == out[0].shape[target] else None
    kept = {name for name in names if name is not None}
    operand = tuple([d if d in kept else None for d in range(avals[0].ndim)])
    return dimension_names.Names([operand], [tuple(names)])


broadcast_in_dim_p = Primitive(
    "broadcast_in_dim",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    print=_printed,
    ufunc=_ufunc,
    cost=costs.nothing,
    dimensions=_dimensions,
)
