"""The NumPy functions."""

from xnp import __all__ as __all__
from xnp import nn as _nn  # noqa: F401 - part of what `xnp` shows
from xnp.numpy import *  # noqa: F403 - the whole public namespace
from xprim import Array
from xstack import compiler_on_demand

ndarray = Array

compiler_on_demand.install()
