"""Signals, cosine transforms, images, grids and codes, compared with SciPy's."""

import numpy as np
import pytest

import xnp
import xnp.scipy as ours
from xprim import config

scipy = pytest.importorskip("scipy")
theirs = pytest.importorskip("scipy.signal")
pytest.importorskip("scipy.ndimage")
pytest.importorskip("scipy.fft")
pytest.importorskip("scipy.interpolate")
vq = pytest.importorskip("scipy.cluster.vq")

rng = np.random.default_rng(4)
X, Y = rng.normal(size=9), rng.normal(size=4)
IMAGE, KERNEL = rng.normal(size=(6, 7)), rng.normal(size=(3, 2))
SIGNAL = rng.normal(size=(2, 100)) + np.linspace(0, 3, 100)


@pytest.fixture(autouse=True)
def _double():
    with config.enable_x64(True):
        yield


def near(found, expected, rtol=1e-9, atol=1e-10):
    if isinstance(expected, tuple):
        for f, e in zip(found, expected, strict=True):
            near(f, e, rtol, atol)
        return
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=atol)


# --- convolutions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions_are_those_of_scipy(name, mode):
    whole = rng.integers(0, 9, 8), rng.integers(0, 9, 3)
    pairs = [(X, Y), (Y, X), (IMAGE, KERNEL), (X, X), (X * 1j + 1, Y), (X, Y * 1j), whole]
    pairs.append((IMAGE[None], KERNEL[None]))
    for x, y in pairs:
        for method in ("direct", "fft", "auto"):
            if method == "fft" and x.dtype.kind == "i":
                continue
            expected = getattr(theirs, name)(x, y, mode=mode, method="direct")
            near(getattr(ours.signal, name)(x, y, mode=mode, method=method), expected)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_convolutions_of_matrices_go_on_beyond_edges_as_scipys(name, mode):
    for boundary, value in [("fill", 0), ("fill", 2.5), ("wrap", 0), ("symm", 0)]:
        for kernel in (KERNEL, rng.normal(size=(2, 3))):
            expected = getattr(theirs, name)(IMAGE, kernel, mode, boundary, value)
            near(getattr(ours.signal, name)(IMAGE, kernel, mode, boundary, value), expected)


def test_convolutions_by_transforms_take_axes():
    x, y = rng.normal(size=(3, 8, 5)), rng.normal(size=(1, 4, 5))
    for mode in ("full", "same", "valid"):
        near(ours.signal.fftconvolve(x, y, mode, axes=1), theirs.fftconvolve(x, y, mode, axes=1))
        near(ours.signal.fftconvolve(x, y[:, :, :2], mode, axes=[1, -1]),
             theirs.fftconvolve(x, y[:, :, :2], mode, axes=[1, -1]))  # fmt: skip


# --- spectra --------------------------------------------------------------------------------------


def test_trends_are_taken_off_as_by_scipy():
    near(ours.signal.detrend(SIGNAL), theirs.detrend(SIGNAL))
    near(ours.signal.detrend(SIGNAL.T, axis=0, bp=[10, 40]),
         theirs.detrend(SIGNAL.T, axis=0, bp=[10, 40]))  # fmt: skip
    near(ours.signal.detrend(SIGNAL, type="constant"), theirs.detrend(SIGNAL, type="constant"))


@pytest.mark.parametrize("kwargs", [
    {"nperseg": 32}, {"nperseg": 30, "noverlap": 7, "nfft": 40, "window": "hamming"},
    {"nperseg": 16, "return_onesided": False, "scaling": "spectrum"},
    {"average": "median", "nperseg": 20}, {"nperseg": 25, "detrend": "linear"},
    {"nperseg": 25, "detrend": False, "window": ("kaiser", 3.0)}, {"window": np.hanning(24)},
])  # fmt: skip
def test_power_spectra_are_those_of_scipy(kwargs):
    x, y = SIGNAL, SIGNAL[::-1]
    near(ours.signal.welch(x, 10.0, **kwargs), theirs.welch(x, 10.0, **kwargs))
    near(ours.signal.csd(x, y, 10.0, **kwargs), theirs.csd(x, y, 10.0, **kwargs))
    both = {**kwargs, "return_onesided": False}
    near(ours.signal.welch(x.T + 1j, axis=0, **both), theirs.welch(x.T + 1j, axis=0, **both))


