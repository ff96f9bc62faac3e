"""Signals, transforms, images and grids under derivatives, batches and the compiler."""

import numpy as np
import pytest

import xbatch
import xjit
import xnp.scipy as scipy
import xtree
from tests.nets.cells import drawn
from xad.testing import check_grads
from xprim import config

_random = np.random.default_rng(6)
X, Y, IMAGE = _random.normal(size=8), _random.normal(size=3), _random.normal(size=(4, 5))
PLACES = _random.uniform(0.2, 2.8, size=(2, 6))
GRID = np.array([0.0, 1.0, 3.0, 3.5]), np.array([0.0, 0.5, 1.0, 2.0, 4.0])

FUNCTIONS = {
    "convolve": (lambda x: scipy.signal.convolve(x, Y), X),
    "correlate": (lambda y: scipy.signal.correlate(X, y, "same"), Y),
    "fftconvolve": (lambda x: scipy.signal.fftconvolve(x, Y, "valid"), X),
    "convolve2d": (lambda x: scipy.signal.convolve2d(x, x[:2, :2], boundary="wrap"), IMAGE),
    "detrend": (scipy.signal.detrend, X),
    "welch": (lambda x: scipy.signal.welch(x, nperseg=4), X),
    "stft": (lambda x: abs(scipy.signal.stft(x, nperseg=4)[2]) ** 2, X),
    "istft": (lambda x: scipy.signal.istft(x + 0j, nperseg=6)[1], IMAGE),
    "dct": (scipy.fft.dct, X),
    "idctn": (lambda x: scipy.fft.idctn(x, 4, norm="ortho"), IMAGE),
    "map_coordinates": (lambda p: scipy.ndimage.map_coordinates(IMAGE, list(p), 1), PLACES),
    "images": (lambda x: scipy.ndimage.map_coordinates(x, list(PLACES), 1, "mirror"), IMAGE),
    "grids": (lambda p: scipy.interpolate.RegularGridInterpolator(GRID, IMAGE)(p.T), PLACES),
    "values": (lambda v: scipy.interpolate.RegularGridInterpolator(GRID, v)(PLACES.T), IMAGE),
    "trapezoid": (lambda x: scipy.integrate.trapezoid(x, x**2), X),
    "vq": (lambda x: scipy.cluster.vq.vq(x, IMAGE[:2])[1], IMAGE),
}


@pytest.mark.parametrize("name", drawn([*FUNCTIONS], 7))
def test_functions_of_signals_are_differentiated_batched_and_compiled(name):
    function, x = FUNCTIONS[name]
    with config.enable_x64(True):
        check_grads(function, (x,), order=1, atol=1e-6, rtol=1e-6)
        expected = xtree.leaves(function(x))
        compiled = xtree.leaves(xjit.jit(function)(x))
        batch = xtree.leaves(xbatch.vmap(function)(np.stack([x, x])))
        for a, b, c in zip(expected, compiled, batch, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(
                np.broadcast_to(c, (2, *a.shape))[1], a, rtol=1e-9, atol=1e-12
            )
