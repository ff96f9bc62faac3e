"""Rounding and steps between floats: floor, ceil, round, is_finite, nextafter.

`round[rounding_method]`: 0 rounds halves away from zero, 1 to even. Semantics: StableHLO
specification, sections floor, ceil, round_nearest_afz, round_nearest_even, is_finite; for
nextafter, IEEE 754.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.table import FLOATING, binary, retyped_stablehlo, unary
from xprim import ZERO, dtypes
from xprim.contracts import Builder

__all__ = ()


class RoundingMethod(enum.IntEnum):
    """Where numbers half way between two integers go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor_p = unary("floor", FLOATING, numpy=np.floor, stablehlo="stablehlo.floor", jvp=ZERO)
ceil_p = unary("ceil", FLOATING, numpy=np.ceil, stablehlo="stablehlo.ceil", jvp=ZERO)


def _round_numpy(x: Any, *, rounding_method: int) -> Any:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    # what is half or more reaches the next integer: the sum of 0.5 and the greatest float below
    # half rounds to 1; numbers without a fraction stay, since less than half of a unit is added
    wide = x if x.dtype in (dtypes.float32, dtypes.float64) else x.astype(np.float32)
    below = np.nextafter(wide.dtype.type(0.5), wide.dtype.type(0))
    return np.trunc(wide + np.copysign(below, wide)).astype(x.dtype)


def _round_cost(avals_in: Any, avals_out: Any, *, rounding_method: int) -> float | None:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    return (costs.nothing if even else _PASSES)(avals_in, avals_out)


_PASSES = costs.per_result(1.0)  # four passes of NumPy's


def _round_stablehlo(
    b: Builder, operands: Any, avals_in: Any, avals_out: Any, *, rounding_method: int
) -> list[str]:
    even = rounding_method == RoundingMethod.TO_NEAREST_EVEN
    op = "stablehlo.round_nearest_even" if even else "stablehlo.round_nearest_afz"
    return [b.same_type_op(op, operands, avals_out[0])]


round_p = unary(
    "round",
    FLOATING,
    numpy=_round_numpy,
    stablehlo=_round_stablehlo,
    jvp=ZERO,
    has_params=True,
    cost=_round_cost,
)

is_finite_p = unary(
    "is_finite", FLOATING, numpy=np.isfinite, stablehlo=retyped_stablehlo("stablehlo.is_finite"),
    jvp=ZERO, out_dtype=dtypes.bool_,
)  # fmt: skip

nextafter_p = binary(
    "nextafter", FLOATING, numpy=np.nextafter, stablehlo=retyped_stablehlo("chlo.next_after"),
    jvp=(lambda x_dot, z, x, y: x_dot, None),  # it moves with x, whatever the direction y
)  # fmt: skip
