"""Arrays: promotion, immutability, NumPy in and out."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import device_put, devices, jit, lax


def test_numpy_level_add_promotes_and_lax_add_is_strict():
    assert float(xnp.add(1, 1.0)) == 2.0
    assert float(lax.add(np.float32(1), 1.0)) == 2.0
    with pytest.raises(TypeError, match=r"have the same dtypes, got int32, float32"):
        lax.add(1, 1.0)


def test_item_assignment_names_the_functional_update():
    x = xnp.arange(10)
    with pytest.raises(TypeError, match=r"x\.at\[0\]\.set\(123\)"):
        x[0] = 123


def test_functional_update_leaves_the_array_unchanged():
    x = xnp.zeros((3, 3))
    y = x.at[0, 0].set(3.0)
    assert float(y[0, 0]) == 3.0
    np.testing.assert_array_equal(x, np.zeros((3, 3), np.float32))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("set", 5.0), ("add", 9.0), ("mul", 20.0), ("multiply", 20.0), ("divide", 0.8),
        ("power", 1024.0), ("min", 4.0), ("max", 5.0),
    ],
)  # fmt: skip
def test_every_functional_update(method, expected):
    x = xnp.full((3,), 4.0)
    y = getattr(x.at[1], method)(5.0)
    np.testing.assert_allclose(y, [4.0, expected, 4.0], rtol=1e-6)


def test_functional_apply_and_get():
    x = xnp.arange(4.0)
    np.testing.assert_array_equal(x.at[1:3].apply(xnp.square), [0.0, 1.0, 4.0, 3.0])
    np.testing.assert_array_equal(x.at[1:3].get(), [1.0, 2.0])


def test_dot_of_numpy_float64_and_float32_is_float32():
    x = np.random.default_rng(0).normal(size=(4,))
    m = xnp.ones((4, 3))
    assert xnp.dot(x, m).dtype == np.float32
    assert device_put(x).dtype == np.float32
    with xstack.enable_x64(True):
        assert device_put(x).dtype == np.float64


def test_numpy_arrays_come_back():
    x = xnp.arange(3.0)
    assert type(np.array(x)) is np.ndarray
    assert type(np.asarray(x)) is np.ndarray
    assert not np.asarray(x).flags.writeable


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * xnp.where(x > 0, x, alpha * xnp.exp(x) - alpha)


def test_selu_on_a_million_elements_agrees_compiled_and_eager():
    x = xnp.arange(1000000)
    np.testing.assert_allclose(jit(selu)(x), selu(x), atol=1e-6, rtol=1e-6)


def norm(x):
    x = x - x.mean(0)
    return x / x.std(0)


def test_norm_agrees_compiled_and_eager():
    x = xnp.array(np.random.default_rng(1701).random((10000, 10)))
    np.testing.assert_allclose(norm(x), jit(norm)(x), atol=1e-6)


def f(x):
    y1 = x + x * x + 3
    y2 = x * x + x * x.T
    return y1 * y2


def test_f_on_a_large_array_on_every_backend():
    host = np.random.default_rng(0).random((3000, 3000)).astype(np.float32)
    y1, y2 = host + host * host + 3, host * host + host * host.T
    expected = y1 * y2
    x = xnp.array(host)
    # reassociation and fused multiply-add: a few ulp of float32
    np.testing.assert_allclose(f(x), expected, rtol=2e-6)
    np.testing.assert_allclose(jit(f)(x), expected, rtol=2e-6)
    np.testing.assert_allclose(jit(f, backend="cpu")(x), expected, rtol=2e-6)
    on_cpu = device_put(x, devices("cpu")[0])
    np.testing.assert_allclose(jit(f)(on_cpu), expected, rtol=2e-6)
