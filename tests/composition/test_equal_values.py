"""Derivatives of what stands on eigenvectors and singular vectors, where values are equal."""

import numpy as np
import pytest

import xnp
from xad import grad, jvp
from xbatch import vmap
from xjit import jit
from xnp import linalg
from xprim import config

EQUAL = np.float32(np.diag([1, 1, 2, 3]))
TURNED = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
ROTATED = np.float32(TURNED @ np.diag([1, 1, 2, 3]) @ TURNED.T)


def rebuilt_norm(a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return linalg.norm((u * s) @ vh)


def norm_of_square(a):
    w, v = linalg.eigh(a)
    return linalg.norm((v * w**2) @ v.T)


@pytest.mark.sampled(every=6, per="run")
@pytest.mark.parametrize("a", [EQUAL, ROTATED, np.eye(4, dtype="float32")])
@pytest.mark.parametrize("run", [lambda f: f, jit, lambda f: lambda a: vmap(f)(a[None])[0]])
def test_gradients_of_functions_that_do_not_depend_on_the_choice_of_vectors(a, run):
    np.testing.assert_allclose(run(grad(rebuilt_norm))(a), a / np.linalg.norm(a), atol=2e-6)
    # the gradient of |A^2| is (A (A A) + (A A) A) / |A^2| for symmetric A
    square = a @ a
    expected = 2 * a @ square / np.linalg.norm(square)
    np.testing.assert_allclose(run(grad(norm_of_square))(a), expected, atol=2e-5)
    direction = np.float32(np.random.default_rng(1).normal(size=(4, 4)))
    forward = run(lambda a: jvp(rebuilt_norm, (a,), (direction,))[1])(a)
    np.testing.assert_allclose(forward, (a * direction).sum() / np.linalg.norm(a), atol=1e-5)


@pytest.mark.sampled(every=4, per="run")
@pytest.mark.parametrize("a", [EQUAL, ROTATED])
@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_what_depends_on_the_choice_of_vectors_has_no_gradient(a, run):
    weights = xnp.arange(16.0).reshape(4, 4)

    def of_one_vector(a):
        return (linalg.eigh(a)[1][:, 0] * weights[0]).sum()

    def of_weighted_vectors(a):  # which has one, that takes the derivative of exp
        w, v = linalg.eigh(a)
        return (weights * ((v * xnp.exp(w)) @ v.T)).sum()

    for function in (of_one_vector, of_weighted_vectors):
        assert np.isnan(run(grad(function))(a)).any()
    last = run(grad(lambda a: (linalg.eigh(a)[1][:, 3] ** 2 * weights[0]).sum()))(a)
    assert np.isfinite(last).all()


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_second_derivatives_that_take_how_equal_values_couple_are_nan(modes):
    direction = xnp.array([[0.0, 1.0], [1.0, 0.0]])  # the values of I + t of it are 1 + t and 1 - t

    def along(function, mode):
        if mode == "f":
            return lambda a: jvp(function, (a,), (direction,))[1]
        return lambda a: (grad(function)(a) * direction).sum()

    def sum_of_squares(a):
        return (linalg.eigvalsh(a) ** 2).sum()

    def trace(a):
        return linalg.eigvalsh(a).sum()

    second = along(along(sum_of_squares, modes[0]), modes[1])
    assert np.isnan(second(xnp.eye(2)))  # 4, which takes the second derivative of the square
    np.testing.assert_allclose(second(xnp.diag(xnp.array([1.0, 3.0]))), 4, rtol=1e-5)
    if modes[0] == "r":  # the numerators are known, and vanish
        assert along(along(trace, modes[0]), modes[1])(xnp.eye(2)) == 0


def test_third_derivatives_of_a_polar_factor_are_those_of_differences():
    direction = np.random.default_rng(3).normal(size=(4, 4))

    def along(function):
        return lambda a: jvp(function, (a,), (direction,))[1]

    def polar_factor(a):
        u, _, vh = linalg.svd(a)
        return (xnp.arange(16.0).reshape(4, 4) * (u @ vh)).sum()

    with config.enable_x64(True):
        a = TURNED @ np.diag([1.0, 1.0, 2.0, 2.0]) @ TURNED.T
        second = along(along(polar_factor))
        expected = (second(a + 1e-3 * direction) - second(a - 1e-3 * direction)) / 2e-3
        # h^2 = 1e-6 times a fifth derivative of some hundreds
        np.testing.assert_allclose(along(second)(a), expected, rtol=1e-3)


def test_slopes_of_elements_that_are_not_the_largest_are_left_out_even_if_infinite():
    x = xnp.array([0.0, 4.0])
    largest = jvp(lambda x: xnp.max(xnp.sqrt(x)), (x,), (xnp.ones(2),))[1]
    np.testing.assert_allclose(largest, 0.25)
