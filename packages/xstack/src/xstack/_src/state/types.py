"""Names that flax imports from `jax._src.state.types`."""

from xstack import Ref

__all__ = ["AbstractRef"]

__dir__ = __all__.copy

AbstractRef = Ref
