"""`xnp.lax`: conversions of dtype, parts of complex numbers, constants, identities.

Conversions take `dtype` as users write it: 64-bit dtypes are honoured without a flag; `int`,
`float` and `complex` stand for the default dtype of their kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xnp.docstrings import complete
from xnp.docstrings.operations import CONVERSION
from xnp.lax.elementwise_arithmetic import apply
from xnp.lax.operands import pair
from xnp.placing import as_spread, placed
from xnp.primitives.bitcast_convert_type import bitcast_convert_type_p
from xnp.primitives.broadcast_in_dim import broadcast_in_dim_p
from xnp.primitives.complex_parts import complex_p, conj_p, imag_p, real_p
from xnp.primitives.convert_element_type import convert_element_type_p
from xnp.primitives.identity import copy_p, optimization_barrier_p, stop_gradient_p
from xnp.primitives.reduce_precision import reduce_precision_p
from xprim import EAGER, Array, as_array, dtypes, scalar_array, state
from xprim.sizes import size_of
from xprim.static_sizes import static_shape
from xprim.tracebacks import boundaries
from xprim.typing import ArrayLike, DTypeLike, PyTree, ShardingLike
from xtree import tree_flatten, tree_map, tree_unflatten


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the same numbers in another dtype.

    Floats become integers by rounding towards zero, those out of range the nearest integer there
    is, NaN becomes 0; complex numbers lose their imaginary part; integers wrap around.

    Args:
      operand: of any dtype.
      new_dtype: the dtype.

    Example:
      >>> convert_element_type(2.7, "int32").aval
      ShapedArray(int32[])
    """
    dtype = _required_dtype(new_dtype, "convert_element_type")
    if type(operand) is int and dtypes.is_integer(dtype):
        operand = np.array(operand & _ALL_BITS, np.uint64).astype(dtype)  # wraps around
    elif type(operand) is int and dtypes.is_inexact(dtype):
        operand = float(operand)  # no integer dtype need hold it
    x = as_array(operand)
    if x.aval.dtype == dtype and not x.aval.weak_type:
        return x
    result: Array = convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)[0]
    return result


_ALL_BITS = (1 << 64) - 1


