"""Discrete Fourier transforms under NumPy's names."""

from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.fft import *  # noqa: F403 - the whole public namespace
