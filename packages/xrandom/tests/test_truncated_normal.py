"""Normal samples between bounds, in tails that erf has no numbers for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xrandom
from xprim import config

INFINITY = math.inf
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# The mean and its distance from the nearer bound, of the density exp(-x^2 / 2) cut at both:
# (phi(a) - phi(b)) / (Q(a) - Q(b)), by mpmath in 40 digits.
MEANS = [
    (5.25, 1e6, 5.428655388386),
    (5.42, 6.62, 5.592960882838),
    (8.0, INFINITY, 8.121368112236),
    (-INFINITY, -8.0, -8.121368112236),
    (30.0, 30.1, 30.02807148143),
    (-1000.5, -1000.0, -1000.000999998),
]


@pytest.mark.parametrize(("low", "high", "mean"), MEANS, ids=str)
def test_the_mean_between_far_bounds_is_that_of_the_distribution(
    low: float, high: float, mean: float
) -> None:
    with config.enable_x64(True):
        x = np.asarray(xrandom.truncated_normal(xrandom.key(1), low, high, (20000,)))
    nearer = min(abs(low), abs(high))
    distance = abs(mean) - nearer
    # 20,000 distances of about exponential distribution: five of their standard errors
    assert abs(np.abs(x).mean() - abs(mean)) < 5 * distance / math.sqrt(20000)
    assert (low < x).all()
    assert (x < high).all()
    assert len(np.unique(x)) > 19900


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_lower_tail_is_the_mirrored_upper_one(dtype: str) -> None:
    key = xrandom.key(2)
    with config.enable_x64(True):
        for low, high in [(7.0, 7.25), (8.0, INFINITY), (9.0, 10.0)]:
            upper = np.asarray(xrandom.truncated_normal(key, low, high, (500,), dtype))
            lower = np.asarray(xrandom.truncated_normal(key, -high, -low, (500,), dtype))
            np.testing.assert_array_equal(upper, -lower)


@pytest.mark.parametrize("dtype", FLOATS)
def test_samples_between_ordinary_bounds_are_those_of_the_formula_by_erf(dtype: str) -> None:
    from xnp import lax

    key, root = xrandom.key(3), math.sqrt(2)
    for low, high in [(-2.0, 2.0), (-1.0, 9.0), (0.5, 1.25), (-1.0, -0.5), (1.0, 2.0)]:
        with config.enable_x64(True):
            u = xrandom.uniform(key, (400,), dtype)
            bounds = [lax.full((), v, u.dtype) for v in (low, high)]
            a, b = [lax.erf(lax.div(v, root)) for v in bounds]
            x = lax.mul(lax.erf_inv(lax.max(a, lax.add(lax.mul(u, lax.sub(b, a)), a))), root)
            x = lax.min(lax.max(x, lax.nextafter(bounds[0], bounds[1])),
                        lax.nextafter(bounds[1], bounds[0]))  # fmt: skip
            found = xrandom.truncated_normal(key, low, high, (400,), dtype)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_bounds_in_arrays_are_tails_or_not_one_by_one() -> None:
    key = xrandom.key(4)
    low = np.array([-1.0, 6.0, -INFINITY, -9.0, 2.0], np.float32)
    high = np.array([1.0, INFINITY, -5.5, 9.0, 2.5], np.float32)
    found = np.asarray(xrandom.truncated_normal(key, low, high, (300, 5)))
    for k, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        whole = np.asarray(xrandom.truncated_normal(key, a, b, (300, 5)))
        np.testing.assert_array_equal(found[:, k], whole[:, k])
        assert (a < found[:, k]).all()
        assert (found[:, k] < b).all()
