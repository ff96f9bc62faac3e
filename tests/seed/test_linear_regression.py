"""Linear regression: the losses of the documents, with a pair and with a pytree of parameters."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack import grad, jit, random, tree, value_and_grad, vmap

# Losses after the update of step k: full float32 (rtol 1e-4: other orders of summation), and the
# document's, from a machine that multiplies float32 in reduced precision (rtol 1.5e-2).
FULL = {0: 10.971409, 5: 1.0798326, 10: 0.37958246, 50: 0.013753931, 100: 0.011576904}
DOCUMENT = {0: 10.971258, 5: 1.0783367, 10: 0.37938032, 50: 0.01385448, 100: 0.011691327}


@pytest.fixture
def problem():
    with xstack.threefry_partitionable(False):
        k1, k2 = random.split(random.PRNGKey(0))
        w, b = random.normal(k1, (10, 5)), random.normal(k2, (5,))
        key_sample, key_noise = random.split(k1)
        x = random.normal(key_sample, (20, 10))
        y = x @ w + b + 0.1 * random.normal(key_noise, (20, 5))
    return w, b, x, y


def predict(w, b, x):
    return xnp.dot(x, w) + b


def mean_squared_error(w, b, xs, ys):
    def squared_error(x, y):
        residual = y - predict(w, b, x)
        return xnp.inner(residual, residual) / 2.0

    return xnp.mean(vmap(squared_error)(xs, ys), axis=0)


def loss_of_tree(params, xs, ys):
    return mean_squared_error(params["W"], params["b"], xs, ys)


def assert_losses(losses):
    for step, value in FULL.items():
        assert losses[step] == pytest.approx(value, rel=1e-4)
    for step, value in DOCUMENT.items():
        assert losses[step] == pytest.approx(value, rel=1.5e-2)


def test_loss_of_the_true_parameters(problem):
    w, b, x, y = problem
    assert float(mean_squared_error(w, b, x, y)) == pytest.approx(0.02363973, rel=1e-4)
    assert float(loss_of_tree({"W": w, "b": b}, x, y)) == pytest.approx(0.023639774, rel=1e-4)


def test_simultaneous_update_of_two_parameters(problem):
    *_, x, y = problem

    @jit
    def update(w, b):
        w_bar, b_bar = grad(mean_squared_error, argnums=(0, 1))(w, b, x, y)
        return w - 0.3 * w_bar, b - 0.3 * b_bar

    w, b = xnp.zeros((10, 5)), xnp.zeros(5)
    losses = []
    for _ in range(101):
        w, b = update(w, b)
        losses.append(float(mean_squared_error(w, b, x, y)))
    assert_losses(losses)


@pytest.mark.parametrize("with_value", [False, True])
def test_update_of_a_tree_of_parameters(problem, with_value):
    *_, x, y = problem
    params = {"W": xnp.zeros((10, 5)), "b": xnp.zeros(5)}
    step = jit(value_and_grad(loss_of_tree)) if with_value else None
    losses = []
    for _ in range(101):
        grads = step(params, x, y)[1] if step else grad(loss_of_tree)(params, x, y)
        params = tree.map(lambda p, g: p - 0.3 * g, params, grads)
        losses.append(float(loss_of_tree(params, x, y)))
    assert_losses(losses)
    assert losses[-1] == pytest.approx(0.011575883, rel=1e-3)
    assert np.asarray(params["W"]).dtype == np.float32
