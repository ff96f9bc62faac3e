"""Activations, initial weights and other functions of neural networks."""

import importlib
from typing import TYPE_CHECKING, Any

from xnp.nn import *  # noqa: F403 - the whole public namespace, by its __all__
from xnp.nn import __all__ as _names

if TYPE_CHECKING:
    from xstack.nn import initializers as initializers

__all__ = [*_names, "initializers"]  # noqa: PLE0604 - all are names


def __getattr__(name: str) -> Any:
    if name == "initializers":  # the first use imports the random numbers
        return importlib.import_module(f"{__name__}.initializers")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
