"""Products of operands that are quantized on the way, beside the oracle's and by definition."""

import numpy as np
import pytest

from xad import grad
from xad.scaled_products import get_scaled_dot_general_config, scaled_dot_general
from xnp import lax

RNG = np.random.default_rng(0)
NUMBERS = (((2,), (2,)), ((0,), (0,)))
X, Y = [RNG.normal(size=(2, m, 64)).astype(np.float32) for m in (32, 64)]
X[0, 0, :32] = 0  # a block whose scale is the least


def _configs(mode):
    return [get_scaled_dot_general_config(mode)] * 3


@pytest.mark.parametrize("mode", ["mxfp8", "mxfp4", "nvfp4"])
def test_products_and_gradients_are_those_of_the_oracle(mode):
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 12):
        pytest.skip("this oracle multiplies such arrays on GPUs alone")
    theirs = [jax.nn.get_scaled_dot_general_config(mode)] * 3
    weights = RNG.normal(size=(2, 32, 64)).astype(np.float32)

    def both(product, configs):
        return lambda x, y: (product(x, y, NUMBERS, configs=configs) * weights).sum()

    expected = jax.jit(jax.value_and_grad(both(jax.nn.scaled_dot_general, theirs), (0, 1)))(X, Y)
    loss = both(scaled_dot_general, _configs(mode))
    # sums of 64 float32 products of exactly equal factors
    np.testing.assert_allclose(loss(X, Y), expected[0], 1e-4, 1e-3)
    for found, other in zip(grad(loss, (0, 1))(X, Y), expected[1], strict=True):
        np.testing.assert_allclose(found, other, 1e-5, 1e-5)


def test_a_block_is_rounded_by_the_least_power_of_two_that_holds_it():
    x = np.zeros((1, 32), np.float32)
    x[0, :3] = 449.0, 448.0, 1.0  # the greatest e4m3 is 448: so the scale is 2
    ones = np.eye(32, dtype=np.float32)
    found = scaled_dot_general(x, ones, (((1,), (1,)), ((), ())), configs=_configs("mxfp8"))
    assert found[0, :4].tolist() == [448.0, 448.0, 1.0, 0.0]


def test_without_configurations_it_is_the_exact_product():
    found = scaled_dot_general(X, Y, NUMBERS, preferred_element_type=np.float32)
    np.testing.assert_array_equal(found, lax.dot_general(X, Y, NUMBERS))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _configs("fp8"), ValueError, "unknown mode"),
        (lambda: get_scaled_dot_general_config("mxfp4", X), ValueError, "no scale for the whole"),
        (lambda: scaled_dot_general(X, Y, NUMBERS, configs=_configs("mxfp8")[:2]), ValueError,
         "a configuration for lhs, rhs and gradients"),
        (lambda: scaled_dot_general(X[..., :40], Y[..., :40], NUMBERS, configs=_configs("mxfp8")),
         ValueError, "blocks of 32 do not divide"),
        (lambda: scaled_dot_general(X, Y, NUMBERS, np.int8, _configs("mxfp8")), TypeError,
         "one of three dtypes"),
    ],
)  # fmt: skip
def test_what_cannot_be_quantized_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
