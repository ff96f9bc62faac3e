"""What an error about an unknown name suggests."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]
__dir__ = __all__.copy

_NEAR = 0.75  # of difflib's ratio: about one letter in four may be wrong


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was likely meant, or None.

    Args:
      name: the one that nobody knows.
      names: those that there are.

    Example:
      >>> nearest("snh", ["sin", "sinh", "cosh"]), nearest("custom_partitioning", ["custom_vjp"])
      ('sinh', None)
    """
    found = difflib.get_close_matches(name, names, 1, _NEAR)
    return found[0] if found else None
