"""Derivatives of samples with respect to the bounds between which they are drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xrandom
from xad import grad
from xjit import jit
from xprim import config


@pytest.mark.parametrize(
    ("low", "high"), [(8.0, 8.5), (-9.0, -8.0), (9.0, math.inf), (-0.5, 0.75)], ids=str
)
def test_slopes_of_normal_samples_in_their_bounds_keep_the_quantile(
    low: float, high: float
) -> None:
    key = xrandom.key(5)

    def total(low: Any, high: Any) -> Any:
        return xrandom.truncated_normal(key, low, high, (3,)).sum()

    with config.enable_x64(True):
        for k in range(2):
            found = float(grad(total, k)(low, high))
            # compiled sums are of another order
            assert found == pytest.approx(float(jit(grad(total, k))(low, high)), rel=1e-9)
            if math.isinf((low, high)[k]):
                assert found == 0
                continue
            step = 1e-5
            ends = [[low, high], [low, high]]
            ends[0][k] -= step
            ends[1][k] += step
            difference = (float(total(*ends[1])) - float(total(*ends[0]))) / (2 * step)
            # of differences of step 1e-5: its square, and the rounding 1e-15 over it
            np.testing.assert_allclose(found, difference, rtol=1e-6, atol=1e-8)
