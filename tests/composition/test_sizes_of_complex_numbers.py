"""`abs` of complex numbers compiled: right in all of the range, as C99 has it at infinities."""

from __future__ import annotations

import numpy as np
import pytest

import xstack
import xstack.numpy as xnp

PARTS = [0.0, 1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_size_compiled_is_that_of_numpy(dtype):
    with xstack.enable_x64(True):
        far = 1e300 if dtype == "complex128" else 1e38
        parts = [*PARTS, far, -10 / far]
        z = np.array([complex(x, y) for x in parts for y in parts], dtype)
        found = np.asarray(xstack.jit(xnp.abs)(xnp.asarray(z)))
        # NumPy's own is right to two units of the last place, ours to one and a half
        eps = np.finfo(found.dtype).eps
        np.testing.assert_allclose(found, np.abs(z), rtol=4 * eps)
        np.testing.assert_allclose(np.asarray(xnp.abs(xnp.asarray(z))), found, rtol=4 * eps)


def test_an_infinite_part_beside_a_nan_is_infinite():
    z = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf)], np.complex64)
    assert np.isinf(np.asarray(xstack.jit(xnp.abs)(z))).all()
