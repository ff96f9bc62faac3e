"""reshape: the same elements in row-major order under another shape.

Semantics: StableHLO specification, section reshape. `dimensions` is always None (the public
function transposes first when it is asked to); it is kept because jaxprs show it.
"""

from __future__ import annotations

from operator import methodcaller
from typing import Any

from xnp.primitives import costs
from xprim import LINEAR, STRUCTURAL, NumpyCall, Operand, Primitive, ShapedArray, shaped_array
from xprim.contracts import BatchAxis, Builder

__all__ = ()


def _shape(aval: ShapedArray, *, new_sizes: Any, dimensions: Any) -> tuple[ShapedArray, ...]:
    out = shaped_array(new_sizes, aval.dtype, aval.weak_type)
    if out.size != aval.size:
        raise TypeError(
            f"reshape: the number of elements changes from {aval.size} to {out.size}."
            f"\n  got       {aval.str_long()} to shape {new_sizes}"
            f"\n  expected  a shape of {aval.size} elements"
        )
    return (out,)


def _numpy(x: Any, *, new_sizes: Any, dimensions: Any) -> Any:
    return (x.reshape(new_sizes),)


def _ufunc(avals_in: Any, avals_out: Any, **_: Any) -> NumpyCall:
    return NumpyCall(methodcaller("reshape", avals_out[0].shape), (Operand(0),))


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, **_: Any) -> Any:
    if avals_in[0].shape == avals_out[0].shape:
        return [operands[0]]
    return b.op("stablehlo.reshape", operands, avals_in, avals_out)


def _transpose(cts: Any, x: Any, *, new_sizes: Any, dimensions: Any) -> Any:
    return reshape_p.bind(cts[0], new_sizes=x.aval.shape, dimensions=None)


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, new_sizes: Any, dimensions: Any) -> Any:
    x = axis.to_front(operands[0], dims[0])
    return reshape_p.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None), (0,)


reshape_p: Primitive = Primitive(
    "reshape",
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
