"""Bits of XLA's generators beside the oracle's, and numbers of a range that need no key."""

import numpy as np
import pytest

import xnp
from xnp import lax
from xprim import config

# the second one carries into the upper words of its counter
KEYS = np.uint32([11, 22, 33, 44]), np.uint32([1, 2, 2**32 - 2, 2**32 - 1])
SHAPES = [(), (0,), (7,), (2, 3), (3, 5), (3, 4, 2)]


@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [(0, "uint32"), (1, "uint8"), (1, "uint32"), (1, "uint64"), (2, "uint64")],
)
def test_bits_are_those_of_the_oracle(algorithm, dtype):
    jax = pytest.importorskip("jax")
    for key in KEYS:
        with jax.enable_x64(True):
            expected = [
                jax.lax.rng_bit_generator(key, shape, np.dtype(dtype), algorithm)
                for shape in SHAPES[algorithm % 2 :: 2]
            ]
        for shape, (moved, bits) in zip(SHAPES[algorithm % 2 :: 2], expected, strict=True):
            new_key, found = lax.rng_bit_generator(key, shape, dtype, algorithm)
            assert found.dtype == dtype
            np.testing.assert_array_equal(np.asarray(new_key), np.asarray(moved))
            np.testing.assert_array_equal(np.asarray(found), np.asarray(bits))


def test_both_forms_of_a_key_give_the_same_bits():
    wide = xnp.asarray(KEYS[0].view(np.uint64), "uint64")
    new_key, bits = lax.rng_bit_generator(wide, (5,))
    other, expected = lax.rng_bit_generator(KEYS[0], (5,))
    assert bits.tolist() == expected.tolist()
    assert np.asarray(new_key).view(np.uint32).tolist() == other.tolist()


@pytest.mark.parametrize("algorithm", [1, 2])
def test_bits_are_the_same_where_users_get_no_64_bits(algorithm):
    expected = lax.rng_bit_generator(KEYS[1], (5,), algorithm=algorithm)
    with config.explicit_x64_dtypes("error"):
        found = lax.rng_bit_generator(KEYS[1], (5,), algorithm=algorithm)
        assert lax.rng_uniform(np.int32(3), np.int32(9), (4,)).dtype == "int32"
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float64"]
)
def test_numbers_without_a_key_fill_their_range_and_differ_in_each_call(dtype):
    low, high = xnp.array(3, dtype), xnp.array(100, dtype)
    first, second = [np.asarray(lax.rng_uniform(low, high, (2000,)), float) for _ in range(2)]
    for x in (first, second):
        assert 3 <= x.min() < 6
        assert 97 < x.max() < 100
        assert abs(x.mean() - 51.5) < 4  # six standard deviations of the mean of 2000
    assert (first != second).mean() > 0.9
    assert np.asarray(lax.rng_uniform(high, low, (2,)), float).tolist() == [100, 100]


def test_the_whole_range_of_a_signed_dtype_is_drawn():
    x = np.asarray(lax.rng_uniform(np.int8(-128), np.int8(127), (5000,)))
    assert (x.min(), x.max()) == (-128, 126)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.rng_bit_generator(np.uint32([1, 2]), ()), TypeError, "must be four words"),
        (lambda: lax.rng_bit_generator(KEYS[0], (), "int32"), TypeError, "an unsigned integer one"),
        (lambda: lax.rng_bit_generator(KEYS[0], (), algorithm=7), ValueError, "unknown algorithm"),
        (lambda: lax.rng_uniform(1.0, 2, ()), ValueError, "two single real numbers of one dtype"),
        (lambda: lax.rng_uniform(1j, 2j, ()), ValueError, "two single real numbers of one dtype"),
    ],
)
def test_what_is_no_key_or_no_range_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
