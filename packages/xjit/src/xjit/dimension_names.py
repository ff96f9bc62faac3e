"""Which dimensions of operands and results of a primitive correspond: the rules, asked for.

Owners of primitives write them (`xprim.dimension_names`, rule kind `dimensions`); elementwise ones
need none.

Neighbours: `sharding_rules` makes shardings of it.
"""

from __future__ import annotations

from typing import Any

from xprim import ELEMENTWISE, Primitive
from xprim.dimension_names import AS_SAID, Names, alike

__all__ = ["AS_SAID", "Names", "alike", "rule_of"]

__dir__ = __all__.copy


def rule_of(primitive: Primitive) -> Any:
    """Return the rule of a primitive, AS_SAID, or None where nothing is known of its dimensions."""
    found = primitive.rules.get("dimensions")
    if found is None and primitive.rules["batch"] is ELEMENTWISE:
        return alike
    return found
