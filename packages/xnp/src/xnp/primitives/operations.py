"""Short forms of binding shape and elementwise primitives, for rules that are formulas.

A formula such as d sqrt(x) = dx / (2 sqrt(x)) reads `mul(x_dot, div(scalar_like(x, 0.5), y))`.
`xnp.lax` imports the primitives, so their rules cannot import it; these functions look a primitive
up by its name when they are called, so they work under every trace. They take and give single
Arrays and check nothing: rules know what they pass.

Neighbours: `dimensions` has the bookkeeping of dimensions, `narrow_dtypes` what NumPy rules need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xprim import Array, Primitive, dtypes, get_primitive, scalar_array, state

__all__ = [
    "bind", "reshaped", "transposed", "moved", "broadcasted", "sliced", "concatenated",
    "converted", "in_dtype", "filled", "scalar_like", "add", "sub", "mul", "div", "neg",
    "scaled", "summed", "selected", "counting", "iota",
]  # fmt: skip

__dir__ = __all__.copy

# The primitives that were asked for by name: an import at most for each.
_primitives: dict[str, Primitive] = {}


def bind(name: str, *operands: Any, **params: Any) -> Array:
    """Bind a primitive of one result by its name and return that result."""
    primitive = _primitives.get(name)
    if primitive is None:
        primitive = _primitives[name] = get_primitive(name)
    result: Array = state.__dict__["trace"].process(primitive, operands, params)[0]
    return result


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """Reshape, or return `x` when it has that shape."""
    shape = tuple(shape)
    return x if x.aval.shape == shape else bind("reshape", x, new_sizes=shape, dimensions=None)


def transposed(x: Array, permutation: Sequence[int]) -> Array:
    """Permute dimensions: dimension `permutation[i]` of `x` becomes dimension i."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return bind("transpose", x, permutation=permutation)


def moved(x: Array, source: int, target: int) -> Array:
    """Move one dimension to another place."""
    order = [i for i in range(x.aval.ndim) if i != source]
    order.insert(target, source)
    return transposed(x, order)


def broadcasted(x: Array, shape: Sequence[int], dims: Sequence[int] | None = None) -> Array:
    """Repeat `x` to a shape; its dimension i goes to `dims[i]`, without `dims` to the last ones."""
    shape, old = tuple(shape), x.aval.shape
    if old == shape:
        return x
    places = range(len(shape) - len(old), len(shape)) if dims is None else dims
    return bind("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(places))


def sliced(x: Array, dim: int, start: int, stop: int, step: int = 1) -> Array:
    """Return `x[..., start:stop:step, ...]` in one dimension."""
    shape = x.aval.shape
    if (start, stop, step) == (0, shape[dim], 1):
        return x
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[dim], limits[dim], strides[dim] = start, stop, step
    return bind("slice", x, start_indices=tuple(starts), limit_indices=tuple(limits),
                strides=None if step == 1 else tuple(strides))  # fmt: skip


def concatenated(xs: Sequence[Array], dim: int) -> Array:
    """Join arrays along a dimension."""
    return xs[0] if len(xs) == 1 else bind("concatenate", *xs, dimension=dim)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert to a dtype that is not weak."""
    if x.aval.dtype == dtype and not x.aval.weak_type:
        return x
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


def in_dtype(x: Array, dtype: np.dtype[Any]) -> Array:
    """Convert to a dtype; a weak type is no reason to convert, as in a tangent."""
    return x if x.aval.dtype == dtype else converted(x, dtype)


def filled(shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array filled with a Python scalar."""
    return broadcasted(scalar_array(value, dtype), shape)


def scalar_like(x: Any, value: Any) -> Array:
    """Return a Python number as a 0-d array of the dtype of `x`, weakly typed as it is."""
    aval = x.aval
    return scalar_array(value, aval.dtype, aval.weak_type)


def add(x: Any, y: Any) -> Array:
    """Return x + y."""
    return bind("add", x, y)


def sub(x: Any, y: Any) -> Array:
    """Return x - y."""
    return bind("sub", x, y)


def mul(x: Any, y: Any) -> Array:
    """Return x * y."""
    return bind("mul", x, y)


def div(x: Any, y: Any) -> Array:
    """Return x / y."""
    return bind("div", x, y)


def neg(x: Any) -> Array:
    """Return -x."""
    return bind("neg", x)


def scaled(x: Any, factor: Any) -> Array:
    """Return x times a Python number."""
    return bind("mul", x, scalar_array(factor, x.aval.dtype))


def summed(x: Array, axes: Sequence[int]) -> Array:
    """Sum over axes."""
    axes = tuple(axes)
    return bind("reduce_sum", x, axes=axes) if axes else x


def selected(mask: Any, on_true: Any, on_false: Any) -> Array:
    """Return `on_true` where the mask holds, else `on_false`; scalars are repeated."""
    return bind("select_n", mask, on_false, on_true)


def counting(size: int, dtype: Any) -> Array:
    """Return 0, 1, ..., size - 1."""
    return bind("iota", dtype=np.dtype(dtype), shape=(size,), dimension=0)


def iota(shape: Sequence[int], dim: int) -> Array:
    """Return the index along a dimension, as int32."""
    return bind("iota", dtype=dtypes.int32, shape=tuple(shape), dimension=dim)
