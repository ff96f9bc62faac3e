"""scatter: replace windows of an array by updates.

Where several updates come to one element, one of them wins, and only that one has a derivative: the
`jvp` rule finds it by scattering the numbers of the updates first. Which one wins may be another
each time (on a GPU), so the value that goes with the derivative is that of the same winner.
Semantics: StableHLO specification, section scatter, with a region that returns the update.
Neighbours: `scatter_family` has what all scatters share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.corresponding_dimensions import scatter_dimensions
from xnp.primitives.index_modes import CLIP, GatherDimensionNumbers
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
    is_constant = type(x_dot) is Zero and type(updates_dot) is Zero
    if is_constant or params["unique_indices"] or not _may_repeat(indices, params):
        outs = scatter_p.bind(x, indices, updates, **params)
        if is_constant:
            return outs, (Zero(outs[0].aval),)
        return outs, scatter_p.bind(_array(x_dot), indices, _array(updates_dot), **params)
    shape, count = x.aval.shape, updates.aval.size
    dtype = np.dtype(np.int32 if count < 2**31 - 1 else np.int64)
    numbers = reshaped(counting(count, dtype), updates.aval.shape)
    one = filled(updates.aval.shape, 1, dtype)
    numbers = bind("add", numbers, one)  # 0 stands for an element that no update came to
    winners = scatter_p.bind(filled(shape, 0, dtype), indices, numbers, **params)[0]
    wins = gathered(winners, indices, updates.aval, params)
    # All that come to one element write what the winner does: in another scatter another may win.
    outs = scatter_p.bind(x, indices, _taken(updates, bind("sub", wins, one)), **params)
    dot = None
    if type(x_dot) is not Zero:
        untouched = bind("eq", winners, filled(shape, 0, dtype))
        dot = selected(untouched, x_dot, filled(shape, 0, x_dot.aval.dtype))
    if type(updates_dot) is not Zero:
        won = bind("eq", wins, numbers)
        kept = selected(won, updates_dot, filled(updates.aval.shape, 0, updates_dot.aval.dtype))
        added = added_into(shape, indices, kept, params)
        dot = added if dot is None else bind("add", dot, added)
    return outs, (dot,)


def _may_repeat(indices: Any, params: Any) -> bool:
    """Return whether several windows could come to one element: those of one batch element."""
    batches = params["dimension_numbers"].scatter_indices_batching_dims
    sizes = [n for d, n in enumerate(indices.aval.shape[:-1]) if d not in batches]
    return any(type(n) is not int or n > 1 for n in sizes)


def _taken(x: Any, places: Any) -> Any:
    """Return the elements of an array at places that count them in row-major order."""
    shape, count = x.aval.shape, x.aval.size
    if not count:
        return x
    return bind(
        "gather", reshaped(x, (count,)), reshaped(places, (*shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (0,), (0,)), slice_sizes=(1,),
        indices_are_sorted=False, unique_indices=False, mode=CLIP, fill_value=None,
    )  # fmt: skip


def _array(tangent: Any) -> Any:
    if type(tangent) is Zero:
        return filled(tangent.aval.shape, 0, tangent.aval.dtype)
    return tangent


def _transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    # reached where no element gets two updates: the jvp rule writes other scatters as sums
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
