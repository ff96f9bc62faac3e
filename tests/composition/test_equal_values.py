"""Derivatives of what stands on eigenvectors and singular vectors, where values are equal."""

import numpy as np
import pytest

import xnp
from xad import grad, jvp
from xbatch import vmap
from xjit import jit
from xnp import linalg

EQUAL = np.float32(np.diag([1, 1, 2, 3]))
TURNED = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
ROTATED = np.float32(TURNED @ np.diag([1, 1, 2, 3]) @ TURNED.T)


def rebuilt_norm(a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return linalg.norm((u * s) @ vh)


def norm_of_square(a):
    w, v = linalg.eigh(a)
    return linalg.norm((v * w**2) @ v.T)


@pytest.mark.sampled(every=3, per="run")
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


@pytest.mark.sampled(every=2, per="run")
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


def test_slopes_of_elements_that_are_not_the_largest_are_left_out_even_if_infinite():
    x = xnp.array([0.0, 4.0])
    largest = jvp(lambda x: xnp.max(xnp.sqrt(x)), (x,), (xnp.ones(2),))[1]
    np.testing.assert_allclose(largest, 0.25)
