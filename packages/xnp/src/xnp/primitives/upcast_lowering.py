"""Lowering in a wider dtype, for what XLA has not, or has wrong, in a narrow one.

`upcast(rule, dtypes, wide)` is a `stablehlo` rule that converts operands of these dtypes, lets the
rule write its text for the wide one, and converts the results back: exact for what only moves or
compares numbers, rounded once for what computes. `TWO_BITS`: XLA for the CPU aborts the process on
a concatenation of two-bit integers, sorts them wrongly and refuses their products.

Neighbours: `table` writes the rules of one operation each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xprim import ShapedArray, dtypes
from xprim.contracts import Builder

__all__ = ()

TWO_BITS = (dtypes.int2, dtypes.uint2)
FOUR_BITS = (dtypes.int4, dtypes.uint4)
# Their NaN has the bits of -0.0, so it comes first in XLA's order of the bits.
NAN_AS_NEGATIVE_ZERO = (dtypes.float8_e4m3b11fnuz, dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz)


def upcast(rule: Callable[..., Any], narrow: Iterable[Any], wide: Any) -> Callable[..., Any]:
    """Return a `stablehlo` rule that computes in `wide` what has one of the dtypes `narrow`."""
    narrow, wide = frozenset(narrow), np.dtype(wide)

    def widen(aval: ShapedArray) -> ShapedArray:
        return aval.update(dtype=wide) if aval.dtype in narrow else aval

    def stablehlo_rule(
        b: Builder, operands: Any, avals_in: Any, avals_out: Any, **params: Any
    ) -> Any:
        if narrow.isdisjoint([a.dtype for a in avals_in]):
            return rule(b, operands, avals_in, avals_out, **params)
        wide_in = [widen(a) for a in avals_in]
        wide_out = [widen(a) for a in avals_out]
        names = [b.convert(x, a, w.dtype)
                 for x, a, w in zip(operands, avals_in, wide_in, strict=True)]  # fmt: skip
        results = rule(b, names, wide_in, wide_out, **params)
        return [b.convert(x, w, a.dtype)
                for x, w, a in zip(results, wide_out, avals_out, strict=True)]  # fmt: skip

    return stablehlo_rule
