"""Whether a program is cut over devices by the compiler, which rules of text may ask."""

from __future__ import annotations

from collections.abc import Sequence

from xprim import ShapedArray
from xprim.contracts import Builder

__all__ = ()


def may_be_cut(b: Builder, aval: ShapedArray, dims: Sequence[int]) -> bool:
    """Return whether the program cuts such arrays there; builders of 0.2.0 cannot tell."""
    asked = getattr(b, "may_be_cut", None)
    return asked is not None and is_split(b) and asked(aval, dims)


def held_whole(b: Builder, names: Sequence[str], avals: Sequence[ShapedArray]) -> list[str]:
    """Return values that the compiler leaves whole; builders of 0.2.0 cannot ask for it."""
    hold = getattr(b, "held_whole", None)
    if hold is None or not is_split(b):
        return list(names)
    return [hold(name, aval) for name, aval in zip(names, avals, strict=True)]


def held_along(b: Builder, name: str, aval: ShapedArray, dims: Sequence[int]) -> str:
    """Return a value that the compiler leaves whole along dimensions, and may cut along others."""
    hold = getattr(b, "held_whole", None)
    return name if hold is None or not is_split(b) else hold(name, aval, dims)


def is_split(b: Builder) -> bool:
    """Return whether the compiler cuts values of the program; builders of 0.2.0 cannot tell."""
    return bool(getattr(b, "is_split", False))
