"""The version of this package, as text and as numbers."""

from xstack import __version__

__all__ = ["__version__", "__version_info__"]

__dir__ = __all__.copy

__version_info__ = tuple([int(part) for part in __version__.split(".")])
