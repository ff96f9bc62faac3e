"""Convolutions of signals with much padding, which compiled CPU programs write on its own."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jit
from xnp import lax

pytestmark = pytest.mark.of_the_cpu

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mode", ["full", "same"])
@pytest.mark.parametrize("dtype", ["f4", "i4", "c8"])
def test_values_are_those_of_numpy(dtype, mode):
    x, kernel = [(RNG.normal(size=n) * 9).astype(dtype) for n in (900, 301)]
    for f, expected in ((xnp.convolve, np.convolve), (xnp.correlate, np.correlate)):
        found = jit(lambda a, b, f=f: f(a, b, mode=mode))(xnp.asarray(x), xnp.asarray(kernel))
        wanted = expected(x, kernel, mode=mode)
        # sums of 301 products of 24 bits
        np.testing.assert_allclose(found, wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())


def test_strides_batches_and_channels_stay():
    x, kernel = [RNG.normal(size=s).astype("f4") for s in ((2, 3, 400), (5, 3, 150))]

    def convolved(a, b, padding):
        return lax.conv_general_dilated(a, b, (3,), [padding], rhs_dilation=(2,))

    found = jit(convolved, static_argnums=2)(x, kernel, (200, 7))
    padded = np.pad(x, ((0, 0), (0, 0), (200, 7)))
    np.testing.assert_allclose(found, convolved(padded, kernel, (0, 0)), rtol=1e-4, atol=1e-3)


def test_the_compiler_gets_no_padding_where_it_is_slow():
    x, kernel = xnp.ones((1, 1, 900)), xnp.ones((1, 1, 301))

    def convolved(pad):
        return jit(lambda a, b: lax.conv_general_dilated(a, b, (1,), [(pad, pad)]))

    assert "stablehlo.pad" in convolved(300).lower(x, kernel).as_text()
    assert "stablehlo.pad" not in convolved(3).lower(x, kernel).as_text()
    traced = convolved(300).trace(x, kernel)
    assert "stablehlo.pad" not in traced.lower(lowering_platforms=("cuda",)).as_text()
