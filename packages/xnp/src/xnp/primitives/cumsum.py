"""cumsum: cumulative sums along an axis. Linear; its transpose sums from the other end."""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.cumulative import (
    cumulative_batch,
    cumulative_numpy,
    cumulative_shape,
    cumulative_stablehlo,
)
from xnp.primitives.table import NUMBER
from xprim import LINEAR, Primitive, dimension_names

__all__ = ()


def _transpose(cts: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    return cumsum_p.bind(cts[0], axis=axis, reverse=not reverse)


cumsum_p: Primitive = Primitive(
    "cumsum",
    shape=cumulative_shape("cumsum", NUMBER),
    numpy=cumulative_numpy(np.add),
    stablehlo=cumulative_stablehlo(
        lambda b, scalar: b.reducer("stablehlo.add", scalar.dtype), lambda dtype: 0
    ),
    jvp=LINEAR,
    transpose=_transpose,
    batch=cumulative_batch(lambda: cumsum_p),
    cost=costs.nothing,
    dimensions=dimension_names.whole_along("axis"),
)
