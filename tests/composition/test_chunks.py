"""Jacobians a few rows or columns at a time, and their memory."""

import numpy as np
import pytest

import xnp
from xad import grad, hessian, jacfwd, jacobian, jacrev
from xbatch import vmap
from xjit import jit

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)


def product(x):
    return xnp.sin(x) @ xnp.cos(x).T


@pytest.mark.parametrize("derivative", [jacfwd, jacrev, jacobian])
@pytest.mark.parametrize("chunk_size", [1, 4, 21, 1000])
@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_jacobians_in_chunks_are_the_whole_ones(derivative, chunk_size, run):
    found = run(derivative(product, chunk_size=chunk_size))(X)
    np.testing.assert_allclose(found, derivative(product)(X), rtol=1e-5, atol=1e-6)


def test_hessians_and_gradients_in_chunks_are_the_whole_ones():
    def cubes(x):
        return (xnp.sin(x) ** 3).sum()

    np.testing.assert_allclose(hessian(cubes, chunk_size=5)(X), hessian(cubes)(X), atol=1e-6)
    summed = grad(lambda x: vmap(cubes, chunk_size=2)(x).sum())
    np.testing.assert_allclose(summed(X), grad(cubes)(X), atol=1e-6)


def test_the_memory_of_a_jacobian_is_that_of_a_chunk():
    def sorted_products(x):
        return xnp.sort(xnp.sin(x[:, None] * x[None, :20])).sum(1)[:5]

    def temporary_bytes(chunk_size):
        compiled = jit(jacfwd(sorted_products, chunk_size=chunk_size)).lower(xnp.ones(400))
        return compiled.compile().memory_analysis().temp_size_in_bytes

    # the tangents of 10 of 400 columns; what one evaluation needs comes to both
    assert temporary_bytes(10) < temporary_bytes(None) / 10


def test_a_chunk_size_that_means_nothing_is_refused():
    for size in (0, -1, "a", 1.5):
        with pytest.raises(ValueError, match="jacrev: chunk_size must be an int of at least 1"):
            jacrev(product, chunk_size=size)
