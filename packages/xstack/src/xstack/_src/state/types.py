"""Asked for by flax."""

from xstack import Ref

__all__ = ["AbstractRef"]

__dir__ = __all__.copy

AbstractRef = Ref
