"""StableHLO text of comparisons and choices."""

from __future__ import annotations

from typing import Any

from xprim import ClosedJaxpr, ShapedArray, dtypes, shaped_array
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


def known_scalar(b: Builder, name: str) -> Any:
    """Return the value of a constant of rank 0, else None; older builders do not say it."""
    return b.known_scalar(name) if hasattr(b, "known_scalar") else None


def write_branch(branch: ClosedJaxpr, operands: Any, b: Builder, _names: Any) -> list[str]:
    """Write a program as a branch."""
    return b.inline(branch, operands)


def write_in_order(
    branch: ClosedJaxpr, operands: Any, order: str, b: Builder, _names: Any
) -> list[str]:
    """Write a program as a branch whose effects come after those before it."""
    b.order = order
    return [*b.inline(branch, operands), b.order]