@pytest.mark.parametrize("kwargs", [
    {"nperseg": 32}, {"nperseg": 16, "noverlap": 12, "window": "blackman"},
    {"nperseg": 25, "return_onesided": False}, {"nperseg": 20, "boundary": "even"},
    {"nperseg": 20, "boundary": "odd"}, {"nperseg": 20, "boundary": "constant"},
    {"nperseg": 20, "boundary": None, "padded": False}, {"nperseg": 16, "nfft": 24},
    {"nperseg": 16, "detrend": "constant"},
])  # fmt: skip
def test_short_time_transforms_are_those_of_scipy_and_go_back(kwargs):
    near(ours.signal.stft(SIGNAL, 10.0, **kwargs), theirs.stft(SIGNAL, 10.0, **kwargs))
    near(ours.signal.stft(SIGNAL[0], **kwargs), theirs.stft(SIGNAL[0], **kwargs))
    if kwargs.get("boundary", 1) is None or "detrend" in kwargs:
        return
    back = {k: v for k, v in kwargs.items() if k in ("nperseg", "noverlap", "window", "nfft")}
    onesided = kwargs.get("return_onesided", True)
    z = theirs.stft(SIGNAL, 10.0, **kwargs)[2]
    found = ours.signal.istft(z, 10.0, input_onesided=onesided, **back)
    near(found[1], theirs.istft(z, 10.0, input_onesided=onesided, **back)[1])
    near(found[0], np.arange(found[1].shape[-1]) / 10.0)
    near(found[1][..., :100].real, SIGNAL)


@pytest.mark.parametrize("window", ["boxcar", "hann", "hamming", "blackman", "nuttall", "flattop",
                                    "blackmanharris", "bartlett", "cosine", ("gaussian", 3.0),
                                    ("kaiser", 4.0), ("tukey", 0.4)])  # fmt: skip
def test_windows_are_those_of_scipy(window):
    from xnp.scipy.signal.convolution import window_of

    for n in (1, 8, 9):
        near(window_of(window, n, "test"), theirs.get_window(window, n))


# --- cosine transforms ----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms_are_those_of_scipy(kind, norm):
    for n in (None, 2, 5, 12):
        near(ours.fft.dct(X, kind, n, norm=norm), scipy.fft.dct(X, kind, n, norm=norm))
        near(ours.fft.idct(X, kind, n, norm=norm), scipy.fft.idct(X, kind, n, norm=norm))
    near(
        ours.fft.dct(IMAGE, kind, axis=0, norm=norm), scipy.fft.dct(IMAGE, kind, axis=0, norm=norm)
    )
    near(ours.fft.dctn(IMAGE, kind, norm=norm), scipy.fft.dctn(IMAGE, kind, norm=norm))
    near(
        ours.fft.idctn(IMAGE, kind, (4, 9), norm=norm),
        scipy.fft.idctn(IMAGE, kind, (4, 9), norm=norm),
    )
    near(ours.fft.idctn(ours.fft.dctn(IMAGE, kind, norm=norm), kind, axes=(1, 0), norm=norm), IMAGE)


# --- between points -------------------------------------------------------------------------------


MODES = [
    "constant", "grid-constant", "nearest", "wrap", "grid-wrap", "mirror", "reflect", "grid-mirror",
]  # fmt: skip


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_images_between_their_points_are_those_of_scipy(order, mode):
    places = rng.uniform(-9, 14, size=(2, 5, 8))
    for image in (IMAGE, (IMAGE * 10).astype(int), IMAGE[:, :1]):
        expected = scipy.ndimage.map_coordinates(
            image, places, order=order, mode=mode, cval=2.0, output=image.dtype
        )
        found = ours.ndimage.map_coordinates(image, list(places), order, mode, 2.0)
        assert found.dtype == image.dtype
        if image.dtype.kind == "i" and order == 1:
            np.testing.assert_allclose(found, expected, atol=1)  # SciPy cuts, ours rounds
        else:
            near(found, expected)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", MODES)
def test_images_at_their_edges_are_those_of_scipy(order, mode):
    for size in (1, 2, 3, 5):
        # whole places, halves (whose nearest point is the upper one), eighths, and far ones
        places = np.arange(-24 * size, 24 * size + 1) / 8
        places = np.concatenate([places, [2.9, -1e-3, size - 1 + 1e-3, 1e4, -1e4]])
        line = rng.normal(size=size)
        expected = scipy.ndimage.map_coordinates(line, [places], order=order, mode=mode, cval=7.0)
        near(ours.ndimage.map_coordinates(line, [places], order, mode, 7.0), expected)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolation_on_grids_that_descend_is_that_of_scipy(method):
    grid = (np.array([3.0, 1.0, 0.0]), np.array([-1.0, 0.5, 1.0, 4.0]))
    values, points = rng.normal(size=(3, 4, 2)), rng.uniform(-2, 5, size=(6, 2))
    made = ours.interpolate.RegularGridInterpolator(grid, values, method, fill_value=3.0)
    near(made(points), scipy.interpolate.RegularGridInterpolator(grid, values, method, False, 3.0)(
        points))  # fmt: skip


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interpolation_on_grids_is_that_of_scipy(method):
    grid = (np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5, 1.0, 4.0]))
    values, points = rng.normal(size=(3, 4, 2)), rng.uniform(-2, 5, size=(6, 3, 2))
    for fill in (np.nan, 3.0, None):
        made = ours.interpolate.RegularGridInterpolator(grid, values, method, fill_value=fill)
        other = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill)
        near(made(points), other(points))
        near(made((points[..., 0], points[..., 1])), other(points))
        near(made(points, "linear"), other(points, "linear"))
    strict = ours.interpolate.RegularGridInterpolator(grid, values, bounds_error=True)
    near(strict(np.array([[1.0, 1.0]])), values[1:2, 2])
    with pytest.raises(ValueError, match="a point is outside of the grid"):
        strict(points)


