"""The derivative of small windows that lie side by side compares their elements."""

import numpy as np
import pytest

from xjit import jit
from xnp.lax import ge_p, le_p, select_and_scatter_add_p

TILES = [((2, 4, 6, 3), (1, 2, 2, 1)), ((6,), (3,)), ((4, 4), (4, 4)), ((2, 8, 8, 5), (1, 4, 2, 1))]
NO_TILES = [((2, 5, 4, 1), (1, 2, 2, 1)), ((64,), (32,))]


def _scattered(select, shape, tile, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, shape).astype(dtype)  # many equals
    source = rng.integers(-3, 4, [n // w for n, w in zip(shape, tile, strict=True)]).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        source *= np.copysign(dtype(0.5), source + dtype(0.1))
        source.flat[0] = -0.0
    params = {"window_dimensions": tile, "window_strides": tile, "padding": ((0, 0),) * len(tile)}

    def fun(source, x):
        return select_and_scatter_add_p.bind(source, x, select_prim=select, **params)[0]

    return fun, source, x


@pytest.mark.parametrize(("select", "dtype"), [(ge_p, np.float32), (le_p, np.int32)])
@pytest.mark.parametrize(("shape", "tile"), [*TILES, *NO_TILES])
def test_the_source_is_at_the_first_of_the_extremes(shape, tile, select, dtype):
    fun, source, x = _scattered(select, shape, tile, dtype)
    expected, found = fun(source, x), jit(fun)(source, x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize(("shape", "tile"), [*TILES, *NO_TILES])
def test_only_other_windows_are_scattered(shape, tile):
    fun, source, x = _scattered(ge_p, shape, tile, np.float32)
    text = jit(fun).lower(source, x).as_text()
    assert ("select_and_scatter" in text) == ((shape, tile) in NO_TILES)
