"""Whether an operation reads or writes out of bounds, and with which index.

Neighbour: `rewriting` asks this for each equation that reads or writes windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import xtree
from xjit.checkify.failures import State
from xnp import lax
from xprim import Equation, as_array, source
from xprim.check_sites import CheckSite

__all__ = ["BYTES_OF_INDEX", "check_bounds"]

__dir__ = __all__.copy

BYTES_OF_INDEX: Final = 12  # the index, its axis and the size there
_TREE: Final = xtree.structure(((0, 0, 0), {}))


def check_bounds(state: State, eqn: Equation, operands: Sequence[Any]) -> State:
    """Return the state after the check of an equation whose primitive has a rule `windows`."""
    shape = operands[0].aval.shape
    starts, axes, sizes = eqn.primitive.rules["windows"](*operands, **eqn.params)
    if not axes or not starts.aval.size:
        return state
    limits = as_array(np.array([shape[a] - n for a, n in zip(axes, sizes, strict=True)], np.int32))
    wide = lax.convert_element_type(starts, np.int32)
    bad = lax.bitwise_or(lax.lt(wide, np.int32(0)), lax.gt(wide, _spread(limits, wide)))
    unsigned = starts.aval.dtype == np.uint32
    if unsigned:  # beyond what int32 holds, it is negative there
        bad = lax.bitwise_or(bad, lax.gt(starts, np.uint32(2**31 - 1)))
    flat = lax.reshape(bad, (bad.aval.size,))
    position = lax.argmax(flat, 0, np.int32)
    index = lax.dynamic_index_in_dim(lax.reshape(wide, (wide.aval.size,)), position, 0, False)
    part = lax.rem(position, np.int32(len(axes)))
    axis, size = [
        lax.dynamic_index_in_dim(as_array(np.array(table, np.int32)), part, 0, False)
        for table in (axes, [shape[a] for a in axes])
    ]
    site = CheckSite(
        "index",
        f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of bounds for axis "
        "{} with size {}.",
        _TREE, source.describe(eqn.source),
    )  # fmt: skip
    return state.failing(lax.reduce_or(flat, (0,)), site, [index, axis, size])


def _spread(limits: Any, starts: Any) -> Any:
    return lax.broadcast_in_dim(limits, starts.aval.shape, (starts.aval.ndim - 1,))
