"""Names that flax imports from `jax._src.state.types`."""

from xprim.cells import AbstractRef

__all__ = ["AbstractRef"]

__dir__ = __all__.copy
