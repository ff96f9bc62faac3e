"""Transformations of packages that may be missing: a package on the same floor, if it is installed.

Packages of one floor do not import each other. Where one can profit from another (`xad.jacfwd` maps
its basis vectors with `vmap` rather than one by one), it asks here for the transformation by name,
whose package is then imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from xtree.namespaces import import_by_name

__all__ = ["find"]

__dir__ = __all__.copy

_MODULE_BY_NAME = {
    "checkpoint": "xad", "custom_vmap": "xbatch", "jit": "xjit", "jvp": "xad",
    "linear_transpose": "xad", "linearize": "xad", "transpose_on_tape": "xad.transpose",
    "vjp": "xad", "vmap": "xbatch",
}  # fmt: skip


def find(name: str) -> Callable[..., Any] | None:
    """Return the function of that name, importing its package; None when it is not installed.

    A package that is missing is looked for at each call: a notebook may install it later.
    """
    module = _MODULE_BY_NAME[name]
    imported = sys.modules.get(module)
    if imported is None and importlib.util.find_spec(module) is None:
        return None
    found: Callable[..., Any] = getattr(imported or import_by_name(module), name)
    return found
