"""Generators with a counter in compiled functions, loops and batches."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp
from xstack.experimental.random import stateful_rng


def test_compiled_draws_continue_the_count():
    one, other = stateful_rng(3), stateful_rng(3)
    draw = xstack.jit(one.uniform)
    assert [float(draw()) for _ in range(3)] == [float(other.uniform()) for _ in range(3)]
    assert float(one.uniform()) == float(other.uniform())


def test_a_generator_is_an_argument_of_transformed_functions():
    one, other = stateful_rng(3), stateful_rng(3)
    noisy = xstack.jit(lambda rng, x: x + rng.normal(size=3))
    for _ in range(2):
        assert np.allclose(noisy(one, 1.0), 1.0 + other.normal(size=3), rtol=1e-6)
    _, drawn = xstack.lax.scan(lambda c, _: (c, one.normal()), 0, None, length=3)
    assert np.allclose(np.asarray(drawn), [float(other.normal()) for _ in range(3)], rtol=1e-6)


def test_split_generators_are_those_of_the_oracle():
    random = pytest.importorskip("jax.experimental.random")
    jax = pytest.importorskip("jax")
    ours = xstack.vmap(lambda rng, x: x + rng.uniform())(stateful_rng(123).split(3), xnp.zeros(3))
    theirs = jax.vmap(lambda rng, x: x + rng.uniform())(
        random.stateful_rng(123).split(3), jax.numpy.zeros(3)
    )
    np.testing.assert_array_equal(ours, theirs)
