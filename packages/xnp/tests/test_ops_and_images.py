"""Segments beside a loop; images beside what defines them, and beside the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import xnp
from xnp import image, ops

RNG = np.random.default_rng(11)
IDS = np.array([0, -1, 5, 1, 1, 3])
JOINS = {
    "segment_sum": (ops.segment_sum, np.add, 0), "segment_prod": (ops.segment_prod, np.multiply, 1),
    "segment_max": (ops.segment_max, np.maximum, -np.inf),
    "segment_min": (ops.segment_min, np.minimum, np.inf),
}  # fmt: skip


def joined(ufunc, neutral, data, ids, count):
    """Join rows one by one; those out of range are left out."""
    result = np.full((count, *data.shape[1:]), neutral, data.dtype)
    for row, k in zip(data, ids, strict=True):
        if 0 <= k < count:
            result[k] = ufunc(result[k], row)
    return result


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("options", [{}, {"bucket_size": 2}, {"bucket_size": 9}])
def test_segments_join_their_rows(name, options):
    function, ufunc, neutral = JOINS[name]
    data = RNG.normal(size=(6, 2)).astype(np.float32)
    for count in (0, 3, 6):
        got = function(data, IDS, count, **options)
        np.testing.assert_allclose(got, joined(ufunc, neutral, data, IDS, count), rtol=1e-6)
    assert function(data, IDS, **options).shape == (6, 2)


def test_segments_of_integers_and_booleans():
    data = np.array([3, 1, 7, 2, 200, 9], np.uint8)
    got = [np.asarray(f(data, IDS, 3)).tolist() for f, *_ in JOINS.values()]
    assert got == [[3, 202, 0], [3, 2 * 200 % 256, 1], [3, 200, 0], [3, 2, 255]]
    assert np.asarray(ops.segment_max(data > 5, IDS, 3)).tolist() == [False, True, False]
    with pytest.raises(TypeError, match="booleans are neither added nor multiplied"):
        ops.segment_sum(data > 5, IDS)


def test_rows_out_of_range_may_be_clipped_and_a_row_may_stand_for_all():
    ones = np.ones(6, np.float32)
    assert np.asarray(ops.segment_sum(ones, IDS, 3, mode="clip")).tolist() == [2, 2, 2]
    assert np.asarray(ops.segment_sum(2.0, IDS, 3)).tolist() == [2, 4, 0]
    assert ops.segment_sum(np.ones((1, 4)), IDS, 3).shape == (3, 4)
    assert ops.segment_sum(np.zeros(0), np.zeros(0, int)).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.segment_sum(np.ones(2), np.ones(2)), TypeError, "must be integers"),
        (lambda: ops.segment_sum(np.ones(3), IDS), ValueError, "a segment for each row"),
        (lambda: ops.segment_sum(1.0, IDS, -1), ValueError, "num_segments must be non-negative"),
        (lambda: ops.segment_sum(1.0, IDS, bucket_size=0), ValueError, "bucket_size must be at"),
        (lambda: image.resize(np.ones(3), (2, 2), "linear"), ValueError, "a size for each dim"),
        (lambda: image.resize(np.ones(3), (2,), "best"), ValueError, "unknown method 'best'"),
        (lambda: image.resize(np.ones(0), (2,), "linear"), ValueError, "no elements to be resized"),
        (lambda: image.scale_and_translate(np.ones(3), (2,), (0,), [1.0], [0.0], "nearest"),
         ValueError, "the nearest element is not defined"),
        (lambda: image.scale_and_translate(np.ones(3), (2,), (0,), 1.0, [0.0], "linear"),
         ValueError, "scale must have a number for each spatial dimension"),
        (lambda: image.scale_and_translate(np.ones((3, 2)), (2, 4), (0,), [1.0], [0.0], "linear"),
         ValueError, "only spatial dimensions change"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


# --------------------------------------------------------------------------------------------------

METHODS = ("linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch")


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_image_stays_constant(method):
    for shape in ((3, 9), (11, 4), (1, 1)):
        for antialias in (True, False):
            got = image.resize(np.full((5, 7), 2.5, np.float32), shape, method, antialias)
            np.testing.assert_allclose(got, 2.5, rtol=4e-6)  # the rounding of some weights


def test_pixels_are_averaged_by_area_and_taken_by_nearest():
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.testing.assert_allclose(
        image.resize(x, (1, 3), "area"), x.reshape(2, 3, 2).mean((0, 2))[None], rtol=1e-6
    )
    assert np.asarray(image.resize(x, (4, 3), "nearest")).tolist() == x[[0, 0, 1, 1]][
        :, [1, 3, 5]].tolist()  # fmt: skip
    assert image.resize(np.arange(6), (4,), "nearest").dtype == np.int32
    assert image.resize(np.arange(6), (4,), "linear").dtype == np.float32


def test_linear_interpolation_is_that_of_numpy_inside():
    x = RNG.normal(size=9).astype(np.float32)
    places = (np.arange(20) + 0.5) * 9 / 20 - 0.5
    got = image.resize(x, (20,), "linear")
    np.testing.assert_allclose(got, np.interp(places, np.arange(9), x), rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("antialias", [True, False])
def test_images_are_those_of_the_oracle(method, antialias):
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 12) and method in ("area", "cubic-pytorch"):
        pytest.skip("a younger method")
    x = RNG.normal(size=(5, 7)).astype(np.float32)
    got = image.resize(x, (11, 4), method, antialias)
    expected = jax.image.resize(x, (11, 4), method, antialias)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)  # sums of rounded weights
    if method == "cubic-pytorch":  # outside of the image it is 0 here, as for the other methods
        return
    scale, move = np.float32([1.7, 0.4]), np.float32([-1.3, 2.2])
    arguments = ((6, 8), (0, 1), scale, move, method, antialias)
    got = image.scale_and_translate(x, *arguments)
    expected = jax.image.scale_and_translate(x, *arguments)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


def test_what_lies_outside_of_the_image_is_zero():
    for method in METHODS:
        got = image.scale_and_translate(
            xnp.ones((3,)), (6,), (0,), [1.0], [2.0], method, antialias=False)  # fmt: skip
        np.testing.assert_allclose(got, [0, 0, 1, 1, 1, 0], atol=1e-6)


def test_an_image_keeps_its_dtype_beside_wider_scales() -> None:
    x = xnp.ones((2, 3), "float16")
    one = xnp.ones(1, "float32")
    assert image.scale_and_translate(x, (4, 3), (0,), one, one, "linear").dtype == np.float16
