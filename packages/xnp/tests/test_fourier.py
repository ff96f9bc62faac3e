import numpy as np
import pytest

from xnp import lax
from xnp.testing.samples.fourier import TABLE
from xprim import get_primitive
from xprim.testing import check_shape

# the inverse real transform is tested by the round trip
FORWARD = [s for s in TABLE["fft"]
           if s.operands[0].size and s.params["fft_type"] != lax.FftType.IRFFT]  # fmt: skip


@pytest.mark.parametrize("sample", TABLE["fft"], ids=lambda s: s.label())
def test_numpy_rule_gives_what_the_shape_rule_says(sample):
    check_shape("fft", sample)


@pytest.mark.parametrize("sample", FORWARD, ids=lambda s: s.label())
def test_transforms_agree_with_matrices_of_roots_of_unity(sample):
    (x,) = sample.operands
    kind, lengths = sample.params["fft_type"], sample.params["fft_lengths"]
    y = x.astype(complex)
    sign = 2j if kind == lax.FftType.IFFT else -2j
    for i, n in enumerate(lengths):
        axis = x.ndim - len(lengths) + i
        roots = np.exp(sign * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        y = np.moveaxis(np.tensordot(y, roots, (axis, 0)), -1, axis)
        y = y / n if kind == lax.FftType.IFFT else y
    if kind == lax.FftType.RFFT:
        y = y[..., : lengths[-1] // 2 + 1]
    found = get_primitive("fft").bind(*sample.arrays(), **sample.params)[0]
    np.testing.assert_allclose(np.asarray(found), y, 1e-5, 1e-5)


@pytest.mark.parametrize("lengths", [(5,), (6,), (3, 4), (2, 3, 5)])
def test_the_inverse_real_transform_undoes_the_real_one(lengths):
    x = np.random.default_rng(0).normal(size=(2, *lengths)).astype(np.float32)
    back = lax.fft(lax.fft(x, "RFFT", lengths), "IRFFT", lengths)
    np.testing.assert_allclose(np.asarray(back), x, atol=1e-5)


def test_real_transforms_refuse_complex_input():
    with pytest.raises(ValueError, match="RFFT takes real input"):
        lax.fft(np.ones(3, np.complex64), "RFFT", (3,))


def test_lengths_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"does not fit FFT of lengths \(4,\)"):
        lax.fft(np.ones(3, np.complex64), "FFT", (4,))


def test_an_unknown_transform_raises():
    with pytest.raises(ValueError, match="unknown fft_type 'DCT'"):
        lax.fft(np.ones(3, np.float32), "DCT", (3,))


def test_half_floats_are_transformed_in_float32():
    assert lax.fft(np.ones(4, np.float16), "RFFT", (4,)).dtype == np.complex64
