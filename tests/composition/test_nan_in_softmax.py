"""NaN among extremes on CPUs: gradients of softmax, and batches of extremes beside sums."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xad import grad
from xbatch import vmap
from xjit import jit
from xnp import nn

pytestmark = pytest.mark.of_the_cpu

HOLES = np.random.default_rng(28).uniform(-1, 1, (64, 80)).astype(np.float32)
HOLES[3, 7] = HOLES[3, 60] = HOLES[40, 0] = HOLES[63, 79] = HOLES[9, :] = np.nan


@pytest.mark.parametrize("fun", [nn.softmax, nn.log_softmax])
def test_gradients_of_softmax_have_no_guard_and_the_same_nan(fun):
    def loss(x):
        return xnp.sum(fun(x) * xnp.cos(x))

    text = jit(grad(loss)).lower(HOLES).as_text()
    assert "stablehlo.if" not in text and "optimization_barrier" not in text
    expected = np.stack([np.asarray(grad(loss)(row)) for row in xnp.asarray(HOLES)])  # few: exact
    found = np.asarray(jit(grad(loss))(HOLES))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert np.isnan(found).any(axis=1).sum() == 4
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("of_row", [
    lambda row: xnp.maximum(row, 0.0).mean(),
    lambda row: xnp.minimum(row * (row * row).sum(), 0.5).min(),
    grad(lambda row: (row * xnp.maximum(row, 0.0).sum()).sum()),
])  # fmt: skip
def test_batches_of_extremes_beside_sums_keep_nan(of_row):
    expected = np.stack([np.asarray(of_row(row)) for row in xnp.asarray(HOLES)])
    found = np.asarray(jit(vmap(of_row))(HOLES))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