def _required_dtype(dtype: Any, operation: str) -> Any:
    if dtype is None:
        raise TypeError(f"{operation}: the dtype is missing.")
    return dtypes.requested_dtype(dtype, operation)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Return the same bits read as another dtype.

    Between dtypes of equal width the shape stays; a wider dtype takes the last dimension, whose
    size must be the ratio of the widths; a narrower one adds such a dimension.

    Example:
      >>> bitcast_convert_type(1.0, "int32").to_host().item() == 0x3F800000
      True
    """
    dtype = _required_dtype(new_dtype, "bitcast_convert_type")
    result: Array = bitcast_convert_type_p.bind(as_array(operand), new_dtype=dtype)[0]
    return result


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Return floats rounded to what a format of fewer bits can hold, in the same dtype.

    Args:
      operand: floats.
      exponent_bits: at least 1. Larger magnitudes become infinite, smaller ones zero.
      mantissa_bits: at least 0. Halves round to even.
    """
    return reduce_precision_p.bind(  # type: ignore[no-any-return]
        as_array(operand),
        exponent_bits=size_of(exponent_bits),
        mantissa_bits=size_of(mantissa_bits),
    )[0]


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Return x + iy. float32 or float64."""
    return complex_p.bind(*pair(x, y))[0]  # type: ignore[no-any-return]


def real(x: ArrayLike) -> Array:
    """Return the real part. Complex."""
    return apply(real_p, x)


def imag(x: ArrayLike) -> Array:
    """Return the imaginary part. Complex."""
    return apply(imag_p, x)


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate, complex also for floats. Complex, float32, float64."""
    x = as_array(x)
    return conj_p.bind(x, input_dtype=x.aval.dtype)[0]  # type: ignore[no-any-return]


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array filled with a scalar.

    Args:
      shape: of the result.
      fill_value: a scalar.
      dtype: None for that of `fill_value`, whose weak type stays.
      sharding: where the result shall lie; None leaves it to the default device.

    Example:
      >>> full((2, 3), 1.0, "bfloat16").aval
      ShapedArray(bfloat16[2,3])
    """
    value: Any = fill_value
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "full")
        if type(value) in (int, float, bool):
            value = _scalar_of(value, dtype)
        else:
            value = convert_element_type(value, dtype)
    value = as_array(value)
    if value.aval.shape:
        raise TypeError(f"full: fill_value must be a scalar, got {value.aval.str_long()}.")
    shape = static_shape(shape, "full")
    if shape:
        value = broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=())[0]
    return placed(value, sharding, "full")


def _scalar_of(value: Any, dtype: Any) -> Array:
    if dtypes.is_integer(dtype) and type(value) is float:
        return convert_element_type(value, dtype)
    return scalar_array(value, dtype)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Sequence[int] | None = None,
    sharding: ShardingLike = None,
) -> Array:
    """Return an array filled with a scalar, with shape and dtype of `x` unless given.

    Args:
      x: an array, or a `ShapeDtypeStruct`.
      fill_value: a scalar.
      dtype: None for that of `x`, whose weak type stays.
      shape: None for that of `x`.
      sharding: as in `full`; None, where no other shape is given, for how `x` is cut along
        explicit axes of a mesh.
    """
    aval = x.aval if hasattr(x, "aval") else as_array(x).aval
    result = full(aval.shape if shape is None else shape, fill_value,
                  aval.dtype if dtype is None else dtype, sharding=sharding)  # fmt: skip
    if dtype is None and aval.weak_type:
        result = convert_element_type_p.bind(result, new_dtype=aval.dtype, weak_type=True)[0]
    return as_spread(result, x) if shape is None and sharding is None else result


def stop_gradient(x: ArrayLike) -> PyTree:
    """Return x, with a derivative of zero; leaves of a pytree of inexact dtype alone need it.

    Example:
      >>> stop_gradient({"a": 1.0})["a"].aval
      ShapedArray(~float32[])
    """
    return tree_map(_stopped, x)


def _stopped(leaf: Any) -> Any:
    x = as_array(leaf)
    return stop_gradient_p.bind(x)[0] if dtypes.is_inexact(x.aval.dtype) else leaf


def stage(x: ArrayLike, /) -> Array:
    """Return a value as an array of the program that is being traced, or as an Array outside.

    Args:
      x: an array or a number.

    Returns:
      An array of its shape and dtype, under a trace a tracer.

    Example:
      >>> from xprim import Tracer, eval_shape
      >>> traced = []
      >>> shape = eval_shape(lambda: traced.append(stage(1.0)))
      >>> isinstance(traced[0], Tracer), stage(1.0)
      (True, Array(1., dtype=float32, weak_type=True))
    """
    value = as_array(x, what="stage")
    return value if state.trace is EAGER else copy_p.bind(value)[0]


def optimization_barrier(operand: ArrayLike, /) -> PyTree:
    """Return a pytree of arrays; the compiler moves and merges nothing across this point."""
    leaves, treedef = tree_flatten(operand)
    if not leaves:
        return operand
    outs = optimization_barrier_p.bind(*[as_array(leaf) for leaf in leaves])
    return tree_unflatten(treedef, outs)


__all__ = [
    "bitcast_convert_type", "bitcast_convert_type_p", "complex", "complex_p", "conj", "conj_p",
    "convert_element_type", "convert_element_type_p", "copy_p", "full", "full_like", "imag",
    "imag_p", "optimization_barrier", "optimization_barrier_p", "real", "real_p",
    "reduce_precision", "reduce_precision_p", "stage", "stop_gradient", "stop_gradient_p",
]  # fmt: skip

__dir__ = __all__.copy

complete(globals(), CONVERSION)


boundaries(globals(), written=True)
