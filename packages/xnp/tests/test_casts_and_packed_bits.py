import math

import numpy as np
import pytest

import xnp
from xprim import config


@pytest.mark.parametrize("order", ["big", "little"])
def test_every_byte_is_packed_as_numpy_packs_it(order):
    bits = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)
    assert xnp.packbits(bits, 1, order).tolist() == np.packbits(bits, 1, order).tolist()
    for size in (0, 1, 9, 15):
        some = bits.ravel()[7 : 7 + size]
        assert (
            xnp.packbits(some, bitorder=order).tolist()
            == np.packbits(some, bitorder=order).tolist()
        )


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_byte_is_unpacked_as_numpy_unpacks_it(order, axis):
    x = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    for count in (None, 5, -3):
        expected = np.unpackbits(x, axis, count, order)
        assert np.array_equal(xnp.unpackbits(x, axis, count, order), expected)
    assert xnp.unpackbits(x[:0], axis, None, order).shape == np.unpackbits(x[:0], axis).shape


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_floats_saturate_whether_or_not_all_are_in_range(source, target):
    limits = np.iinfo(target)
    lowest, highest = int(limits.min), int(limits.max)

    def integer(x):
        if math.isnan(x):
            return 0
        return lowest if x <= lowest else highest if x >= highest else int(x)

    near = [float(highest), float(highest) * 0.99, float(lowest), -0.9, 0.9, 3.0]
    with np.errstate(over="ignore"), config.enable_x64(True):
        for values in ([], [0.5, 1.9], near, [math.nan, 2.5], [math.inf, -math.inf, 7.0]):
            x = np.array(values, source)
            found = xnp.asarray(x).astype(target)
            assert found.dtype == target and found.tolist() == [integer(float(v)) for v in x]
