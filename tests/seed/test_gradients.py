"""Gradients: the values that the documents print."""

import numpy as np
import pytest

import xstack.numpy as xnp
from xstack import grad, jacfwd, jacrev, jvp, value_and_grad, vjp


def tanh(x):
    y = xnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def test_derivatives_of_tanh():
    assert float(grad(tanh)(1.0)) == pytest.approx(0.4199743, rel=2e-6)
    # the third derivative loses digits to cancellation in float32
    assert float(grad(grad(grad(tanh)))(1.0)) == pytest.approx(0.62162673, rel=2e-5)


def sum_of_squares(x):
    return xnp.sum(x**2)


def test_gradient_of_the_sum_of_squares():
    x = xnp.asarray([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(grad(sum_of_squares)(x), [2.0, 4.0, 6.0, 8.0])
    value, gradient = value_and_grad(sum_of_squares)(x)
    assert float(value) == 30.0
    np.testing.assert_array_equal(gradient, [2.0, 4.0, 6.0, 8.0])


def test_gradient_with_respect_to_several_arguments():
    def sum_squared_error(x, y):
        return xnp.sum((x - y) ** 2)

    x, y = xnp.asarray([1.0, 2.0]), xnp.asarray([1.5, 1.0])
    x_bar, y_bar = grad(sum_squared_error, argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(x_bar, [-1.0, 2.0])
    np.testing.assert_array_equal(y_bar, [1.0, -2.0])


def test_nested_dicts_of_parameters_give_gradients_of_the_same_structure():
    params = {"layer": {"w": xnp.ones(3), "b": 0.5}}
    grads = grad(lambda p: xnp.sum(p["layer"]["w"] * p["layer"]["b"]))(params)
    np.testing.assert_array_equal(grads["layer"]["w"], [0.5, 0.5, 0.5])
    assert float(grads["layer"]["b"]) == 3.0


def test_has_aux_passes_the_second_output_through():
    def squared_error_with_aux(x, y):
        return xnp.sum((x - y) ** 2), x - y

    x, y = xnp.asarray([1.0, 2.0, 3.0]), xnp.asarray([1.1, 2.1, 3.1])
    with pytest.raises(TypeError, match="has_aux"):
        grad(squared_error_with_aux)(x, y)
    gradient, difference = grad(squared_error_with_aux, has_aux=True)(x, y)
    np.testing.assert_allclose(gradient, [-0.2, -0.2, -0.2], rtol=1e-5)
    np.testing.assert_allclose(difference, [-0.1, -0.1, -0.1], rtol=1e-5)


def test_gradient_of_half_the_inner_product_is_the_vector():
    v = xnp.asarray(np.random.default_rng(0).normal(size=5).astype(np.float32))
    np.testing.assert_allclose(grad(lambda x: xnp.dot(x.T, x) / 2)(v), v, rtol=1e-6)


def test_jvp_and_vjp_of_half_the_square():
    x = xnp.arange(1.0, 5.0)
    y, y_dot = jvp(lambda x: x * x / 2, (x,), (xnp.ones(4),))
    np.testing.assert_array_equal(y, [0.5, 2.0, 4.5, 8.0])
    np.testing.assert_array_equal(y_dot, x)
    _, pull_back = vjp(lambda x: x * x / 2, x)
    np.testing.assert_array_equal(pull_back(xnp.ones(4))[0], x)


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_jacobian_of_the_square_is_diagonal(jacobian):
    x = xnp.asarray([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(jacobian(xnp.square)(x), np.diag([2.0, 4.0, 6.0]))


def test_python_control_flow_on_values_works_under_grad():
    def branch(x):
        return 3.0 * x**2 if x < 3 else -4 * x

    assert float(grad(branch)(2.0)) == 12.0
    assert float(grad(branch)(4.0)) == -4.0

    def doubled_until_large(x):
        while x < 100:
            x = x * 2
        return x

    assert float(grad(doubled_until_large)(3.0)) == 64.0

    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert float(grad(power)(2.0, 5)) == 80.0
