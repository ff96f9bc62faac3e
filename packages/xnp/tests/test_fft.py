"""`xnp.fft` beside NumPy's, in all lengths, axes and norms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import xnp

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(4, 5, 3, 2)).astype(np.float32)
COMPLEX = (REAL + 1j * RNG.normal(size=REAL.shape)).astype(np.complex64)
NORMS = (None, "backward", "ortho", "forward")

ONE_AXIS = {"fft": COMPLEX, "ifft": COMPLEX, "rfft": REAL, "irfft": COMPLEX, "hfft": COMPLEX,
            "ihfft": REAL}  # fmt: skip
SEVERAL = {"fftn": COMPLEX, "ifftn": COMPLEX, "rfftn": REAL, "irfftn": COMPLEX}
TWO = {"fft2": COMPLEX, "ifft2": COMPLEX, "rfft2": REAL, "irfft2": COMPLEX}


def agree(name, x, *args, **kwargs):
    expected = getattr(np.fft, name)(x, *args, **kwargs)
    got = getattr(xnp.fft, name)(xnp.asarray(x), *args, **kwargs)
    assert got.shape == expected.shape
    assert got.dtype == (np.complex64 if expected.dtype.kind == "c" else np.float32)
    # a sum of at most 120 numbers near 1 with the rounding of float32; NumPy's is of float64
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_along_an_axis(name):
    for n, axis, norm in itertools.product((None, 1, 3, 4, 7), (0, 1, -1, -2), NORMS):
        agree(name, ONE_AXIS[name], n, axis, norm)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize(
    ("s", "axes"),
    [
        (None, None), ((2, 3), (0, 1)), ((3, 4, 2, 2), (3, 1, 0, 2)), (None, (1,)),
        ((-1, 4), (0, 2)), ((6, 5, 4, 3), (0, 1, 2, 3)), (None, (2, 0, 1)),
    ],
)  # fmt: skip
def test_along_several_axes(name, s, axes):
    for norm in NORMS:
        agree(name, SEVERAL[name], s, axes, norm)


@pytest.mark.parametrize("name", TWO)
def test_along_two_axes(name):
    agree(name, TWO[name])
    agree(name, TWO[name], (3, 6), (1, 0), "ortho")


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_along_no_axes_the_numbers_are_their_transform(name, dtype):
    if name == "rfftn" and dtype == "complex64":
        pytest.skip("takes real numbers")
    x = np.arange(6).reshape(2, 3).astype(dtype)
    out = getattr(xnp.fft, name)(x, axes=())
    kind = "complex64" if name in ("fftn", "ifftn") or dtype == "complex64" else "float32"
    np.testing.assert_array_equal(out, x.astype(kind), strict=True)


def test_lengths_without_axes_are_of_the_last_ones():
    np.testing.assert_allclose(
        xnp.fft.fftn(COMPLEX, (5, 2)), np.fft.fftn(COMPLEX, (5, 2), (-2, -1)), rtol=1e-5, atol=1e-5
    )


def test_a_transform_along_no_axis_is_the_array_in_complex_numbers():
    got = xnp.fft.fftn(REAL[0, 0, 0], axes=())
    assert got.dtype == np.complex64
    np.testing.assert_array_equal(got, REAL[0, 0, 0])


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_their_order(n):
    for d in (1.0, 0.3):
        # one rounding of a quotient of two float32
        np.testing.assert_allclose(xnp.fft.fftfreq(n, d), np.fft.fftfreq(n, d), rtol=2e-7)
        np.testing.assert_allclose(xnp.fft.rfftfreq(n, d), np.fft.rfftfreq(n, d), rtol=2e-7)
    x = np.arange(3 * n).reshape(n, 3)
    for axes in (None, 0, -1, (0, 1)):
        np.testing.assert_array_equal(xnp.fft.fftshift(x, axes), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(xnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))
    assert xnp.fft.fftfreq(4, dtype="float16").dtype == np.float16


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16"])
def test_numbers_of_other_dtypes_are_transformed_in_float32(dtype):
    x = np.abs(REAL[:, 0, 0, 0] * 3).astype(xnp.dtype(dtype))
    for name in ("fft", "rfft", "irfft"):
        got = getattr(xnp.fft, name)(xnp.asarray(x))
        expected = getattr(np.fft, name)(x.astype(np.float32))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_empty_batches_have_empty_transforms():
    assert xnp.fft.rfft(xnp.zeros((0, 4))).shape == (0, 3)
    assert xnp.fft.ifftn(xnp.zeros((2, 0, 4)), axes=(0, 2)).shape == (2, 0, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: xnp.fft.fft(REAL, 0), ValueError, "fft: a length must be at least 1, got 0"),
        (lambda: xnp.fft.fft(REAL, axis=4), ValueError, "fft: axis 4 is out of bounds"),
        (lambda: xnp.fft.fft(REAL, norm="max"), ValueError, "fft: unknown norm 'max'"),
        (lambda: xnp.fft.rfft(COMPLEX), TypeError, "rfft: takes real numbers"),
        (lambda: xnp.fft.ihfft(COMPLEX), TypeError, "ihfft: takes real numbers"),
        (lambda: xnp.fft.fftn(REAL, (2,), (0, 1)), ValueError, "a length for each axis"),
        (
            lambda: xnp.fft.fft2(REAL, axes=(0,)),
            ValueError,
            "xnp.fft.fft2 only supports 2 axes",
        ),
        (lambda: xnp.fft.fftn(REAL, axes=(0, 0)), ValueError, "xnp.fft.fftn does not support rep"),
        (lambda: xnp.fft.irfft(xnp.ones(1)), ValueError, "at least one element to transform"),
        (lambda: xnp.fft.fft(REAL, axis=[0, 1]), ValueError, "Please use xnp.fft.fftn. Got axis ="),
        (lambda: xnp.fft.fftfreq([1, 2]), ValueError, "xnp.fft.fftfreq only takes an int"),
        (lambda: xnp.fft.rfftfreq(4, [1.0]), ValueError, "only takes a single value. Got d = "),
        (lambda: xnp.fft.fftfreq(0), ValueError, "n must be at least 1"),
        (lambda: xnp.fft.rfftfreq(4, 1 + 1j), TypeError, "d must be real"),
        (lambda: xnp.fft.fftfreq(3, dtype=int), ValueError, "of a floating dtype"),
        (lambda: xnp.fft.fftfreq(3, xnp.ones(2)), ValueError, "d must be a scalar"),
    ],
)
def test_what_cannot_be_transformed_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()
