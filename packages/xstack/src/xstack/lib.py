"""The version of jaxlib, which compiles and runs the programs.

What JAX once had here is in `jaxlib` itself, and in `xstack.extend`.
"""

from importlib.metadata import version

__all__ = ["__version__"]

__dir__ = __all__.copy

__version__: str = version("jaxlib")
