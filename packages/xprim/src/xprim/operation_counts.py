"""Estimates of how much a program computes: scalar operations, counted from its equations.

What chooses between forms of a program (a loop or a batch, a value kept or computed again) compares
counts; none is a time. An equation counts the elements that it reads or writes, whichever are more;
a contraction two operations for each product; a loop its steps; a choice its dearest branch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xprim.jaxpr import ClosedJaxpr, Equation, held_programs

__all__ = ["count_equation", "count_operations"]

__dir__ = __all__.copy

# Of a loop whose number of steps is not known.
_STEPS = 16
# Elements whose value is a library call or a series: several operations each.
_DEAR = 8
_DEAR_NAMES = frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "gelu_by_tanh", "igamma", "lgamma", "log",
    "log1p", "logaddexp", "logaddexp2", "logistic", "pow", "silu", "sin", "sinh", "tan", "tanh",
])  # fmt: skip


def count_operations(closed: ClosedJaxpr) -> float:
    """Return the estimated number of scalar operations of a program.

    Example:
      >>> from xprim import make_jaxpr
      >>> from xprim.operation_counts import count_operations
      >>> count_operations(make_jaxpr(lambda x: x + x)(1.0))
      1.0
    """
    found = closed.memo.get("operations")
    if found is None:
        found = closed.memo["operations"] = sum(map(count_equation, closed.jaxpr.eqns))
    return float(found)


def count_equation(eqn: Equation) -> float:
    """Return the estimated number of scalar operations of one equation."""
    name = eqn.primitive.name
    if held_programs(eqn.params):
        return _count_of_call(eqn)
    sizes = [_size(x.aval.shape) for x in eqn.inputs]
    out = sum([_size(v.aval.shape) for v in eqn.outputs])
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.inputs[0].aval.shape
        return 2.0 * out * _size([shape[d] for d in contracted])
    if name == "conv_general_dilated":
        kernel = eqn.inputs[1].aval.shape
        features = eqn.params["dimension_numbers"].rhs_spec[0]
        return 2.0 * out * sizes[1] / max(_size([kernel[features]]), 1)
    return float(max([out, *sizes]) * (_DEAR if name in _DEAR_NAMES else 1))


def _count_of_call(eqn: Equation) -> float:
    params = eqn.params
    inner = [count_operations(program) for program in held_programs(params)]
    if "branches" in params:
        return max(inner)
    steps = params.get("length", _STEPS if eqn.primitive.name == "while" else 1)
    return sum(inner) * (steps if isinstance(steps, int) else _STEPS)


def _size(shape: Sequence[Any]) -> int:
    """Return the number of elements; a dimension that is not known counts once."""
    return math.prod([d for d in shape if isinstance(d, int)])
