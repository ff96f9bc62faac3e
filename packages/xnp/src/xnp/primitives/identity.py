"""Operations that return their operand: copy, stop_gradient, optimization_barrier.

`stop_gradient` has the derivative zero. `optimization_barrier` keeps the compiler from moving or
merging operations across it (StableHLO specification, section optimization_barrier).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.table import ANY, unary
from xprim import LINEAR, STRUCTURAL, ZERO, Linear, Primitive, Zero, dimension_names, dtypes, state
from xprim.contracts import Builder

__all__ = ()


def _same_names(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return list(operands)


copy_p: Primitive = unary(
    "copy", ANY | {dtypes.float0}, numpy=np.copy, stablehlo=_same_names,
    jvp=lambda x_dot, y, x: copy_p.bind(x_dot)[0], linear=lambda ct: copy_p.bind(ct)[0],
    physical=STRUCTURAL, cost=costs.nothing,
)  # fmt: skip

stop_gradient_p = unary(
    "stop_gradient", ANY, numpy=lambda x: x, stablehlo=_same_names, jvp=ZERO, physical=STRUCTURAL,
    cost=costs.nothing, linearity=LINEAR,
)  # fmt: skip


def _barrier_stablehlo(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> Any:
    return b.op("stablehlo.optimization_barrier", operands, avals_in, avals_out)


def _barrier_jvp(primals: Any, tangents: Any) -> Any:
    outs = state.trace.process(optimization_barrier_p, tuple(primals), {})
    kept = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    dots = list(tangents)
    for i, dot in zip(kept, optimization_barrier_p.bind(*[tangents[i] for i in kept]), strict=True):
        dots[i] = dot
    return outs, tuple(dots)


def _barrier_transpose(cts: Any, *operands: Any) -> Any:
    return tuple([ct if type(x) is Linear else Zero(x.aval)
                  for ct, x in zip(cts, operands, strict=True)])  # fmt: skip


optimization_barrier_p: Primitive = Primitive(
    "optimization_barrier",
    shape=lambda *avals: avals,
    numpy=lambda *xs: xs,
    stablehlo=_barrier_stablehlo,
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    batch=lambda axis, operands, dims: (optimization_barrier_p.bind(*operands), tuple(dims)),
    physical=lambda _, *operands: optimization_barrier_p.bind(*operands),
    dimensions=dimension_names.AS_SAID,
)
