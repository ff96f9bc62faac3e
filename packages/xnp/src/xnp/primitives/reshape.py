"""reshape: the same elements in row-major order under another shape.

Semantics: StableHLO specification, section reshape. `dimensions` is always None (the public
function transposes first when it is asked to); it is kept because jaxprs show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

from xnp.primitives import costs
from xprim import (
    LINEAR,
    STRUCTURAL,
    NumpyCall,
    Operand,
    Primitive,
    ShapedArray,
    shaped_array,
)
from xprim.contracts import BatchAxis, Builder
from xprim.errors import message
from xprim.sharded_types import axes_of_dimensions

__all__ = ()


def _shape(aval: ShapedArray, *, new_sizes: Any, dimensions: Any) -> tuple[ShapedArray, ...]:
    out = shaped_array(new_sizes, aval.dtype, aval.weak_type)
    if out.size != aval.size:
        raise TypeError(message(
            "reshape", f"the number of elements changes from {aval.size} to {out.size}.",
            got=f"{aval.str_long()} to shape {new_sizes}",
            expected=f"a shape of {aval.size} elements",
        ))  # fmt: skip
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


def _dimensions(avals: Any, out: Any, params: Any) -> list[list[Any]] | None:
    """Return by which axes the result is cut; None where that is not clear.

    Runs of dimensions of equal size correspond. What cuts the first dimensions of a run cuts those
    of the result, in the same order.
    """
    if params.get("dimensions") is not None:
        return None
    sizes, parts = avals[0].spread.mesh.shape, axes_of_dimensions(avals[0])
    found: list[Any] = []
    for source, target in _runs(avals[0].shape, out[0].shape):
        axes = _axes_of_run([avals[0].shape[d] for d in source], [parts[d] for d in source])
        placed = None if axes is None else _placed([out[0].shape[d] for d in target], axes, sizes)
        if placed is None:
            return None
        found += placed
    return [found]


def _runs(source: Sequence[int], target: Sequence[int]) -> list[tuple[range, range]]:
    """Return the shortest runs of dimensions of two shapes that have the same elements."""
    runs, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        start, left, right = (i, j), 1, 1
        while True:
            if left <= right and i < len(source):
                left *= source[i]
                i += 1
            elif j < len(target):
                right *= target[j]
                j += 1
            else:
                left *= source[i]
                i += 1
            if left == right:
                break
        runs.append((range(start[0], i), range(start[1], j)))
    return runs


def _axes_of_run(shape: Sequence[int], parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """Return the axes that cut the first dimensions of a run; None where they cut others."""
    axes: list[Any] = []
    is_past = False
    for n, part in zip(shape, parts, strict=True):
        if part and is_past:
            return None
        is_past = is_past or (n > 1 and not part)
        axes += part
    return tuple(axes)


def _placed(shape: Sequence[int], axes: Sequence[Any], sizes: Any) -> list[Any] | None:
    """Return by which of the axes each dimension is cut, the first ones first."""
    rest, placed = list(axes), []
    for n in shape:
        own: list[Any] = []
        while rest and n > 1 and not n % sizes[rest[0]]:
            n //= sizes[rest[0]]
            own.append(rest.pop(0))
        if rest and n > 1:
            return None
        placed.append(tuple(own) or None)
    return None if rest else placed


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
    dimensions=_dimensions,
)
