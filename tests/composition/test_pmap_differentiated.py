"""Derivatives of functions that run on eight virtual CPU devices."""

import numpy as np
import pytest

import xad
from xbatch import vmap
from xjit import devices
from xnp import lax
from xpar import pmap, psum
from xprim import as_array

N = 8


CPUS = devices("cpu")[:N]


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)


def share(v):
    return lax.div(v, psum(v, "i"))


def test_gradients_through_pmap_agree_with_those_through_vmap(x):

    def loss(mapped):
        return lambda v, w: lax.reduce_sum(lax.square(lax.sub(mapped(v), w)), (0, 1))

    on_devices = loss(pmap(share, axis_name="i", devices=CPUS))
    on_batch = loss(vmap(share, axis_name="i"))
    w = as_array(np.ones((N, 3), np.float32))
    for argnum in (0, 1):
        # the shares divide by sums near zero: relative to the largest entry
        found = np.asarray(xad.grad(on_devices, argnum)(x, w))
        expected = np.asarray(xad.grad(on_batch, argnum)(x, w))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * abs(expected).max())


def test_gradient_by_an_argument_that_all_devices_share(x):
    mapped = pmap(lambda c, v: lax.mul(c, v), in_axes=(None, 0), devices=CPUS)
    gradient = xad.grad(lambda c: lax.reduce_sum(mapped(c, x), (0, 1)))(2.0)
    assert float(gradient) == pytest.approx(x.sum(), rel=1e-5)


def test_jvp_through_pmap(x):
    square = pmap(lambda v: lax.mul(v, v), devices=CPUS)
    y, y_dot = xad.jvp(square, (as_array(x),), (as_array(np.ones_like(x)),))
    np.testing.assert_array_equal(y, x * x)
    np.testing.assert_array_equal(y_dot, 2 * x)
