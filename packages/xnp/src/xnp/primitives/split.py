"""split: cut an array along one dimension into parts of given sizes.

In StableHLO it is one slice for each part; the transpose joins the cotangents.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives import costs
from xnp.primitives.operations import bind, filled
from xprim import LINEAR, STRUCTURAL, Primitive, ShapedArray, Zero, dimension_names, shaped_array
from xprim.contracts import Builder
from xprim.errors import message

__all__ = ()


def _shape(aval: ShapedArray, *, sizes: Any, axis: int) -> tuple[ShapedArray, ...]:
    if not 0 <= axis < aval.ndim:
        raise ValueError(f"split: there is no axis {axis} in {aval.str_long()}.")
    if any(n < 0 for n in sizes) or sum(sizes) != aval.shape[axis]:
        raise ValueError(message(
            "split", "the sizes must be at least 0 and add up to the size of the axis.",
            got=f"{sizes} along axis {axis} of {aval.str_long()}",
            expected=f"a sum of {aval.shape[axis]}, not {sum(sizes)}",
        ))  # fmt: skip
    before, after = aval.shape[:axis], aval.shape[axis + 1 :]
    return tuple([shaped_array((*before, n, *after), aval.dtype, aval.weak_type) for n in sizes])


def _numpy(x: Any, *, sizes: Any, axis: int) -> Any:
    lead = (slice(None),) * axis
    parts, start = [], 0
    for n in sizes:
        parts.append(x[(*lead, slice(start, start + n))])
        start += n
    return tuple(parts)


def _stablehlo(
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


def _transpose(cts: Any, x: Any, *, sizes: Any, axis: int) -> Any:
    parts = [filled(ct.aval.shape, 0, x.aval.dtype) if type(ct) is Zero else ct for ct in cts]
    return (parts[0] if len(parts) == 1 else bind("concatenate", *parts, dimension=axis),)


def _batch(batch: Any, operands: Any, dims: Any, *, sizes: Any, axis: int) -> Any:
    (x,), (d,) = operands, dims
    outs = split_p.bind(x, sizes=sizes, axis=axis + (d <= axis))
    return outs, (d,) * len(outs)


split_p: Primitive = Primitive(
    "split",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    cost=costs.nothing,
    dimensions=dimension_names.alike,
)
