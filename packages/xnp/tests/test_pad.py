"""The steps by which values cut over devices are padded do what one operation does."""

import itertools

import numpy as np
import pytest

from xnp import lax
from xnp.primitives.shapes import _in_steps


@pytest.mark.parametrize("size", range(4))
def test_padding_in_steps_is_padding(size):
    x, value = lax.full((), 0.5, np.float32) + np.arange(size, dtype=np.float32), np.float32(0.25)
    for low, high, interior in itertools.product(range(-5, 4), range(-5, 4), range(3)):
        if low + high + (size and size + (size - 1) * interior) >= 0:
            config = ((low, high, interior),)
            (found,) = _in_steps(x, lax.full((), value), padding_config=config)
            np.testing.assert_array_equal(found, lax.pad(x, value, config), str(config))


def test_dimensions_of_several_kinds_are_padded_in_steps():
    x = lax.full((), 0.0, np.float32) + np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    config = (-1, 3, 2), (1, 0, 0), (2, -3, 1)
    (found,) = _in_steps(x, lax.full((), np.float32(7)), padding_config=config)
    np.testing.assert_array_equal(found, lax.pad(x, np.float32(7), config))
