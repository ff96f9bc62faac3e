"""A pytree of arrays as one vector, and back."""

from xnp.flatten_util import *  # noqa: F403 - the whole public namespace, by its __all__
from xnp.flatten_util import __all__ as __all__
