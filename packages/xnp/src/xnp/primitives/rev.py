"""rev: reverse the order of elements along some dimensions.

Semantics: StableHLO specification, section reverse.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives import costs
from xnp.primitives.dimensions import bumped
from xprim import LINEAR, STRUCTURAL, Primitive, ShapedArray, dimension_names
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(aval: ShapedArray, *, dimensions: Any) -> tuple[ShapedArray, ...]:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < aval.ndim for d in dimensions):
        raise TypeError(message(
            "rev", f"dimensions must be distinct and within the operand's {aval.ndim}.",
            got=f"{dimensions} for {aval.str_long()}",
        ))  # fmt: skip
    return (aval,)


def _numpy(x: Any, *, dimensions: Any) -> Any:
    backwards = [slice(None)] * x.ndim
    for d in dimensions:
        backwards[d] = slice(None, None, -1)
    return (x[tuple(backwards)],) if dimensions else (x,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimensions: Any) -> Any:
    if not dimensions:
        return [operands[0]]
    return b.op("stablehlo.reverse", operands, avals_in, avals_out,
                f"dimensions = array<i64: {', '.join(map(str, dimensions))}>")  # fmt: skip


def _transpose(cts: Any, x: Any, *, dimensions: Any) -> Any:
    return rev_p.bind(cts[0], dimensions=dimensions)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, dimensions: Any) -> Any:
    return rev_p.bind(operands[0], dimensions=bumped(dimensions, dims[0])), dims


rev_p: Primitive = Primitive(
    "rev",
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
