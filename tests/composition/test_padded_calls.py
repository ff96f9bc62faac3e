"""Functions whose arguments are padded to buckets, inside of transformations and of classes."""

import functools

import numpy as np
import pytest

import xstack.numpy as xnp
from xstack import grad, jit, random, vmap

doubled = jit(lambda x: x * 2, buckets={"x": {0: "pow2"}})


def test_padded_calls_are_transformed_as_any_others():
    outer = jit(lambda x: doubled(x) + 1)
    for size in (3, 5, 3, 5):
        np.testing.assert_array_equal(outer(xnp.ones(size)), np.full(size, 3))
    assert outer.stats()["traces"] == 2
    assert grad(lambda x: doubled(x).sum())(xnp.ones(3)).tolist() == [2, 2, 2]
    assert vmap(doubled)(xnp.ones((2, 5))).shape == (2, 5)


def test_methods_and_further_arguments_are_padded_by_name():
    class Scale:
        @functools.partial(jit, static_argnums=0, buckets={"x": {0: 4}, "rest": {0: 4}})
        def __call__(self, x, *rest, by=3):
            return x * by + sum(r.sum() for r in rest)

    scale = Scale()
    assert scale(np.ones(3)).tolist() == [3, 3, 3]
    assert scale(np.ones(3), np.ones(5), np.ones(2), by=2).tolist() == [9, 9, 9]


def test_keys_are_padded_too():
    keys = random.split(random.key(0), 3)
    same = jit(lambda keys: keys, buckets={"keys": {0: "pow2"}})(keys)
    np.testing.assert_array_equal(random.key_data(same), random.key_data(keys))
    with pytest.raises(ValueError, match=r"cannot be padded(.|\n)*got       key<fry>\[3\] with"):
        jit(lambda keys: keys[::-1], buckets={"keys": {0: "pow2"}})(keys)