def test_codes_and_integrals_are_those_of_scipy():
    codes, observations = rng.normal(size=(4, 3)), rng.normal(size=(10, 3))
    near(ours.cluster.vq.vq(observations, codes), vq.vq(observations, codes))
    near(ours.cluster.vq.vq(X, Y), vq.vq(X[:, None], Y[:, None]))
    near(ours.integrate.trapezoid(IMAGE, dx=0.5, axis=0), np.trapezoid(IMAGE, dx=0.5, axis=0))
    places = np.arange(9) ** 2
    near(ours.integrate.trapezoid(X, places), np.trapezoid(X, places))


signal = ours.signal


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: signal.convolve(X, Y, "all"), "convolve: unknown mode"),
        (lambda: signal.convolve(X, IMAGE), "one and the same number of dimensions"),
        (lambda: signal.convolve(X, Y, method="x"), "convolve: unknown method"),
        (lambda: signal.convolve(X, X[:0]), "convolve: a signal is empty"),
        (lambda: signal.convolve(IMAGE, np.ones((9, 1)), "valid"), "as large as the other"),
        (lambda: signal.fftconvolve(IMAGE, np.ones((9, 1)), "valid"), "as large as the other"),
        (lambda: signal.convolve2d(X, Y), "convolve2d: takes matrices"),
        (lambda: signal.convolve2d(IMAGE, KERNEL, boundary="x"), "unknown boundary"),
        (lambda: signal.detrend(X, type="x"), "detrend: unknown type"),
        (lambda: signal.detrend(X, bp=40), "lines break within the signal"),
        (lambda: signal.stft(X, nperseg=8, window="x"), "stft: unknown window"),
        (lambda: signal.stft(X, nperseg=8, boundary="x"), "stft: unknown boundary"),
        (lambda: signal.stft(X, nperseg=8, noverlap=8), "stft: the segments do not fit"),
        (lambda: signal.stft(X, window=np.ones(4), nperseg=5), "the window does not fit"),
        (lambda: signal.welch(X, scaling="x"), "welch: unknown scaling"),
        (lambda: signal.welch(X, average="x"), "welch: unknown average"),
        (lambda: signal.welch(X, 0), "welch: fs must not be 0"),
        (lambda: signal.stft(X, fs=0.0, nperseg=8), "stft: fs must not be 0"),
        (lambda: signal.istft(IMAGE, np.float32(0)), "istft: fs must not be 0"),
        (lambda: signal.istft(X), "istft: takes a dimension"),
        (lambda: ours.fft.dct(X, 5), "dct: unknown type 5"),
        (lambda: ours.fft.dct(X, 1, 1), "dct: there are too few elements"),
        (lambda: ours.fft.dctn(IMAGE, s=(3,), axes=(0, 1)), "a size for each axis"),
        (lambda: ours.ndimage.map_coordinates(IMAGE, [X], 1), "coordinates for each dimension"),
        (lambda: ours.ndimage.map_coordinates(X, [Y], 3), "unknown order 3"),
        (lambda: ours.interpolate.RegularGridInterpolator((X,), X), "must ascend"),
        (lambda: ours.interpolate.RegularGridInterpolator((Y,), X), "do not fit the values"),
        (lambda: ours.interpolate.RegularGridInterpolator((X,), X, "x"), "unknown method"),
        (lambda: ours.cluster.vq.vq(IMAGE, KERNEL), "vq: the observations do not fit"),
    ],
)
def test_what_is_refused_says_why(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("rate", [np.ones((2, 1)), np.ones(1, np.int32), 2j])
def test_a_sampling_rate_is_one_real_number(rate):
    for function, x in ((signal.stft, X), (signal.welch, X), (signal.istft, IMAGE)):
        with pytest.raises(TypeError, match="fs is not one real number"):
            function(x, rate)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms_of_complex_arrays_are_those_of_scipy(name, kind):
    x = X + 1j * X[::-1]
    found = getattr(ours.fft, name)(x.astype(np.complex64), type=kind)
    expected = getattr(scipy.fft, name)(x, type=kind)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)  # float32, sums of X.size


def test_the_spectrum_of_a_signal_with_itself_is_complex_whichever_object_it_is() -> None:
    x = xnp.asarray(np.arange(8, dtype=np.float32))
    csd = ours.signal.csd
    assert csd(x, x, nperseg=4)[1].dtype == csd(x, x + 0, nperseg=4)[1].dtype == np.complex64
    assert csd(x, None, nperseg=4)[1].dtype == np.float32
