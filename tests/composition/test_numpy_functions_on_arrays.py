"""NumPy's own functions, given arrays and tracers: ours answer, and differentiate."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.errors import NonConcreteBooleanIndexError, TracerArrayConversionError

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


MAKERS = {
    "atleast_1d": lambda x: np.atleast_1d(x),
    "atleast_2d": lambda x: np.atleast_2d(x),
    "atleast_3d": lambda x: np.atleast_3d(x),
    "copy": lambda x: np.copy(x),
    "zeros_like": lambda x: np.zeros_like(x),
    "ones_like": lambda x: np.ones_like(x),
    "full_like": lambda x: np.full_like(x, 7),
    "empty_like": lambda x: np.empty_like(x) * 0,
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_makes_arrays_to_write_into_makes_numpys_of_concrete_arrays(name):
    got, expected = MAKERS[name](xnp.asarray(VALUES)), MAKERS[name](VALUES)
    assert type(got) is np.ndarray and got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    if not name.startswith("atleast"):  # those show the elements of the array, which do not change
        got[...] = 0
    traced = xstack.jit(MAKERS[name])(VALUES)
    np.testing.assert_array_equal(traced, expected)


def test_what_makes_arrays_differentiates_traced_values():
    slope = xstack.grad(lambda x: np.sum(np.atleast_1d(np.copy(x)) ** 2 + np.ones_like(x) * x))
    np.testing.assert_allclose(slope(xnp.asarray(VALUES)), 2 * VALUES + 1, rtol=1e-6)
    value = xstack.grad(lambda a: np.sum(np.full_like(np.zeros(3, np.float32), 1.0) * a))(2.0)
    assert value == 3.0


@pytest.mark.parametrize("given", ["NumPy's start", "ours"])
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "SLSQP", "TNC", "trust-exact"])
def test_scipy_minimizes_by_gradients_of_ours(method, given):
    optimize = pytest.importorskip("scipy.optimize")

    def loss(x):
        return xnp.sum((x - 1) ** 4 + x**2)

    hessian = {"hess": xstack.hessian(loss)} if method == "trust-exact" else {}
    with xstack.enable_x64(True):
        start = np.zeros(3) if given == "NumPy's start" else xnp.zeros(3)
        found = optimize.minimize(loss, start, method=method, jac=xstack.grad(loss), **hessian)
    # the real root of 4 (x - 1)^3 + 2 x; the methods end at gradients of about 1e-5
    np.testing.assert_allclose(np.asarray(found.x), 0.4102454876985416, rtol=0, atol=1e-4)


def test_scipy_solves_least_squares_from_a_start_of_ours():
    optimize = pytest.importorskip("scipy.optimize")

    def residuals(x):
        return (x - 1) ** 3 + x

    start = xnp.zeros(3)
    found = optimize.least_squares(residuals, start, jac=xstack.jacobian(residuals))
    # the real root of (x - 1)^3 + x, in float32
    np.testing.assert_allclose(np.asarray(found.x), 0.3176721961719807, rtol=1e-4)


def test_functions_called_by_numpy_get_elements_where_they_need_them():
    rows = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def positive(row):
        return row[row > 0].sum()

    got = np.apply_along_axis(positive, 1, xnp.asarray(rows))
    np.testing.assert_array_equal(got, np.apply_along_axis(positive, 1, rows))
    with pytest.raises(NonConcreteBooleanIndexError, match="a traced boolean mask cannot index"):
        xstack.jit(lambda x: np.apply_along_axis(positive, 1, x))(rows)
    ours = xnp.asarray(rows)
    slope = xstack.grad(lambda w: np.apply_along_axis(lambda r: r @ w, 1, ours).sum())
    np.testing.assert_allclose(slope(np.ones(3, np.float32)), rows.sum(0), rtol=1e-6)


def test_arrays_say_how_they_lie_and_become_numpys():
    x = xnp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    assert x.strides == (12, 4) and xnp.float32(2).strides == ()
    assert type(x.to_numpy()) is np.ndarray and not x.to_numpy().flags.writeable
    np.testing.assert_array_equal(x.to_numpy(), np.asarray(x))
    for name in ("strides", "to_numpy"):
        with pytest.raises(AttributeError, match=f"{name}: only concrete arrays have it"):
            xstack.jit(lambda v, name=name: getattr(v, name))(x)
    with pytest.raises(TypeError, match="to_numpy"):
        xstack.random.key(0).to_numpy()


def test_matplotlib_takes_the_columns_of_a_matrix():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    values = np.arange(12.0, dtype=np.float32).reshape(4, 3) ** 2
    counts, edges, _ = plt.figure().gca().hist(xnp.asarray(values), bins=5)
    assert counts.shape == (3, 5)
    for column, count in zip(values.T, counts, strict=True):
        np.testing.assert_array_equal(count, np.histogram(column, edges)[0])
    plt.close("all")


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


@pytest.mark.parametrize("transform", [lambda f: f, xstack.jit, xstack.vmap, xstack.grad])
def test_numpy_says_dtypes_of_values_without_elements(transform):
    found = []

    def read(x):
        found.extend([
            np.result_type(x), np.result_type(x, np.float64), np.result_type(x, 2.0),
            np.can_cast(x, "float64"), np.can_cast(x, "float16"), np.iscomplexobj(x),
            np.isrealobj(x),
        ])  # fmt: skip
        return x.sum()

    transform(read)(xnp.asarray(VALUES if transform is not xstack.vmap else [VALUES]))
    assert found == ["float32", "float64", "float32", True, False, False, True]


@pytest.mark.parametrize("f", [np.result_type, np.iscomplexobj])
def test_keys_have_no_dtype_of_numpys(f):
    with pytest.raises(TypeError, match="keys are not numbers"):
        f(xstack.random.key(0))


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
    with pytest.raises(TracerArrayConversionError, match="was called on traced array"):
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
