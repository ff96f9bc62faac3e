"""Derivatives of samples with respect to the bounds between which they are drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xrandom
from xad import grad
from xbatch import vmap
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


_OF_GAMMA: dict[str, tuple[float, ...]] = {
    "gamma": (2.5,), "loggamma": (0.3,), "beta": (2.0, 3.0), "chisquare": (3.0,), "f": (4.0, 5.0),
    "t": (3.0,), "generalized_normal": (1.5,),
}  # fmt: skip


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("name", _OF_GAMMA)
def test_what_is_made_of_gamma_samples_is_the_same_mapped_and_one_by_one(name: str) -> None:
    keys = xrandom.split(xrandom.key(6), 3)
    sampler, args = getattr(xrandom, name), _OF_GAMMA[name]

    def draw(key: Any) -> Any:
        return sampler(key, *args, (4,))

    mapped, compiled = vmap(draw)(keys), jit(vmap(draw))(keys)
    for k in range(3):
        own = np.asarray(draw(keys[k]))
        np.testing.assert_array_equal(np.asarray(mapped[k]), own)
        # the compiler's roundings, some of them in front of a logarithm of 1 + x
        np.testing.assert_allclose(np.asarray(compiled[k]), own, rtol=2e-6)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", _OF_GAMMA)
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e12])
def test_slopes_of_what_is_made_of_gamma_samples_are_finite(name: str, scale: float) -> None:
    sampler, args = getattr(xrandom, name), _OF_GAMMA[name]
    slope = grad(lambda s: sampler(xrandom.key(7), *[a * s for a in args], (5,)).sum())
    with config.enable_x64(True):
        assert math.isfinite(slope(scale))
