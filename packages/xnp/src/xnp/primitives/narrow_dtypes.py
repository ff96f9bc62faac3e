"""NumPy computations on dtypes of few bits: exactly the operand's dtype, rounded once.

NumPy has no loops for floats of 8 bits or integers of 2 and 4, and `ml_dtypes` gives some results
in another dtype. Rules are wrapped so that they compute in a wider dtype and convert the result.

Neighbours: `table` assembles primitives from such rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xprim import dtypes

__all__ = ()

# The dtype in which floats of few bits are computed where a formula has more than one step.
WIDER: dict[Any, np.dtype[Any]] = dict.fromkeys(
    (*dtypes.SMALL_FLOATS, dtypes.bfloat16, dtypes.float16), dtypes.float32
)

# The dtype in which integers of few bits are computed: NumPy has no loops for them.
BYTES: dict[Any, np.dtype[Any]] = {
    d: (dtypes.int8 if d in dtypes.SIGNED else dtypes.uint8) for d in dtypes.SMALL_INTEGERS
}


def same_dtype(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like `ufunc` whose result has the dtype of its first operand.

    `ml_dtypes` gives `int8` for many operations on integers of fewer bits.
    """

    def rule(x: Any, *rest: Any) -> Any:
        out = ufunc(x, *rest)
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return rule


def in_wider(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes floats of fewer than 32 bits in float32, rounding once."""

    def rule(x: Any, *rest: Any, **params: Any) -> Any:
        wide = WIDER.get(x.dtype)
        if wide is None:
            return function(x, *rest, **params)
        return function(
            x.astype(wide), *[r.astype(wide) for r in rest], **params
        ).astype(x.dtype)  # fmt: skip

    return rule


def in_bytes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes integers of fewer than 8 bits in 8 bits."""

    def rule(x: Any, *rest: Any) -> Any:
        wide = BYTES.get(x.dtype)
        if wide is None:
            return function(x, *rest)
        return function(x.astype(wide), *[r.astype(wide) for r in rest]).astype(x.dtype)

    return rule
