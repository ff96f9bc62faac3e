"""Bits are packed and unpacked in compiled programs as outside of them."""

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp


@pytest.mark.parametrize("order", ["big", "little"])
def test_all_bytes_go_both_ways(order):
    x = np.arange(256, dtype=np.uint8).reshape(4, 64)
    unpacked = xstack.jit(lambda x: xnp.unpackbits(x, axis=1, bitorder=order))(x)
    np.testing.assert_array_equal(unpacked, np.unpackbits(x, axis=1, bitorder=order))
    packed = xstack.jit(lambda x: xnp.packbits(x, axis=1, bitorder=order))(unpacked[:, :-3])
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(packed, np.packbits(np.asarray(unpacked)[:, :-3], 1, order))
