"""What reduce_window_max and reduce_window_min share.

The derivative of a window is that of the element it takes; `select_and_gather_add` finds it.
Semantics: StableHLO specification, section reduce_window, with maximum or minimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.reduce_window_sum import attributes_of
from xnp.primitives.reductions import total_dtype
from xnp.primitives.select_and_gather_add import select_and_gather_add_p
from xnp.primitives.table import BOOL, REAL
from xnp.primitives.window_views import (
    all_windows,
    has_holes,
    windows_batch,
    windows_shape,
    with_holes_filled,
)
from xprim import (
    Primitive,
    Zero,
    dimension_names,
    get_primitive,
    primitive_maker,
    shaped_array,
    undefined,
)
from xprim.contracts import Builder

__all__ = ()


@primitive_maker
def window_extremal(name: str, ufunc: np.ufunc, op: str, neutral: Any, select: str) -> Primitive:
    """Define reduce_window_max or reduce_window_min.

    Args:
      name: of the primitive.
      ufunc: NumPy's operation.
      op: StableHLO's operation.
      neutral: from a dtype to its neutral element.
      select: the comparison that says that the first of two elements is kept.
    """

    def numpy_rule(x: Any, **params: Any) -> Any:
        windows = all_windows(x.astype(total_dtype(x.dtype), copy=False), neutral(x.dtype), params)
        found = ufunc.reduce(windows, axis=tuple(range(x.ndim, 2 * x.ndim)))
        return (np.asarray(found).astype(x.dtype, copy=False),)

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        (aval,) = avals_in
        if not aval.ndim:
            return [operands[0]]
        if has_holes(b, params):
            return with_holes_filled(b, primitive, operands, avals_in, neutral(aval.dtype), params)
        return b.op("stablehlo.reduce_window",
                    [operands[0], b.scalar(neutral(aval.dtype), aval.dtype)],
                    [aval, shaped_array((), aval.dtype)], avals_out, attributes_of(params),
                    b.reducer(op, aval.dtype))  # fmt: skip

    def jvp_rule(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = primitive.bind(x, **params)
        if type(x_dot) is Zero:
            return outs, (Zero(outs[0].aval),)
        dots = select_and_gather_add_p.bind(x_dot, x, select_prim=get_primitive(select), **params)
        return outs, dots

    primitive = Primitive(
        name,
        shape=windows_shape(name, REAL | BOOL),
        numpy=numpy_rule,
        stablehlo=stablehlo_rule,
        jvp=jvp_rule,
        transpose=undefined("it is not linear"),
        batch=windows_batch(lambda: primitive),
        cost=costs.reduction,
        dimensions=dimension_names.alike,
    )
    return primitive
