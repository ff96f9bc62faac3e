"""Forgetting what is kept of programs."""

from __future__ import annotations

from xjit.compile import clear_executables
from xjit.function_caches import clear_functions
from xprim.kernels import forget_kernels

__all__ = ()


def clear_caches() -> None:
    """Forget all traced and compiled programs that nothing holds any more."""
    clear_functions()
    forget_kernels()
    clear_executables()
