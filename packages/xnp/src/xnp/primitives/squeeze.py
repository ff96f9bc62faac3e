"""squeeze: drop dimensions of size 1.

`dimensions` is a sorted tuple of non-negative ints. In StableHLO it is a reshape.
"""

from __future__ import annotations

from operator import methodcaller
from typing import Any

from xnp.primitives import costs
from xnp.primitives.dimensions import bumped
from xnp.primitives.operations import reshaped
from xprim import (
    LINEAR,
    STRUCTURAL,
    NumpyCall,
    Operand,
    Primitive,
    ShapedArray,
    dimension_names,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(aval: ShapedArray, *, dimensions: Any) -> tuple[ShapedArray, ...]:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < aval.ndim for d in dimensions):
        raise ValueError(message(
            "squeeze", f"dimensions must be distinct and within the operand's {aval.ndim}.",
            got=f"{dimensions} for {aval.str_long()}",
        ))  # fmt: skip
    if any(aval.shape[d] != 1 for d in dimensions):
        raise ValueError(message(
            "squeeze", "only dimensions of size 1 can be dropped.",
            got=f"dimensions {dimensions} of {aval.str_long()}",
        ))  # fmt: skip
    shape = tuple([n for d, n in enumerate(aval.shape) if d not in dimensions])
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _numpy(x: Any, *, dimensions: Any) -> Any:
    return (x.squeeze(dimensions),)


def _ufunc(avals_in: Any, avals_out: Any, **_: Any) -> NumpyCall:
    return NumpyCall(methodcaller("reshape", avals_out[0].shape), (Operand(0),))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimensions: Any) -> Any:
    if not dimensions:
        return [operands[0]]
    return b.op("stablehlo.reshape", operands, avals_in, avals_out)


def _transpose(cts: Any, x: Any, *, dimensions: Any) -> Any:
    return (reshaped(cts[0], x.aval.shape),)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, dimensions: Any) -> Any:
    (x,), (d,) = operands, dims
    # the batch dimension may come to stand behind some that are dropped
    moved = bumped(dimensions, d)
    return squeeze_p.bind(x, dimensions=moved), (d - sum([m < d for m in moved]),)


squeeze_p: Primitive = Primitive(
    "squeeze",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    ufunc=_ufunc,
    cost=costs.nothing,
    dimensions=dimension_names.without("dimensions"),
)
