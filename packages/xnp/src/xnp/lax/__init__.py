"""`xnp.lax`: the primitives as functions, strict about dtypes."""

from xnp.lax.contractions import *  # noqa: F403
from xnp.lax.reductions import *  # noqa: F403
