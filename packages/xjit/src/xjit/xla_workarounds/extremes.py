"""Extremes of floats on CPUs: XLA's YNNPACK loses NaN.

    reduce_max, reduce_min                  from 4,096 elements on
    reduce_window_max, reduce_window_min    likewise, of windows that do not overlap

The greatest of 10,000 numbers and a NaN is a number (jaxlib 0.10.2 to 0.12.0.1; `jit(jnp.max)` of
JAX alike; subject upstream: reductions by YNNPACK; no issue is known). Around it NaN is selected
where an element is NaN. Sums keep NaN: where the sum of all is not NaN, no element is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xprim import Builder, ShapedArray, dtypes, get_primitive, shaped_array

__all__ = ()

Names = Sequence[str]
Avals = Sequence[ShapedArray]

_LOSES_NAN = frozenset([dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16])
_LEAST_OF_YNNPACK = 4096

# By the name of the primitive: the one that says whether any of the same elements holds.
_ANY = {
    "reduce_max": "reduce_or", "reduce_min": "reduce_or",
    "reduce_window_max": "reduce_window_max", "reduce_window_min": "reduce_window_max",
}  # fmt: skip

EXTREMES = frozenset(_ANY)
"""The names of the primitives that are written so in programs for CPUs."""


def write_extremes(
    name: str, rule: Callable[..., Names], b: Builder, operands: Names, avals_in: Avals,
    avals_out: Avals, **params: Any,
) -> Names:  # fmt: skip
    """Write the extremes of elements, NaN where one of these is NaN.

    Args:
      name: of the primitive, one of `EXTREMES`.
      rule: writes the operation as it is; the other arguments are its.
      b: the builder.
      operands: the name of the operand.
      avals_in: its type.
      avals_out: the type of the result.
      **params: of the primitive.
    """
    results = rule(b, operands, avals_in, avals_out, **params)
    (x,), (aval,), (out,) = operands, avals_in, avals_out
    is_small = type(aval.size) is int and aval.size < _LEAST_OF_YNNPACK
    if is_small or aval.dtype not in _LOSES_NAN or _has_overlaps(out, params):
        return results
    rule_of_any = get_primitive(_ANY[name]).rules["stablehlo"]
    flag = shaped_array((), dtypes.bool_)
    flags, truth = [shaped_array(a.shape, dtypes.bool_) for a in (aval, out)]

    def exact(inner: Any, _: Any = ()) -> Names:
        # without the barrier the compiler computes both branches
        (held,) = inner.op("stablehlo.optimization_barrier", [x], [aval], [aval])
        is_nan = _differs(inner, held, aval, flags)
        found: Names = rule_of_any(inner, [is_nan], [flags], [truth], **params)
        return found

    if b.is_split:  # the partitioner cuts no branches
        (is_nan,) = exact(b)
    else:
        scalar = shaped_array((), aval.dtype)
        dims = ", ".join(map(str, range(aval.ndim)))
        (total,) = b.op(
            "stablehlo.reduce", [x, b.scalar(0, aval.dtype)], [aval, scalar], [scalar],
            f"dimensions = array<i64: {dims}>", b.reducer("stablehlo.add", aval.dtype),
        )  # fmt: skip
        none = b.region([], lambda inner, _: [inner.full_like(False, truth)], [truth])
        regions = b.regions(b.region([], exact, [truth]), none)
        any_nan = _differs(b, total, scalar, flag)
        (is_nan,) = b.op("stablehlo.if", [any_nan], [flag], [truth], "", regions)
    chosen = [is_nan, b.full_like(np.nan, out), *results]
    return b.op("stablehlo.select", chosen, [truth, out, out], [out])


def _has_overlaps(out: ShapedArray, params: Mapping[str, Any]) -> bool:
    """Return whether windows overlap, of which YNNPACK has none."""
    if "window_dimensions" not in params:
        return False
    windows = zip(params["window_dimensions"], params["window_strides"], out.shape, strict=True)
    return any(size > 1 and size != step and n != 1 for size, step, n in windows)


def _differs(b: Builder, x: str, aval: ShapedArray, truth: ShapedArray) -> str:
    """Write which elements differ from themselves, as NaN alone does."""
    attribute = "comparison_direction = #stablehlo<comparison_direction NE>"
    return b.op("stablehlo.compare", [x, x], [aval, aval], [truth], attribute)[0]
