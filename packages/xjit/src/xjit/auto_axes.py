"""The primitive `auto_axes`: a program whose values are typed otherwise than those around it.

The types of its operands and results, as the equation has them, say how these are spread over the
explicit axes of a mesh; those of the program inside know of fewer axes, or of none, so that the
compiler chooses there, or of more, where a part of a program is explicit. Params: `jaxpr`;
`in_spreads` and `out_spreads`, how each operand and each result is spread outside; `name`.

Neighbours: `typed_shardings` asks for it, `xpar.axis_modes` has the public functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xprim import (
    EAGER,
    Array,
    ClosedJaxpr,
    Equation,
    Jaxpr,
    Primitive,
    ShapedArray,
    Var,
    close_over,
    shaped_array,
    trace_to_jaxpr,
)
from xprim.calls import call_rules

__all__ = ["auto_axes_p", "called_with"]

__dir__ = __all__.copy


def called_with(
    fun: Callable[..., Sequence[Array]], operands: Sequence[Any], avals: Sequence[ShapedArray],
    spreads: Sequence[Any] | Callable[[Sequence[ShapedArray]], Sequence[Any]],
    name: str = "auto_axes",
) -> Sequence[Array]:  # fmt: skip
    """Call a function on values that have other types inside.

    Args:
      fun: of flat arrays.
      operands: its arguments.
      avals: their types inside.
      spreads: how each result is spread outside, or a function that gives this from their types.
      name: what prints call the program.
    """
    jaxpr, consts = trace_to_jaxpr(fun, avals, name=name)
    closed, captured = close_over(jaxpr, consts)
    values = (*captured, *operands)
    out_spreads = spreads(closed.out_avals) if callable(spreads) else spreads
    return auto_axes_p.bind(
        *values, jaxpr=closed, name=name, in_spreads=tuple([x.aval.spread for x in values]),
        out_spreads=tuple(out_spreads),
    )  # fmt: skip


def _shape(*avals: Any, jaxpr: ClosedJaxpr, out_spreads: Any, **_: Any) -> Any:
    return tuple([
        shaped_array(a.shape, a.dtype, a.weak_type, spread)
        for a, spread in zip(jaxpr.out_avals, out_spreads, strict=True)
    ])  # fmt: skip


def _numpy(*operands: Any, **params: Any) -> Any:
    """Run a program of this one equation over the mesh."""
    jaxpr: ClosedJaxpr = params["jaxpr"]
    key = ("auto_axes", *[x.aval for x in operands], params["out_spreads"])
    closed = jaxpr.memo.get(key)
    if closed is None:
        avals = tuple([x.aval for x in operands])
        invars, outvars = [Var(a) for a in avals], [Var(a) for a in _shape(*avals, **params)]
        equation = Equation(auto_axes_p, invars, outvars, params)
        closed = ClosedJaxpr(Jaxpr([], invars, outvars, [equation], params["name"]))
        jaxpr.memo[key] = closed
    return EAGER.backend.run_program(closed, operands, params["name"])


def _derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return how the values of a derived call are spread: as those for which they stand."""
    spreads = entries(params["in_spreads"], params["out_spreads"], None, _batched)
    return {"in_spreads": tuple(spreads[0]), "out_spreads": tuple(spreads[1])}


def _batched(spread: Any) -> Any:
    return None if spread is None else spread.update(spec=(None, *spread.spec))


def _printed(**params: Any) -> dict[str, Any]:
    """Show the program: how values are spread is in their types."""
    return {key: params[key] for key in ("jaxpr", "name")}


auto_axes_p: Primitive = Primitive(
    "auto_axes",
    call_like=True,
    **call_rules("auto_axes", derived=_derived, shape=_shape, numpy=_numpy, print=_printed),
)
