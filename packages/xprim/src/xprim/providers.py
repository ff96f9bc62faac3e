"""Optional partners: a package on the same floor that makes something faster, if it is installed.

Packages of one floor do not import each other. Where one can profit from another (`xad.jacfwd` maps
its basis vectors with `vmap` rather than one by one), it asks here by name. A provider either
registers itself when it is imported, or is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

__all__ = ["provide", "find"]

_MODULE_BY_NAME = {
    "jit": "xjit", "jvp": "xad", "linear_transpose": "xad", "linearize": "xad", "vmap": "xbatch",
}  # fmt: skip
_found: dict[str, Callable[..., Any] | None] = {}


def provide(name: str, function: Callable[..., Any]) -> None:
    """Register a function under the name that partners ask for."""
    _found[name] = function


def find(name: str) -> Callable[..., Any] | None:
    """Return the function of that name, importing its package; None when it is not installed."""
    if name not in _found:
        module = _MODULE_BY_NAME[name]
        installed = importlib.util.find_spec(module) is not None
        _found[name] = getattr(importlib.import_module(module), name) if installed else None
    return _found[name]
