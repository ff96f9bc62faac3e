"""Uniform samples between bounds."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from xnp import lax
from xnp.docstrings import complete
from xnp.placing import placed
from xprim import Array, ConcreteArray, dtypes
from xprim.errors import ShapeError, message
from xprim.tracebacks import boundary
from xprim.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from xrandom.arguments import (
    Shape,
    broadcasted,
    checked_shape,
    floating_dtype,
    parameter,
    repeated,
)
from xrandom.keys import words_of
from xrandom.standard_distributions import raw_uniform


@boundary
def uniform(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Draw from the uniform distribution on [minval, maxval).

    Args:
      key: a single random key, of either form.
      shape: the shape of the result.
      dtype: a real floating dtype; None takes float32, or float64 with `enable_x64`.
      minval: the lower bound, of a shape that broadcasts to `shape`.
      maxval: the upper bound, likewise.
      out_sharding: where the result is placed: None, or a sharding of one device.

    Returns:
      Values `minval + u (maxval - minval)` with `u` a multiple of the dtype's epsilon in [0, 1).
      Rounding can give `maxval` itself where the bounds are close together.

    Differentiable in `minval` and `maxval`.

    Example:
      >>> from xrandom import key, uniform
      >>> u = uniform(key(0), (3,))
      >>> bool((u >= 0).all() and (u < 1).all())
      True
    """
    words = words_of(key, "uniform")
    exact = floating_dtype(dtype, "uniform")
    sizes = checked_shape(shape, "uniform")
    if type(minval) is float and type(maxval) is float:
        return placed(uniform_between(words, sizes, exact, minval, maxval), out_sharding, "uniform")
    low = parameter(minval, exact, "uniform: minval")
    high = parameter(maxval, exact, "uniform: maxval")
    for name, bound in (("minval", low), ("maxval", high)):
        _check_bound(name, bound.shape, sizes)
    low, high = broadcasted(low, sizes), broadcasted(high, sizes)
    u = raw_uniform(words, sizes, exact)
    span = lax.sub(high, low)
    sample = lax.max(low, lax.add(lax.mul(u, span), low))
    if _may_be_endless(span):
        endless = repeated(lax.bitwise_and(_is_infinite(span), lax.ne(high, math.inf)), sizes)
        sample = lax.select(endless, _between_halves(u, low, high), sample)
    return placed(sample, out_sharding, "uniform")


def _is_infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), math.inf)


def _may_be_endless(span: Any) -> bool:
    """Whether the difference of two bounds is, or may be, above the greatest number."""
    if type(span) is not ConcreteArray or span.host is None:
        return True
    if not span.ndim:
        return math.isinf(float(span.host))
    host = span.host if span.host.dtype.kind == "f" else span.host.astype(np.float32)
    return bool(np.isinf(host).any())


def _between_halves(u: Any, low: Any, high: Any) -> Any:
    """Return `low + u (high - low)` for bounds whose difference is above the greatest number."""
    return lax.add(lax.mul(u, high), lax.mul(lax.sub(1.0, u), low))


def raw_positive(words: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw uniformly from (0, 1): multiples of epsilon, and half of it for 0.

    A logarithm, or an inverse, of 0 or of the least number above it is no sample: in bfloat16 one
    of 128 numbers is 0.
    """
    return lax.max(raw_uniform(words, shape, dtype), float(dtypes.finfo(dtype).eps) / 2)


def _check_bound(name: str, shape: Shape, sizes: Shape) -> None:
    try:
        if np.broadcast_shapes(shape, sizes) == sizes:
            return
    except ValueError:
        pass
    raise ShapeError(message(
        "uniform", f"{name} must broadcast to the shape of the sample.",
        got=f"{name} of shape {shape}", expected=f"a shape that broadcasts to {sizes}",
    ))  # fmt: skip


def uniform_between(
    words: Any, shape: Shape, dtype: np.dtype[Any], minval: float, maxval: float
) -> Array:
    """Draw uniformly between two Python numbers."""
    u = raw_uniform(words, shape, dtype)
    if minval == 0.0 and maxval == 1.0:
        return u
    low, span, ordered = _span(dtype, minval, maxval)
    if math.isinf(span) and not math.isinf(low):
        return lax.max(_between_halves(u, low, float(np.array(maxval).astype(dtype))), low)
    if span != 1.0:
        u = lax.mul(u, span)
    u = lax.add(u, low)
    return u if ordered else lax.max(u, low)


@functools.lru_cache(maxsize=256)
def _span(dtype: np.dtype[Any], minval: float, maxval: float) -> tuple[float, float, bool]:
    """Return the bounds' lower one and difference, rounded to the dtype, and whether it is >= 0."""
    with np.errstate(all="ignore"):
        low, high = np.array(minval).astype(dtype), np.array(maxval).astype(dtype)
        span = high - low
    return float(low), float(span), bool(span >= 0)


complete(globals())
