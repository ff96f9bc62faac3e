"""The primitive of `set_xla_metadata(x, key=...)`: it marks the operation that made its operand."""

from __future__ import annotations

import re
from typing import Any

from xjit.lowering.operation_metadata import OPERATION, Items, with_attributes
from xjit.lowering.stablehlo_text import Builder
from xprim import ELEMENTWISE, LINEAR, STRUCTURAL, Primitive, dimension_names

__all__ = ["xla_metadata_value_p"]

__dir__ = __all__.copy


def _add_to_producer(
    builder: Builder, operands: list[str], _avals_in: Any, _avals_out: Any, *, items: Items
) -> list[str]:
    """Add metadata to the operation of this function that made the operand, if one did."""
    made = re.compile(rf"(%\w+, )*{operands[0]}(, %\w+)* = ")
    for i in range(len(builder.lines) - 1, -1, -1):
        line = builder.lines[i]
        if made.match(line):
            if OPERATION.match(line):
                builder.lines[i] = with_attributes(line, dict(items))
            break
    return operands


def _same(x: Any, *, items: Items) -> Any:
    return (x,)


xla_metadata_value_p: Primitive = Primitive(
    "xla_metadata_value",
    shape=_same,
    numpy=_same,
    stablehlo=_add_to_producer,
    jvp=LINEAR,
    transpose=lambda cts, _x, *, items: cts,
    batch=ELEMENTWISE,
    sharding=dimension_names.alike,
    physical=STRUCTURAL,
)
