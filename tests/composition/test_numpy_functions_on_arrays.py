"""NumPy's own functions, given arrays and tracers: ours answer, and differentiate."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.errors import TracerArrayConversionError

VALUES = np.array([0.5, -1.0, 2.0], np.float32)

CALLS = {
    "sin": lambda x: np.sin(x),
    "concatenate": lambda x: np.concatenate([x, x]),
    "an operator of a NumPy array": lambda x: np.ones(3, np.float32) + x,
    "an operator of a NumPy scalar": lambda x: np.float32(2) * x,
    "matmul": lambda x: np.eye(3, dtype=np.float32) @ x,
    "sum": lambda x: np.sum(x, axis=0),
    "where": lambda x: np.where(x > 0, x, 0),
    "einsum": lambda x: np.einsum("i,i", x, x),
    "norm": lambda x: np.linalg.norm(x),
    "fft": lambda x: np.fft.fft(x).real,
    "add.reduce": lambda x: np.add.reduce(x),
    "multiply.outer": lambda x: np.multiply.outer(x, x),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x),
    "modf": lambda x: np.modf(x)[0],
    "stack": lambda x: np.stack([x, np.ones(3, np.float32)]),
    "clip": lambda x: np.clip(x, -0.8, 1),
    "interp": lambda x: np.interp(x, np.arange(3.0, dtype=np.float32), x),
    "zeros_like": lambda x: np.zeros_like(x),
    "a ufunc of a list": lambda x: np.add([1.0, 2.0, 3.0], x),
    "a ufunc of a tuple": lambda x: np.maximum(x, (0, 1, 2)),
    "dot of a list": lambda x: np.dot(x, [1.0, 2.0, 3.0]),
    "where of lists": lambda x: np.where(x > 0, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) * x,
    "a list among arrays": lambda x: np.concatenate([x, [1.0, 2.0]]),
    "allclose of a list": lambda x: np.array(np.allclose(x, [0.5, -1.0, 2.0])) * x,
    "take of a list": lambda x: np.take(x, [0, 2]),
    "average by name": lambda x: np.average(x, weights=[1.0, 2.0, 3.0]),
    "outer of a nested list": lambda x: np.matmul([[1.0, 2.0, 3.0]], x),
    "percentiles": lambda x: np.percentile(x, [10, 20]),
    "trapezoid": lambda x: np.trapezoid(x, [0.0, 1.0, 3.0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_gives_an_array_and_is_the_one_of_its_name(name):
    f, x = CALLS[name], xnp.asarray(VALUES)
    got = f(x)
    assert isinstance(got, xnp.ndarray)
    # both in float32, in another order of operations
    np.testing.assert_allclose(np.asarray(got), f(VALUES), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sin", "concatenate", "an operator of a NumPy array", "norm",
                                  "dot of a list", "a list among arrays"])  # fmt: skip
def test_a_function_of_numpy_differentiates_maps_and_compiles(name):
    f, x = CALLS[name], xnp.asarray(VALUES)
    np.testing.assert_allclose(xstack.jit(f)(x), f(VALUES), rtol=1e-5)
    rows = np.stack([VALUES, 2 * VALUES])
    expected = np.stack([f(row) for row in rows])
    np.testing.assert_allclose(xstack.vmap(f)(rows), expected, rtol=1e-5)
    slope = np.asarray(xstack.grad(lambda v: np.sum(f(v)))(x))
    step = 1e-2  # of float32, whose central difference is then right to 1e-3
    for k in range(3):
        moved = [VALUES + sign * step * np.eye(3, dtype=np.float32)[k] for sign in (1, -1)]
        change = (np.sum(f(moved[0])) - np.sum(f(moved[1]))) / (2 * step)
        np.testing.assert_allclose(slope[k], change, atol=1e-3)


def test_what_is_no_list_of_numbers_is_refused_as_it_is():
    x = xnp.asarray(VALUES)
    with pytest.raises(TypeError, match="a list is not an array"):
        np.add(x, ["a", "b", "c"])
    with pytest.raises(TypeError, match="a list is not an array"):
        np.dot(x, [[1.0], [2.0, 3.0]])


def test_what_makes_numpy_arrays_makes_them_still():
    x = xnp.asarray(VALUES)
    for made in (np.asarray(x), np.array([x, x]), np.require(x), np.asanyarray(x)):
        assert type(made) is np.ndarray
    np.testing.assert_array_equal(np.array([x, x]), [VALUES, VALUES])


def test_what_changes_a_numpy_array_changes_it():
    a, x = np.ones(3, np.float32), xnp.asarray(VALUES)
    a += x
    np.testing.assert_array_equal(a, 1 + VALUES)
    np.add.at(a, [0, 0], x[2])
    assert a[0] == 1.5 + 4
    np.put(a, [1], x[0])
    assert a[1] == 0.5
    np.copyto(a, x)
    np.testing.assert_array_equal(a, VALUES)
    out = np.zeros(3, np.float32)
    assert np.sin(x, out=out) is out
    np.testing.assert_array_equal(out, np.sin(VALUES))


def test_what_arrays_cannot_do_is_numpys_from_the_elements():
    x = xnp.asarray(VALUES)
    assert np.add(x, x, dtype="float64").dtype == np.float64
    assert np.shares_memory(x, x)
    assert np.result_type(x, np.float64) == np.float64
    assert np.ones_like(x, subok=False).tolist() == [1, 1, 1]
    special = pytest.importorskip("scipy.special")
    assert type(special.gammaln(x)) is np.ndarray


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.add(x, x, dtype="float64"),
        lambda x: np.shares_memory(x, x),
        lambda x: np.sin(x, out=np.zeros(3)),
        lambda x: np.asarray(x),
    ],
)
def test_a_traced_value_has_no_elements_for_numpy(f):
    with pytest.raises(TracerArrayConversionError, match="cannot become a NumPy array"):
        xstack.jit(f)(VALUES)


class Quantity:
    """A class with answers of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"{ufunc.__name__} of a quantity"

    def __array_function__(self, function, types, args, kwargs):
        return f"{function.__name__} of quantities"


def test_a_class_with_answers_of_its_own_is_asked():
    x = xnp.asarray(VALUES)
    assert np.add(x, Quantity()) == "add of a quantity"
    assert np.concatenate([x, Quantity()]) == "concatenate of quantities"


def test_compiled_functions_that_name_functions_of_numpy_share_their_programs():
    def twice():
        return xstack.jit(lambda x: np.concatenate([x, x]))

    assert twice()(VALUES).shape == twice()(VALUES).shape == (6,)
