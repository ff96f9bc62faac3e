"""Generators that remember how often they were asked."""

import numpy as np
import pytest

import xrandom
from xprim import make_jaxpr
from xrandom.stateful import StatefulPRNG, stateful_rng


def test_the_draws_are_those_of_the_key_with_the_count_folded_in():
    rng, key = stateful_rng(42), xrandom.key(42)
    draws = [rng.random(3), rng.uniform(2.0, 5.0, 3), rng.integers(3, 9, (2, 2)), rng.key(2)]
    keys = [xrandom.fold_in(key, i) for i in range(4)]
    expected = [
        xrandom.uniform(keys[0], (3,)), xrandom.uniform(keys[1], (3,), minval=2.0, maxval=5.0),
        xrandom.randint(keys[2], (2, 2), 3, 9), xrandom.split(keys[3], 2),
    ]  # fmt: skip
    assert all(bool((a == b).all()) for a, b in zip(draws, expected, strict=True))
    scale, first = np.float32([1, 2]), xrandom.fold_in(xrandom.key(7), 0)
    drawn = stateful_rng(7).normal(1.0, scale)
    assert np.allclose(drawn, 1 + scale * np.asarray(xrandom.normal(first, (2,))))


def test_children_are_independent_and_split_ones_draw_inside_of_vmap_alone():
    children = stateful_rng(1).spawn(3)
    assert len({float(child.random()) for child in children}) == 3
    together = stateful_rng(1).split(3)
    assert isinstance(together, StatefulPRNG)
    with pytest.raises(ValueError, match="draws inside of vmap alone"):
        together.random()


def test_a_generator_without_a_seed_is_not_made_while_tracing():
    assert 0 <= float(stateful_rng().random()) < 1
    with pytest.raises(TypeError, match="a seed is needed while a function is traced"):
        make_jaxpr(lambda x: x + stateful_rng().random())(1.0)
