"""Which elements of a linear value the results of its program depend on.

A cotangent that is 0 at a point may be so by its value, or because the program never reads the
element: it is sliced off, not gathered, not selected. Only in the second case are its derivatives
0, too, which rules of the kind `used` need to know. A value here is an indicator: an array of the
type of a cotangent, positive where an element is used and 0 elsewhere, or None where all may be
used.

Indicators go backwards through the program as cotangents do. The transpose of an operation that
moves, selects or adds up elements has no negative factors, so that its own rule gives the indicator
of the operand: primitives declare it as `physical=STRUCTURAL` or `uses_all=True`. Elementwise
operations leave an indicator as it is, since their factors may vanish by value. Results of any
other operation are taken to use all elements of its operands.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import Any

from xad.derivative_kernels import KernelEquation
from xnp.lax import add_p, broadcast_in_dim_p, convert_element_type_p
from xprim import (
    ELEMENTWISE,
    STRUCTURAL,
    Equation,
    Linear,
    Literal,
    Primitive,
    ShapedArray,
    Var,
    Zero,
    scalar_array,
)  # fmt: skip

__all__ = ()


class Readers:
    """Which equations read a variable: of a program, and of what follows it.

    Found once, and so is what is used of each variable: a program of many decompositions is not
    followed to its end for each.

    Attributes:
      eqns: the equations.
      outer: those of the program that these are a part of.
      used: the indicators that were found.
      complete: the variables of which all readers have been followed.
    """

    __slots__ = ("_numbers", "complete", "depth", "eqns", "outer", "used")

    def __init__(
        self, eqns: Sequence[Equation], results: Collection[Any], outer: Readers | None = None
    ) -> None:
        self.eqns = eqns
        self.used: dict[Any, Any] = (
            {v: None for v in results if type(v) is Var} if outer is None else outer.used
        )
        self.complete: set[Any] = set() if outer is None else outer.complete
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self._numbers: dict[Any, list[int]] | None = None

    def of(self, v: Var) -> list[tuple[int, int, Equation]]:
        """Return the equations that read a variable, behind numbers that order them."""
        if self._numbers is None:
            self._numbers = {}
            for number, eqn in enumerate(self.eqns):
                for x in eqn.inputs:
                    if type(x) is Var:
                        self._numbers.setdefault(x, []).append(number)
        found = [(-self.depth, n, self.eqns[n]) for n in self._numbers.get(v, ())]
        return found if self.outer is None else found + self.outer.of(v)


def find_used_elements(values: Sequence[Var], readers: Readers, env: dict[Any, Any]) -> list[Any]:
    """Return the indicators of linear values.

    Args:
      values: linear values.
      readers: the equations of the program.
      env: the values of what is not linear.
    """
    reading, env = _equations_from(values, readers, env)
    used = readers.used
    for eqn in reversed(reading):
        _add_indicators(eqn, used, env)
    return [used.get(v, Zero(v.aval)) for v in values]


def operands_of(eqn: Equation, env: dict[Any, Any]) -> list[Any]:
    """Return what a transpose rule takes: the values of operands, `Linear` for the linear ones."""
    return [
        x.value if type(x) is Literal
        else Linear(x.aval) if (value := env.get(x)) is None else value
        for x in eqn.inputs
    ]  # fmt: skip


def _add_indicators(eqn: Equation, used: dict[Any, Any], env: dict[Any, Any]) -> None:
    """Add to `used` what an equation uses of its linear operands."""
    operands = operands_of(eqn, env)
    indicators: Sequence[Any] = [None] * len(operands)
    if _is_followed(eqn.primitive):
        found = [used.get(v, Zero(v.aval)) for v in eqn.outputs]
        if all(type(x) is Zero for x in found):
            return
        indicators = _indicators(eqn, found, operands)
    for x, operand, indicator in zip(eqn.inputs, operands, indicators, strict=True):
        if type(operand) is Linear:
            _join(used, x, indicator)


def _indicators(eqn: Equation, found: Sequence[Any], operands: Sequence[Any]) -> Sequence[Any]:
    """Return the indicators of an equation's operands, of those of its results."""
    primitive = eqn.primitive
    if not _is_transposed(primitive):
        shape = eqn.outputs[0].aval.shape
        return [_of_type(found[0], x.aval) if x.aval.shape == shape else None for x in operands]
    if "uses_all" in primitive.rules and all(x is None for x in found):
        return [None] * len(operands)
    given = [_ones(v.aval) if x is None else x for x, v in zip(found, eqn.outputs, strict=True)]
    return primitive.rule("transpose")(given, *operands, **eqn.params)  # type: ignore[no-any-return]


def _join(used: dict[Any, Any], x: Any, indicator: Any) -> None:
    """Add an indicator to what is used of a value."""
    if type(indicator) is Zero:
        return
    old = used.get(x, indicator)
    if old is None or indicator is None:
        used[x] = None
    else:
        used[x] = indicator if old is indicator else add_p.bind(old, indicator)[0]


def _of_type(indicator: Any, aval: ShapedArray) -> Any:
    """Return an indicator as one of values of another dtype."""
    if indicator is None or indicator.aval.dtype == aval.dtype:
        return indicator
    if type(indicator) is Zero:
        return Zero(aval)
    return convert_element_type_p.bind(indicator, new_dtype=aval.dtype, weak_type=False)[0]


def _ones(aval: ShapedArray) -> Any:
    one = scalar_array(1, aval.dtype)
    return broadcast_in_dim_p.bind(one, shape=aval.shape, broadcast_dimensions=())[0]


def _equations_from(
    values: Sequence[Var], readers: Readers, env: dict[Any, Any]
) -> tuple[list[Equation], dict[Any, Any]]:
    """Return the plain equations that depend on linear values, and the values that they need.

    Equations that use all of their operands are the last ones that are followed.
    """
    complete = readers.complete
    derived, reading = set(values) - complete, []
    pending = [found for v in derived for found in readers.of(v)]
    heapq.heapify(pending)
    last = None
    while pending:
        *number, eqn = heapq.heappop(pending)
        if number == last:  # it reads two of them
            continue
        last = number
        plain: Sequence[Equation] = [eqn]
        if type(eqn) is KernelEquation:
            plain, constants = eqn.expand()
            env = env | constants
        for each in plain:
            if not derived.isdisjoint([x for x in each.inputs if type(x) is Var]):
                reading.append(each)
                if _is_followed(each.primitive) and not complete.issuperset(each.outputs):
                    derived.update(each.outputs)
                    for found in map(readers.of, each.outputs):
                        for reader in found:
                            heapq.heappush(pending, reader)
    complete |= derived
    return reading, env


def _is_followed(primitive: Primitive) -> bool:
    return primitive.rules.get("batch") is ELEMENTWISE or _is_transposed(primitive)


def _is_transposed(primitive: Primitive) -> bool:
    """Return whether the transpose of indicators is the indicators of the operands."""
    return "uses_all" in primitive.rules or primitive.rules.get("physical") is STRUCTURAL
