"""One quantile of sorted lines: between the two elements next to its place.

Where a line has a NaN, or nothing but NaN, the result is NaN and has no slopes. Neighbours:
`statistics` sorts the lines, `weighted_quantiles` takes elements by their weights.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.numpy.creation import counting
from xnp.numpy.indexing import read
from xnp.numpy.promoting import array_of, bind, broadcasted, cast, filled, scalar_like, selected
from xnp.numpy.reductions import any as any_, sum as summed
from xprim import Array, dtypes

__all__ = ()


def interpolated(lines: Any, q: Any, count: int, method: str, skip_nan: bool) -> Array:
    """Return one quantile of sorted lines, which NaN stands at the ends of.

    Args:
      lines: arrays of shape (..., count), ascending.
      q: the quantile, from 0 to 1.
      count: how many elements a line has.
      method: which of the two elements next to the place, or what between them.
      skip_nan: whether NaN is left out; otherwise it makes the result NaN.
    """
    dtype, outer = lines.aval.dtype, lines.aval.shape[:-1]
    is_nan = bind("ne", lines, lines)
    numbers = summed(bind("not", is_nan), -1, dtype) if skip_nan else filled(outer, count, dtype)
    last = bind("sub", array_of(numbers, "quantile"), scalar_like(lines, 1))
    place = bind("mul", broadcasted(cast(q, dtype), outer), last)
    zero = scalar_like(place, 0)
    low, high = bind("floor", place), bind("ceil", place)
    weight = bind("sub", place, low)
    low, high = [bind("max", bind("min", v, last), zero) for v in (low, high)]
    spoiled = bind("lt", last, zero) if skip_nan else any_(is_nan, -1)
    # what is spoiled has no slopes: no product with NaN may reach the operands
    below, above = [selected(spoiled, zero, _picked(lines, v)) for v in (low, high)]
    if method == "linear":
        result = _between(below, above, weight)
    elif method == "midpoint":
        result = bind("mul", bind("add", below, above), scalar_like(below, 0.5))
    elif method == "nearest":
        nearer = bind("le", weight, scalar_like(weight, 0.5))
        result = selected(nearer, below, above)
    else:
        result = below if method == "lower" else above
    return selected(spoiled, scalar_like(result, math.nan), result)


def _between(below: Array, above: Array, weight: Array) -> Array:
    """Return a point of the line from one number to another; of equal infinities, the infinity."""
    infinite = bind("and", bind("eq", below, above), bind("not", bind("is_finite", below)))
    zero, one = scalar_like(below, 0), scalar_like(weight, 1)
    low, high = [selected(infinite, zero, x) for x in (below, above)]
    point = bind("add", bind("mul", low, bind("sub", one, weight)), bind("mul", high, weight))
    return selected(infinite, below, point)


def _picked(lines: Any, place: Any) -> Array:
    """Return the element of each line at a whole number."""
    rank = lines.aval.ndim
    index = [counting(place.aval.shape, d, dtypes.int32) for d in range(rank - 1)]
    return read(lines, (*index, cast(place, dtypes.int32)))
