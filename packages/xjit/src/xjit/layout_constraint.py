"""The primitive `layout_constraint`: a value, and how it lies in memory inside of a program.

Params: `order`, the numbers of the dimensions, the slowest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xprim
import xtree
from xjit import jaxlib_gateway as gateway
from xjit.callbacks.ffi import layout_of, layouts_text, spread_layout
from xjit.dispatch.placement import order_of, put_in_order
from xjit.dispatch.sharded_arrays import sharding_of
from xjit.sharding.layouts import Layout, inner_order
from xprim import EAGER, LINEAR, STRUCTURAL, Array, Primitive, as_array, not_mapped, state
from xprim.contracts import BatchAxis, Builder
from xprim.errors import described, message
from xprim.tracebacks import boundaries
from xprim.typing import PyTree

__all__ = ["with_layout_constraint"]

__dir__ = __all__.copy


def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Say in which order the dimensions of values lie in memory, for the compiler to obey.

    It changes no value. What a program returns lies so, too, and so does an array, outside of one.

    Args:
      x: a tree of arrays.
      layouts: a `Layout` for all leaves, or a tree prefix of `x` with one for each.

    Returns:
      A tree like `x`.

    Raises:
      ValueError: a layout is no order of the dimensions of its array, or no layout.

    Differentiable: a cotangent lies as its value.

    Example:
      >>> import numpy as np
      >>> from xjit import jit
      >>> from xjit.sharding.layouts import Layout
      >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
      >>> jit(lambda x: with_layout_constraint(x + x, Layout((1, 0))) @ x.T)(x)
      Array([[ 10.,  28.],
             [ 28., 100.]], dtype=float32)
    """
    leaves, tree = xtree.flatten(x)
    places = xtree.broadcast_prefix(layouts, x, is_leaf=lambda v: isinstance(v, Layout))
    return tree.unflatten(
        [_constrain(leaf, layout) for leaf, layout in zip(leaves, places, strict=True)]
    )


def _constrain(leaf: Any, layout: Any) -> Array:
    x = as_array(leaf, what="with_layout_constraint")
    if not isinstance(layout, Layout):
        raise ValueError(message(
            "with_layout_constraint", "this is no layout.", got=described(layout),
            expected="Layout(major_to_minor)",
        ))  # fmt: skip
    order = layout_of(layout, x.aval, "with_layout_constraint")
    gateway.orders_used[0] = True  # results of a program may lie so
    if state.trace is EAGER and isinstance(x, xprim.ConcreteArray):
        inner = inner_order(order, x.aval)
        return x if order_of(x) == inner else put_in_order(x, sharding_of(x), inner)
    return layout_constraint_p.bind(x, order=order)[0]  # type: ignore[no-any-return]


def _same(x: Any, *, order: tuple[int, ...]) -> tuple[Any, ...]:
    return (x,)


def _stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any, *,
               order: tuple[int, ...]) -> Sequence[str]:  # fmt: skip
    layouts = layouts_text([order])
    return b.op(
        "stablehlo.custom_call", operands, avals_in, avals_out,
        'call_target_name = "LayoutConstraint", backend_config = "", '
        f"operand_layouts = {layouts}, result_layouts = {layouts}",
    )  # fmt: skip


def _batch(axis: BatchAxis, operands: Any, dims: Any, *, order: tuple[int, ...]) -> Any:
    (x,), (dim,) = operands, dims
    if dim is not_mapped:
        return layout_constraint_p.bind(x, order=order), (dim,)
    return layout_constraint_p.bind(axis.to_front(x, dim), order=spread_layout(order)), (0,)


layout_constraint_p: Primitive = Primitive(
    "layout_constraint",
    shape=_same,
    numpy=_same,
    stablehlo=_stablehlo,
    jvp=LINEAR,
    transpose=lambda cts, x, *, order: layout_constraint_p.bind(cts[0], order=order),
    batch=_batch,
    sharding=xprim.dimension_names.alike,
    physical=STRUCTURAL,
)


boundaries(globals())
