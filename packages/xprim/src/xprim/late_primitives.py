"""Primitives of this package, imported when one is asked for by its name or by whom it serves."""

from __future__ import annotations

import importlib

from xprim.primitive import add_finder

__all__ = ()

_MODULE_BY_NAME = {
    "custom_jvp_call": "xprim.custom_rules",
    "custom_vjp_call": "xprim.custom_rules",
    "custom_vjp_linear": "xprim.custom_rules",
    "unwrap": "xprim.extended",
    "value_outside": "xprim.cells",
    "wrap": "xprim.extended",
}


def _find(name: str) -> None:
    module = _MODULE_BY_NAME.get(name)
    if module is not None:
        importlib.import_module(module)


def _load_all() -> None:
    for module in _MODULE_BY_NAME.values():
        importlib.import_module(module)


add_finder(_find, _load_all)
