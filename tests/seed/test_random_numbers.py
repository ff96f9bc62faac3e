"""Random numbers: the original counter layout, with the figures that the documents print."""

import numpy as np
import pytest

import xstack
from xstack import random


@pytest.fixture(autouse=True)
def original_layout():
    with xstack.threefry_partitionable(False):
        yield


# samples of `normal` agree to 2e-5: the documents and today's peers differ by 1e-5
RTOL = 2e-5


def test_the_key_and_the_same_sample_at_every_call():
    key = random.PRNGKey(0)
    np.testing.assert_array_equal(key, np.array([0, 0], np.uint32))
    assert np.asarray(key).dtype == np.uint32
    for _ in range(2):
        np.testing.assert_allclose(random.normal(key, shape=(1,)), [-0.20584236], rtol=RTOL)


def test_split():
    key, subkey = random.split(random.PRNGKey(0))
    np.testing.assert_array_equal(key, np.array([4146024105, 967050713], np.uint32))
    np.testing.assert_array_equal(subkey, np.array([2718843009, 1272950319], np.uint32))
    np.testing.assert_allclose(random.normal(key, (1,)), [0.14389051], rtol=RTOL)
    np.testing.assert_allclose(random.normal(subkey, (1,)), [-1.2515285], rtol=RTOL)


def test_split_into_four():
    key, _ = random.split(random.PRNGKey(0))
    expected = [
        [3306097435, 3899823266], [147607341, 367236428],
        [2280136339, 1907318301], [781391491, 1939998335],
    ]  # fmt: skip
    np.testing.assert_array_equal(random.split(key, 4), np.array(expected, np.uint32))


def test_normal_of_four_and_of_five():
    key = random.PRNGKey(0)
    np.testing.assert_allclose(
        random.normal(key, (4,)), [1.8160864, -0.75487745, 0.3398885, -0.53483075], rtol=RTOL
    )
    np.testing.assert_allclose(
        random.normal(key, (5,)),
        [0.18784378, -1.2833427, -0.27109176, 1.2490592, 0.24446994],
        rtol=RTOL,
    )


def test_the_switch_by_update_changes_the_layout_and_back():
    with xstack.threefry_partitionable(True):
        partitionable = np.asarray(random.normal(random.PRNGKey(0), (4,)))
    original = np.asarray(random.normal(random.PRNGKey(0), (4,)))
    assert not np.array_equal(partitionable, original)
