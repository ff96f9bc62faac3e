"""top_k: the k greatest elements along an axis, in descending order, and where they stand.

Floats are compared in their total order: NaN is the greatest (with its sign bit set, as 0/0 makes
it on some processors, the least), 0.0 is above -0.0. Of equal elements the one with the lower
index comes first.
Semantics: CHLO, operation top_k. The derivative reads the tangents at the indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.along_axis import take_along
from xnp.primitives.comparison import total_order_key
from xnp.primitives.sort import comparable, stable_order
from xnp.primitives.table import BOOL, REAL
from xnp.primitives.upcast_lowering import FOUR_BITS, TWO_BITS, upcast
from xprim import Primitive, ShapedArray, Zero, dimension_names, dtypes, shaped_array, undefined
from xprim.contracts import Builder

__all__ = ()


def _shape(aval: ShapedArray, *, k: int, axis: int) -> tuple[ShapedArray, ...]:
    if aval.dtype not in REAL | BOOL:
        raise ValueError(f"top_k: does not take operands of dtype {aval.dtype.name}.")
    if not 0 <= axis < aval.ndim:
        raise ValueError(f"top_k: there is no axis {axis} in {aval.str_long()}.")
    if not 0 <= k <= aval.shape[axis]:
        raise ValueError(
            f"top_k: k must be from 0 to the size of the axis, {aval.shape[axis]}; got {k}."
        )
    if type(aval.shape[axis]) is int and aval.shape[axis] > 1 << 31:
        raise ValueError(f"top_k: places are int32, too small for {aval.shape[axis]} elements.")
    shape = (*aval.shape[:axis], k, *aval.shape[axis + 1 :])
    return shaped_array(shape, aval.dtype, aval.weak_type), shaped_array(shape, dtypes.int32)


def _numpy(x: Any, *, k: int, axis: int) -> Any:
    values = x
    if x.dtype in dtypes.SMALL_FLOATS:  # some have one NaN only, with the bits of -0.0
        values = np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32))
    key = total_order_key(values) if dtypes.is_floating(x.dtype) else comparable(x)[0]
    # inverting the bits of integers turns their order round, and equal ones stay in place
    order = stable_order(np.invert(key), axis)
    order = order[(slice(None),) * axis + (slice(k),)]
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, k: int, axis: int
) -> Any:
    (x,), (aval,) = operands, avals_in
    last = aval.ndim - 1
    if axis == last:
        return b.op("chlo.top_k", [x], [aval], avals_out, f"k = {k} : i64")
    swap = list(range(aval.ndim))
    swap[axis], swap[last] = last, axis  # its own inverse
    attribute = f"permutation = array<i64: {', '.join(map(str, swap))}>"

    def swapped(a: Any) -> Any:
        return shaped_array(tuple([a.shape[d] for d in swap]), a.dtype)

    moved = b.op("stablehlo.transpose", [x], [aval], [swapped(aval)], attribute)
    inner = [swapped(a) for a in avals_out]
    found = b.op("chlo.top_k", moved, [swapped(aval)], inner, f"k = {k} : i64")
    return [b.op("stablehlo.transpose", [v], [a], [out], attribute)[0]
            for v, a, out in zip(found, inner, avals_out, strict=True)]  # fmt: skip


def _jvp(primals: Any, tangents: Any, *, k: int, axis: int) -> Any:
    (x_dot,) = tangents
    values, places = top_k_p.bind(*primals, k=k, axis=axis)
    dot = Zero(values.aval) if type(x_dot) is Zero else take_along(x_dot, places, axis)
    return (values, places), (dot, Zero(places.aval))


def _batch(batch: Any, operands: Any, dims: Any, *, k: int, axis: int) -> Any:
    (d,) = dims
    return top_k_p.bind(operands[0], k=k, axis=axis + (d <= axis)), (d, d)


top_k_p: Primitive = Primitive(
    "top_k",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(
        upcast(_stablehlo, TWO_BITS + FOUR_BITS, np.int8), dtypes.SMALL_FLOATS, np.float32
    ),
    jvp=_jvp,
    transpose=undefined("it is not linear"),
    batch=_batch,
    cost=costs.nothing,
    dimensions=dimension_names.whole_along("axis"),
)
