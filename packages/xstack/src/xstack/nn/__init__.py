"""Activations and other functions of neural networks."""

from xnp.nn import *  # noqa: F403 - the whole public namespace, by its __all__
from xnp.nn import __all__ as __all__
