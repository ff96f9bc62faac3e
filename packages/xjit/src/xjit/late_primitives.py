"""Primitives of this package that few programs have: imported when one is asked for by its name."""

from __future__ import annotations

from xprim.primitive import find_in_modules

__all__ = ()

_MODULE_BY_NAME = {
    "call_exported": "xjit.export.exported",
    "callback": "xjit.callbacks.primitive",
    "composite": "xjit.lowering.composites",
    "custom_partitioning": "xjit.sharding.custom_partitioning",
    "dce_sink": "xjit.lowering.composites",
    "layout_constraint": "xjit.layout_constraint",
}

find_in_modules(_MODULE_BY_NAME)
