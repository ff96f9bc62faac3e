"""StableHLO text of comparisons and choices."""

from __future__ import annotations

from xprim import ShapedArray, dtypes, shaped_array
from xprim.contracts import Builder

__all__ = ()


def compared(b: Builder, direction: str, x: str, y: str, aval: ShapedArray) -> str:
    """Write a comparison of two arrays of one type."""
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    truth = shaped_array(aval.shape, dtypes.bool_)
    return b.op("stablehlo.compare", [x, y], [aval, aval], [truth], attribute)[0]


def chosen(b: Builder, mask: str, on_true: str, on_false: str, aval: ShapedArray) -> str:
    """Write a choice between two arrays of one type by a mask of the same shape."""
    truth = shaped_array(aval.shape, dtypes.bool_)
    operands, avals = [mask, on_true, on_false], [truth, aval, aval]
    return b.op("stablehlo.select", operands, avals, [aval])[0]
