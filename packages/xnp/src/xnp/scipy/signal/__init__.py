"""Signals with SciPy's names: `xnp.scipy.signal`.

convolution    convolve, correlate, fftconvolve, convolve2d, correlate2d
spectra        stft, istft, csd, welch, detrend
"""

from xtree.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.scipy.signal.convolution import *  # noqa: F403  # noqa: F403
