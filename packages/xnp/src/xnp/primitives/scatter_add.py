"""scatter_add: add updates to windows of an array; windows may overlap.

It is linear in array and updates together; with respect to the updates its transpose is `gather`.
On booleans the sum is logical or. Semantics: StableHLO specification, section scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.corresponding_dimensions import scatter_dimensions
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
from xprim import Linear, Primitive, Zero, linear_in

__all__ = ()


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    outs = scatter_add_p.bind(x, indices, updates, **params)
    if type(updates_dot) is Zero:
        return outs, (x_dot,)
    if type(x_dot) is Zero:
        return outs, (added_into(x.aval.shape, indices, updates_dot, params),)
    return outs, scatter_add_p.bind(x_dot, indices, updates_dot, **params)


def _transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    (ct,) = cts
    updates_bar = Zero(updates.aval)
    if type(updates) is Linear:
        updates_bar = gathered(ct, indices, updates.aval, params)
    return (ct if type(x) is Linear else Zero(x.aval)), Zero(indices.aval), updates_bar


scatter_add_p: Primitive = Primitive(
    "scatter_add",
    shape=scatter_shape("scatter_add", ANY),
    numpy=scatter_numpy(np.add),
    stablehlo=scatter_stablehlo("stablehlo.add"),
    jvp=_jvp,
    transpose=_transpose,
    batch=scatter_batch(lambda: scatter_add_p),
    windows=scatter_windows,
    dimensions=scatter_dimensions,
    linearity=linear_in(0, 2),
)
