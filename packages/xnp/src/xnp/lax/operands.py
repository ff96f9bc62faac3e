"""Operands of `xnp.lax` functions: what may be given where an array is expected.

`lax` is strict: dtypes must be equal, and so must ranks. Three things are forgiven: NumPy arrays
and Python scalars are accepted; a Python scalar beside arrays takes their dtype when it is of their
kind, so `add(x, 1.0)` works for `x` of any floating dtype, and `add(x, 1)` for any integer dtype;
and a dimension of size 1 is repeated to the size that it has in the other operand.

    add(float32 array, 1.0)   float32
    add(float32 array, 1)     TypeError: float32, int32
    add(1, 1.0)               TypeError: int32, float32
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.broadcast_in_dim import broadcast_in_dim_p
from xprim import Array, ConcreteArray, as_array, dtypes, scalar_array

__all__ = ()

_IS_OF_KIND = {
    bool: dtypes.is_bool,
    int: dtypes.is_integer,
    float: dtypes.is_floating,
    complex: dtypes.is_complex,
}


def pair(x: Any, y: Any) -> tuple[Array, Array]:
    """Return two operands as Arrays."""
    if type(x) is not ConcreteArray or type(y) is not ConcreteArray:
        x, y = _arrays(x, y)
    if x.aval is not y.aval and x.aval.shape != y.aval.shape:
        x, y = leveled(x, y)
    return x, y


def _arrays(x: Any, y: Any) -> tuple[Array, Array]:
    x_is_scalar, y_is_scalar = type(x) in _IS_OF_KIND, type(y) in _IS_OF_KIND
    if not x_is_scalar:
        x = as_array(x)
        return x, _scalar_beside(y, x) if y_is_scalar else as_array(y)
    if y_is_scalar:
        return as_array(x), as_array(y)
    y = as_array(y)
    return _scalar_beside(x, y), y


def leveled(*arrays: Array) -> list[Array]:
    """Return arrays of one rank with dimensions of size 1 repeated; others stay for the errors."""
    shapes = [x.aval.shape for x in arrays if x.aval.shape]
    if len({len(shape) for shape in shapes}) != 1:
        return list(arrays)
    sizes = [{*column} - {1} or {1} for column in zip(*shapes, strict=True)]
    if max(map(len, sizes)) > 1:
        return list(arrays)
    shape = tuple([size for (size,) in sizes])
    return [x if x.aval.shape in ((), shape) else _repeated(x, shape) for x in arrays]


def _repeated(x: Array, shape: tuple[int, ...]) -> Array:
    result: Array = broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(range(len(shape)))
    )[0]
    return result


def several(*values: Any) -> list[Array]:
    """Return operands as Arrays; Python scalars follow the first one that is none."""
    other = None
    for value in values:
        if type(value) not in _IS_OF_KIND:
            other = as_array(value)
            break
    if other is None:
        return [as_array(v) for v in values]
    return [
        _scalar_beside(v, other) if type(v) in _IS_OF_KIND else as_array(v) for v in values
    ]  # fmt: skip


def _scalar_beside(value: Any, other: Array) -> Array:
    aval = other.aval
    if aval.weak_type or not _IS_OF_KIND[type(value)](aval.dtype):
        return as_array(value)
    return scalar_array(value, aval.dtype)
