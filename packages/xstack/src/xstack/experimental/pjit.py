"""`pjit`, which is `xstack.jit`, and constraints on shardings."""

from xpar import with_sharding_constraint
from xstack import jit

__all__ = ["pjit", "with_sharding_constraint"]

__dir__ = __all__.copy

pjit = jit
