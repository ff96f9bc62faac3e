"""Discrete Fourier transforms under NumPy's names."""

from xstack.absences import ABSENCES
from xtree.namespaces import namespace

with namespace(globals(), at_once=True, hint=ABSENCES):
    from xnp.fft import *  # noqa: F403 - the whole public namespace
