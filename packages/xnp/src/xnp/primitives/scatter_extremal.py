"""scatter_min and scatter_max: take the smaller or greater of windows and updates.

The derivative of an element is shared equally among all that attain its value: the updates that
came to it, and the operand's own element. NaN wins, as in `min` and `max`, and has the derivative.
Semantics: StableHLO specification, section scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xnp.primitives.operations import bind, filled, selected
from xnp.primitives.scatter_family import added_into, gathered
from xprim import Primitive, Zero

__all__ = ()


def extremal_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Return the jvp rule of scatter_min or scatter_max."""

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
        outs = primitive().bind(x, indices, updates, **params)
        if type(x_dot) is Zero and type(updates_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        return outs, (_shared(x, x_dot, indices, updates, updates_dot, outs[0], params),)

    return jvp_rule


def _shared(
    x: Any, x_dot: Any, indices: Any, updates: Any, updates_dot: Any, out: Any, params: Any
) -> Any:
    shape, small, dtype = x.aval.shape, updates.aval.shape, x.aval.dtype
    attained = _equal_or_nan(updates, gathered(out, indices, updates.aval, params))
    kept = _equal_or_nan(x, out)
    zeros, ones = filled(shape, 0, dtype), filled(shape, 1, dtype)
    small_zeros, small_ones = filled(small, 0, dtype), filled(small, 1, dtype)
    hits = added_into(shape, indices, selected(attained, small_ones, small_zeros), params)
    sharers = bind("add", hits, selected(kept, ones, zeros))
    dot = None
    if type(x_dot) is not Zero:
        dot = selected(kept, x_dot, zeros)
    if type(updates_dot) is not Zero:
        added = added_into(shape, indices, selected(attained, updates_dot, small_zeros), params)
        dot = added if dot is None else bind("add", dot, added)
    return bind("div", dot, sharers)


def _equal_or_nan(x: Any, out: Any) -> Any:
    return bind("or", bind("eq", x, out), bind("ne", x, x))
