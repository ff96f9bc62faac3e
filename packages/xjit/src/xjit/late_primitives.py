"""Primitives of this package that few programs have: imported when one is asked for by its name."""

from __future__ import annotations

import importlib

from xprim.primitive import add_finder

__all__ = ()

_MODULE_BY_NAME = {
    "call_exported": "xjit.export.exported",
    "callback": "xjit.callbacks.primitive",
    "composite": "xjit.lowering.composites",
    "custom_partitioning": "xjit.sharding.custom_partitioning",
    "dce_sink": "xjit.lowering.composites",
    "layout_constraint": "xjit.layout_constraint",
}


def _find(name: str) -> None:
    module = _MODULE_BY_NAME.get(name)
    if module is not None:
        importlib.import_module(module)


def _load_all() -> None:
    for module in _MODULE_BY_NAME.values():
        importlib.import_module(module)


add_finder(_find, _load_all)
