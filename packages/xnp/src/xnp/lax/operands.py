"""Operands of `xnp.lax` functions: what may be given where an array is expected.

`lax` is strict: dtypes must be equal. Two things are forgiven: NumPy arrays and Python scalars are
accepted, and a Python scalar beside arrays takes their dtype when it is of their kind, so
`add(x, 1.0)` works for `x` of any floating dtype, and `add(x, 1)` for any integer dtype.

    add(float32 array, 1.0)   float32
    add(float32 array, 1)     TypeError: float32, int32
    add(1, 1.0)               TypeError: int32, float32
"""

from __future__ import annotations

from typing import Any

from xprim import Array, ConcreteArray, as_array, dtypes, scalar_array

_IS_OF_KIND = {
    bool: dtypes.is_bool,
    int: dtypes.is_integer,
    float: dtypes.is_floating,
    complex: dtypes.is_complex,
}


def pair(x: Any, y: Any) -> tuple[Array, Array]:
    """Return two operands as Arrays."""
    if type(x) is ConcreteArray and type(y) is ConcreteArray:
        return x, y
    x_is_scalar, y_is_scalar = type(x) in _IS_OF_KIND, type(y) in _IS_OF_KIND
    if not x_is_scalar:
        x = as_array(x)
        return x, _scalar_beside(y, x) if y_is_scalar else as_array(y)
    if y_is_scalar:
        return as_array(x), as_array(y)
    y = as_array(y)
    return _scalar_beside(x, y), y


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
