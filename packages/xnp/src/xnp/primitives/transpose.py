"""transpose: permute the dimensions.

Dimension `i` of the result is dimension `permutation[i]` of the operand.
Semantics: StableHLO specification, section transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.dimensions import bumped
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


def _shape(aval: ShapedArray, *, permutation: Any) -> tuple[ShapedArray, ...]:
    if len(permutation) != aval.ndim or set(permutation) != set(range(aval.ndim)):
        raise TypeError(message(
            "transpose", "the permutation must name each dimension of the operand once.",
            got=f"{permutation} for {aval.str_long()}",
            expected=f"a permutation of {tuple(range(aval.ndim))}",
        ))  # fmt: skip
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


def _dimensions(avals: Any, out: Any, params: Any) -> dimension_names.Names:
    operand = dimension_names.numbered(avals[0])
    return dimension_names.Names([operand], [tuple(params["permutation"])])


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
    dimensions=_dimensions,
)
