"""Which lines of a program errors and equations point at."""

from xprim.source import hide

__all__ = ["register_exclusion"]

__dir__ = __all__.copy


def register_exclusion(path: str) -> None:
    """Leave the frames of a library out of the lines that users are shown.

    Args:
      path: a file; all files of its folder are left out.

    Example:
      >>> register_exclusion("/home/me/mylibrary/__init__.py")
    """
    hide(path)
