"""The derivative of approximate gamma samples by their exponent, whose mean is known."""

import numpy as np
import pytest

import xstack


@pytest.mark.parametrize("a", [0.5, 2.5, 40.0])
def test_the_mean_derivative_is_that_of_the_mean(a):
    def mean(a):
        return xstack.random.gamma(xstack.random.key(0), a, (40_000,), method="approximate").mean()

    # The mean of samples is a. The derivative of one varies by less than 1: five standard errors.
    assert abs(float(xstack.grad(mean)(a)) - 1) < 5 / np.sqrt(40_000)
