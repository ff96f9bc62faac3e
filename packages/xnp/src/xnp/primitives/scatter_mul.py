"""scatter_mul: multiply windows of an array by updates; windows may overlap.

With z = x * prod u_i over the updates i that come to an element,
dz = prod u_i dx + sum_i (x * prod of the other u) du_i. The product of the others is found without
dividing by zero: updates that are 0 are counted and left out of a product P of the rest; it is
P / u_i where no zero came, P where u_i is the only zero, and 0 elsewhere.
On booleans the product is logical and. Semantics: StableHLO specification, section scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives.corresponding_dimensions import scatter_dimensions
from xnp.primitives.operations import bind, filled, selected
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
from xprim import Linear, Primitive, Zero

__all__ = ()


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, indices, updates), (x_dot, _, updates_dot) = primals, tangents
    outs = scatter_mul_p.bind(x, indices, updates, **params)
    dot = None
    if type(x_dot) is not Zero:
        dot = scatter_mul_p.bind(x_dot, indices, updates, **params)[0]
    if type(updates_dot) is not Zero:
        if params["unique_indices"]:
            others = gathered(x, indices, updates.aval, params)
        else:
            others = _product_of_others(x, indices, updates, params)
        term = added_into(x.aval.shape, indices, bind("mul", others, updates_dot), params)
        dot = term if dot is None else bind("add", dot, term)
    return outs, (Zero(outs[0].aval) if dot is None else dot,)


def _product_of_others(x: Any, indices: Any, updates: Any, params: Any) -> Any:
    """Return for each update the operand times all other updates that come to its element."""
    dtype, shape = updates.aval.dtype, updates.aval.shape
    zeros, ones = filled(shape, 0, dtype), filled(shape, 1, dtype)
    is_zero = bind("eq", updates, zeros)
    count = np.dtype(np.int32)
    no, yes = filled(shape, 0, count), filled(shape, 1, count)
    num_zeros = added_into(x.aval.shape, indices, selected(is_zero, yes, no), params)
    num_zeros = gathered(num_zeros, indices, updates.aval, params)
    rest = selected(is_zero, ones, updates)
    product = scatter_mul_p.bind(x, indices, rest, **params)[0]
    product = gathered(product, indices, updates.aval, params)
    own = selected(is_zero, yes, no)
    return selected(bind("eq", num_zeros, own), bind("div", product, rest), zeros)


def _transpose(cts: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    x_bar = Zero(x.aval)
    if type(x) is Linear:
        x_bar = scatter_mul_p.bind(cts[0], indices, updates, **params)[0]
    return x_bar, Zero(indices.aval), Zero(updates.aval)


scatter_mul_p: Primitive = Primitive(
    "scatter_mul",
    shape=scatter_shape("scatter_mul", ANY),
    numpy=scatter_numpy(np.multiply),
    stablehlo=scatter_stablehlo("stablehlo.multiply"),
    jvp=_jvp,
    transpose=_transpose,
    batch=scatter_batch(lambda: scatter_mul_p),
    windows=scatter_windows,
    dimensions=scatter_dimensions,
)
