"""Reductions of large arrays in compiled CPU programs: slices, blocks, NumPy's accumulation."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xjit import jaxlib_gateway as gateway, jit
from xnp import lax
from xprim import config

pytestmark = pytest.mark.of_the_cpu

RNG = np.random.default_rng(0)

SHAPES = [((4099,), (0,)), ((5, 1031), (1,)), ((3, 7, 300), (0, 2)), ((7, 30, 31), (1, 2)),
          ((8192,), (0,))]  # fmt: skip


@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_extremes_of_integers_and_tests_of_booleans(shape, axes):
    numbers = RNG.integers(-1000, 1000, size=shape).astype("i4")
    seldom = RNG.uniform(size=shape) < 1 / 300

    def reductions(x, m):
        return [x.max(axes), x.min(axes), m.any(axes), (~m).all(axes), m.all(axes)]

    found = jit(reductions)(xnp.asarray(numbers), xnp.asarray(seldom))
    for a, b in zip(found, reductions(numbers, seldom), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["i4", "u2"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((4099,), (0,)), ((3, 7, 300), (0, 2)), ((140_013,), (0,))]
)
def test_each_element_of_a_sum_of_integers_counts_once(shape, axes, dtype):
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 1000, size=shape).astype(dtype)
    odd = numbers | np.ones((), dtype)
    mask = rng.uniform(size=shape) < 0.3
    found = jit(lambda x, y, m: [
        lax.reduce_sum(x, axes), lax.reduce_prod(y, axes), lax.reduce_xor(x, axes),
        lax.reduce_xor(m, axes), xnp.count_nonzero(m, axes),
    ])(xnp.asarray(numbers), xnp.asarray(odd), xnp.asarray(mask))  # fmt: skip
    expected = [
        np.add.reduce(numbers, axis=axes, dtype=dtype),
        np.multiply.reduce(odd, axis=axes, dtype=dtype),
        np.bitwise_xor.reduce(numbers, axis=axes), np.logical_xor.reduce(mask, axis=axes),
        np.count_nonzero(mask, axis=axes),
    ]  # fmt: skip
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("where", [0, 1, 15, 4095, 4096, 8190, 8191])
def test_each_place_of_an_extreme_element_counts(where):
    x = np.zeros(8192, "i4")
    x[where] = -3

    def of(m):
        return [m.min(), (m < 0).any(), xnp.argmin(m), xnp.argmin(xnp.asarray(m, "float32"))]

    assert list(map(int, jit(of)(xnp.asarray(x)))) == [-3, 1, where, where]


@pytest.mark.parametrize("where", [None, 0, 16383, 16384, 131071, 131072, 149999])
@pytest.mark.parametrize("shape", [(150_000,), (3, 50_000), (1, 2, 75_000)])
def test_a_loop_over_many_booleans_finds_each_place(shape, where):
    found = np.zeros(shape, bool)
    if where is not None:
        found.flat[where] = True
    axes = tuple(range(len(shape)))[shape[0] == 1 :]  # a dimension of size 1 may stay

    def tests(x):
        return [x.any(axes), (~x).all(axes), (~x).any(axes), x.all(axes)]

    compiled = jit(tests)
    assert "stablehlo.while" in compiled.lower(xnp.asarray(found)).as_text()
    for a, b in zip(compiled(xnp.asarray(found)), tests(found), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(6, 8192), (300, 1000), (520, 525)])
def test_the_first_nan_then_the_first_of_equals_is_the_place(shape):
    x = RNG.integers(0, 50, size=shape).astype("f4")
    x[1, 300], x[1, -3], x[2, -1], x[3, 0] = np.nan, np.nan, np.nan, np.inf
    x[4], x[5] = -np.inf, 0.0
    for find, expected in ((xnp.argmax, np.argmax), (xnp.argmin, np.argmin)):
        for axis in (0, 1):
            found = jit(lambda v, f=find, a=axis: f(v, axis=a))(xnp.asarray(x))
            np.testing.assert_array_equal(found, expected(x, axis=axis))


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize(("shape", "axes"), [*SHAPES, ((70, 70), (0,)), ((900, 5), (1,)),
                                             ((7, 900), (0,)), ((3, 20, 100), (0, 1))])  # fmt: skip
def test_no_extreme_loses_nan(shape, axes, dtype):
    with config.enable_x64(True):
        x = RNG.normal(size=shape).astype(dtype)
        reductions = jit(lambda v: [v.max(axes), v.min(axes)])
        for value in (np.nan, -np.inf, np.inf):  # then with infinities of both signs as well
            x.flat[RNG.integers(x.size)] = value
            for a, b in zip(reductions(xnp.asarray(x)), (x.max(axes), x.min(axes)), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize(("shape", "axes"), [((5000,), (0,)), ((9, 700), (1,)), ((9, 700), (0,))])
def test_infinities_and_numbers_with_infinite_squares_make_no_extreme_nan(shape, axes, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    x.flat[:] *= np.finfo(dtype).max / 8
    x.flat[[3, 8, 4000]] = -np.inf, np.inf, -np.inf
    found = jit(lambda v: [v.max(axes), v.min(axes)])(xnp.asarray(x))
    for a, b in zip(found, (x.max(axes), x.min(axes)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("shape", "axes"), [((300_001,), (0,)), ((2, 3, 400, 701), (0, 2, 3)), ((2, 1 << 18), (1,))]
)
def test_extremes_of_very_many_are_those_of_their_slices(shape, axes):
    x = RNG.normal(size=shape).astype("f4")
    reductions = jit(lambda v: [v.max(axes), v.min(axes), v.max(axes) - v.min(axes)])
    text = reductions.lower(xnp.asarray(x)).as_text()
    assert text.count("stablehlo.maximum") > 15 and text.count("stablehlo.minimum") > 15
    ends = (0, x.size - 1, x.size // 2)
    for value in (1e30, -np.inf, np.inf, np.nan):
        for i in ends:
            y = x.copy()
            y.flat[i] = value
            with np.errstate(invalid="ignore"):
                expected = (y.max(axes), y.min(axes), y.max(axes) - y.min(axes))
            for a, b in zip(reductions(xnp.asarray(y)), expected, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("window", "strides"), [((1, 4), (1, 4)), ((2, 2), (2, 2)),
                                                 ((1, 512), (1, 1)), ((3, 3), (1, 2))])  # fmt: skip
def test_no_pool_loses_nan(window, strides):
    x = RNG.normal(size=(64, 512)).astype("f4")
    x[17, 300], x[3, 3], x[3, 4] = np.nan, np.inf, -np.inf

    def pool(v):
        return lax.reduce_window(v, -np.inf, lax.max, window, strides, "VALID")

    windows = np.lib.stride_tricks.sliding_window_view(x, window)
    expected = windows[:: strides[0], :: strides[1]].max((2, 3))
    np.testing.assert_array_equal(jit(pool)(xnp.asarray(x)), expected)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
def test_numpy_accumulates_long_arrays(dtype, reverse):
    x = (np.random.default_rng(7).normal(size=(2, 20000)) * 3).astype(dtype)
    given = x[:, ::-1] if reverse else x
    wide = "f8" if dtype == "f4" else "f4" if dtype == "f2" else dtype
    text = jit(lambda v: lax.cumsum(v, axis=1)).lower(xnp.asarray(x)).as_text()
    assert gateway.HOST_KERNEL in text
    for f, ufunc in ((lax.cumsum, np.add), (lax.cummax, np.maximum)):
        found = np.asarray(jit(lambda v, f=f: f(v, axis=1, reverse=reverse))(xnp.asarray(x)))
        expected = ufunc.accumulate(given, axis=1, dtype=wide).astype(dtype)
        expected = expected[:, ::-1] if reverse else expected
        # half an ulp for each sum of a block of 512; of float16 two, the block's and the whole's
        largest = np.abs(expected).max()
        bound = {"f4": 512 * 6e-8 * largest, "f2": 1e-3 * largest, "i4": 0}[dtype]
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_long_sums_keep_their_accuracy():
    x = np.full(3_000_000, 0.1, "f4")
    last = float(np.asarray(jit(xnp.cumsum)(xnp.asarray(x)))[-1])
    assert abs(last / (3_000_000 * float(np.float32(0.1))) - 1) < 5e-6  # from left to right 2e-2
