"""The NumPy functions.

The array class: Array; modules fft, linalg.
"""

from xstack import compiler_on_demand
from xstack.namespaces import namespace

with namespace(globals(), at_once=True):
    from xnp.numpy import *  # noqa: F403 - the whole public namespace
    from xprim import Array as Array

with namespace(globals(), overview="xnp.numpy"):
    from xstack.numpy import fft as fft, linalg as linalg

compiler_on_demand.install()
