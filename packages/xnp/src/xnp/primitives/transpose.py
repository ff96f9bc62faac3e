"""transpose: permute the dimensions.

Dimension `i` of the result is dimension `permutation[i]` of the operand.
Semantics: StableHLO specification, section transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.dimensions import bumped
from xprim import LINEAR, STRUCTURAL, NumpyCall, Operand, Primitive, ShapedArray, shaped_array
from xprim.contracts import BatchAxis, Builder

__all__ = ()


def _shape(aval: ShapedArray, *, permutation: Any) -> tuple[ShapedArray, ...]:
    if len(permutation) != aval.ndim or set(permutation) != set(range(aval.ndim)):
        raise TypeError(
            "transpose: the permutation must name each dimension of the operand once."
            f"\n  got       {permutation} for {aval.str_long()}"
            f"\n  expected  a permutation of {tuple(range(aval.ndim))}"
        )
    shape = tuple([aval.shape[i] for i in permutation])
    return (shaped_array(shape, aval.dtype, aval.weak_type),)


def _numpy(x: Any, *, permutation: Any) -> Any:
    return (x.transpose(permutation),)


def _ufunc(avals_in: Any, avals_out: Any, *, permutation: Any) -> NumpyCall:
    return NumpyCall(np.ndarray.transpose, (Operand(0), permutation))


def _stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, permutation: Any
) -> Any:
    if permutation == tuple(range(len(permutation))):
        return [operands[0]]
    inside = f": {', '.join(map(str, permutation))}"
    return b.op("stablehlo.transpose", operands, avals_in, avals_out,
                f"permutation = array<i64{inside}>")  # fmt: skip


def _transpose(cts: Any, x: Any, *, permutation: Any) -> Any:
    inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
    return transpose_p.bind(cts[0], permutation=tuple(inverse))


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, permutation: Any) -> Any:
    (d,) = dims
    return transpose_p.bind(operands[0], permutation=(d, *bumped(permutation, d))), (0,)


transpose_p: Primitive = Primitive(
    "transpose",
    shape=_shape,
    numpy=_numpy,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=_transpose,
    batch=_batch,
    physical=STRUCTURAL,
    ufunc=_ufunc,
    cost=costs.nothing,
)
