"""Whether a program is cut over devices by the compiler, which rules of text may ask."""

from __future__ import annotations

from xprim.contracts import Builder

__all__ = ()


def is_split(b: Builder) -> bool:
    """Return whether the compiler cuts values of the program; builders of 0.2.0 cannot tell."""
    return bool(getattr(b, "is_split", False))
