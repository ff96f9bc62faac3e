"""concatenate: join arrays along one of their dimensions.

Semantics: StableHLO specification, section concatenate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.operations import bind
from xnp.primitives.table import common_dtype
from xnp.primitives.upcast_lowering import TWO_BITS, upcast
from xprim import (
    LINEAR,
    STRUCTURAL,
    Linear,
    Primitive,
    ShapedArray,
    Zero,
    dimension_names,
    not_mapped,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message

__all__ = ()


def _shape(*avals: ShapedArray, dimension: int) -> tuple[ShapedArray, ...]:
    if not avals:
        raise ValueError("concatenate: needs at least one array, got none.")
    first = avals[0]
    if not 0 <= dimension < first.ndim:
        raise TypeError(message(
            "concatenate", f"there is no dimension {dimension} in operands of rank {first.ndim}.",
            got=_listed(avals),
            hint="arrays of rank 0 are joined by stack" if first.ndim == 0 else "",
        ))  # fmt: skip
    dtype = common_dtype("concatenate", avals)
    rest = (*first.shape[:dimension], *first.shape[dimension + 1 :])
    total = 0
    for aval in avals:
        if aval.ndim != first.ndim or rest != (*aval.shape[:dimension],
                                               *aval.shape[dimension + 1 :]):  # fmt: skip
            raise TypeError(message(
                "concatenate", f"the shapes may differ only in dimension {dimension}.",
                got=f"{_listed(avals)}",
                expected=f"one rank, and equal sizes but in dimension {dimension}",
            ))  # fmt: skip
        total += aval.shape[dimension]
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    return (shaped_array(shape, dtype, all(a.weak_type for a in avals)),)


def _listed(avals: Any) -> str:
    shown = [a.str_long() for a in avals[:8]]
    return ", ".join(shown) + (f", ... ({len(avals)} operands)" if len(avals) > 8 else "")


def _numpy(*xs: Any, dimension: int) -> Any:
    return (np.concatenate(xs, dimension),)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, dimension: int) -> Any:
    if len(operands) == 1:
        return [operands[0]]
    return b.op("stablehlo.concatenate", operands, avals_in, avals_out,
                f"dimension = {dimension} : i64")  # fmt: skip


def _transpose(cts: Any, *xs: Any, dimension: int) -> Any:
    (ct,) = cts
    results: list[Any] = []
    start = 0
    low, high = [0] * ct.aval.ndim, list(ct.aval.shape)
    for x in xs:
        stop = start + x.aval.shape[dimension]
        if type(x) is Linear:
            low[dimension], high[dimension] = start, stop
            results.append(bind("slice", ct, start_indices=tuple(low), limit_indices=tuple(high),
                                strides=None))  # fmt: skip
        else:
            results.append(Zero(x.aval))
        start = stop
    return tuple(results)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, dimension: int) -> Any:
    d = dims[0]
    if d is not_mapped or any(other is not_mapped or other != d for other in dims):
        operands = [axis.to_front(x, k) for x, k in zip(operands, dims, strict=True)]
        d = 0
    return concatenate_p.bind(*operands, dimension=dimension + (d <= dimension)), (d,)


concatenate_p: Primitive = Primitive(
    "concatenate",
    shape=_shape,
    numpy=_numpy,
    stablehlo=upcast(_stablehlo, TWO_BITS, np.int8),
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    dimensions=dimension_names.alike,
)
