"""Keys of the generators "rbg" and "unsafe_rbg" against jax, bit for bit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xrandom
from packages.xrandom.tests.oracle import assert_close, assert_equal, jax, layout
from xprim import config

LAYOUTS = pytest.mark.parametrize("partitionable", [True, False], ids=["partitionable", "original"])
BOTH = pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
NAMES = {"threefry2x32": "key<fry>", "rbg": "key<rbg>", "unsafe_rbg": "key<urbg>"}


def _data(module: Any, keys: Any) -> Any:
    return module.random.key_data(keys) if module is jax else xrandom.key_data(keys)


@pytest.mark.sampled(every=4)
@BOTH
@LAYOUTS
def test_keys_are_made_split_and_folded_as_by_the_oracle(impl: str, partitionable: bool) -> None:
    with layout(partitionable):
        ours, theirs = xrandom.key(7, impl=impl), jax.random.key(7, impl=impl)
        assert_equal(_data(None, ours), _data(jax, theirs))
        for shape in (3, (2, 3), (0,)):
            assert_equal(
                _data(None, xrandom.split(ours, shape)),
                _data(jax, jax.random.split(theirs, shape)),
            )
        assert_equal(
            _data(None, xrandom.fold_in(ours, 2**32 - 1)),
            _data(jax, jax.random.fold_in(theirs, 2**32 - 1)),
        )


@pytest.mark.sampled(every=6)
@BOTH
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("shape", [(), (5,), (0, 2), (3, 7)])
def test_bits_are_those_of_the_oracle(impl: str, dtype: str, shape: tuple[int, ...]) -> None:
    with layout(True, x64=dtype == "uint64"):
        ours = xrandom.bits(xrandom.key(7, impl=impl), shape, dtype)
        assert_equal(ours, jax.random.bits(jax.random.key(7, impl=impl), shape, dtype))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(("name", "args"), [
    ("normal", ((4,),)), ("randint", ((4,), 0, 99)), ("permutation", (10,)),
    ("gamma", (2.0, (4,))), ("beta", (2.0, 3.0, (4,))), ("choice", (10, (3,))),
    ("multinomial", (10.0, np.full(3, 1 / 3, np.float32))), ("categorical", (np.zeros(5),)),
])  # fmt: skip
def test_samplers_take_keys_of_rbg(name: str, args: Any) -> None:
    ours = getattr(xrandom, name)(xrandom.key(3, impl="rbg"), *args)
    assert_close(ours, getattr(jax.random, name)(jax.random.key(3, impl="rbg"), *args))


def test_bare_words_of_four_are_of_the_generator_that_is_the_default() -> None:
    with config.default_prng_impl("unsafe_rbg"), jax.default_prng_impl("unsafe_rbg"):
        ours, theirs = xrandom.PRNGKey(5), jax.random.PRNGKey(5)
        assert xrandom.key_impl(ours) == "unsafe_rbg"
        assert_equal(xrandom.split(ours), jax.random.split(theirs))
        assert xrandom.key(5).dtype.name == "key<urbg>"
    assert xrandom.key_impl(ours) == "rbg"


@pytest.mark.parametrize("impl", NAMES)
def test_a_dtype_of_keys_is_one_object(impl: str) -> None:
    key = xrandom.key(0, impl=impl)
    dtype = key.dtype
    assert dtype is xrandom.key_dtype(impl)
    assert dtype is pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype)
    assert (dtype.name, xrandom.key_impl(key)) == (NAMES[impl], impl)
    assert xrandom.clone(key).dtype is xrandom.split(key).dtype is dtype
    assert xrandom.wrap_key_data(xrandom.key_data(key), impl=impl).dtype is dtype


def test_words_of_another_generator_are_refused() -> None:
    with pytest.raises(TypeError, match=r"wrap_key_data(.|\n)*the words of keys: uint32\[..., 4\]"):
        xrandom.wrap_key_data(np.zeros((3, 2), np.uint32), impl="rbg")
    with pytest.raises(TypeError, match="wrap_key_data: the value is not a random key"):
        xrandom.wrap_key_data(np.zeros((3, 4), np.uint32))
