"""What ahead-of-time compilation passes through."""

from xjit.stages import Compiled, Lowered, Traced, Wrapped

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]
