"""Values of a program's text, with operators that write operations.

Neighbours: `formula_backends` gives them to formulas.
"""

from __future__ import annotations

from typing import Any

from xnp.primitives.choice_text import compared
from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder

__all__ = ()


class Text:
    """An SSA value in a StableHLO program, with operators that write operations."""

    __slots__ = ("aval", "builder", "name")

    def __init__(self, builder: Builder, name: str, aval: ShapedArray) -> None:
        self.builder = builder
        self.name = name
        self.aval = aval

    def op(self, op: str, *others: Any) -> Text:
        """Return the result of an operation on this value and others of its type, or numbers."""
        names = [self.name, *[self.like(v).name for v in others]]
        name = self.builder.same_type_op(f"stablehlo.{op}", names, self.aval)
        return Text(self.builder, name, self.aval)

    def like(self, value: Any) -> Text:
        """Return a number as a value of this type."""
        if isinstance(value, Text):
            return value
        return Text(self.builder, self.builder.constant(value, self.aval), self.aval)

    def compare(self, direction: str, other: Any) -> Text:
        """Return the mask where the comparison holds."""
        name = compared(self.builder, direction, self.name, self.like(other).name, self.aval)
        return Text(self.builder, name, shaped_array(self.aval.shape, dtypes.bool_))

    def __add__(self, other: Any) -> Text:
        return self.op("add", other)

    def __radd__(self, other: Any) -> Text:
        return self.like(other).op("add", self)

    def __sub__(self, other: Any) -> Text:
        return self.op("subtract", other)

    def __rsub__(self, other: Any) -> Text:
        return self.like(other).op("subtract", self)

    def __mul__(self, other: Any) -> Text:
        return self.op("multiply", other)

    def __rmul__(self, other: Any) -> Text:
        return self.like(other).op("multiply", self)

    def __truediv__(self, other: Any) -> Text:
        return self.op("divide", other)

    def __rtruediv__(self, other: Any) -> Text:
        return self.like(other).op("divide", self)

    def __neg__(self) -> Text:
        return self.op("negate")

    def __and__(self, other: Any) -> Text:
        return self.op("and", other)

    def __or__(self, other: Any) -> Text:
        return self.op("or", other)

    def __invert__(self) -> Text:
        return self.op("not")

    def __lt__(self, other: Any) -> Text:
        return self.compare("LT", other)

    def __le__(self, other: Any) -> Text:
        return self.compare("LE", other)

    def __gt__(self, other: Any) -> Text:
        return self.compare("GT", other)

    def __ge__(self, other: Any) -> Text:
        return self.compare("GE", other)

    def __eq__(self, other: Any) -> Any:
        return self.compare("EQ", other)

    __hash__ = None  # type: ignore[assignment]
