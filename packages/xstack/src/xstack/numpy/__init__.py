"""The NumPy functions."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from xnp import *  # noqa: F403 - the whole public namespace
from xstack import compiler_on_demand

del linalg  # noqa: F821 - that of this package is imported when it is first used

if not TYPE_CHECKING:
    from xnp import __all__ as __all__  # type checkers follow the star import

compiler_on_demand.install()


def __getattr__(name: str) -> Any:
    if name == "linalg":  # imported when it is first used
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
    )
