"""Matrix decompositions as primitives."""

from xnp.lax.linalg import *  # noqa: F403 - the whole public namespace, by its __all__
from xnp.lax.linalg import __all__ as __all__
