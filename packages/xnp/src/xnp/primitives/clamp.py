"""clamp: limit each element to the interval between two bounds, which may be scalars.

`clamp low x high` is min(max(low, x), high); NaN stays NaN. Semantics: StableHLO specification,
section clamp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.narrow_dtypes import same_dtype
from xnp.primitives.operations import add, bind, scalar_like, selected
from xnp.primitives.table import REAL, common_dtype, repeated
from xprim import (
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    dtypes,
    not_mapped,
    shaped_array,
    state,
    undefined,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> tuple[ShapedArray, ...]:
    dtype = agreeing(low, x, high)
    if dtype not in REAL and dtype != dtypes.bool_:
        raise TypeError(message(
            "clamp", f"does not take operands of dtype {dtype.name}.",
            expected="a real number dtype",
        ))  # fmt: skip
    return (shaped_array(x.shape, dtype, all(a.weak_type for a in (low, x, high))),)


def agreeing(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> np.dtype[Any]:
    """Return the dtype that all have; the bounds must be scalars or of the shape of x."""
    dtype = common_dtype("clamp", (low, x, high))
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(message(
                "clamp", f"{name} must be a scalar or have the shape of x.",
                got=f"{name}: {bound.str_long()}, x: {x.str_long()}",
            ))  # fmt: skip
    return dtype


def _numpy(low: Any, x: Any, high: Any) -> Any:
    return (_limited(x, low, high),)


@same_dtype
def _limited(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(low, x), high)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
    return b.op("stablehlo.clamp", operands, avals_in, avals_out)


def _jvp(primals: Any, tangents: Any) -> Any:
    """The tangent of the operand that is the result; none where x equals a bound."""
    low, x, high = primals
    (y,) = state.trace.process(clamp_p, (low, x, high), {})
    total = None
    for i, dot in enumerate(tangents):
        if type(dot) is Zero:
            continue
        term = repeated(selected(_is_result(i, low, x, high), dot, scalar_like(y, 0)), y.aval.shape)
        total = term if total is None else add(total, term)
    return (y,), (Zero(y.aval) if total is None else total,)


def _is_result(i: int, low: Any, x: Any, high: Any) -> Any:
    if i == 0:
        return bind("and", bind("gt", low, x), bind("lt", low, high))
    if i == 1:
        return bind("and", bind("gt", x, low), bind("lt", x, high))
    return bind("lt", high, x)


def _batch(axis: BatchAxis, operands: Any, dims: Any) -> Any:
    low, x, high = operands
    x_front = axis.to_front(x, dims[1])
    bounds = []
    for bound, d in ((low, dims[0]), (high, dims[2])):
        if d is not not_mapped or bound.aval.ndim:
            scalars = bound.aval.ndim == (d is not not_mapped)
            bound = axis.to_front(bound, d)
            if scalars:  # one bound for each example: repeated over the example's elements
                bound = bind("broadcast_in_dim", bound, shape=x_front.aval.shape,
                             broadcast_dimensions=(0,))  # fmt: skip
        bounds.append(bound)
    return clamp_p.bind(bounds[0], x_front, bounds[1]), (0,)


clamp_p = Primitive(
    "clamp",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=_batch,
    dimensions=dimension_names.alike,
)
