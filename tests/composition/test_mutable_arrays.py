"""Blocks of assignments under transformations."""

import numpy as np

import xnp
import xstack


def _doubled_head(x):
    with xnp.mutable(x) as y:
        y[0] = 2 * x[0]
        for i in range(1, 3):
            y[i] += y[i - 1]
    return y.array


def test_blocks_of_assignments_compile_differentiate_and_map():
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    expected = [2.0, 4.0, 7.0, 4.0]
    np.testing.assert_array_equal(_doubled_head(x), expected)
    np.testing.assert_array_equal(xstack.jit(_doubled_head)(x), expected)
    np.testing.assert_array_equal(
        xstack.vmap(_doubled_head)(np.stack([x, 2 * x]))[1], 2 * np.array(expected)
    )
    slope = xstack.grad(lambda x: _doubled_head(x).sum())(x)
    np.testing.assert_array_equal(slope, [6.0, 2.0, 1.0, 1.0])
