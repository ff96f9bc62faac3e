"""Small windows side by side are written by their elements: extremes, and their derivatives."""

import math

import numpy as np
import pytest

from xjit import jit
from xnp.lax import ge_p, le_p, reduce_window_max_p, reduce_window_min_p, select_and_scatter_add_p
from xprim import config, dtypes

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


# ------------------------------------------------------------------------------------- extremes

# of 4,096 elements and more, where a reduction of windows loses NaN
FUSED = [
    ((4, 16, 32, 3), (1, 2, 2, 1)),
    ((6144,), (3,)),
    ((128, 64), (4, 4)),
    ((8192,), (8,)),
    ((4, 32, 16, 5), (1, 8, 2, 1)),
    ((64, 128), (16, 1)),
    ((2, 16, 16, 16), (2, 2, 2, 2)),
]
NOT_FUSED = [
    ((5, 16, 33, 3), (1, 2, 2, 1)),
    ((6144,), (32,)),
    ((8192,), (16,)),
    ((4, 16, 16), (1, 2, 2)),
]


def _extremes(primitive, shape, tile):
    ones = (1,) * len(tile)
    params = {"window_dimensions": tile, "window_strides": tile, "padding": ((0, 0),) * len(tile),
              "base_dilation": ones, "window_dilation": ones}  # fmt: skip
    return lambda x: primitive.bind(x, **params)[0]


def _expected(ufunc, x, tile):
    """Fold the elements of each window in NumPy, in row-major order."""
    places = [n // w for n, w in zip(x.shape, tile, strict=True)]
    x = x[tuple([slice(0, n * w) for n, w in zip(places, tile, strict=True)])]
    x = x.reshape([n for pair in zip(places, tile, strict=True) for n in pair])
    even, odd = range(0, x.ndim, 2), range(1, x.ndim, 2)
    rows = x.transpose(*even, *odd).reshape(*places, math.prod(tile))
    return ufunc.reduce(rows, axis=-1)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, dtypes.bfloat16])
@pytest.mark.parametrize(
    ("primitive", "ufunc"),
    [(reduce_window_max_p, np.maximum), (reduce_window_min_p, np.minimum)],
)
@pytest.mark.parametrize(("shape", "tile"), [*FUSED, *NOT_FUSED])
def test_extremes_are_those_of_numpy_with_nan(shape, tile, primitive, ufunc, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    x.flat[rng.integers(0, x.size, 40)] = np.nan
    x.flat[rng.integers(0, x.size, 40)] = np.inf
    x.flat[rng.integers(0, x.size, 40)] = -np.inf
    with config.enable_x64(True):
        found = np.asarray(jit(_extremes(primitive, shape, tile))(x))
    expected = _expected(ufunc, x.astype(np.float64), tile)  # extremes are not rounded
    assert found.dtype == x.dtype
    assert np.isnan(expected).any() and np.isfinite(expected).any()
    np.testing.assert_array_equal(found.astype(np.float64), expected)


@pytest.mark.parametrize(("shape", "tile"), [*FUSED, *NOT_FUSED])
def test_only_small_windows_that_cover_an_array_are_slices(shape, tile):
    lowered = jit(_extremes(reduce_window_max_p, shape, tile)).lower(np.zeros(shape, np.float32))
    assert ("reduce_window" in lowered.as_text()) == ((shape, tile) in NOT_FUSED)
    if (shape, tile) in FUSED:  # without the slices: six kernels
        assert lowered.compile().as_text().count(" fusion(") == 1
