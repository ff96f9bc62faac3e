"""scatter: replace windows of an array by updates.

Where several updates come to one element, one of them wins, and only that one has a derivative: the
`jvp` rule finds it by scattering the numbers of the updates first.
Semantics: StableHLO specification, section scatter, with a region that returns the update.
Neighbours: `scatter_family` has what all scatters share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.corresponding_dimensions import scatter_dimensions
from xnp.primitives.operations import bind, counting, filled, reshaped, selected
from xnp.primitives.scatter_family import (
    added_into,
    gathered,
    scatter_batch,
    scatter_numpy,
    scatter_shape,
    scatter_stablehlo,
    scatter_windows,
)
from xnp.primitives.table import ANY
from xprim import STRUCTURAL, Linear, Primitive, Zero, linear_in

__all__ = ()


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    outs = scatter_p.bind(x, indices, updates, **params)
    if type(x_dot) is Zero and type(updates_dot) is Zero:
        return outs, (Zero(outs[0].aval),)
    if params["unique_indices"]:
        dots = scatter_p.bind(_array(x_dot), indices, _array(updates_dot), **params)
        return outs, dots
    shape, count = x.aval.shape, updates.aval.size
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    numbers = reshaped(counting(count, dtype), updates.aval.shape)
    one = filled(updates.aval.shape, 1, dtype)
    numbers = bind("add", numbers, one)  # 0 stands for an element that no update came to
    winners = scatter_p.bind(filled(shape, 0, dtype), indices, numbers, **params)[0]
    dot = None
    if type(x_dot) is not Zero:
        untouched = bind("eq", winners, filled(shape, 0, dtype))
        dot = selected(untouched, x_dot, filled(shape, 0, x_dot.aval.dtype))
    if type(updates_dot) is not Zero:
        won = bind("eq", gathered(winners, indices, updates.aval, params), numbers)
        kept = selected(won, updates_dot, filled(updates.aval.shape, 0, updates_dot.aval.dtype))
        added = added_into(shape, indices, kept, params)
        dot = added if dot is None else bind("add", dot, added)
    return outs, (dot,)


def _array(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return filled(tangent.aval.shape, 0, tangent.aval.dtype)
    return tangent


def _transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    # reached with unique indices only: the jvp rule writes other scatters as sums
    (ct,) = cts
    x_bar, updates_bar = Zero(x.aval), Zero(updates.aval)
    if type(x) is Linear:
        zeros = filled(updates.aval.shape, 0, ct.aval.dtype)
        x_bar = scatter_p.bind(ct, indices, zeros, **params)[0]
    if type(updates) is Linear:
        updates_bar = gathered(ct, indices, updates.aval, params)
    return x_bar, Zero(indices.aval), updates_bar


scatter_p: Primitive = Primitive(
    "scatter",
    shape=scatter_shape("scatter", ANY),
    numpy=scatter_numpy(None),
    stablehlo=scatter_stablehlo(None),
    jvp=_jvp,
    transpose=_transpose,
    batch=scatter_batch(lambda: scatter_p),
    windows=scatter_windows,
    physical=STRUCTURAL,
    dimensions=scatter_dimensions,
    linearity=linear_in(0, 2),
)
