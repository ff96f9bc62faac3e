"""Functions for the tests of `xad`, bound straight to the primitives."""

import numpy as np

import xnp  # noqa: F401 - owns the primitives
from xprim import Array, as_array, get_primitive


def _operands(*values):
    dtype = next((v.dtype for v in values if isinstance(v, Array | np.ndarray)), None)
    return [
        as_array(v, dtype) if isinstance(v, int | float | complex) else as_array(v) for v in values
    ]


def _function(name):
    def function(*operands, **params):
        return get_primitive(name).bind(*_operands(*operands), **params)[0]

    function.__name__ = name
    return function


add, sub, mul, div = map(_function, ("add", "sub", "mul", "div"))
neg, sin, cos, exp, log, tanh = map(_function, ("neg", "sin", "cos", "exp", "log", "tanh"))
real, imag, greater = map(_function, ("real", "imag", "gt"))
floor, maximum, select = map(_function, ("floor", "max", "select_n"))


def conj(z):
    """Return the complex conjugate of a complex number."""
    z = as_array(z)
    return get_primitive("conj").bind(z, input_dtype=z.dtype)[0]


def total(x):
    """Return the sum of all elements."""
    x = as_array(x)
    return get_primitive("reduce_sum").bind(x, axes=tuple(range(x.ndim)))[0]


def dot(x, y):
    """Return the matrix product."""
    x, y = as_array(x), as_array(y)
    numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return get_primitive("dot_general").bind(
        x, y, dimension_numbers=numbers, precision=None, preferred_element_type=x.dtype
    )[0]


def to_integer(x):
    """Return the elements rounded towards zero."""
    return get_primitive("convert_element_type").bind(
        as_array(x), new_dtype=np.dtype("int32"), weak_type=False
    )[0]


def to_float(x):
    """Return the elements as float32."""
    return get_primitive("convert_element_type").bind(
        as_array(x), new_dtype=np.dtype("float32"), weak_type=False
    )[0]


def repeat(x, count):
    """Return a vector of `count` copies of a scalar."""
    return get_primitive("broadcast_in_dim").bind(
        as_array(x), shape=(count,), broadcast_dimensions=()
    )[0]
