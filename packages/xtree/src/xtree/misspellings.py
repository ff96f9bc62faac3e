"""What an error about an unknown name suggests."""

from __future__ import annotations

import difflib
import opcode
from collections.abc import Iterable
from types import FrameType

__all__ = ["imports_from", "nearest"]
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


def imports_from(frame: FrameType) -> bool:
    """Return whether a frame executes `from module import name`.

    Python replaces the text of an AttributeError there by its own, and leaves other errors be.
    """
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]
