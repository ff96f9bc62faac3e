"""Quantiles by the inverse of the distribution function, in which elements may have weights.

The quantile q is the least element up to which the weights sum to q of their total (method
"inverted_cdf"; NumPy allows weights for this one alone). An element of weight 0 is never it.
Neighbour: `statistics` has the methods that interpolate between two elements.
"""

from __future__ import annotations

import math
from typing import Any

from xnp.numpy.indexing import take_along_axis
from xnp.numpy.promoting import (
    axes_of,
    bind,
    broadcasted,
    cast,
    inexact,
    reshaped,
    scalar_like,
    selected,
)
from xnp.numpy.reductions import any as any_, kept, sum as summed
from xnp.numpy.running_totals import cumsum
from xnp.numpy.shaping import moveaxis
from xnp.numpy.sorting import argsort
from xprim import Array, dtypes
from xprim.errors import message

__all__ = ()


def inverted_cdf(
    operation: str, a: Any, q: Any, axis: Any, weights: Any, keepdims: bool, skip_nan: bool
) -> Array:
    """Return the quantiles `q` of the elements of `a` over axes.

    Args:
      operation: what errors call the public function.
      a: a real array.
      q: a number from 0 to 1 or a vector of such, which comes first in the result.
      axis: the axes; None for all.
      weights: None, or numbers that are not negative, of the shape of `a` or of its axes.
      keepdims: whether reduced axes stay with size 1.
      skip_nan: whether NaN elements are left out; else a line that has one gives NaN.
    """
    a, q = inexact(operation, a, q)
    shape = a.aval.shape
    axes = axes_of(axis, len(shape), operation)
    values, masses = _lines(a, axes), _line_weights(operation, a, axis, axes, weights)
    order = argsort(values, -1)
    values, masses = take_along_axis(values, order, -1), take_along_axis(masses, order, -1)
    is_nan = bind("ne", values, values)
    zero = scalar_like(masses, 0)
    bad = bind("not", bind("ge", masses, zero))  # negative, or NaN
    sums = cumsum(selected(bind("or", is_nan, bad), zero, masses), -1)
    spoiled = bind("or", any_(bad, -1), _no_mass(sums))
    if not skip_nan:
        spoiled = bind("or", spoiled, any_(is_nan, -1))
    results = [_reached(values, sums, q[i]) for i in range(q.aval.shape[0])] if q.aval.ndim else [
        _reached(values, sums, q)]  # fmt: skip
    results = [selected(spoiled, scalar_like(x, math.nan), x) for x in results]
    results = [kept(x, shape, axes, keepdims) for x in results]
    if not q.aval.ndim:
        return results[0]
    return bind("concatenate", *[reshaped(x, (1, *x.aval.shape)) for x in results], dimension=0)


def _line_weights(operation: str, a: Array, axis: Any, axes: Any, weights: Any) -> Array:
    """Return the weights of the lines of `a`, in a dtype in which they may be summed."""
    shape = a.aval.shape
    reduced = tuple([shape[d] for d in axes])
    weights = 1.0 if weights is None else weights
    (weights,) = inexact(operation, weights)
    if dtypes.is_complex(weights.aval.dtype):
        raise ValueError(f"{operation}: weights must not be complex.")
    own = weights.aval.shape
    if own and own != shape and (axis is None or own != reduced):
        raise ValueError(message(
            operation, "the weights have another shape than what they weigh.",
            got=f"weights: {weights.aval.str_long()}, a: {a.aval.str_long()}",
            expected=f"the shape {shape}"
            + ("" if axis is None else f", or that of the axes, {reduced}"),
        ))  # fmt: skip
    if dtypes.itemsize_bits(weights.aval.dtype) < 32:
        weights = cast(weights, dtypes.float32)
    if own and own == shape:
        return _lines(weights, axes)
    outer = [n for d, n in enumerate(shape) if d not in axes]
    line = reshaped(weights, (math.prod(own),)) if own else weights
    return broadcasted(line, (*outer, math.prod(reduced)))


def _lines(x: Array, axes: tuple[int, ...]) -> Array:
    """Return an array whose last dimension runs over some axes together."""
    shape = x.aval.shape
    outer = tuple([n for d, n in enumerate(shape) if d not in axes])
    moved = moveaxis(x, axes, tuple(range(len(outer), len(shape))))
    return reshaped(moved, (*outer, math.prod([shape[d] for d in axes])))


def _no_mass(sums: Array) -> Array:
    total = sums[..., -1] if sums.aval.shape[-1] else summed(sums, -1)
    return bind("eq", total, scalar_like(total, 0))


def _reached(values: Array, sums: Array, q: Any) -> Array:
    """Return the first element of each line at which the sum of weights reaches its part `q`."""
    if not values.aval.shape[-1]:
        return summed(values, -1)
    total = sums[..., -1:]
    target = broadcasted(bind("mul", cast(q, total.aval.dtype), total), sums.aval.shape)
    before = bind("or", bind("lt", sums, target), bind("eq", sums, scalar_like(sums, 0)))
    place = summed(before, -1, dtypes.int32, keepdims=True)
    last = scalar_like(place, max(values.aval.shape[-1] - 1, 0))
    return take_along_axis(values, bind("min", place, last), -1)[..., 0]
