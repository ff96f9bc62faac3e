"""Which dimensions of operands and results correspond: what rules of kind `dimensions` share.

A rule takes the types of operands and results and the params, and gives the `Names` of dimensions.
A name is any hashable value; None stands for a dimension that is whole. What merges and splits
dimensions may give the parts of the results itself: for each the axes that cut each dimension, or
None in all for "that is not clear". `AS_SAID` in place of a rule leaves it to the `shape` rule.

Here is what many primitives share; who has one of its own writes it beside its other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xprim.avals import ShapedArray
from xprim.rules import Symbol

__all__ = [
    "AS_SAID", "Names", "Rule", "alike", "each_whole", "numbered", "of_last",
    "whole_along", "without",
]  # fmt: skip

__dir__ = __all__.copy

Dims = tuple[Any, ...]
Rule = Callable[[Sequence[ShapedArray], Sequence[ShapedArray], dict[str, Any]], Any]


class Names(NamedTuple):
    """The names of dimensions.

    Attributes:
      operands: for each operand, a name for each dimension.
      results: likewise for the results.
    """

    operands: list[Dims]
    results: list[Dims]


AS_SAID = Symbol("AS_SAID", "the shape rule gives types with their shardings")


def alike(
    avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: dict[str, Any]
) -> Names:
    """Dimensions correspond by their number; scalars are repeated."""
    return Names([numbered(a) for a in avals], [numbered(a) for a in out])


def each_whole(
    avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: dict[str, Any]
) -> Names:
    """No dimension corresponds to another: all of the operands must be whole."""
    return Names([(None,) * a.ndim for a in avals], [(None,) * a.ndim for a in out])


def without(key: str) -> Rule:
    """Return the rule of what removes the dimensions that a param numbers."""

    def rule(
        avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: dict[str, Any]
    ) -> Names:
        gone = _several(params[key])
        kept = tuple([d for d in range(avals[0].ndim) if d not in gone])
        return Names([numbered(a) for a in avals], [kept for _ in out])

    return rule


def whole_along(key: str) -> Rule:
    """Return the rule of what works along the dimensions that a param numbers."""

    def rule(
        avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: dict[str, Any]
    ) -> Names:
        along = _several(params[key])

        def names(aval: ShapedArray) -> Dims:
            return tuple([None if d in along else d for d in range(aval.ndim)])

        return Names([names(a) for a in avals], [names(a) for a in out])

    return rule


def of_last(count: int) -> Rule:
    """Return the rule of what treats the last dimensions as a whole: matrices, elements of keys."""

    def rule(
        avals: Sequence[ShapedArray], out: Sequence[ShapedArray], params: dict[str, Any]
    ) -> Names:
        batch = avals[0].ndim - count

        def names(aval: ShapedArray) -> Dims:
            return tuple([d if d < batch else None for d in range(aval.ndim)])

        return Names([names(a) for a in avals], [names(a) for a in out])

    return rule


def numbered(aval: ShapedArray) -> Dims:
    """Return the numbers of the dimensions of a type as their names."""
    return tuple(range(aval.ndim))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
