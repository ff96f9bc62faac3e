"""Integers whose divisor is a constant 0: XLA divides ahead of time, and the process ends.

    stablehlo.divide, stablehlo.remainder of constants, one divisor being 0

XLA folds them on the host (seen on jaxlib 0.10.2, not on 0.12; `jit(lambda: lax.div(1, 0))` of JAX
alike), where the processor raises a signal. Subject upstream: constant folding; no issue is known.
Around it the text divides by 1 where the divisor is 0, and selects what StableHLO gives there: all
ones, and the dividend as the remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xjit.jaxlib_gateway import FOLDS_DIVISION_BY_ZERO
from xprim import Builder, ShapedArray, dtypes, shaped_array

__all__ = ()

_REMAINDER = "stablehlo.remainder"

# The operations that are written so: none where XLA is repaired.
GUARDED = frozenset(["stablehlo.divide", _REMAINDER] if FOLDS_DIVISION_BY_ZERO else [])


def write_division(
    b: Builder, name: str, operands: Sequence[str], aval: ShapedArray, plain: Callable[..., str]
) -> str:
    """Append a division of integers whose divisor the compiler never takes for 0.

    Args:
      b: the builder.
      name: of the operation, one of `GUARDED`.
      operands: the names of dividend and divisor.
      aval: their type, and that of the result.
      plain: `plain(name, operands, aval)` appends the operation as it is.
    """
    x, y = operands
    known = b.known_scalar(y)
    if known is not None and known != 0:
        return plain(name, operands, aval)
    flag = shaped_array(aval.shape, dtypes.bool_)
    types = [flag, aval, aval]
    (by_zero,) = b.op(
        "stablehlo.compare", [y, b.constant(0, aval)], types[1:], [flag],
        "comparison_direction = #stablehlo<comparison_direction EQ>",
    )  # fmt: skip
    one = b.constant(1, aval)
    (divisor,) = b.op("stablehlo.select", [by_zero, one, y], types, [aval])
    found = plain(name, [x, divisor], aval)
    signed = dtypes.is_signed_integer(aval.dtype)
    all_ones = -1 if signed else int(dtypes.iinfo(aval.dtype).max)
    instead = x if name == _REMAINDER else b.constant(all_ones, aval)
    return b.op("stablehlo.select", [by_zero, instead, found], types, [aval])[0]
