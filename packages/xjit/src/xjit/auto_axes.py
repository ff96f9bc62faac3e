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
    Primitive,
    ShapedArray,
    close_over,
    shaped_array,
    trace_to_jaxpr,
)
from xprim.calls import all_to_front, call_rules, front_dims
from xprim.contracts import BatchAxis
from xprim.jaxpr import program_of_equation
from xprim.sharded_types import batched_sharding

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
        closed = jaxpr.memo[key] = program_of_equation(
            auto_axes_p, [x.aval for x in operands], params, params["name"]
        )
    return EAGER.backend.run_program(closed, operands, params["name"])


def _derived(kind: str, params: dict[str, Any], entries: Any) -> dict[str, Any]:
    """Return how the values of a derived call are spread: as those for which they stand."""
    spreads = entries(params["in_spreads"], params["out_spreads"], None, lambda spread: spread)
    return {"in_spreads": tuple(spreads[0]), "out_spreads": tuple(spreads[1])}


def _batch(
    axis: BatchAxis, operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, in_spreads: Any,
    out_spreads: Any, **params: Any,
) -> Any:  # fmt: skip
    """Call the program for batches; types inside of it say nothing of how these are cut."""
    values, mapped = all_to_front(axis, operands, dims)
    batched, mapped_out = axis.left_open().batch_jaxpr(jaxpr, mapped)

    def spreads(before: Any, avals: Any, mask: Sequence[bool]) -> tuple[Any, ...]:
        return tuple([
            batched_sharding(spread, axis.spread, a.ndim) if m else spread
            for spread, a, m in zip(before, avals, mask, strict=True)
        ])  # fmt: skip

    ins = spreads(in_spreads, jaxpr.in_avals, mapped)
    outs = spreads(out_spreads, jaxpr.out_avals, mapped_out)
    results = auto_axes_p.bind(*values, jaxpr=batched, in_spreads=ins, out_spreads=outs, **params)
    return results, front_dims(mapped_out)


def _printed(**params: Any) -> dict[str, Any]:
    """Show the program: how values are spread is in their types."""
    return {key: params[key] for key in ("jaxpr", "name")}


auto_axes_p: Primitive = Primitive(
    "auto_axes",
    call_like=True,
    **call_rules(
        "auto_axes", derived=_derived, shape=_shape, numpy=_numpy, print=_printed, batch=_batch
    ),
)
