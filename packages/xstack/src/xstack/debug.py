"""Looking into programs while they run."""

from xjit.debug import callback, print

__all__ = ["callback", "print"]
