"""Keys and samplers under jit, vmap and grad.

That compiled draws of the sample table are those of the NumPy rules is of `test_rule_matrix`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xad
import xrandom
from xad import checkpoint, grad
from xbatch import vmap
from xjit import jit
from xnp import lax
from xprim import config

SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: xrandom.bits(k, (7,), "uint8"),
    "split": lambda k: xrandom.key_data(xrandom.split(k, 3)),
    "fold_in": lambda k: xrandom.key_data(xrandom.fold_in(k, 5)),
    "uniform": lambda k: xrandom.uniform(k, (2, 3)),
    "normal": lambda k: xrandom.normal(k, (300,)),
    "randint": lambda k: xrandom.randint(k, (5,), 0, 100),
    "permutation": lambda k: xrandom.permutation(k, 9),
    "choice": lambda k: xrandom.choice(k, 9, (4,), p=np.arange(9) / np.float32(36)),
    "categorical": lambda k: xrandom.categorical(k, np.zeros(5, np.float32), shape=(4,)),
    "gamma": lambda k: xrandom.gamma(k, np.array([0.3, 2.0], np.float32)),
    "poisson": lambda k: xrandom.poisson(k, np.array([3.0, 30.0], np.float32)),
}
LAYOUTS = pytest.mark.parametrize("partitionable", [True, False], ids=["partitionable", "original"])


def _equal(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    if a.dtype.kind == "f":
        np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-7)
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.sampled(every=4, per="name")
@LAYOUTS
@pytest.mark.parametrize("name", SAMPLERS)
def test_jit_draws_what_eager_evaluation_draws(name: str, partitionable: bool) -> None:
    with config.threefry_partitionable(partitionable):
        key = xrandom.key(3)
        _equal(jit(SAMPLERS[name])(key), SAMPLERS[name](key))


@pytest.mark.sampled(every=2, per="name")
@LAYOUTS
@pytest.mark.parametrize("name", SAMPLERS)
def test_vmap_over_keys_draws_what_a_loop_draws(name: str, partitionable: bool) -> None:
    with config.threefry_partitionable(partitionable):
        keys = xrandom.split(xrandom.key(3), 4)
        rows = [np.asarray(SAMPLERS[name](k)) for k in keys]
        _equal(vmap(SAMPLERS[name])(keys), np.stack(rows))


@pytest.mark.sampled(every=8, per="impl")
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_vmap_over_keys_of_philox_draws_what_a_loop_draws(name: str, impl: str) -> None:
    # of seed 3 a rounding, in the acceptance of what stands for small means, changes a Poisson draw
    keys = xrandom.split(xrandom.key(4, impl=impl), 4)
    rows = np.stack([np.asarray(SAMPLERS[name](keys[k])) for k in range(4)])
    _equal(vmap(SAMPLERS[name])(keys), rows)
    _equal(jit(vmap(SAMPLERS[name]))(keys), rows)
    nested = vmap(vmap(SAMPLERS[name]), in_axes=1)(keys.reshape(2, 2))
    _equal(np.moveaxis(np.asarray(nested), 0, 1).reshape(rows.shape), rows)


def test_vmap_over_many_keys_draws_what_a_loop_draws() -> None:
    keys = xrandom.split(xrandom.key(3), 400)
    drawn = np.asarray(vmap(lambda k: xrandom.bits(k, (2,)))(keys))
    for i in (0, 1, 399):
        np.testing.assert_array_equal(drawn[i], np.asarray(xrandom.bits(keys[i], (2,))))


def test_jit_of_vmap_maps_over_keys() -> None:
    keys = xrandom.split(xrandom.PRNGKey(3), 5)
    _equal(jit(vmap(SAMPLERS["normal"]))(keys), vmap(SAMPLERS["normal"])(keys))


def test_a_traced_seed_and_number_make_the_same_keys() -> None:

    def keys(seed: Any) -> Any:
        return xrandom.fold_in(xrandom.PRNGKey(seed), seed)

    _equal(jit(keys)(17), keys(17))


def test_gradients_pass_bounds_and_not_keys() -> None:

    def mean(scale: Any) -> Any:
        return lax.reduce_sum(xrandom.uniform(xrandom.key(0), (4,), maxval=scale), (0,))

    u = np.asarray(xrandom.uniform(xrandom.key(0), (4,)))
    np.testing.assert_allclose(np.asarray(grad(mean)(2.0)), u.sum(), rtol=1e-6)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_the_derivative_of_a_gamma_sample_holds_its_quantile_fixed(name: str) -> None:
    special = pytest.importorskip("scipy.special")
    a = np.array([0.5, 1.5, 4.0], np.float32)
    draw = getattr(xrandom, name)
    sample, dot = xad.jvp(lambda a: draw(xrandom.key(1), a), (a,), (np.ones_like(a),))
    x = np.exp(np.asarray(sample, float)) if name == "loggamma" else np.asarray(sample, float)
    quantile, h = special.gammainc(a, x), 1e-4
    above, below = [special.gammaincinv(a + s * h, quantile) for s in (1, -1)]
    expected = (above - below) / (2 * h)
    if name == "loggamma":
        expected = expected / x
    np.testing.assert_allclose(np.asarray(dot), expected, rtol=2e-3)


def test_bits_of_a_generator_are_the_same_compiled_and_mapped():
    words = np.uint32([[1, 2, 3, 4], [5, 6, 2**32 - 1, 2**32 - 1]])
    for algorithm in (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX):
        draw = partial(lax.rng_bit_generator, shape=(5,), algorithm=algorithm)
        expected = [[np.asarray(x) for x in draw(key)] for key in words]
        for found in (vmap(draw)(words), jit(vmap(draw))(words)):
            for x, of_keys in zip(found, zip(*expected, strict=True), strict=True):
                np.testing.assert_array_equal(np.asarray(x), np.stack(of_keys))


def test_a_draw_without_a_key_is_never_computed_twice():
    def loss(scale):
        return (scale * lax.rng_uniform(0.0, 1.0, (100,))).sum()

    compiled = jit(grad(loss))
    assert float(compiled(1.0)) != float(compiled(1.0))
    with pytest.raises(Exception, match="random numbers without a key"):
        grad(checkpoint(loss))(1.0)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("allowed", ["warn", "error"])
def test_programs_draw_the_same_bits_where_users_get_no_64_bits(impl, allowed):
    def draw(key):
        return xrandom.key_data(xrandom.split(key)), xrandom.bits(key, (7,))

    key = xrandom.key(7, impl=impl)
    expected = draw(key)
    with config.explicit_x64_dtypes(allowed):
        for got, want in zip(jit(draw)(key), expected, strict=True):
            np.testing.assert_array_equal(got, want)
