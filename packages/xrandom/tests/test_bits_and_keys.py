"""Keys and bits against the published vectors of Threefry and, bit for bit, against jax."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xrandom
from packages.xrandom.tests.oracle import assert_equal, jax, layout
from xprim import Array, config, make_jaxpr
from xprim.errors import ConcretizationTypeError, KeyReuseError
from xrandom.hashing import MAX_LANES, hash_range, hash_words

SHAPES = [(), (5,), (0, 2), (7, 11, 13)]
LAYOUTS = pytest.mark.parametrize("partitionable", [True, False], ids=["partitionable", "original"])

# Random123 1.09, kat_vectors: threefry2x32 with 20 rounds: counter, key, result.
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def _words(*values: int) -> list[np.ndarray]:
    return [np.array(v, np.uint32) for v in values]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
@pytest.mark.parametrize("count", [1, MAX_LANES, MAX_LANES + 1, 40_000])
def test_the_hash_gives_the_published_vectors_for_few_and_many_blocks(
    counter: tuple[int, int], key: tuple[int, int], expected: tuple[int, int], count: int
) -> None:
    blocks = [np.full(count, c, np.uint32) for c in counter]
    y0, y1 = hash_words(*_words(*key), *blocks)
    assert set(y0.tolist()) == {expected[0]}
    assert set(y1.tolist()) == {expected[1]}


def test_lanes_and_arrays_hash_alike() -> None:
    few = hash_range(0x12345678, 0x9ABCDEF0, MAX_LANES)
    many = hash_range(0x12345678, 0x9ABCDEF0, 5 * MAX_LANES)
    np.testing.assert_array_equal(few, many[:MAX_LANES])


@pytest.mark.parametrize("seed", [0, 1, 42, -1, -(2**31), 2**31 - 1, 2**32 + 5, -(2**40)])
@pytest.mark.parametrize("x64", [False, True])
def test_a_seed_gives_the_key_of_jax(seed: int, x64: bool) -> None:
    with layout(True, x64):
        assert_equal(xrandom.PRNGKey(seed), jax.random.PRNGKey(seed))
        assert_equal(xrandom.key_data(xrandom.key(seed)), jax.random.PRNGKey(seed))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int32", "int64", "uint64"])
def test_an_array_as_seed_gives_the_key_of_jax(dtype: str) -> None:
    with layout(True, x64=True):
        seed = np.array(-3 if dtype.startswith("i") else 200, dtype)
        assert_equal(xrandom.PRNGKey(seed), jax.random.PRNGKey(seed))


@pytest.mark.sampled(every=3)
@LAYOUTS
@pytest.mark.parametrize("num", [1, 2, 7, 300, (2, 3), ()])
def test_split_is_that_of_jax(partitionable: bool, num: int | tuple[int, ...]) -> None:
    with layout(partitionable):
        for seed in (0, 42):
            ours = xrandom.split(xrandom.PRNGKey(seed), num)
            assert_equal(ours, jax.random.split(jax.random.PRNGKey(seed), num))


@LAYOUTS
@pytest.mark.parametrize(
    "data", [0, 1, 77, 2**32 - 1, np.int32(-5), np.uint8(200), 7.0, np.float32(3)]
)
def test_fold_in_is_that_of_jax(partitionable: bool, data: int) -> None:
    with layout(partitionable):
        ours = xrandom.fold_in(xrandom.PRNGKey(42), data)
        assert_equal(ours, jax.random.fold_in(jax.random.PRNGKey(42), data))


@pytest.mark.sampled(every=6)
@LAYOUTS
@pytest.mark.parametrize(
    ("width", "shape"), list(itertools.product([8, 16, 32, 64], SHAPES)), ids=str
)
def test_bits_are_those_of_jax(partitionable: bool, width: int, shape: tuple[int, ...]) -> None:
    with layout(partitionable, x64=True):
        ours = xrandom.bits(xrandom.PRNGKey(7), shape, f"uint{width}")
        assert_equal(ours, jax.random.bits(jax.random.PRNGKey(7), shape, f"uint{width}"))


def test_a_key_of_the_two_forms_draws_the_same() -> None:
    typed, bare = xrandom.key(3), xrandom.PRNGKey(3)
    assert_equal(xrandom.bits(typed, (4,)), xrandom.bits(bare, (4,)))
    assert isinstance(xrandom.split(typed), Array)
    assert xrandom.split(typed).dtype == typed.dtype
    assert_equal(xrandom.key_data(xrandom.split(typed)), xrandom.split(bare))
    assert_equal(xrandom.key_data(xrandom.fold_in(typed, 9)), xrandom.fold_in(bare, 9))


def test_an_array_of_keys_has_the_shape_of_its_keys() -> None:
    keys = xrandom.split(xrandom.key(0), (2, 3))
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((2, 3), 2, 6, 2)
    assert [k.shape for k in keys] == [(3,), (3,)]
    assert keys[1, 2].shape == ()
    assert keys[..., 0].shape == (2,)
    assert keys.reshape(3, -1).shape == (3, 2)
    assert keys.ravel().shape == (6,)
    assert bool(np.asarray(keys[1, 2] == keys.ravel()[5]))
    k1, k2 = keys[0, :2]
    assert not bool(np.asarray(k1 == k2))
    with pytest.raises(IndexError, match=r"(?i)too many indices"):
        keys[0, 0, 0]


def test_keys_know_their_dtype_and_generator() -> None:
    key = xrandom.key(0)
    assert key.dtype == xrandom.key_dtype() == xrandom.key_dtype("threefry2x32")
    assert xrandom.key_impl(key) == "threefry2x32"
    again = xrandom.wrap_key_data(xrandom.key_data(key), dtype=key.dtype)
    assert_equal(xrandom.key_data(again), xrandom.key_data(key))
    assert_equal(xrandom.key_data(xrandom.clone(key)), xrandom.key_data(key))
    with pytest.raises(TypeError, match="an array of rank 0 has no length"):
        len(key)


def test_a_generator_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="key: unknown generator 'mt19937'"):
        xrandom.key(0, impl="mt19937")
    with pytest.raises(TypeError, match="PRNGKey: the generator must be given by its name"):
        xrandom.PRNGKey(0, impl=4)
    with pytest.raises(ValueError, match="one of impl and dtype"):
        xrandom.key(0, impl="threefry2x32", dtype=xrandom.key_dtype())


SEEDS = [True, np.bool_(True), np.int8(3), np.int64(2**33 + 5), np.uint64(2**63 + 7),
         np.array(2**33 + 5), np.array(-1, np.int64)]  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_a_seed_of_numpy_gives_what_the_integer_gives(seed, wide) -> None:
    with config.enable_x64(wide):
        for make in (xrandom.key, xrandom.PRNGKey):
            expected = xrandom.key_data(make(int(seed)))
            assert_equal(xrandom.key_data(make(seed)), expected)
    key = xrandom.key(0)
    assert_equal(
        xrandom.key_data(xrandom.fold_in(key, np.bool_(True))),
        xrandom.key_data(xrandom.fold_in(key, 1)),
    )


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(TypeError, match="bits: the value is not a random key"):
        xrandom.bits(np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="split: the value is not a random key"):
        xrandom.split(np.zeros(3, np.uint32))
    with pytest.raises(ValueError, match="takes a single key"):
        xrandom.split(xrandom.split(xrandom.key(0)))
    with pytest.raises(TypeError, match="the seed must be a single integer"):
        xrandom.key(0.5)
    with pytest.raises(TypeError, match="data must be a single integer"):
        xrandom.fold_in(xrandom.key(0), 0.5)
    with pytest.raises(OverflowError, match="too large to convert to uint32"):
        xrandom.fold_in(xrandom.key(0), -1)
    with pytest.raises(ValueError, match="bits: the dtype must be an unsigned integer"):
        xrandom.bits(xrandom.key(0), (), "int32")


def test_a_key_that_is_used_twice_is_an_error_when_asked_for() -> None:
    key = xrandom.key(0)
    xrandom.bits(key)
    with config.debug_key_reuse(False):
        xrandom.bits(key)
    with config.debug_key_reuse(True):
        key = xrandom.key(0)
        copy = xrandom.clone(key)
        xrandom.split(key)
        with pytest.raises(KeyReuseError, match="bits: the key was used before"):
            xrandom.bits(key)
        xrandom.bits(copy)


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_shapes_that_cannot_be_are_errors_of_both_kinds(kind: type[Exception]) -> None:
    for draw in (
        lambda: xrandom.normal(xrandom.key(0), (-1,)),
        lambda: xrandom.uniform(xrandom.key(0), (2,), minval=np.zeros(3)),
        lambda: xrandom.gamma(xrandom.key(0), np.ones(3), (2,)),
    ):
        with pytest.raises(kind, match=r"must (not be negative|broadcast to the shape)"):
            draw()


@pytest.mark.parametrize("shuffled", [xrandom.permutation, xrandom.choice])
def test_how_many_numbers_there_are_must_be_known_while_tracing(shuffled: Any) -> None:
    with pytest.raises(ConcretizationTypeError, match="how many numbers there are is a traced"):
        make_jaxpr(lambda n: shuffled(xrandom.key(0), n))(3)


def test_a_counter_that_is_a_float_folds_in_as_its_integer() -> None:
    key = xrandom.key(0)
    for counter in (3.0, np.float64(3), xrandom.uniform(key, (), minval=3.0, maxval=3.0)):
        assert_equal(xrandom.key_data(xrandom.fold_in(key, counter)),
                     np.asarray(xrandom.key_data(xrandom.fold_in(key, 3))))  # fmt: skip
    assert make_jaxpr(lambda x: xrandom.fold_in(key, x))(3.0).out_avals[0].shape == ()
    for fraction in (1.5, np.inf, np.nan):
        with pytest.raises(TypeError, match=r"^fold_in: data must be a single integer\."):
            xrandom.fold_in(key, fraction)
    with pytest.raises(OverflowError, match="-1 too large to convert to uint32"):
        xrandom.fold_in(key, -1.0)
    with pytest.raises(TypeError, match=r"^fold_in: data must be a single integer\."):
        xrandom.fold_in(key, 1j)
