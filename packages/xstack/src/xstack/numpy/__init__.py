"""The NumPy functions."""

import importlib
import sys
from typing import Any

from xnp import (
    __all__ as __all__,
    nn as _nn,  # noqa: F401 - part of what `xnp` shows
)
from xnp.numpy import *  # noqa: F403 - the whole public namespace
from xprim import Array
from xstack import compiler_on_demand

ndarray = Array

compiler_on_demand.install()


def __getattr__(name: str) -> Any:
    if name == "linalg":  # imported when it is first used
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
    )
