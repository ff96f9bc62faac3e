"""Integers divided by a number above 0: floors and remainders without a choice of signs."""

import numpy as np
import pytest

import xnp
from xprim import make_jaxpr

DTYPES = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
FLOORS = {"floor_divide": lambda x, n: x // n, "remainder": lambda x, n: x % n}


def _elements(dtype):
    info = np.iinfo(dtype)
    if info.bits == 8:
        return np.arange(info.min, info.max + 1).astype(dtype)
    random = np.random.default_rng(0).integers(info.min, info.max, 200)
    return np.concatenate([random, [info.min, info.min + 1, 0, 1, info.max]]).astype(dtype)


def _numbers(dtype):
    largest = np.iinfo(dtype).max
    if largest < 256:
        return range(1, largest + 1)
    return [1, 2, 3, 5, 7, 8, 10, 1000, 1024, largest // 2 + 1, largest]


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_gives_what_numpy_does(dtype, name):
    x, fun = _elements(dtype), FLOORS[name]
    for number in _numbers(dtype):
        for divisor in (number, np.dtype(dtype).type(number)):
            found = fun(xnp.asarray(x), divisor)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, fun(x, divisor))


def test_other_divisors_are_divided_by_as_before():
    x = np.arange(-5, 6, dtype=np.int32)
    for divisor in (-3, -4, np.int8(-1), np.array(3, np.int32), np.array(4, np.int32)):
        np.testing.assert_array_equal(xnp.asarray(x) // divisor, x // divisor)
        np.testing.assert_array_equal(xnp.asarray(x) % divisor, x % divisor)
    np.testing.assert_array_equal(xnp.asarray(x) % 4.0, x % np.float32(4))
    np.testing.assert_array_equal(xnp.asarray(x.astype("f")) // 4, x.astype("f") // 4)
    assert (xnp.array(True) % 2).dtype == xnp.int32 and int(xnp.array(True) // 2) == 0
    with pytest.raises(OverflowError):
        xnp.ones(3, "int8") % 200


def test_floors_by_numbers_are_few_operations():
    def names(fun):
        return [eqn.primitive.name for eqn in make_jaxpr(fun)(np.int32(5)).jaxpr.eqns]

    assert names(lambda x: x // 8) == ["shift_right_arithmetic"]
    assert names(lambda x: x % 8) == ["and"]
    assert names(lambda x: x // 7) == ["shift_right_arithmetic", "sub", "div", "add"]
    assert names(lambda x: x % 7) == ["rem", "lt", "add", "select_n"]
