"""Comparisons: eq, ne, lt, le, gt, ge, and the total order of floats: eq_to, lt_to, le_to.

Results are booleans. Semantics: StableHLO specification, section compare. NaN is unordered and
unequal to itself; in the total order -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xnp.primitives import costs
from xnp.primitives.operations import bind
from xnp.primitives.table import (
    ANY,
    COMPLEX,
    FLOATING,
    UNSIGNED,
    Kinds,
    binary,
)
from xprim import ZERO, Primitive, dtypes, primitive_maker, shaped_array
from xprim.contracts import Builder

__all__ = ()


def _compare_stablehlo(direction: str, *, total_order: bool = False) -> Callable[..., list[str]]:
    def rule(b: Builder, operands: Any, avals_in: Any, avals_out: Any) -> list[str]:
        (out,) = avals_out
        dtype = avals_in[0].dtype
        names = [b.broadcast(x, a, out.shape) for x, a in zip(operands, avals_in, strict=True)]
        types = [shaped_array(out.shape, dtype)] * 2
        kind = "TOTALORDER" if total_order else _comparison_type(dtype)
        return b.op(
            "stablehlo.compare", names, types, avals_out,
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>",
        )  # fmt: skip

    return rule


def _comparison_type(dtype: np.dtype[Any]) -> str:
    if dtype in FLOATING or dtype in COMPLEX:
        return "FLOAT"
    return "UNSIGNED" if dtype in UNSIGNED or dtype == dtypes.bool_ else "SIGNED"


@primitive_maker
def _comparison(name: str, kinds: Kinds, ufunc: Any, direction: str, **more: Any) -> Primitive:
    return binary(
        name, kinds, numpy=ufunc, stablehlo=_compare_stablehlo(direction), jvp=ZERO,
        out_dtype=dtypes.bool_, cost=costs.arithmetic, **more,
    )  # fmt: skip


def _of_elements(name: str, reduction: str) -> Callable[..., Any]:
    """Return the rule for extended dtypes: elements are equal where all of their numbers are."""

    def rule(trailing: int, x: Any, y: Any) -> Any:
        found = bind(name, x, y)
        axes = tuple(range(found.aval.ndim - trailing, found.aval.ndim))
        return (bind(reduction, found, axes=axes) if axes else found,)

    return rule


eq_p = _comparison("eq", ANY, np.equal, "EQ", physical=_of_elements("eq", "reduce_and"))
ne_p = _comparison("ne", ANY, np.not_equal, "NE", physical=_of_elements("ne", "reduce_or"))
lt_p = _comparison("lt", ANY - COMPLEX, np.less, "LT")
le_p = _comparison("le", ANY - COMPLEX, np.less_equal, "LE")
gt_p = _comparison("gt", ANY - COMPLEX, np.greater, "GT")
ge_p = _comparison("ge", ANY - COMPLEX, np.greater_equal, "GE")


def total_order_key(x: Any) -> Any:
    """Return signed integers that are ordered as the floats are in the total order.

    The bits of a float, read as an integer, order positive floats; negative ones the other way.
    """
    bits = x.view(f"i{x.dtype.itemsize}")
    if x.dtype.itemsize == 1 and dtypes.itemsize_bits(x.dtype) < 8:  # stored in a byte
        bits = bits << (8 - dtypes.itemsize_bits(x.dtype))
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, np.invert(bits) ^ lowest, bits)


@primitive_maker
def _total_order(name: str, ufunc: Any, direction: str) -> Primitive:
    return binary(
        name, FLOATING, numpy=lambda x, y: ufunc(total_order_key(x), total_order_key(y)),
        stablehlo=_compare_stablehlo(direction, total_order=True), jvp=ZERO, out_dtype=dtypes.bool_,
    )  # fmt: skip


eq_to_p = _total_order("eq_to", np.equal, "EQ")
lt_to_p = _total_order("lt_to", np.less, "LT")
le_to_p = _total_order("le_to", np.less_equal, "LE")
