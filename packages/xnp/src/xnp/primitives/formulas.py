"""Short names for what derivative formulas are made of, and NumPy helpers of their values.

A formula such as d sqrt(x) = dx / (2 sqrt(x)) reads `mul(x_dot, div(constant(x, 0.5), y))`. The
functions here take and give single Arrays and check nothing. The NumPy helpers bring results to
the exact dtype where NumPy or `ml_dtypes` computes in another one.

Neighbours: `table` assembles primitives, `arithmetic` defines the four operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xprim import dtypes, get_primitive, scalar_array

_bound: dict[str, Callable[..., Any]] = {}


def bind(name: str, *operands: Any, **params: Any) -> Any:
    """Apply the primitive of that name and return its one result."""
    function = _bound.get(name)
    if function is None:
        function = _bound[name] = get_primitive(name).bind
    return function(*operands, **params)[0]


def add(x: Any, y: Any) -> Any:
    """Return x + y."""
    return bind("add", x, y)


def sub(x: Any, y: Any) -> Any:
    """Return x - y."""
    return bind("sub", x, y)


def mul(x: Any, y: Any) -> Any:
    """Return x y."""
    return bind("mul", x, y)


def div(x: Any, y: Any) -> Any:
    """Return x / y."""
    return bind("div", x, y)


def neg(x: Any) -> Any:
    """Return -x."""
    return bind("neg", x)


def constant(like: Any, value: Any) -> Any:
    """Return a scalar of the dtype of `like`."""
    return scalar_array(value, like.aval.dtype)


def scaled(x: Any, factor: Any) -> Any:
    """Return x times a Python number."""
    return bind("mul", x, scalar_array(factor, x.aval.dtype))


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition holds and y elsewhere; scalars are repeated."""
    return bind("select_n", condition, y, x)


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return x converted to a dtype."""
    if x.aval.dtype == dtype:
        return x
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=False)


# --- NumPy -------------------------------------------------------------------------------------

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
