"""Code, constants, enclosing variables, defaults. (See `table`.)"""

from __future__ import annotations

import enum
import math

import numpy as np

import xstack.numpy as xnp
from tests.nets.differences.table import (
    kind,
    pair,
    remade,
)


@kind
def a_constant_in_the_code():
    yield lambda: lambda x: x * 2.0
    yield lambda: lambda x: x * 3.0


@kind
def a_number_in_a_closure():
    return pair(lambda c: lambda x: x * c)


@kind
def the_type_of_a_number_in_a_closure():
    return pair(lambda c: lambda x: x * (2.0 if type(c) is int else 3.0), 1, 1.0)


@kind
def a_boolean_for_a_number():
    return pair(lambda c: lambda x: x * (2.0 if c is True else 3.0), 1, True)


@kind
def the_sign_of_a_zero():
    return pair(lambda c: lambda x: x * math.copysign(2.0, c), 0.0, -0.0)


@kind
def the_sign_of_an_imaginary_zero():
    return pair(lambda c: lambda x: x * math.copysign(2.0, c.imag), 0j, complex(0.0, -0.0))


@kind
def a_number_in_a_nested_tuple():
    number = lambda c: 2.0 if type(c[1][0]) is int else 3.0  # noqa: E731
    return pair(lambda c: lambda x: x * number(c), (0, (1,)), (0, (1.0,)))


@kind
def a_string():
    return pair(lambda c: lambda x: x * len(c), "ab", "abc")


@kind
def a_string_for_a_member_of_its_enumeration():
    word = enum.StrEnum("word", {"A": "a"})
    return pair(lambda c: lambda x: x * (2.0 if type(c) is str else 3.0), "a", word.A)


@kind
def a_numpy_scalar():
    return pair(lambda c: lambda x: x * float(c), np.float32(2), np.float32(3))


@kind
def the_dtype_of_a_numpy_scalar():
    return pair(lambda c: lambda x: x * c.itemsize, np.float32(1), np.float64(1))


@kind
def an_array_in_a_closure():
    return pair(lambda c: lambda x: x * c, xnp.asarray(2.0), xnp.asarray(3.0))


@kind
def a_numpy_array_in_a_closure():
    return pair(lambda c: lambda x: x * c, np.asarray(2.0, np.float32), np.asarray(3.0, np.float32))


@kind
def an_element_of_a_numpy_array():
    table = np.array([2.0], np.float32)
    make = remade(lambda x: x * float(table[0]))
    yield make
    table[0] = 3.0
    yield make


@kind
def a_slice_in_a_closure():
    return pair(lambda c: lambda x: x * float(sum(range(5)[c])), slice(1, 3), slice(1, 4))


@kind
def a_range_in_a_closure():
    return pair(lambda c: lambda x: x * float(c.stop), range(0, 3, 2), range(0, 4, 2))


@kind
def a_frozenset_in_a_closure():
    return pair(lambda c: lambda x: x * float(max(c)), frozenset([1, 2]), frozenset([1, 3]))


@kind
def a_dtype_in_a_closure():
    return pair(lambda c: lambda x: x * c.itemsize, np.dtype("f4"), np.dtype("f8"))


@kind
def a_default():
    def make(c):
        def f(x, d=c):
            return x * d

        return f

    return pair(make)


@kind
def a_default_that_was_replaced():
    def f(x, d=2.0):
        return x * d

    yield lambda: f
    f.__defaults__ = (3.0,)
    yield lambda: f


@kind
def a_keyword_default():
    def make(c):
        def f(x, *, d=c):
            return x * d

        return f

    return pair(make)


@kind
def a_mutable_default():
    def f(x, d=[2.0]):  # noqa: B006 - what it is about
        return x * d[0]

    yield remade(f)
    f.__defaults__[0][0] = 3.0
    yield remade(f)


@kind
def a_cell_that_was_assigned():
    scale = 2.0

    def make():
        return lambda x: x * scale

    yield make
    scale = 3.0
    yield make


@kind
def a_cell_that_another_function_writes():
    scale = 2.0

    def write():
        nonlocal scale
        scale = 3.0

    f = remade(lambda x: x * scale)
    yield f
    write()
    yield f


@kind
def the_code_of_a_function():
    def f(x):
        return x * 2.0

    yield lambda: f
    f.__code__ = (lambda x: x * 3.0).__code__
    yield lambda: f
