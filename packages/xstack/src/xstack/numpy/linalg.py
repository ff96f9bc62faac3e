"""Linear algebra under NumPy's names."""

from xnp.linalg import *  # noqa: F403 - the whole public namespace, by its __all__
from xnp.linalg import __all__ as __all__
