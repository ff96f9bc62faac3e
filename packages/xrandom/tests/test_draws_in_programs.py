"""Keys and samplers inside loops and staged programs."""

from __future__ import annotations

from typing import Any

import numpy as np

import xrandom
from xnp import lax
from xprim import make_jaxpr


def test_a_scan_draws_from_keys_that_it_carries() -> None:
    def step(key: Any, _: Any) -> Any:
        key, own = xrandom.split(key)
        return key, xrandom.uniform(own)

    _, drawn = lax.scan(step, xrandom.key(0), None, 3)
    key, expected = xrandom.key(0), []
    for _ in range(3):
        key, own = xrandom.split(key)
        expected.append(float(xrandom.uniform(own)))
    np.testing.assert_array_equal(np.asarray(drawn), np.float32(expected))


def test_a_draw_is_one_equation() -> None:
    jaxpr = make_jaxpr(lambda k: xrandom.normal(k, (3,)))(xrandom.PRNGKey(0))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["random_normal"]
